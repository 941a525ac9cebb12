"""The worker process that runs Lua scripts: started on first use, killed when a script times out, then restarted."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from windlass.errors import WindlassError

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from types import TracebackType
    from typing import Self

PROGRAM = Path(__file__).with_name("interpreter.py")
HEADER_SIZE = 4  # bytes of the length prefix
MAX_RESPONSE_BYTES = 1 << 20  # the worker cuts texts to a fraction of it; only a broken one sends more
RUN_TIMEOUT = timedelta(seconds=2)  # a health check normally takes less than a millisecond
MAX_TIMEOUTS = 2  # not 1: a single timeout may be caused by a busy host
START_TIMEOUT = timedelta(seconds=20)
NO_ANSWER = "the process it ran in ended without an answer"
NOT_AN_ANSWER = "the process it ran in sent what is no answer"
KILL_TIMEOUT = timedelta(seconds=5)  # a killed process normally exits much sooner


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """What a script returned, or the error if it returned nothing."""

    status: str = ""
    message: str = ""
    error: str = ""


_ANSWER_DECODER = msgspec.json.Decoder(ScriptResult)


class BrokenAnswer(WindlassError):
    """The process that runs a script sent no answer, or something else."""


class LuaWorker:
    """Runs one script at a time. A script that has timed out `MAX_TIMEOUTS` times is not run again."""

    def __init__(self, timeout: timedelta = RUN_TIMEOUT) -> None:
        self._timeout = timeout
        self._lock = asyncio.Lock()
        self._process: Process | None = None
        self._timeouts = Counter[str]()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def pid(self) -> int | None:
        """`None` if no process is running."""
        return self._process.pid if self._process else None

    async def run(self, script: str, resource: dict[str, Any]) -> ScriptResult:
        async with self._lock:
            timed_out = ScriptResult(error=f"it did not end within {self._timeout.total_seconds():g} s")
            if self._timeouts[script] >= MAX_TIMEOUTS:
                return timed_out
            try:
                return await self._request(script, resource)
            except TimeoutError:
                self._timeouts[script] += 1
                return timed_out
            except OSError as error:
                return ScriptResult(error=f"there is no process to run it in: {error.strerror or type(error).__name__}")
            except BrokenAnswer as error:
                return ScriptResult(error=error.what)

    async def _request(self, script: str, resource: dict[str, Any]) -> ScriptResult:
        try:
            process = self._process or await self._start()
            async with asyncio.timeout(self._timeout.total_seconds()):
                return await _exchange(process, msgspec.json.encode({"script": script, "object": resource}))
        except BaseException:  # its response may still arrive and would be taken for the next one
            await self.close()
            raise

    async def _start(self) -> Process:
        """Start the process with an empty environment, which may otherwise contain secrets."""
        arguments = (sys.executable, "-I", str(PROGRAM))
        self._process = process = await asyncio.create_subprocess_exec(
            *arguments, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={}, start_new_session=True
        )
        try:
            async with asyncio.timeout(START_TIMEOUT.total_seconds()):
                await _read_answer_of(process)
        except TimeoutError:
            raise BrokenAnswer(NO_ANSWER) from None
        return process

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        try:
            async with asyncio.timeout(KILL_TIMEOUT.total_seconds()):
                await process.wait()
        except TimeoutError:  # pragma: no cover - only on a broken system
            process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - closes pipes before the loop ends


async def _exchange(process: Process, content: bytes) -> ScriptResult:
    assert process.stdin is not None
    process.stdin.write(len(content).to_bytes(HEADER_SIZE) + content)
    await process.stdin.drain()
    return await _read_answer_of(process)


async def _read_answer_of(process: Process) -> ScriptResult:
    assert process.stdout is not None
    return await read_answer(process.stdout)


async def read_answer(stream: asyncio.StreamReader) -> ScriptResult:
    """The next answer of the process, which a script may have taken over. Raises `BrokenAnswer` and nothing else."""
    try:
        length = int.from_bytes(await stream.readexactly(HEADER_SIZE))
        if length > MAX_RESPONSE_BYTES:
            raise BrokenAnswer(NOT_AN_ANSWER)
        return _ANSWER_DECODER.decode(await stream.readexactly(length))
    except EOFError:
        raise BrokenAnswer(NO_ANSWER) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BrokenAnswer(NOT_AN_ANSWER) from None
