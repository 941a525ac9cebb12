"""A process that is paused, as by SIGSTOP: none of its code runs for a while, and what it waits for waits, too."""

from __future__ import annotations

import asyncio
import types
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator


@dataclass(frozen=True, slots=True)
class Pause:
    """By the time of the loop."""

    start: float
    end: float

    @property
    def remaining(self) -> float:
        now = asyncio.get_running_loop().time()
        return self.end - now if self.start <= now else 0.0


_PAUSE: ContextVar[Pause | None] = ContextVar("pause", default=None)


def process_context(pause: Pause | None) -> Context:
    """The context of a process: the pause holds for all tasks that are started in it."""
    context = copy_context()
    context.run(_PAUSE.set, pause)
    asyncio.get_running_loop().set_task_factory(_create_task)
    return context


def _create_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    pause = options["context"].get(_PAUSE) if options.get("context") else _PAUSE.get()
    task: asyncio.Task[Any] = asyncio.Task(_pausable(coroutine, pause) if pause else coroutine, loop=loop, **options)
    task.add_done_callback(lambda _: coroutine.close())  # one that was cancelled before its start
    return task


@types.coroutine
def _pausable(coroutine: Coroutine[Any, Any, Any], pause: Pause) -> Generator[Any, Any, Any]:
    """Run the coroutine, but not during the pause: a cancellation that comes then is raised after it."""
    error: BaseException | None = None
    while True:
        while pause.remaining > 0:
            try:
                yield from asyncio.sleep(pause.remaining).__await__()  # noqa: TID251 - virtual time
            except BaseException as raised:  # noqa: BLE001 - thrown into the coroutine below
                error = raised
        try:
            awaited = coroutine.throw(error) if error else coroutine.send(None)
        except StopIteration as stop:
            return stop.value
        error = None
        try:
            yield awaited
        except BaseException as raised:  # noqa: BLE001 - thrown into the coroutine above
            error = raised
