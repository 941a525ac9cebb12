"""`deploy`: sync the applications in scope in dependency order, each after the gates of its dependencies have opened.

An application that is already in its desired state is not touched.
"""

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

COMPARED_WITHIN = 120.0  # seconds for Argo CD to compare a root Application that was just written


SHOWN = 5  # differences listed in the error; one is enough to refuse


class Moved(WindlassError):
    """The plan computed now differs from the approved plan."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What `deploy` was asked to do."""

    environment: str
    platform: Platform
    scope: Scope
    stated: frozenset[str] = frozenset()
    """Nodes whose dependencies the platform file lists; annotations are ignored for these."""
    root: Root | None = None
    """Root Application to create if it is needed, or to update if Windlass manages it."""
    approved: Approved | None = None
    """Refuse to run unless the computed plan equals this one."""


async def deploy(access: Access, wish: Wish) -> Report:
    return await _Deploy(access, wish).report()


class _Deploy(Course):
    """Observe, plan, check access, acquire the lock, replan, sync, verify, report."""

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
        """Return the plan, its snapshot, and the root Application to write first; `None` if it needs no write."""
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
        """Refuse now what can be refused without a refresh, because a refresh is already a write."""
        if self._wish.approved is not None:
            plan, snapshot = await self._settled_plan()
            self._check_approved(plan, self._root_change(plan, snapshot)[0])
        await access_reviews.check(self.access.client, self._rights(None))
        await self.lock.until_free()

    async def _settled_plan(self) -> tuple[Plan, Snapshot]:
        """Plan, and plan again for up to `SETTLING_TIMEOUT` while health that is too recent to count holds up the plan.

        That is the case if the plan changes nothing and only waits, or if every unmet dependency shows Healthy.
        """
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
        """Return the root Application to write and the reason; `(None, "")` if it needs no change."""
        if self._wish.root is None:
            return None, ""
        is_needed = plans.has_undefined(plan, snapshot)
        wanted, why = root_application.change(self._wish.root, self.access.argocd, self.live.root, is_needed=is_needed)
        return (wanted if why else None), why

    def _check_approved(self, plan: Plan, root: Plain | None) -> None:
        check_approved(self._wish.approved, plan, str(self._wish.root) if root else "")

    async def _settled(self, root: Plain | None) -> tuple[Plan, Snapshot]:
        """Plan again under the lock, when no other run can change anything: this is the plan that is executed."""
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
        """Check at the end of the run that finished applications are still healthy; wait for those that are not.

        Return the corrected outcomes and the final snapshot.
        """
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
    """Whether every unmet dependency shows Healthy, so that only the proof is missing."""
    shown = [snapshot.states.get(each.name) for each in plan.unmet]
    return bool(shown) and all(state is not None and state.health is Health.HEALTHY for state in shown)


def _is_compared(root: Application | None, version: int) -> bool:
    """Whether Argo CD compared the root after it was written at `version`; an older comparison says nothing."""
    if root is None or int(root.metadata.resource_version) <= version:
        return False
    state = parse(root)
    return bool(state.revisions) and state.compared_to == state.sources
