"""A small model of Argo CD with every delay drawn at random: the gate opens only on a verdict made after the change.

Times are milliseconds. The change reaches the cluster at some moment within the operation; from then on the application
is Progressing, and Healthy again later. A comparison looks at one moment and is written down later, before or after the
end of the operation; one follows the other. What it wrote is what everybody sees.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import NEW, OLD, at, operation, source, state
from windlass.core.platform import gates
from windlass.core.platform.gate_values import GateDecision, GateHistory, GateTarget, Open, RefreshNeeded
from windlass.core.platform.model.applications import NodeTiming
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import ApplicationState, OperationPhase, SyncStatus

WANTED = GateTarget((NEW,), (source(),), NodeTiming(), run_id="run-1")
REFRESH = 300
"""How long a comparison takes that was asked for."""


@dataclass(frozen=True)
class Change:
    """One sync: when it started, changed the cluster and ended; when the application is healthy again."""

    start: int
    change: int
    end: int
    healthy: int
    is_same_revision: bool
    was_missing: bool = False
    """Something of it was not there before."""


@st.composite
def changes(draw: st.DrawFn) -> Change:
    start = draw(st.integers(0, 2_000))
    change = start + draw(st.integers(1, 1_500))
    end = change + draw(st.integers(0, 1_500))
    healthy = change + draw(st.integers(1, 6_000))
    return Change(start, change, end, healthy, draw(st.booleans()), draw(st.booleans()))


COMPARISONS = st.lists(st.tuples(st.integers(0, 9_000), st.integers(1, 1_500)), max_size=6)
"""When each is due, and how long it takes."""


def written(change: Change, shown: ApplicationState, looked: int, *, ends_refresh: bool = False) -> ApplicationState:
    """What a comparison writes down: what it found when it looked."""
    is_new = change.is_same_revision or looked >= change.start
    is_as_before = not change.was_missing and (change.is_same_revision or looked < change.start)
    before = Health.MISSING if change.was_missing else Health.HEALTHY
    after = Health.PROGRESSING if looked < change.healthy else Health.HEALTHY
    return replace(
        shown,
        revisions=(NEW,) if is_new else (OLD,),
        sync=SyncStatus.SYNCED if looked >= change.change or is_as_before else SyncStatus.OUT_OF_SYNC,
        health=after if looked >= change.change else before,
        reconciled_at=at(looked // 1000),
        refresh_requested=shown.refresh_requested and not ends_refresh,
    )


@dataclass
class ArgoCD:
    """Steps from event to event; at each, somebody judges what is shown and asks for what the judgement asks for."""

    change: Change
    due: list[tuple[int, int]]
    looked: int = -60_000
    asked_at: int = 0
    shown: ApplicationState = field(init=False)
    seen: GateHistory = field(init=False)

    def __post_init__(self) -> None:
        revision = NEW if self.change.is_same_revision else OLD
        first = state(revisions=(revision,), operation=operation(run_id="run-0"), reconciled_at=at(-60))
        self.shown = written(self.change, first, self.looked)
        self.seen = gates.start_history(self.shown, at(0))

    def run(self) -> list[tuple[int, GateDecision]]:
        running = operation(OperationPhase.RUNNING, run_id="run-1", started_at=at(self.change.start // 1000))
        ended = replace(running, phase=OperationPhase.SUCCEEDED, finished_at=at(self.change.end // 1000))
        steps = [(self.change.start, running, True), (self.change.end, ended, False)]
        judged, free = [], 0
        while steps or self.due:
            self.due.sort()
            begin, takes = (max(self.due[0][0], free), self.due[0][1]) if self.due else (10**9, 0)
            if steps and steps[0][0] <= begin + takes:
                now, shown_operation, is_requested = steps.pop(0)
                self.shown = replace(self.shown, operation=shown_operation, operation_requested=is_requested)
            else:
                self.due.pop(0)
                now = free = begin + takes
                asked_before = self.shown.refresh_requested and self.asked_at <= begin
                self.shown, self.looked = written(self.change, self.shown, begin, ends_refresh=asked_before), begin
            judged.append((now, self._judgement(now)))
        return judged

    def _judgement(self, now: int) -> GateDecision:
        self.seen = gates.extend_history(self.seen, self.shown, at(now / 1000))
        judgement = gates.evaluate_gate(WANTED, self.seen, at(now / 1000))
        if isinstance(judgement, Open):
            assert self.looked >= self.change.change, "the verdict is older than the change"
            assert now >= self.change.end
        if isinstance(judgement, RefreshNeeded):
            self.shown, self.asked_at = replace(self.shown, refresh_requested=True), now
            self.seen = gates.extend_history(self.seen, self.shown, at(now / 1000))
            self.due.append((now, REFRESH))
        return judgement


@given(changes(), COMPARISONS)
def test_an_open_gate_has_seen_the_change(change: Change, due: list[tuple[int, int]]) -> None:
    ArgoCD(change, due).run()


@given(changes(), COMPARISONS)
def test_the_gate_opens_once_a_comparison_came_after_all_of_it(change: Change, due: list[tuple[int, int]]) -> None:
    late = max(change.end, change.healthy) + 20_000
    assert isinstance(ArgoCD(change, [*due, (late, 10)]).run()[-1][1], Open)


def test_the_model_can_lie_to_who_believes_words() -> None:
    """Otherwise the properties would prove nothing: Succeeded, Synced and Healthy, and yet from before."""
    change = Change(0, 500, 900, 5_000, is_same_revision=True)
    lie = written(change, state(operation=operation(run_id="run-1", finished_at=at(0))), looked=100)
    assert (lie.sync, lie.health, lie.revisions) == (SyncStatus.SYNCED, Health.HEALTHY, (NEW,))
    found = gates.extend_history(gates.start_history(state(), at(0)), lie, at(0.95))
    assert isinstance(gates.evaluate_gate(WANTED, found, at(0.95)), RefreshNeeded)
