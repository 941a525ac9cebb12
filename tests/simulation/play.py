"""Plays the scenario of a seed in virtual time: one cluster, the runs on it, and what happens beside them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from tests.run_contexts import run_context
from tests.sandbox.controllers.objects import URL
from tests.simulation import foreign_parents
from tests.simulation.altered_transport import AlteredTransport
from tests.simulation.declared_dependencies import DeclaredDependencies
from tests.simulation.draws import draw_scenario
from tests.simulation.events import Events, SimulatedRepository
from tests.simulation.observers import Observers
from tests.simulation.paused_processes import Pause, process_context
from tests.simulation.run_judge import EndedRun, RunJudge
from tests.simulation.scenarios import APPLICATIONS, LONGEST_RUN, ROOT, US, Act, Scenario, TeardownScenario
from tests.simulation.teardown_play import TeardownPlay
from tests.simulation.witnesses import Approval, Removals, Witness, everything
from windlass.core.platform.model.scopes import selected_nodes
from windlass.core.platform.planning.approvals import approval_problems
from windlass.core.platform.reporting.reports import Action
from windlass.core.platform.reporting.verdicts import Verdict
from windlass.errors import WindlassError
from windlass.kube.client.clients import KubeClient
from windlass.kube.redactions import Redactor
from windlass.kube.transport.calls import CallLimits, CallSender
from windlass.operations import deploy, plan
from windlass.operations.planner import RunRequest
from windlass.operations.run.context import RunContext, RunControl
from windlass.operations.teardown import teardown
from windlass.operations.validate import ValidateRequest, validate_with_timeout
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.apiserver.journal import Journal
from windlass.sandbox.apiserver.requests import AUTHENTICATED, MASTERS, UserInfo
from windlass.sandbox.argocd.installation import install_argocd
from windlass.sandbox.controllers.installation import install_workloads
from windlass.sandbox.sandbox import Sandbox
from windlass.simulation import virtual_time
from windlass.simulation.in_process_transport import InProcessTransport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextvars import Context

    from windlass.core.platform.planning.approvals import ApprovedPlan
    from windlass.core.platform.reporting.reports import Report
    from windlass.kube.clocks import Clock
    from windlass.operations.observation import ObservedCluster
    from windlass.sandbox.apiserver.journal import JournalEntry
    from windlass.sandbox.argocd.application_controller import ApplicationController
    from windlass.sandbox.controllers.installation import Workloads

QUICK = CallLimits(calls_per_second=10_000, burst=10_000)
PRODUCT = UserInfo(US, (MASTERS, AUTHENTICATED))
LIMIT = 20 * LONGEST_RUN.total_seconds()  # virtual seconds for a whole scenario
VALIDATE_TIMEOUT = 600.0  # virtual seconds
R = TypeVar("R")
Ended = EndedRun


class WatchfulJournal(Journal):
    """Reports every write at the moment it is recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.on_write: Callable[[JournalEntry], None] = lambda _: None

    def append(self, entry: JournalEntry) -> None:
        super().append(entry)
        if entry.is_write:
            self.on_write(entry)


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
    repository: SimulatedRepository = field(default_factory=SimulatedRepository)
    story: list[str] = field(default_factory=list)
    runs: int = 0
    alive: set[str] = field(default_factory=set)
    """The runs in progress."""
    clock_step: timedelta = timedelta(0)
    """By how much the wall clock of the client was set forward."""
    empty: frozenset[tuple[str, str, str]] = frozenset()
    """What is in the cluster without the platform."""
    alter: Callable[[dict[str, Any]], None] | None = None
    """Changes each Application that the product is sent."""
    replace_body: tuple[str, bytes] | None = None
    """See `AlteredTransport`."""
    redactor: Redactor = field(default_factory=Redactor)

    def __post_init__(self) -> None:
        self.rival_may_start = asyncio.Event()
        self.observers = Observers(self)
        self.events = Events(self)
        self.judge = RunJudge(self)
        self.declared = self.witness.declared = self.removals.declared = DeclaredDependencies(self.sandbox)

    def push(self) -> None:
        """The next commit, if there is one left."""
        number = len(self.witness.commits)
        if number < len(self.scenario.commits):
            files = {**self.scenario.files(number), **foreign_parents.nested_files()}
            self.witness.commits.append(self.repository.push(files))

    async def define(self) -> None:
        """Create the Applications, as another client would; with a root they are ours to create."""
        if self.scenario.parent:
            await foreign_parents.create_parents(self.sandbox.client(), self.scenario)
            await self.sandbox.clock.sleep(30.0)  # in which Argo CD has compared them
        elif not self.scenario.has_root:
            for part in self.scenario.commits[0].values():
                await self.sandbox.client().create(APPLICATIONS, self.scenario.application(part, "main"))
        await self.sandbox.clock.sleep(1.0)

    async def run(self, act: Act) -> EndedRun:
        """Play a run and what happens beside it. One for another platform needs a cluster that knows its own."""
        if act.is_misdirected and self.witness.identity is None:
            return EndedRun("", act.action)
        if act.pushes_first:
            self.push()
        self.witness.since = len(self.witness.commits) - 1
        approved_plan = await self._approved_plan(act) if act.is_approved else None
        self.declared.note()
        self.witness.started.clear()
        self.rival_may_start.clear()
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
            beside += [tasks.create_task(self.events.play(event)) for event in act.events]
            if not act.lease_outage:
                self.rival_may_start.set()
            if act.rival_at:
                beside.append(tasks.create_task(self._rival(act)))
            ended = await self.run_process(act, approved_plan)
            self.rival_may_start.set()
            for task in beside[: len(events) + len(act.events)]:
                task.cancel()
        self.sandbox.server.faults.clear()
        self.story.append(str(ended))
        if self.scenario.validates and act.action is Action.DEPLOY and ended.is_successful and not act.rival_at:
            await self._validate(ended, act)
        return ended

    async def _validate(self, ended: EndedRun, act: Act) -> None:
        """`validate` right after a successful deploy succeeds, unless something has happened that neither could see."""
        request = ValidateRequest(act.environment, self.scenario.platform, act.scope)
        report = await validate_with_timeout(VALIDATE_TIMEOUT, self.cluster("validate"), request)
        is_recent = any(map(self.witness.is_recent, self.scenario.platform.applications))
        if report.summary.exit_code and not is_recent:
            failures = [f"{each.name}: {each.reason} {each.detail}" for each in report.failures]
            self.witness.problems.append(f"{ended.run_id} reports success, and validate {report.summary}: {failures}")

    def cluster(self, agent: str) -> ObservedCluster:
        """For a command that only reads."""
        return run_context(self.client(agent)).cluster

    def client(self, agent: str) -> KubeClient:
        transport = InProcessTransport(self.sandbox, PRODUCT, user_agent=agent)
        return KubeClient(CallSender(transport, clock=virtual_time.virtual_clock(), limits=QUICK))

    def _stepping_clock(self) -> Clock:
        """The clock of a process that was right when it started."""
        clock, step_before = virtual_time.virtual_clock(), self.clock_step
        return replace(clock, now=lambda: clock.now() + self.clock_step - step_before)

    async def _later(self, seconds: float, what: Callable[[], None]) -> None:
        await self.sandbox.clock.sleep(seconds)
        what()

    async def _rival(self, act: Act) -> None:
        """Another run at the same time: it is refused, finds nothing to do, or starts after the first has ended."""
        await self.rival_may_start.wait()
        await self.sandbox.clock.sleep(act.rival_at)
        rival = Act(act.rival, faults=act.faults, disturbances=act.disturbances)  # which concern it, too
        self.story.append(f"beside it: {await self.run_process(rival)}")

    def _disturb(self, how: str) -> None:
        if how == "restart":
            self.argocd.restart()
        else:
            self.sandbox.server.disrupt_watches(how, Fault(verb="watch", user=US))

    async def run_process(self, act: Act, approved_plan: ApprovedPlan | None = None) -> EndedRun:
        """One process from its start to its end."""
        self.runs += 1
        ended = EndedRun(f"run-{self.runs}", act.action, started=self.sandbox.clock.now())
        transport = AlteredTransport(self.sandbox, PRODUCT, ended.run_id, act.late_writes, act.lease_outage)
        transport.on_arrival, transport.on_lease_outage = self.witness.note_late_run, self.rival_may_start.set
        transport.alter, transport.replace_body, transport.redactor = self.alter, self.replace_body, self.redactor
        kube = KubeClient(CallSender(transport, clock=self._stepping_clock(), limits=QUICK))
        control = RunControl(ended.events.append)
        access = run_context(kube, ended.run_id, control, act.limit)

        async def process() -> None:
            try:
                ended.report = await self._perform(access, act, approved_plan)
            except Exception as error:  # noqa: BLE001 - judged below
                ended.error = error

        before = self.journal.on_write
        self.alive.add(ended.run_id)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(process(), name=ended.run_id, context=self._context(act))

            def on_write(entry: JournalEntry) -> None:
                before(entry)
                if entry.agent == ended.run_id:
                    ended.writes.append(entry)
                    if len(ended.writes) == act.crash_at:
                        ended.is_crashed = True
                        transport.crash()
                        running.cancel()

            self.journal.on_write = on_write
            timer = asyncio.get_running_loop().call_later(act.stop_at or 1e9, control.interrupt)
            await asyncio.wait((running,))
            timer.cancel()
        self.judge.judge(ended, act)
        self.alive.discard(ended.run_id)
        return ended

    def _context(self, act: Act) -> Context:
        (after, seconds), now = act.pause, asyncio.get_running_loop().time()
        return process_context(Pause(now + after, now + after + seconds) if seconds else None)

    def _perform(self, access: RunContext, act: Act, approved_plan: ApprovedPlan | None) -> Awaitable[Report]:
        request = self.request(act)
        if act.action is Action.TEARDOWN:
            return teardown.teardown(access, replace(request, approved_plan=approved_plan))
        return deploy.deploy(access, replace(request, approved_plan=approved_plan))

    def request(self, act: Act) -> RunRequest:
        root = ROOT if self.scenario.has_root and act.action is Action.DEPLOY else None
        platform = replace(self.scenario.platform, name=act.platform_name or self.scenario.platform.name)
        request = RunRequest(act.action, act.environment, platform, act.scope, root=root)
        return (
            replace(request, volume_policy=(self.scenario.teardown or TeardownScenario()).policy)
            if act.action is Action.TEARDOWN
            else request
        )

    async def _approved_plan(self, act: Act) -> ApprovedPlan | None:
        for event in act.before_plan:
            await self.events.play(event)
        approved_plan = await self._approve(act)
        if act.pushes_after_plan:
            self.push()
        for event in act.after_plan:
            await self.events.play(event)
        return approved_plan

    async def _approve(self, act: Act) -> ApprovedPlan | None:
        """Plan, and have the witness hold the run to that plan; `None` if there is none, or it names no revisions."""
        try:
            result = await plan.plan(self.cluster("plan"), self.request(act))
        except WindlassError:  # refused, as the run itself is
            return None
        if approval_problems(result.summary):
            return None
        nodes = frozenset(step.name for step in result.plan.steps)
        self.witness.approvals[f"run-{self.runs + 1}"] = Approval(nodes, len(self.witness.commits) - 1)
        return result.summary

    async def converged(self, act: Act) -> EndedRun | None:
        """A run that must succeed; `None`, and a problem is noted, if it does not."""
        whole = await self.run(act)
        verdict = whole.report.summary.verdict if whole.report else whole.error
        if verdict is Verdict.SUCCESS:
            return whole
        failed = whole.report.failures if whole.report else ()
        failures = [f"{each.name}: {each.reason} {each.detail}" for each in failed]
        self.witness.problems.append(f"{whole.run_id} did not converge: {verdict!r} {failures}")
        return None

    async def deploy_whole(self) -> bool:
        """Nothing goes wrong from now on: whatever happened before, a run succeeds."""
        await self.events.repair()
        while len(self.witness.commits) < len(self.scenario.commits):
            self.push()
        whole, note = await self.converged(Act()), self.witness.problems.append
        if whole is None:
            return False
        for name in self.scenario.platform.graph.names:
            if why := self.witness.why_not_ready(name, [len(self.scenario.commits) - 1]):
                note(f"{name} does not match the last commit: {why}")
        if self.witness.holder == whole.run_id:
            note(f"the lock is still held by {whole.run_id}")
        if pending := self.witness.pending():
            note(f"operations of ours are left on {pending}")
        return True

    async def settle(self) -> None:
        """Deploy the whole platform; the next run must have nothing to do."""
        if not await self.deploy_whole():
            return
        await self.sandbox.clock.sleep(6 * self.scenario.lag)  # until then Argo CD compares with an older cluster
        again, note = await self.run(Act()), self.witness.problems.append
        most = 1 if self.scenario.has_root else len(self.scenario.commits[0]) + 2 * bool(self.scenario.parent)
        if again.report is None or again.report.summary.verdict is not Verdict.SUCCESS:
            note(f"the second run ended: {again.error!r}")
        elif len(again.writes) != again.refreshes or again.refreshes > most:
            wrote = [f"{entry.verb} {entry.kind} {entry.name}" for entry in again.writes]
            note(f"the second run wrote: {wrote}, {again.refreshes} of it refreshes")


@dataclass(frozen=True, slots=True)
class SeedResult:
    """The result of a seed."""

    seed: int
    nodes: int
    runs: int
    operations: int
    removals: int
    problems: tuple[str, ...]
    story: tuple[str, ...]
    journal: bytes


def simulate(seed: int, dimensions: frozenset[str] | None = None) -> SeedResult:
    """Play a seed, with the default dimensions or with these."""
    return played(draw_scenario(seed, dimensions))


def played(scenario: Scenario) -> SeedResult:
    """Play all its runs, then those that must converge."""
    return virtual_time.run(_play_scenario(scenario), limit=LIMIT)


def acted(scenario: Scenario, work: Callable[[Play], Awaitable[R]]) -> R:
    """Run `work` on the cluster of a scenario."""

    async def main() -> R:
        async with Sandbox(virtual_time.virtual_sandbox_clock(scenario.seed)) as sandbox:
            return await work(await start_play(sandbox, scenario))

    return virtual_time.run(main(), limit=LIMIT)


async def _play_scenario(scenario: Scenario) -> SeedResult:
    async with Sandbox(virtual_time.virtual_sandbox_clock(scenario.seed)) as sandbox:
        play = await start_play(sandbox, scenario)
        for act in scenario.acts:
            await play.run(act)
        await play.settle()
        if scenario.teardown and not play.witness.problems:
            await TeardownPlay(play, scenario.teardown).run()
        witness = play.witness
        return SeedResult(
            scenario.seed,
            len(scenario.platform.applications),
            play.runs,
            len(witness.operations),
            len(play.removals.order),
            (*witness.problems, *play.removals.problems),
            tuple(play.story),
            b"".join(play.journal.json_lines()),
        )


async def start_play(sandbox: Sandbox, scenario: Scenario) -> Play:
    """The cluster before the first run: only Argo CD, or with Applications that another client created."""
    journal = sandbox.server.journal = WatchfulJournal()
    workloads, argocd = await install_workloads(sandbox), await install_argocd(sandbox)
    for actor in (argocd, *workloads.controllers.values()):
        actor.lag = scenario.lag
    argocd.delays.jitter, argocd.delays.sync = scenario.jitter, scenario.operation_seconds
    argocd.clock = replace(argocd.clock, skew=timedelta(seconds=scenario.skew))
    argocd.stale_statuses.update(scenario.lies)
    argocd.dropped_updates.update(scenario.overlooked)
    witnesses = (Witness(sandbox, scenario), Removals(sandbox, scenario))
    play = Play(sandbox, scenario, workloads, argocd, journal, *witnesses)
    argocd.repositories[URL] = play.repository
    play.push()
    for name in sorted(name for name, extras in scenario.extras.items() if "old-namespace" in extras):
        await sandbox.client().create("namespaces", {"metadata": {"name": f"{name}-created"}})
    await play.sandbox.clock.sleep(2.0 if scenario.extras else 0.0)
    await play.define()
    play.empty = frozenset(each for each in everything(sandbox) if each[0] != APPLICATIONS)
    return play
