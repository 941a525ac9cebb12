"""Passes the events of a run to several receivers; a receiver that fails affects neither the run nor the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from windlass.core.log_lines import Level, LogLine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EventT_contra = TypeVar("EventT_contra", contravariant=True)
ReportT_contra = TypeVar("ReportT_contra", contravariant=True)


class EventReceiver(Protocol[EventT_contra, ReportT_contra]):
    def emit(self, event: EventT_contra, /) -> None: ...

    def finish(self, report: ReportT_contra, /) -> None: ...


class EventFanout(Generic[EventT_contra, ReportT_contra]):
    """A function that passes an event, or a log line, to all receivers.

    A receiver that raises is dropped, and the remaining receivers get one log line about it.
    """

    def __init__(self, receivers: Mapping[str, EventReceiver[EventT_contra | LogLine, ReportT_contra]]) -> None:
        self._receivers = dict(receivers)

    def __call__(self, event: EventT_contra | LogLine) -> None:
        self._dispatch(lambda receiver: receiver.emit(event))

    def finish(self, report: ReportT_contra) -> None:
        self._dispatch(lambda receiver: receiver.finish(report))

    def _dispatch(self, deliver: Callable[[EventReceiver[EventT_contra | LogLine, ReportT_contra]], None]) -> None:
        for name in list(self._receivers):
            if (receiver := self._receivers.get(name)) is None:
                continue  # dropped while handling the log line about another receiver
            try:
                deliver(receiver)
            except Exception as error:  # noqa: BLE001 - a broken live view must not end a deploy
                self._drop(name, error)

    def _drop(self, name: str, error: Exception) -> None:
        """Drop a receiver and tell the others. The recursion ends, because each call removes one receiver."""
        if self._receivers.pop(name, None) is not None:
            self(LogLine(Level.WARN, f"{name} broke and is left out from now on: {type(error).__name__}"))
