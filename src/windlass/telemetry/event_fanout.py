"""Passes the events of a run to several receivers; a receiver that fails affects neither the run nor the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from windlass.core.platform.events import Event, Level, Noticed
from windlass.core.platform.reporting import redactable_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from windlass.core.platform.reporting.reports import Report


class Receiver(Protocol):
    def tell(self, event: Event) -> None: ...

    def ended(self, report: Report) -> None: ...


class Redacting:
    """Redacts events and reports before it passes them on. `EventLog` needs no such wrapper: its logger redacts."""

    def __init__(self, receiver: Receiver, redact: Callable[[str], str]) -> None:
        self._receiver = receiver
        self._redact = redact

    def tell(self, event: Event) -> None:
        self._receiver.tell(redactable_text.changed_event(event, self._redact))

    def ended(self, report: Report) -> None:
        self._receiver.ended(redactable_text.changed(report, self._redact))


class Telling:
    """An `EmitEvent` that calls all receivers.

    A receiver that raises is dropped, and the remaining receivers get one notice about it.
    """

    def __init__(self, receivers: Mapping[str, Receiver]) -> None:
        self._receivers = dict(receivers)

    def __call__(self, event: Event) -> None:
        self._pass_on(lambda receiver: receiver.tell(event))

    def ended(self, report: Report) -> None:
        self._pass_on(lambda receiver: receiver.ended(report))

    def _pass_on(self, pass_to: Callable[[Receiver], None]) -> None:
        for name in list(self._receivers):
            if (receiver := self._receivers.get(name)) is None:
                continue  # dropped while handling the notice about another receiver
            try:
                pass_to(receiver)
            except Exception as error:  # noqa: BLE001 - a broken live view must not end a deploy
                self._drop(name, error)

    def _drop(self, name: str, error: Exception) -> None:
        """Drop a receiver and notify the others. The recursion ends, because each call removes one receiver."""
        if self._receivers.pop(name, None) is not None:
            self(Noticed(Level.WARN, f"{name} broke and is left out from now on: {type(error).__name__}"))
