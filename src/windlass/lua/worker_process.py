"""The process that runs Lua for us: started when first needed, killed if a program does not end, then started anew."""

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

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from types import TracebackType
    from typing import Self

PROGRAM = Path(__file__).with_name("interpreter.py")
HEADER = 4  # bytes of a length
RUN_LIMIT = timedelta(seconds=2)  # a check takes less than a millisecond
TRIES = 2  # once may be the machine's fault
START_LIMIT = timedelta(seconds=20)
KILL_LIMIT = timedelta(seconds=5)  # a killed process is gone much sooner, if the system is well


@dataclass(frozen=True, slots=True)
class Said:
    """What a program returned, or why it returned nothing."""

    status: str = ""
    message: str = ""
    error: str = ""


class LuaWorker:
    """Callers take turns. A program that again and again does not end in time is not run any more."""

    def __init__(self, limit: timedelta = RUN_LIMIT) -> None:
        self._limit = limit
        self._turn = asyncio.Lock()
        self._process: Process | None = None
        self._unended = Counter[str]()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def pid(self) -> int | None:
        """Of the process, if there is one."""
        return self._process.pid if self._process else None

    async def run(self, script: str, item: dict[str, Any]) -> Said:
        async with self._turn:
            late = Said(error=f"it did not end within {self._limit.total_seconds():g} s")
            if self._unended[script] >= TRIES:
                return late
            try:
                return await self._asked(script, item)
            except TimeoutError:
                self._unended[script] += 1
                return late
            except OSError as error:
                return Said(error=f"there is no process to run it in: {error.strerror or type(error).__name__}")
            except EOFError:
                return Said(error="the process it ran in ended without an answer")

    async def _asked(self, script: str, item: dict[str, Any]) -> Said:
        try:
            process = self._process or await self._started()
            async with asyncio.timeout(self._limit.total_seconds()):
                return await _exchanged(process, msgspec.json.encode({"script": script, "object": item}))
        except BaseException:  # nobody knows what it will say next
            await self.close()
            raise

    async def _started(self) -> Process:
        """Without our environment: what is secret there is nobody's business here."""
        arguments = (sys.executable, "-I", str(PROGRAM))
        self._process = process = await asyncio.create_subprocess_exec(
            *arguments, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env={}, start_new_session=True
        )
        try:
            async with asyncio.timeout(START_LIMIT.total_seconds()):
                await _answer(process)
        except TimeoutError:
            raise EOFError from None
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
            async with asyncio.timeout(KILL_LIMIT.total_seconds()):
                await process.wait()
        except TimeoutError:  # pragma: no cover - only on a system that is not well
            process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - its pipes, before the loop ends


async def _exchanged(process: Process, content: bytes) -> Said:
    assert process.stdin is not None
    process.stdin.write(len(content).to_bytes(HEADER) + content)
    await process.stdin.drain()
    return msgspec.convert(await _answer(process), Said)


async def _answer(process: Process) -> Any:
    assert process.stdout is not None
    length = int.from_bytes(await process.stdout.readexactly(HEADER))
    return msgspec.json.decode(await process.stdout.readexactly(length))
