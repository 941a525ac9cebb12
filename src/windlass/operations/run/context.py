"""What every run that changes a cluster shares: its request, its client and settings, and how it is stopped."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from windlass.core.platform.events import Level, Noticed
from windlass.core.platform.reporting.reports import Action, ApiCalls, Run
from windlass.errors import WindlassError
from windlass.operations.observation import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
    from datetime import datetime, timedelta

    from windlass.argo.health.assessment import Judge
    from windlass.core.platform.events import Tell
    from windlass.core.platform.model.scopes import Scope
    from windlass.kube.client.clients import KubeClient

R = TypeVar("R")


class Stopped(WindlassError):
    """The run was stopped, or timed out, before it changed anything."""


@contextmanager
def unwrapped() -> Iterator[None]:
    """Raise the first cause instead of the exception group in which a task group wraps it."""
    try:
        yield
    except BaseExceptionGroup as group:
        first: BaseException = group
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None


@dataclass(slots=True)
class Control:
    """Stops a run early and records why. Steps in progress are abandoned; the run still returns a report."""

    tell: Tell
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    why: str = ""
    error: WindlassError | None = None
    """The error after which the run could not continue."""
    was_interrupted: bool = False
    is_out_of_time: bool = False

    def interrupt(self) -> None:
        self.was_interrupted = True
        self._end("interrupted: nothing more is started")

    def run_out_of_time(self) -> None:
        self.is_out_of_time = True
        self._end("out of time (see --timeout): nothing more is started")

    def fail(self, error: WindlassError) -> None:
        """Stop because of an error that is not a failure of the platform, such as a lost lock."""
        self.was_interrupted = True
        self.error = self.error or error
        self._end(str(error))

    @asynccontextmanager
    async def within(self, limit: timedelta) -> AsyncIterator[None]:
        timer = asyncio.get_running_loop().call_later(limit.total_seconds(), self.run_out_of_time)
        try:
            yield
        finally:
            timer.cancel()

    async def unless_stopped(self, work: Coroutine[Any, Any, R]) -> R:
        """Await `work`; raise `Stopped`, or the error that stopped the run, if the run is stopped first."""
        if self.stop.is_set():
            work.close()
            raise self.error or Stopped(self.why)
        with unwrapped():
            async with asyncio.TaskGroup() as tasks:
                working = tasks.create_task(work, name="prepare")
                stopping = tasks.create_task(self.stop.wait(), name="stop")
                await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
                working.cancel()
                stopping.cancel()
        if working.cancelled():
            raise self.error or Stopped(self.why)
        return working.result()

    def _end(self, why: str) -> None:
        if not self.stop.is_set():
            self.why = why
            self.tell(Noticed(Level.ERROR, why))
            self.stop.set()


class Asked(NamedTuple):
    action: Action
    environment: str
    scope: Scope


@dataclass(frozen=True, slots=True)
class Access:
    """A cluster that a run may change, and the limits of the run."""

    client: KubeClient
    now: Callable[[], datetime]
    """Current time by the server's clock."""
    argocd: str
    run_id: str
    control: Control
    limit: timedelta
    """Timeout of the whole run."""
    judge: Judge = BUILT_IN

    def run(self, asked: Asked, started: datetime, *, refreshes: int = 0) -> Run:
        """The run as of now, for the report. `refreshes`: how many of the writes only requested a refresh."""
        counts = self.client.counts
        return Run(
            action=asked.action,
            environment=asked.environment,
            scope=str(asked.scope),
            started=started,
            finished=self.now(),
            calls=ApiCalls(counts.total - counts.writes, counts.writes - refreshes, refreshes),
            run_id=self.run_id,
            is_out_of_time=self.control.is_out_of_time,
            was_interrupted=self.control.was_interrupted,
            argocd=self.argocd,
        )
