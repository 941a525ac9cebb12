"""What every run that changes a cluster shares: the cluster, the lock, its limits, and how it is stopped."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from windlass.core.log_lines import Level, LogLine
from windlass.errors import WindlassError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator

    from windlass.argo.cd.refresher import Refresher
    from windlass.core.platform.events import EmitEvent
    from windlass.kube.clocks import Clock
    from windlass.kube.leases import ProcessLease
    from windlass.operations.observation import ObservedCluster

R = TypeVar("R")


class Stopped(WindlassError):
    """The run was stopped, or timed out, before it changed anything."""


@contextmanager
def unwrap_exception_groups() -> Iterator[None]:
    """Raise the first cause instead of the exception group in which a task group wraps it."""
    try:
        yield
    except BaseExceptionGroup as group:
        first: BaseException = group
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        raise first from None


@dataclass(slots=True)
class RunControl:
    """Stops a run early and records why. Steps in progress are abandoned; the run still returns a report."""

    emit: EmitEvent
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    stop_reason: str = ""
    error: WindlassError | None = None
    """The error after which the run could not continue."""
    was_interrupted: bool = False
    is_out_of_time: bool = False

    def interrupt(self) -> None:
        self.was_interrupted = True
        self._request_stop("interrupted by a signal")

    def run_out_of_time(self) -> None:
        self.is_out_of_time = True
        self._request_stop("the time limit of the run was over (--timeout)")

    def fail(self, error: WindlassError) -> None:
        """Stop because of an error that is not a failure of the platform, such as a lost lock."""
        self.was_interrupted = True
        self.error = self.error or error
        self._request_stop(str(error))

    @asynccontextmanager
    async def stop_after(self, timeout: timedelta) -> AsyncIterator[None]:
        timer = asyncio.get_running_loop().call_later(timeout.total_seconds(), self.run_out_of_time)
        try:
            yield
        finally:
            timer.cancel()

    async def unless_stopped(self, work: Coroutine[Any, Any, R]) -> R:
        """Await `work`; raise `Stopped`, or the error that stopped the run, if the run is stopped first."""
        if self.stop.is_set():
            work.close()
            raise self.error or Stopped(self.stop_reason)
        with unwrap_exception_groups():
            async with asyncio.TaskGroup() as tasks:
                work_task = tasks.create_task(work, name="prepare")
                stop_task = tasks.create_task(self.stop.wait(), name="stop")
                await asyncio.wait((work_task, stop_task), return_when=asyncio.FIRST_COMPLETED)
                work_task.cancel()
                stop_task.cancel()
        if work_task.cancelled():
            raise self.error or Stopped(self.stop_reason)
        return work_task.result()

    def _request_stop(self, reason: str) -> None:
        if not self.stop.is_set():
            self.stop_reason = reason
            self.emit(LogLine(Level.ERROR, reason))
            self.stop.set()


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a run may use: a cluster to read, a lock to acquire, and its limits. Only the held lock allows writes."""

    cluster: ObservedCluster
    lease: ProcessLease
    """The lock of runs; see `run_lock`."""
    refresher: Refresher
    run_id: str
    control: RunControl
    timeout: timedelta
    """Timeout of the whole run."""
    lock_timeout: timedelta = timedelta(0)
    """How long to wait for another run to release the lock."""

    @property
    def argocd_namespace(self) -> str:
        return self.cluster.argocd_namespace

    @property
    def clock(self) -> Clock:
        return self.cluster.reader.clock
