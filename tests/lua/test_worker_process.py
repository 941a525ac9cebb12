"""The process that runs Lua: one for all, killed when it must be, never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from windlass.kube.clocks import Clock
from windlass.lua import interpreter, worker_process
from windlass.lua.worker_process import MAX_TIMEOUTS, LuaWorker, ScriptResult

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ENDLESS = "while true do end"
PATHOLOGICAL = "return {status = string.find(('a'):rep(60), ('a?'):rep(60) .. ('a'):rep(60) .. 'b')}"
GOOD = "return {status = 'Healthy', message = obj.name}"
QUICK = timedelta(seconds=0.7)


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def environment_of(pid: int) -> bytes:
    there = Path(f"/proc/{pid}/environ")
    if not there.exists():
        pytest.skip("only Linux shows it")
    return there.read_bytes()


def limits_of(pid: int) -> dict[str, list[str]]:
    """Soft and hard limit by name."""
    there = Path(f"/proc/{pid}/limits")
    if not there.exists():
        pytest.skip("only Linux shows it")
    return {line[:26].strip(): line[26:].split()[:2] for line in there.read_text().splitlines()[1:]}


@pytest.fixture
async def worker() -> AsyncIterator[LuaWorker]:
    async with LuaWorker(timedelta(seconds=20)) as found:
        yield found


async def test_no_process_before_somebody_asks(worker: LuaWorker) -> None:
    assert worker.pid is None


async def test_one_process_serves_all(worker: LuaWorker) -> None:
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(worker.run(GOOD, {"name": str(number)})) for number in range(20)]
        pids = [tasks.create_task(worker.run("return {message = 'x'}", {})) for _ in range(3)]
    assert [each.result() for each in asked] == [ScriptResult("Healthy", str(number)) for number in range(20)]
    assert {each.result() for each in pids} == {ScriptResult(message="x")}
    first = worker.pid
    assert first
    await worker.run(GOOD, {})
    assert worker.pid == first
    await worker.close()
    assert not is_there(first)


@pytest.mark.parametrize("script", [ENDLESS, PATHOLOGICAL], ids=["endless", "pathological"])
async def test_what_does_not_end_is_killed_and_in_the_end_not_run_any_more(script: str) -> None:
    async with LuaWorker(QUICK) as worker:
        for _ in range(MAX_TIMEOUTS):
            assert await worker.run(GOOD, {"name": "a"}) == ScriptResult("Healthy", "a")
            pid = worker.pid
            assert pid
            assert (await worker.run(script, {})).error == "it did not end within 0.7 s"
            assert not is_there(pid)
        await worker.run(GOOD, {"name": "a"})
        pid = worker.pid
        assert (await worker.run(script, {})).error == "it did not end within 0.7 s"
        assert worker.pid == pid, "it was not run"


async def test_a_process_that_dies_is_replaced(worker: LuaWorker) -> None:
    await worker.run(GOOD, {})
    assert worker.pid
    os.kill(worker.pid, signal.SIGKILL)
    assert (await worker.run(GOOD, {"name": "a"})).error
    assert await worker.run(GOOD, {"name": "a"}) == ScriptResult("Healthy", "a")


async def test_who_is_cancelled_leaves_no_answer_for_the_next(worker: LuaWorker) -> None:
    await worker.run(GOOD, {})
    first = worker.pid
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await worker.run(ENDLESS, {})
    assert first
    assert not is_there(first)
    assert await worker.run(GOOD, {"name": "b"}) == ScriptResult("Healthy", "b")


async def test_an_interpreter_that_is_not_there(worker: LuaWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert (await worker.run(GOOD, {})).error == "there is no process to run it in: No such file or directory"


async def test_an_object_that_no_process_survives(worker: LuaWorker) -> None:
    deep: dict[str, Any] = {}
    for _ in range(600):
        deep = {"a": deep}
    assert (await worker.run(GOOD, deep)).error == "the process it ran in ended without an answer"
    assert await worker.run(GOOD, {"name": "a"}) == ScriptResult("Healthy", "a")


async def test_it_sees_nothing_of_our_environment(worker: LuaWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG_DATA", "secret")
    await worker.run(GOOD, {})
    assert worker.pid
    assert b"secret" not in environment_of(worker.pid)


async def test_the_kernel_limits_the_process(worker: LuaWorker) -> None:
    await worker.run(GOOD, {})
    assert worker.pid
    rows = limits_of(worker.pid)
    assert rows["Max address space"] == [str(interpreter.MAX_ADDRESS_SPACE)] * 2
    assert rows["Max open files"] == [str(interpreter.MAX_FILES)] * 2
    assert rows["Max processes"] == ["0", "0"]
    assert rows["Max file size"] == ["0", "0"]


async def test_the_kernel_limits_the_time_of_a_script(worker: LuaWorker) -> None:
    await worker.run(GOOD, {})
    assert worker.pid
    async with asyncio.TaskGroup() as tasks:
        endless = tasks.create_task(worker.run(ENDLESS, {}))
        for _ in range(200):
            if (seconds := limits_of(worker.pid)["Max cpu time"][0]) != "unlimited":
                break
            await Clock().sleep(0.05)
        os.kill(worker.pid, signal.SIGKILL)
    assert endless.result().error
    assert int(seconds) <= interpreter.ORPHAN_TIMEOUT + 20


async def test_a_long_text_is_cut_in_the_process(worker: LuaWorker) -> None:
    script = "return {status = ('s'):rep(10000000), message = ('\\195\\169'):rep(5000000)}"
    result = await worker.run(script, {})
    assert (result.status, result.message) == ("s" * interpreter.MAX_TEXT_LENGTH, "é" * interpreter.MAX_TEXT_LENGTH)
    failed = await worker.run("error(('x'):rep(10000000))", {})
    assert len(failed.error) == interpreter.MAX_TEXT_LENGTH


async def test_an_answer_that_no_worker_sends_is_not_read(
    worker: LuaWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program.py"
    program.write_text("import sys; sys.stdout.buffer.write(b'\\xff' * 100); sys.stdout.flush(); sys.stdin.read()")
    monkeypatch.setattr(worker_process, "PROGRAM", program)
    assert (await worker.run(GOOD, {})).error == worker_process.NOT_AN_ANSWER


async def test_an_orphan_ends_by_itself() -> None:
    """Even in the middle of a program that never ends, whose killer was killed."""
    code = "import signal, runpy; a = signal.alarm; signal.alarm = lambda s: a(min(s, 1)); "
    code += f"runpy.run_path({str(worker_process.PROGRAM)!r}, run_name='__main__')"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin
    request = b'{"script": "while true do end", "object": {}}'
    process.stdin.write(len(request).to_bytes(4) + request)
    async with asyncio.timeout(20):
        assert await process.wait() == -signal.SIGALRM


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", worker_process.NO_ANSWER),
        (b"\x00\x00\x00\x05{}", worker_process.NO_ANSWER),
        (b"\x7f\xff\xff\xff{}", worker_process.NOT_AN_ANSWER),
        (b"\x00\x00\x00\x02[]", worker_process.NOT_AN_ANSWER),
        (b"\x00\x00\x00\x0c" + b'{"status":1}', worker_process.NOT_AN_ANSWER),
        (b"\x00\x00\x00\x01\xff", worker_process.NOT_AN_ANSWER),
        (b"\x00\x00\xff\xff" + b"[" * 0xFFFF, worker_process.NOT_AN_ANSWER),
    ],
)
async def test_what_is_no_answer_is_our_error(content: bytes, problem: str) -> None:
    stream = asyncio.StreamReader()
    stream.feed_data(content)
    stream.feed_eof()
    with pytest.raises(worker_process.BrokenAnswer) as info:
        await worker_process.read_answer(stream)
    assert info.value.what == problem


async def test_a_process_that_was_taken_over_is_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It says that it is ready, and then sends something else; the next script gets a process of its own."""
    hostile = tmp_path / "hostile.py"
    hostile.write_text(
        "import sys\nsys.stdout.buffer.write(b'\\0\\0\\0\\2{}\\0\\0\\0\\2[]')\nsys.stdout.flush()\nsys.stdin.read()\n"
    )
    async with LuaWorker(timedelta(seconds=20)) as worker:
        monkeypatch.setattr(worker_process, "PROGRAM", hostile)
        assert (await worker.run(GOOD, {})).error == worker_process.NOT_AN_ANSWER
        monkeypatch.undo()
        assert await worker.run(GOOD, {"name": "a"}) == ScriptResult("Healthy", "a")
