"""`deploy`: from what is there to what is wanted, in order, each node behind its gate. Right already = not touched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.argo.cd import root_application
from windlass.argo.cd.application_watch import TICK
from windlass.argo.cd.applications import APPLICATIONS, Application, parse
from windlass.argo.cd.sync_step import Stage, Steps
from windlass.core.platform import final_check
from windlass.core.platform.events import Level, NodeEnded, Noticed, RunPhase
from windlass.core.platform.gates import Failed
from windlass.core.platform.model import scopes
from windlass.core.platform.model.annotations import merged
from windlass.core.platform.model.health import Health
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.planning import lint_warnings, plan_documents, plans
from windlass.core.platform.reporting import reports
from windlass.core.platform.reporting.reports import Action, Ending
from windlass.errors import WindlassError
from windlass.kube import access_reviews
from windlass.kube.access_reviews import Right
from windlass.operations.observation import check_place
from windlass.operations.run import run_lock
from windlass.operations.run.context import Asked
from windlass.operations.run.lifecycle import Course
from windlass.operations.validate import PAUSE, SETTLING
from windlass.orchestrators import embedded
from windlass.orchestrators.embedded import Conduct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.argo.cd.root_application import Root
    from windlass.core.platform.gates import Seen
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.scopes import Scope
    from windlass.core.platform.model.snapshots import Snapshot
    from windlass.core.platform.planning.plan_documents import Approved
    from windlass.core.platform.planning.plans import Plan
    from windlass.core.platform.reporting.reports import Report
    from windlass.kube.client.objects import Plain
    from windlass.operations.run.context import Access

COMPARED_WITHIN = 120.0  # seconds for a new root to be rendered


SHOWN = 5  # differences that are told; the first is enough to refuse


class Moved(WindlassError):
    """What was approved is not what would be done."""


@dataclass(frozen=True, slots=True)
class Wish:
    """`root`: what defines the Applications, if nothing in the cluster does."""

    environment: str
    platform: Platform
    scope: Scope
    stated: frozenset[str] = frozenset()
    """Nodes whose own dependencies stand in the platform file: annotations do not add to those."""
    root: Root | None = None
    approved: Approved | None = None
    """Exactly this is done, or nothing."""


async def deploy(access: Access, wish: Wish) -> Report:
    return await _Deploy(access, wish).report()


class _Deploy(Course):
    def __init__(self, access: Access, wish: Wish) -> None:
        super().__init__(access, Asked(Action.DEPLOY, wish.environment, wish.scope), wish.platform)
        self._wish = wish

    async def carried_through(self) -> Report:
        plan, snapshot, root = await self.control.unless_stopped(self._planned())
        self._check_approved(plan, root)
        if not plan.can_run:
            return reports.of_plan(self.run(), self.platform, plan, snapshot)
        if plan.is_empty and root is None:
            return reports.of_run(
                self.run(), self.platform, plan, plans.untouched(self.platform, plan, snapshot), Ending(snapshot)
            )
        await self.control.unless_stopped(access_reviews.check(self.access.client, self._rights(root)))
        async with self.locked():
            plan, snapshot = await self.control.unless_stopped(self._settled(root))
            if root is None:
                self._check_approved(plan, root)
            untouched = plans.untouched(self.platform, plan, snapshot)
            outcomes = await self._carried_out(plan, snapshot)
            outcomes, snapshot = await self._held((*untouched, *outcomes))
        self.begin(RunPhase.REPORT)
        failed = [each.name for each in outcomes if each.result in {Result.FAILED, Result.INTERRUPTED}]
        ending = Ending(snapshot, await self.live.diagnostics(failed))
        return reports.of_run(self.run(), self.platform, plan, outcomes, ending)

    async def _planned(self) -> tuple[Plan, Snapshot, Plain | None]:
        """And the root as it shall be, if it has to be written first."""
        self.begin(RunPhase.OBSERVE)
        await self.live.complete()
        await check_place(self.live.cluster, self.live.applications.view)
        annotated = (await self.live.observation()).annotated
        self.platform = merged(self._wish.platform, annotated, self._wish.stated)
        names = scopes.selected(self._wish.platform, self._wish.scope)
        if self.live.moving(names):
            await self._check_before_refresh()
            await self.live.refresh(names)
        plan, snapshot = await self._settled_plan()
        self.begin(RunPhase.PLAN)
        self.plan(plan, snapshot)
        for _, words in lint_warnings.out_of_order(self.platform, snapshot):
            self.notice(words, Level.WARN)
        wanted, why = self._root_change(plan, snapshot)
        if why:
            self.notice(why)
        return plan, snapshot, wanted

    async def _check_before_refresh(self) -> None:
        """What can be refused without a refresh is refused without one: even that is a write."""
        if self._wish.approved is not None:
            plan, snapshot = await self._settled_plan()
            self._check_approved(plan, self._root_change(plan, snapshot)[0])
        await access_reviews.check(self.access.client, self._rights(None))
        await self.lock.until_free()

    async def _settled_plan(self) -> tuple[Plan, Snapshot]:
        """Where nothing is to be, or may be, changed, verdicts that are only too fresh get a moment to settle."""
        clock = self.access.client.clock
        began = clock.monotonic()
        while True:
            snapshot = await self.live.snapshot()
            plan = plans.for_deploy(self.platform, snapshot, self._wish.scope)
            is_late = clock.monotonic() - began > SETTLING.total_seconds()
            if is_late or (not _is_unsettled(plan, snapshot) and (plan.changes or plan.is_empty)):
                return plan, snapshot
            await clock.sleep(PAUSE)

    def _rights(self, root: Plain | None) -> Iterator[Right]:
        for namespace in sorted(self.live.namespaces):
            yield Right("patch", APPLICATIONS, namespace)
        if root is not None and self.live.root is None:
            yield Right("create", APPLICATIONS, self.access.argocd)
        yield from run_lock.rights(self.access.argocd)

    def _root_change(self, plan: Plan, snapshot: Snapshot) -> tuple[Plain | None, str]:
        """The root as it shall be, and why; nothing if it is as it should be."""
        if self._wish.root is None:
            return None, ""
        is_needed = plans.has_undefined(plan, snapshot)
        wanted, why = root_application.change(self._wish.root, self.access.argocd, self.live.root, is_needed=is_needed)
        return (wanted if why else None), why

    def _check_approved(self, plan: Plan, root: Plain | None) -> None:
        check_approved(self._wish.approved, plan, str(self._wish.root) if root else "")

    async def _settled(self, root: Plain | None) -> tuple[Plan, Snapshot]:
        """Under the lock nobody else moves anything: what is planned now is what is done."""
        if root is not None:
            await self._write_root(root)
        snapshot = await self.live.snapshot()
        plan = plans.for_deploy(self.platform, snapshot, self._wish.scope)
        return self.plan(plan, snapshot)

    async def _write_root(self, root: Plain) -> None:
        self.writer.allow()
        ref = APPLICATIONS.named(root_application.NAME, self.access.argocd)
        written = await self.access.client.apply(ref, root)
        with self.live.applications.following((self.access.argocd, root_application.NAME)) as follower:
            version, waited = int(written["metadata"]["resourceVersion"]), 0.0
            while waited < COMPARED_WITHIN and not _is_compared(follower.current, version):
                waited += 0 if await follower.next() else TICK

    async def _carried_out(self, plan: Plan, snapshot: Snapshot) -> tuple[Outcome, ...]:
        self.begin(RunPhase.RUN)
        access, control = self.access, self.control
        stage = Stage(
            applications=self.live.applications,
            writer=self.writer,
            read=self.live.resource,
            clock=access.client.clock,
            now=access.now,
            tell=control.tell,
            run_id=access.run_id,
            argocd=access.argocd,
            nodes=self.platform.applications,
            parents=snapshot.parents,
        )
        conduct = Conduct(Steps(stage).carry_out, access.now, control.tell, control.stop, control.fail, stage.waits)
        outcomes = await embedded.run(plan, self.platform, conduct)
        if control.is_out_of_time:
            await self.live.end_operations(access.run_id)
        return outcomes

    async def _held(self, outcomes: tuple[Outcome, ...]) -> tuple[tuple[Outcome, ...], Snapshot]:
        """Success is said of what stands at the end; and how all is then."""
        good = [each.name for each in outcomes if each.is_good]
        seen: dict[str, Seen] = {}
        told: set[str] = set()
        while True:
            snapshot = await self.live.snapshot()
            seen = final_check.looked_at(seen, good, snapshot)
            judged = final_check.judged(self.platform, seen, snapshot)
            waiting = {name: each for name, each in judged.items() if not isinstance(each, Failed)}
            if not waiting or self.control.stop.is_set():
                break
            for name in sorted(waiting.keys() - told):
                words = f"it was healthy in its turn, and now is waited for again: {waiting[name].detail}"
                self.control.tell(Noticed(Level.WARN, words, name))
            told |= waiting.keys()
            await self.access.client.clock.sleep(PAUSE)
        corrected = tuple(final_check.corrected(each, judged.get(each.name)) for each in outcomes)
        for each in corrected:
            if each.name in judged:
                self.control.tell(NodeEnded(each))
        return corrected, snapshot


def check_approved(approved: Approved | None, plan: Plan, root: str) -> None:
    if approved is None:
        return
    found = plan_documents.essence(plan, root)
    if differences := plan_documents.differences(approved, found):
        raise Moved(
            f"the cluster has moved since the plan was made: {'; '.join(differences[:SHOWN])}",
            hint="look at a new plan: windlass plan --out FILE",
        )


def _is_unsettled(plan: Plan, snapshot: Snapshot) -> bool:
    """All that keeps it from running shows Healthy: it is only not sure yet."""
    shown = [snapshot.states.get(each.name) for each in plan.unmet]
    return bool(shown) and all(state is not None and state.health is Health.HEALTHY for state in shown)


def _is_compared(root: Application | None, version: int) -> bool:
    """After it was written: a comparison of before says nothing about it."""
    if root is None or int(root.metadata.resource_version) <= version:
        return False
    state = parse(root)
    return bool(state.revisions) and state.compared_to == state.sources
