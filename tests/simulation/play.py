"""Plays the story of a seed in virtual time, and tells what was wrong. The cluster is the judge, not our own report."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from tests.run_contexts import run_context
from tests.sandbox.controllers.objects import URL
from tests.simulation.scenarios import APPLICATIONS, LONGEST_RUN, ROOT, US, Act, Lowering, Scenario, drawn
from tests.simulation.teardown_play import Lowered
from tests.simulation.witnesses import LEASES, Removals, Witness, everything
from windlass.core.platform.model.scopes import selected_nodes
from windlass.core.platform.reporting.reports import Action
from windlass.core.platform.reporting.verdicts import Verdict
from windlass.errors import WindlassError
from windlass.kube.client.clients import KubeClient
from windlass.kube.transport.calls import CallLimits, CallSender
from windlass.operations import deploy
from windlass.operations.planner import RunRequest
from windlass.operations.run.context import RunContext, RunControl
from windlass.operations.run.run_lock import Locked
from windlass.operations.teardown import teardown
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.apiserver.journal import Journal
from windlass.sandbox.apiserver.requests import AUTHENTICATED, MASTERS, UserInfo
from windlass.sandbox.argocd.installation import install_argocd
from windlass.sandbox.argocd.repositories import MemoryRepository
from windlass.sandbox.controllers.installation import install_workloads
from windlass.sandbox.sandbox import Sandbox
from windlass.simulation import virtual_time
from windlass.simulation.in_process_transport import InProcessTransport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from windlass.core.platform.events import Event
    from windlass.core.platform.reporting.reports import Report
    from windlass.sandbox.apiserver.journal import JournalEntry
    from windlass.sandbox.argocd.application_controller import ApplicationController
    from windlass.sandbox.controllers.installation import Workloads

QUICK = CallLimits(calls_per_second=10_000, burst=10_000)
PRODUCT = UserInfo(US, (MASTERS, AUTHENTICATED))
WRITTEN = {
    Action.DEPLOY: ("applications.", "leases."),
    Action.TEARDOWN: ("applications.", "leases.", "persistentvolumes"),
}
"""The kinds that a run may write to."""
LIMIT = 20 * LONGEST_RUN.total_seconds()  # virtual seconds for a whole story
R = TypeVar("R")


class WatchfulJournal(Journal):
    """Tells of every write at the moment it is written down."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: Callable[[JournalEntry], None] = lambda _: None

    def append(self, entry: JournalEntry) -> None:
        super().append(entry)
        if entry.is_write:
            self.heard(entry)


@dataclass(slots=True)
class Ended:
    """How a run ended: by a report, an error, or a crash."""

    run_id: str
    action: Action
    report: Report | None = None
    error: BaseException | None = None
    is_crashed: bool = False
    writes: list[JournalEntry] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    @property
    def refreshes(self) -> int:
        return self.report.metrics.calls.refreshes if self.report else 0

    def __str__(self) -> str:
        name = self.run_id if self.action is Action.DEPLOY else f"{self.action} {self.run_id}"
        if self.is_crashed:
            return f"{name} crashed after {len(self.writes)} writes"
        how = f"error {self.error!r}" if self.error else f"{self.report and self.report.summary.verdict}"
        return f"{name} ended: {how}, {len(self.writes)} writes"


@dataclass
class Play:
    """One cluster and the runs on it."""

    sandbox: Sandbox
    scenario: Scenario
    workloads: Workloads
    argocd: ApplicationController
    journal: WatchfulJournal
    witness: Witness
    removals: Removals
    repository: MemoryRepository = field(default_factory=MemoryRepository)
    story: list[str] = field(default_factory=list)
    runs: int = 0
    alive: set[str] = field(default_factory=set)
    """The runs that go on now."""
    empty: frozenset[tuple[str, str, str]] = frozenset()
    """What is in the cluster without the platform."""

    def push(self) -> None:
        """The next commit, if there is one left."""
        number = len(self.witness.commits)
        if number < len(self.scenario.commits):
            self.witness.commits.append(self.repository.push(self.scenario.files(number)))

    async def define(self) -> None:
        """Applications that somebody else makes; with a root they are ours to make."""
        if not self.scenario.has_root:
            for part in self.scenario.commits[0].values():
                await self.sandbox.client().create(APPLICATIONS, self.scenario.application(part, "main"))
        await self.sandbox.clock.sleep(1.0)

    async def run(self, act: Act) -> Ended:
        self.witness.since = len(self.witness.commits) - 1
        platform = self.scenario.platform
        self.witness.outside = frozenset(platform.applications) - selected_nodes(platform, act.scope)
        for fault in act.faults:
            self.sandbox.server.faults.add(fault)
        async with asyncio.TaskGroup() as tasks:
            events = [
                *((act.push_at, self.push) for _ in [0] if act.push_at),
                *((when, lambda how=how: self._disturb(how)) for when, how in act.disturbances),
            ]
            beside = [tasks.create_task(self._later(when, what)) for when, what in events]
            if act.rival_at:
                beside.append(tasks.create_task(self._rival(act)))
            ended = await self.carried_out(act)
            for task in beside[: len(events)]:
                task.cancel()
        self.sandbox.server.faults.clear()
        self.story.append(str(ended))
        return ended

    async def _later(self, seconds: float, what: Callable[[], None]) -> None:
        await self.sandbox.clock.sleep(seconds)
        what()

    async def _rival(self, act: Act) -> None:
        """Another run at the same time: it is refused, or it finds nothing to do, or the first one is over."""
        await self.sandbox.clock.sleep(act.rival_at)
        self.story.append(f"beside it: {await self.carried_out(Act(act.rival))}")

    def _disturb(self, how: str) -> None:
        if how == "restart":
            self.argocd.restart()
        else:
            self.sandbox.server.disrupt_watches(how, Fault(verb="watch", user=US))

    async def carried_out(self, act: Act) -> Ended:
        """One process from its start to its end."""
        self.runs += 1
        ended = Ended(f"run-{self.runs}", act.action)
        transport = InProcessTransport(self.sandbox, PRODUCT, user_agent=ended.run_id)
        kube = KubeClient(CallSender(transport, clock=virtual_time.virtual_clock(), limits=QUICK))
        control = RunControl(ended.events.append)
        access = run_context(kube, ended.run_id, control, act.limit)

        async def process() -> None:
            try:
                ended.report = await self._asked(access, act)
            except Exception as error:  # noqa: BLE001 - judged below
                ended.error = error

        before = self.journal.heard
        self.alive.add(ended.run_id)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(process(), name=ended.run_id)

            def heard(entry: JournalEntry) -> None:
                before(entry)
                if entry.agent == ended.run_id:
                    ended.writes.append(entry)
                    if len(ended.writes) == act.crash_at:
                        ended.is_crashed = True
                        transport.crash()
                        running.cancel()

            self.journal.heard = heard
            timer = asyncio.get_running_loop().call_later(act.stop_at or 1e9, control.interrupt)
            await asyncio.wait((running,))
            timer.cancel()
        self._judge(ended, act)
        self.alive.discard(ended.run_id)
        return ended

    def _asked(self, access: RunContext, act: Act) -> Awaitable[Report]:
        request = RunRequest(act.action, "development", self.scenario.platform, act.scope)
        if act.action is Action.TEARDOWN:
            return teardown.teardown(access, replace(request, volume_policy=self.lowering.policy))
        return deploy.deploy(access, replace(request, root=ROOT if self.scenario.has_root else None))

    @property
    def lowering(self) -> Lowering:
        return self.scenario.lowering or Lowering()

    def _judge(self, ended: Ended, act: Act) -> None:
        """What holds for every run, however it ended."""
        note = self.witness.problems.append
        if ended.is_crashed:
            return
        if ended.error is not None and not isinstance(ended.error, WindlassError):
            note(f"{ended.run_id} ended with {ended.error!r}")
        strange = [entry for entry in ended.writes if not entry.kind.startswith(WRITTEN[act.action])]
        if strange:
            note(f"{ended.run_id} wrote to {strange[0].kind}")
        if isinstance(ended.error, Locked):
            self._judge_refusal(ended)
        if ended.report is None:
            return
        counted = ended.report.metrics.calls
        if counted.writes + counted.refreshes != len(ended.writes):
            note(f"{ended.run_id} counts {counted.writes}+{counted.refreshes} writes, the server {len(ended.writes)}")
        summary = ended.report.summary
        if (summary.verdict is Verdict.SUCCESS) != (summary.exit_code == 0):
            note(f"{ended.run_id}: {summary.verdict} with exit code {summary.exit_code}")
        is_alone = self.alive <= {ended.run_id} or any(entry.kind == LEASES for entry in ended.writes)
        if is_alone and summary.exit_code == 0:  # else it held no lock, and another run has gone on since it looked
            self._judge_success(ended.run_id, act)

    def _judge_refusal(self, ended: Ended) -> None:
        """Only while another run is alive; and then nothing was begun."""
        if self.alive <= {ended.run_id}:
            self.witness.problems.append(f"{ended.run_id} was refused the lock, and nobody else runs: {ended.error}")
        if operations := [name for run_id, name in self.witness.operations if run_id == ended.run_id]:
            self.witness.problems.append(f"{ended.run_id} was refused the lock, and began {operations}")
        if deletes := [entry.name for entry in ended.writes if entry.verb == "delete"]:
            self.witness.problems.append(f"{ended.run_id} was refused the lock, and deleted {deletes}")

    def _judge_success(self, run_id: str, act: Act) -> None:
        """INV-4: success is said only of what is truly there, or truly gone."""
        numbers = range(self.witness.since, len(self.witness.commits))
        for name in sorted(selected_nodes(self.scenario.platform, act.scope)):
            if act.action is Action.TEARDOWN:
                self.witness.problems += [
                    f"{run_id} says success, and {left} is there" for left in self.removals.left_of(name)
                ]
            elif why := self.witness.why_not_ready(name, numbers):
                self.witness.problems.append(f"{run_id} says success, and {name} is not healthy: {why}")

    async def converged(self, act: Act) -> Ended | None:
        """A run with which nothing is wrong; None, and a note, if it does not get to the end."""
        whole = await self.run(act)
        verdict = whole.report.summary.verdict if whole.report else whole.error
        if verdict is Verdict.SUCCESS:
            return whole
        failures = (
            [f"{each.name}: {each.reason} {each.detail}" for each in whole.report.failures] if whole.report else ""
        )
        self.witness.problems.append(f"{whole.run_id} did not converge: {verdict!r} {failures}")
        return None

    async def raise_whole(self) -> bool:
        """All is well from now on: whatever happened before, a run gets to the end."""
        self.argocd.dropped_updates.clear()
        while len(self.witness.commits) < len(self.scenario.commits):
            self.push()
        whole, note = await self.converged(Act()), self.witness.problems.append
        if whole is None:
            return False
        for name in self.scenario.platform.graph.names:
            if why := self.witness.why_not_ready(name, [len(self.scenario.commits) - 1]):
                note(f"{name} is not as the last commit says: {why}")
        if self.witness.holder == whole.run_id:
            note(f"the lock is still held by {whole.run_id}")
        if pending := self.witness.pending():
            note(f"operations of ours are left on {pending}")
        return True

    async def settle(self) -> None:
        """It is raised, and the next run has nothing to do."""
        if not await self.raise_whole():
            return
        again, note = await self.run(Act()), self.witness.problems.append
        most = 1 if self.scenario.has_root else len(self.scenario.commits[0])
        if again.report is None or again.report.summary.verdict is not Verdict.SUCCESS:
            note(f"the second run ended: {again.error!r}")
        elif len(again.writes) != again.refreshes or again.refreshes > most:
            wrote = [f"{entry.verb} {entry.kind} {entry.name}" for entry in again.writes]
            note(f"the second run wrote: {wrote}, {again.refreshes} of it refreshes")


@dataclass(frozen=True, slots=True)
class Told:
    """What became of a seed."""

    seed: int
    nodes: int
    runs: int
    operations: int
    removals: int
    problems: tuple[str, ...]
    story: tuple[str, ...]
    journal: bytes


def simulate(seed: int) -> Told:
    return played(drawn(seed))


def played(scenario: Scenario) -> Told:
    """All its runs, and those that must find everything in order afterwards."""
    return virtual_time.run(_played(scenario), limit=LIMIT)


def acted(scenario: Scenario, work: Callable[[Play], Awaitable[R]]) -> R:
    """On the stage of a scenario something of the caller's own."""

    async def main() -> R:
        async with Sandbox(virtual_time.virtual_sandbox_clock(scenario.seed)) as sandbox:
            return await work(await staged(sandbox, scenario))

    return virtual_time.run(main(), limit=LIMIT)


async def _played(scenario: Scenario) -> Told:
    async with Sandbox(virtual_time.virtual_sandbox_clock(scenario.seed)) as sandbox:
        play = await staged(sandbox, scenario)
        for act in scenario.acts:
            await play.run(act)
        await play.settle()
        if scenario.lowering and not play.witness.problems:
            await Lowered(play, scenario.lowering).to_the_end()
        witness = play.witness
        return Told(
            scenario.seed,
            len(scenario.platform.applications),
            play.runs,
            len(witness.operations),
            len(play.removals.order),
            (*witness.problems, *play.removals.problems),
            tuple(play.story),
            b"".join(play.journal.json_lines()),
        )


async def staged(sandbox: Sandbox, scenario: Scenario) -> Play:
    """The cluster before anything runs: empty but for Argo CD, or with Applications that somebody else made."""
    journal = sandbox.server.journal = WatchfulJournal()
    workloads, argocd = await install_workloads(sandbox), await install_argocd(sandbox)
    for actor in (argocd, *workloads.controllers.values()):
        actor.lag = scenario.lag
    argocd.delays.jitter = scenario.jitter
    argocd.stale_statuses.update(scenario.lies)
    argocd.dropped_updates.update(scenario.overlooked)
    witnesses = (Witness(sandbox, scenario), Removals(sandbox, scenario))
    play = Play(sandbox, scenario, workloads, argocd, journal, *witnesses)
    argocd.repositories[URL] = play.repository
    play.push()
    await play.define()
    play.empty = frozenset(each for each in everything(sandbox) if each[0] != APPLICATIONS)
    return play
