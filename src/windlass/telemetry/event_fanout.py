"""Passes the events of a run to several receivers; a receiver that fails affects neither the run nor the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from windlass.core.platform.events import Event, Level, Notice
from windlass.core.platform.reporting import redactable_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from windlass.core.platform.reporting.reports import Report


class EventReceiver(Protocol):
    def emit(self, event: Event) -> None: ...

    def finish(self, report: Report) -> None: ...


class RedactingReceiver:
    """Redacts events and reports before it passes them on. `EventLog` needs no such wrapper: its logger redacts."""

    def __init__(self, receiver: EventReceiver, redact: Callable[[str], str]) -> None:
        self._receiver = receiver
        self._redact = redact

    def emit(self, event: Event) -> None:
        self._receiver.emit(redactable_text.redact_event(event, self._redact))

    def finish(self, report: Report) -> None:
        self._receiver.finish(redactable_text.redact_report(report, self._redact))


class EventFanout:
    """An `EmitEvent` that calls all receivers.

    A receiver that raises is dropped, and the remaining receivers get one notice about it.
    """

    def __init__(self, receivers: Mapping[str, EventReceiver]) -> None:
        self._receivers = dict(receivers)

    def __call__(self, event: Event) -> None:
        self._dispatch(lambda receiver: receiver.emit(event))

    def finish(self, report: Report) -> None:
        self._dispatch(lambda receiver: receiver.finish(report))

    def _dispatch(self, deliver: Callable[[EventReceiver], None]) -> None:
        for name in list(self._receivers):
            if (receiver := self._receivers.get(name)) is None:
                continue  # dropped while handling the notice about another receiver
            try:
                deliver(receiver)
            except Exception as error:  # noqa: BLE001 - a broken live view must not end a deploy
                self._drop(name, error)

    def _drop(self, name: str, error: Exception) -> None:
        """Drop a receiver and notify the others. The recursion ends, because each call removes one receiver."""
        if self._receivers.pop(name, None) is not None:
            self(Notice(Level.WARN, f"{name} broke and is left out from now on: {type(error).__name__}"))
