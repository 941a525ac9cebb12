"""A receiver that fails is dropped; the run and the other receivers continue."""

from __future__ import annotations

from dataclasses import dataclass, field

from windlass.core.log_lines import Level, LogLine
from windlass.telemetry.event_fanout import EventFanout


@dataclass(frozen=True)
class SampleEvent:
    number: int


@dataclass(frozen=True)
class SampleReport:
    text: str = "report"


@dataclass
class RecordingReceiver:
    """Keeps what it receives; fails once it has `capacity` items."""

    capacity: int = 1_000
    received: list[SampleEvent | SampleReport | LogLine] = field(default_factory=list)

    def emit(self, event: SampleEvent | LogLine) -> None:
        self._add(event)

    def finish(self, report: SampleReport) -> None:
        self._add(report)

    def _add(self, item: SampleEvent | SampleReport | LogLine) -> None:
        if len(self.received) == self.capacity:
            raise ValueError("hunter2")
        self.received.append(item)


Fanout = EventFanout[SampleEvent, SampleReport]
EVENTS = [SampleEvent(number) for number in range(8)]
REPORT = SampleReport()
WARNING = LogLine(Level.WARN, "view broke and is left out from now on: ValueError")


def test_all_receivers_get_everything_in_order() -> None:
    first, second = RecordingReceiver(), RecordingReceiver()
    emit = Fanout({"logs": first, "metrics": second})
    for event in EVENTS:
        emit(event)
    emit.finish(REPORT)
    assert first.received == second.received == [*EVENTS, REPORT]


def test_a_failing_receiver_is_dropped_with_one_warning() -> None:
    first, failing, last = RecordingReceiver(), RecordingReceiver(capacity=1), RecordingReceiver()
    emit = Fanout({"logs": first, "view": failing, "metrics": last})
    for event in EVENTS[:3]:
        emit(event)
    assert first.received == [EVENTS[0], EVENTS[1], WARNING, EVENTS[2]]
    assert last.received == [EVENTS[0], WARNING, EVENTS[1], EVENTS[2]]
    assert failing.received == EVENTS[:1]


def test_other_receivers_get_the_report_if_one_fails_on_it() -> None:
    last = RecordingReceiver()
    Fanout({"view": RecordingReceiver(capacity=0), "metrics": last}).finish(REPORT)
    assert last.received == [WARNING, REPORT]


def test_the_run_continues_if_all_receivers_fail() -> None:
    capacities = {"logs": 1, "view": 1, "more": 0}
    emit = Fanout({name: RecordingReceiver(capacity) for name, capacity in capacities.items()})
    for event in EVENTS:
        emit(event)
    emit.finish(REPORT)


def test_a_receiver_that_emits_while_it_fails_causes_one_warning() -> None:
    other = RecordingReceiver()

    class EmittingReceiver(RecordingReceiver):
        def emit(self, event: SampleEvent | LogLine) -> None:
            if event is EVENTS[0]:
                emit(EVENTS[1])
            raise ValueError

    emit = Fanout({"view": EmittingReceiver(), "logs": other})
    emit(EVENTS[0])
    assert other.received == [WARNING, EVENTS[1], EVENTS[0]]
