"""One who breaks is left out; the run and the others go on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tests.telemetry.runs import report
from windlass.core.platform.events import Event, Level, NodeFinished, NodeWaiting, Notice, PhaseStarted, RunPhase
from windlass.core.platform.gates import Failed, Reason
from windlass.core.platform.outcomes import Outcome, Result
from windlass.telemetry.event_fanout import EventFanout, RedactingReceiver

if TYPE_CHECKING:
    from windlass.core.platform.reporting.reports import Report


@dataclass
class Remembering:
    breaks_at: int = 1_000
    told: list[Event | Report] = field(default_factory=list)

    def emit(self, event: Event) -> None:
        if len(self.told) == self.breaks_at:
            raise ValueError("hunter2")
        self.told.append(event)

    def finish(self, report: Report) -> None:
        if len(self.told) == self.breaks_at:
            raise ValueError("hunter2")
        self.told.append(report)


BEGAN = [PhaseStarted(phase) for phase in RunPhase]


def test_all_are_told_everything_in_order() -> None:
    first, second = Remembering(), Remembering()
    tell = EventFanout({"logs": first, "metrics": second})
    for event in BEGAN:
        tell(event)
    end = report()
    tell.finish(end)
    assert first.told == second.told == [*BEGAN, end]


def test_one_that_breaks_is_left_out_with_one_warning() -> None:
    first, broken, last = Remembering(), Remembering(breaks_at=1), Remembering()
    tell = EventFanout({"logs": first, "view": broken, "metrics": last})
    for event in BEGAN[:3]:
        tell(event)
    warning = Notice(Level.WARN, "view broke and is left out from now on: ValueError")
    assert first.told == [BEGAN[0], BEGAN[1], warning, BEGAN[2]]
    assert last.told == [BEGAN[0], warning, BEGAN[1], BEGAN[2]]
    assert broken.told == BEGAN[:1]


def test_one_that_breaks_at_the_end_does_not_take_the_end_from_others() -> None:
    last = Remembering()
    end = report()
    EventFanout({"view": Remembering(breaks_at=0), "metrics": last}).finish(end)
    assert last.told == [Notice(Level.WARN, "view broke and is left out from now on: ValueError"), end]


def test_when_all_are_broken_the_run_goes_on() -> None:
    tell = EventFanout(
        {"logs": Remembering(breaks_at=1), "view": Remembering(breaks_at=1), "more": Remembering(breaks_at=0)}
    )
    for event in BEGAN:
        tell(event)
    tell.finish(report())


def test_one_that_tells_while_it_is_told_and_breaks_is_warned_about_once() -> None:
    other = Remembering()

    class Talkative(Remembering):
        def emit(self, event: Event) -> None:
            self.told.append(event)
            if event is BEGAN[0]:
                tell(BEGAN[1])
            raise ValueError

    tell = EventFanout({"view": Talkative(), "logs": other})
    tell(BEGAN[0])
    assert [event for event in other.told if isinstance(event, Notice)] == other.told[:1]
    assert other.told[1:] == [BEGAN[1], BEGAN[0]]


def test_words_of_others_are_heard_without_their_secrets() -> None:
    heard = Remembering()
    redacting = RedactingReceiver(heard, lambda text: text.replace("hunter2", "***"))
    failed = Failed(Reason.DEGRADED, "hunter2 is wrong")
    events: list[Event] = [
        NodeWaiting("hunter2", "Unknown", "hunter2 is wrong"),
        Notice(Level.WARN, "hunter2 is wrong"),
        NodeFinished(Outcome("web", Result.FAILED, failed)),
        NodeFinished(Outcome("web", Result.SKIPPED)),
        BEGAN[0],
    ]
    for event in events:
        redacting.emit(event)
    assert heard.told == [
        NodeWaiting("hunter2", "Unknown", "*** is wrong"),
        Notice(Level.WARN, "*** is wrong"),
        NodeFinished(Outcome("web", Result.FAILED, replace(failed, detail="*** is wrong"))),
        *events[3:],
    ]
    end = report()
    redacting.finish(end)
    assert heard.told[-1] == end
