"""Judges a run by what the cluster shows when it ends, not by its own report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.simulation.foreign_parents import FOREIGN_PARENTS
from tests.simulation.scenarios import APPLICATIONS
from tests.simulation.witnesses import LEASES, MADE
from windlass.argo.cd.root_application import NAME as ROOT_NAME
from windlass.core.platform.gate_values import Reason
from windlass.core.platform.model.annotations import MAX_NOTICES
from windlass.core.platform.model.scopes import selected_nodes
from windlass.core.platform.reporting.reports import Action
from windlass.core.platform.reporting.verdicts import Verdict
from windlass.errors import WindlassError
from windlass.operations.cluster_identity import WrongPlatform
from windlass.operations.planner import Moved
from windlass.operations.run.run_lock import Locked

if TYPE_CHECKING:
    from datetime import datetime

    from tests.simulation.play import Play
    from tests.simulation.scenarios import Act
    from windlass.core.platform.events import Event
    from windlass.core.platform.reporting.reports import Report
    from windlass.sandbox.apiserver.journal import JournalEntry

WRITTEN = {
    Action.DEPLOY: ("applications.", "leases."),
    Action.TEARDOWN: ("application", "leases.", "persistentvolumes", "namespaces", "customresourcedefinitions.", *MADE),
}
"""The kinds that a run may write to."""
MOST_RACES = 1  # attempts that do not count, because another client was faster


@dataclass(slots=True)
class EndedRun:
    """How a run ended: by a report, an error, or a crash."""

    run_id: str
    action: Action
    report: Report | None = None
    error: BaseException | None = None
    is_crashed: bool = False
    writes: list[JournalEntry] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    started: datetime | None = None

    @property
    def is_successful(self) -> bool:
        return self.report is not None and self.report.summary.exit_code == 0

    @property
    def refreshes(self) -> int:
        return self.report.metrics.calls.refreshes if self.report else 0

    def __str__(self) -> str:
        name = self.run_id if self.action is Action.DEPLOY else f"{self.action} {self.run_id}"
        if self.is_crashed:
            return f"{name} crashed after {len(self.writes)} writes"
        how = f"error {self.error!r}" if self.error else f"{self.report and self.report.summary.verdict}"
        return f"{name} ended: {how}, {len(self.writes)} writes"


class RunJudge:
    """What holds for every run, however it ended."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._witness = play.witness
        self._note = play.witness.problems.append

    def judge(self, ended: EndedRun, act: Act) -> None:
        if ended.is_crashed:
            return
        if act.is_misdirected:
            self._judge_misdirected(ended)
            return
        if ended.error is not None and not isinstance(ended.error, WindlassError):
            self._note(f"{ended.run_id} ended with {ended.error!r}")
        if strange := [entry.kind for entry in ended.writes if not entry.kind.startswith(WRITTEN[act.action])]:
            self._note(f"{ended.run_id} wrote to {strange[0]}")
        if isinstance(ended.error, Locked):
            self._judge_refusal(ended)
        if ended.report is not None:
            self._judge_report(ended, act, ended.report)
            if act.action is Action.DEPLOY and ended.is_successful:  # a teardown may begin while Applications go
                self._judge_notices(ended.run_id, ended.report)
        self._judge_operations(ended, act)
        if act.action is Action.TEARDOWN:
            self._judge_approved_removals(ended, act)

    def _judge_misdirected(self, ended: EndedRun) -> None:
        """A run for another environment or platform is refused before its first write."""
        if not isinstance(ended.error, WrongPlatform):
            self._note(f"{ended.run_id} is for another platform, and ended: {ended}")
        if ended.writes:
            self._note(f"{ended.run_id} is for another platform, and wrote to {ended.writes[0].kind}")

    def _judge_approved_removals(self, ended: EndedRun, act: Act) -> None:
        is_refused, is_alone = isinstance(ended.error, Moved), not (act.rival_at or act.is_disturbed)
        if is_refused and act.after_plan and is_alone and ended.writes:
            self._note(f"{ended.run_id} was refused its plan, and wrote to {ended.writes[0].kind}")
        approval = self._witness.approvals.get(ended.run_id)
        known = {*self._play.scenario.platform.applications}
        deleted = {entry.name for entry in ended.writes if entry.verb == "delete" and entry.kind == APPLICATIONS}
        if approval and (excess := sorted(deleted & known - approval.nodes)):
            self._note(f"{ended.run_id} deleted {excess}, which is not in the plan that was approved")

    def _judge_operations(self, ended: EndedRun, act: Act) -> None:
        """No more operations than attempts, and none that goes on after the run."""
        for name, count in self._witness.requests(ended.run_id).items():
            retries = self._play.scenario.platform.applications[name].retries
            if count > retries.max_attempts + MOST_RACES:
                self._note(f"{ended.run_id} requested {count} operations of {name}")
        has_lock = self._witness.lease_deleted is None  # without it a run can end nothing
        pending = self._witness.pending(ended.run_id)
        if self._play.argocd.is_paused:  # it cannot do what the run has requested
            pending = [name for name in pending if not self._witness.is_terminating(name)]
        if has_lock and not act.is_disturbed and pending:
            self._note(f"{ended.run_id} has ended, and its operation of {', '.join(pending)} goes on")

    def _judge_report(self, ended: EndedRun, act: Act, report: Report) -> None:
        counted = report.metrics.calls
        if counted.writes + counted.refreshes < len(ended.writes):  # more: some were cancelled before they arrived
            counts = f"{counted.writes}+{counted.refreshes}"
            self._note(f"{ended.run_id} counts {counts} writes, the server {len(ended.writes)}")
        summary = report.summary
        if (summary.verdict is Verdict.SUCCESS) != (summary.exit_code == 0):
            self._note(f"{ended.run_id}: {summary.verdict} with exit code {summary.exit_code}")
        is_alone = self._play.alive <= {ended.run_id} or any(entry.kind == LEASES for entry in ended.writes)
        if is_alone and summary.exit_code == 0:  # else it held no lock, and another run has continued since it looked
            self._judge_success(ended.run_id, act)
        self._judge_cause(ended, report)

    def _judge_cause(self, ended: EndedRun, report: Report) -> None:
        """A run in which Argo CD could never render the root quotes why."""
        since = self._witness.root_broken_since
        if since and ended.started and since < ended.started:
            for each in report.failures:
                if each.reason == Reason.PARENT_BROKEN and ROOT_NAME in each.name and "Error" not in each.detail:
                    self._note(f"{ended.run_id} does not say why the root cannot be rendered: {each.detail}")

    def _judge_notices(self, run_id: str, report: Report) -> None:
        """What is ignored in an annotation is told."""
        told = "\n".join(report.notices)
        ignored = self._play.declared.ignoring(self._play.scenario.platform.graph)
        if len(ignored) <= MAX_NOTICES and (silent := [name for name in ignored if f"Application {name}:" not in told]):
            self._note(f"{run_id} ignores names in the annotation of {silent[0]}, and does not say so")

    def _judge_refusal(self, ended: EndedRun) -> None:
        """Only while another run is in progress; and then nothing was started."""
        is_late = any(act.late_writes for act in self._play.scenario.acts)  # a Lease may be renewed after its run
        if self._play.alive <= {ended.run_id} and not is_late:
            self._note(f"{ended.run_id} was refused the lock, and no other run is in progress: {ended.error}")
        if operations := [name for run_id, name in self._witness.operations if run_id == ended.run_id]:
            self._note(f"{ended.run_id} was refused the lock, and started {operations}")
        if deletes := [entry.name for entry in ended.writes if entry.verb == "delete"]:
            self._note(f"{ended.run_id} was refused the lock, and deleted {deletes}")

    def _judge_success(self, run_id: str, act: Act) -> None:
        """INV-4: exit code 0 only if everything in scope is there and healthy, or gone."""
        numbers = range(self._witness.since, len(self._witness.commits))
        selected = selected_nodes(self._play.scenario.platform, act.scope)
        if act.action is Action.DEPLOY and selected and self._witness.is_root_broken():
            self._note(f"{run_id} reports success, and Argo CD cannot render the root")
        for name in sorted(selected):
            if act.action is Action.TEARDOWN:
                for left in self._play.removals.left_of(name):
                    self._note(f"{run_id} reports success, and {left} still exists")
            elif not self._witness.is_recent(name):
                teardown = self._play.scenario.teardown
                changes = teardown.acts if teardown else ()
                is_bound = any(each.after_plan for each in changes)
                has_claims = is_bound or bool(teardown and teardown.volumes)  # which are tracked, and not in git
                defines_others = name in FOREIGN_PARENTS and bool(act.scope.name)  # which are outside the scope
                has_moved = len(numbers) > 1 or has_claims or defines_others
                shown = self._witness.why_not_shown(name, has_moved=has_moved)
                why = self._witness.why_not_ready(name, numbers) or shown
                if why:
                    self._note(f"{run_id} reports success, and {name} is not healthy: {why}")
