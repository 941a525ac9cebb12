"""`teardown`: delete applications in reverse order, each after its dependents and all their objects are proven gone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from windlass.argo.cd.applications import APPLICATIONS
from windlass.argo.cd.removal_step import Objects, Removals, Stage
from windlass.core.platform.events import Level, RunPhase
from windlass.core.platform.model.annotations import merged
from windlass.core.platform.planning import plans
from windlass.core.platform.reporting import reports
from windlass.core.platform.reporting.reports import NOTHING_LEFT, Action, Ending, Removal
from windlass.core.platform.teardown import inventory
from windlass.core.platform.teardown.parents import Detachment
from windlass.core.platform.teardown.volumes import Policy
from windlass.errors import WindlassError
from windlass.kube import access_reviews
from windlass.kube.access_reviews import Right
from windlass.kube.api_errors import KubeError
from windlass.operations.observation import check_place
from windlass.operations.run import run_lock
from windlass.operations.run.context import Asked
from windlass.operations.run.lifecycle import Course
from windlass.operations.teardown.cleanup import Leftovers
from windlass.operations.teardown.cluster_objects import Looking, unseen_words
from windlass.operations.teardown.finalizers import Explaining
from windlass.operations.teardown.inventory import Scene, scene_of
from windlass.operations.teardown.parents import Detaching, detached_words, detachment_for, ordered
from windlass.operations.teardown.volumes import Keeping, Kept, check_policy, observed
from windlass.orchestrators import embedded
from windlass.orchestrators.embedded import Conduct

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Iterator

    from windlass.argo.cd.applications import Application, Place
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.scopes import Scope
    from windlass.core.platform.model.snapshots import Snapshot
    from windlass.core.platform.outcomes import Outcome
    from windlass.core.platform.planning.plans import Plan
    from windlass.core.platform.reporting.reports import Report
    from windlass.core.platform.teardown.inventory import Found
    from windlass.operations.run.context import Access

R = TypeVar("R")
UNFINISHED = "the run ended before it was known what is left; run it again"


@dataclass(frozen=True, slots=True)
class Wish:
    """What `teardown` was asked to do."""

    environment: str
    platform: Platform
    scope: Scope
    stated: frozenset[str] = frozenset()
    """Nodes whose dependencies the platform file lists; annotations are ignored for these."""
    policy: Policy = Policy.RETAIN


async def teardown(access: Access, wish: Wish) -> Report:
    return await _Teardown(access, wish).report()


class _Teardown(Course):
    """Observe, plan, check access, acquire the lock, replan, delete, clean up, verify, report."""

    def __init__(self, access: Access, wish: Wish) -> None:
        super().__init__(access, Asked(Action.TEARDOWN, wish.environment, wish.scope), wish.platform)
        self._wish = wish
        self._detachment = Detachment()
        self._diagnostics: dict[str, tuple[str, ...]] = {}

    async def carried_through(self) -> Report:
        control = self.control
        plan, snapshot = await control.unless_stopped(self._observed())
        if not plan.can_run:
            return reports.of_plan(self.run(), self.platform, plan, snapshot)
        if plan.is_empty and (removal := await control.unless_stopped(self._left())) is not None:
            return self._ended(plan, snapshot, (), removal)
        keeping = await control.unless_stopped(self._checked())
        async with self.locked():
            plan, outcomes, removal = await self._carried_out(keeping)
            is_all = self._wish.scope.is_whole and all(outcome.is_good for outcome in outcomes)
            self.lock.is_last = is_all and plan.can_run and not control.stop.is_set()
        self.begin(RunPhase.REPORT)
        return self._ended(plan, await self.live.snapshot(), outcomes, removal)

    async def _checked(self) -> Keeping:
        """Check that the teardown is possible and permitted before anything is changed."""
        await check_place(self.live.cluster, self.live.applications.view)
        looking = Looking(self.access.client, await self.live.cluster.served.discovery())
        check_policy(self._wish.policy, looking.discovery)
        keeping = Keeping(looking, self.writer, self._wish.policy, self.access.run_id)
        await access_reviews.check(self.access.client, self._rights())
        return keeping

    async def _observed(self) -> tuple[Plan, Snapshot]:
        self.begin(RunPhase.OBSERVE)
        await self.live.complete()
        found = await self._planned()
        self.begin(RunPhase.PLAN)
        return self.plan(*found)

    async def _planned(self) -> tuple[Plan, Snapshot]:
        """Plan; a parent that would recreate what is deleted, and cannot be deleted first, is an unmet dependency."""
        observation, scope = await self.live.observation(), self._wish.scope
        view, argocd = self.live.applications.view, self.access.argocd
        platform = merged(self._wish.platform, observation.annotated, self._wish.stated)
        self.platform = ordered(view, platform, argocd)
        plan = plans.for_teardown(self.platform, observation.snapshot, scope)
        self._detachment = detachment_for(view, self.platform, scope, argocd)
        return replace(plan, unmet=(*plan.unmet, *self._detachment.refused)), observation.snapshot

    async def _looked(self) -> tuple[Looking, Scene]:
        """List all objects of the cluster, to know afterwards which Application they belonged to."""
        looking = Looking(self.access.client, await self.live.cluster.served.discovery())
        view, scope = self.live.applications.view, self._wish.scope
        scene = scene_of(view, self.platform, scope, self._detachment, self.access.argocd)
        return looking, scene.seen((await looking.everything()).found)

    def _rights(self) -> Iterator[Right]:
        for namespace in sorted(self.live.namespaces):
            yield Right("patch", APPLICATIONS, namespace)
            yield Right("delete", APPLICATIONS, namespace)
        yield from run_lock.rights(self.access.argocd, is_last=self._wish.scope.is_whole)

    async def _carried_out(self, keeping: Keeping) -> tuple[Plan, tuple[Outcome, ...], Removal]:
        """Plan again under the lock, when no other run can change anything, and execute that plan."""
        control = self.control
        plan, _ = await control.unless_stopped(self._planned())
        if not plan.can_run:
            return plan, (), NOTHING_LEFT
        keeping.looking, scene = await control.unless_stopped(self._looked())
        detached = await self._unless_stopped(self._prepared(keeping, scene))
        outcomes = await self._removed(plan, keeping.looking, detached or {})
        self.begin(RunPhase.CLEAN)
        gone = self._gone(scene, outcomes)
        removal = await self._unless_stopped(self._cleaned(keeping, scene, gone))
        return plan, outcomes, removal or await self._unfinished(keeping)

    async def _unfinished(self, keeping: Keeping) -> Removal:
        """The removal of a run that was stopped, perhaps because the server no longer responds."""
        try:
            return Removal((await keeping.kept()).retained, (UNFINISHED,))
        except KubeError:
            return Removal(orphans=(UNFINISHED,))

    async def _unless_stopped(self, work: Coroutine[Any, Any, R]) -> R | None:
        """Await `work`; on an error stop the run and return `None`: what was changed by then must still be reported."""
        try:
            return await self.control.unless_stopped(work)
        except WindlassError as error:
            if not self.control.stop.is_set():
                self.control.fail(error)
            return None

    async def _prepared(self, keeping: Keeping, scene: Scene) -> dict[Place, Application]:
        """Protect the volumes and delete the parents that would recreate nodes, before the first node is deleted."""
        keeping.data = await observed(keeping.looking.reader, scene)
        await keeping.secure()
        for maker in self._detachment.first:
            self.notice(detached_words(maker))
        explaining = Explaining(keeping.looking, self.access.now)
        return await Detaching(self.live.applications, self.writer, explaining.explain).detach(self._detachment.first)

    async def _removed(self, plan: Plan, looking: Looking, detached: dict[Place, Application]) -> tuple[Outcome, ...]:
        self.begin(RunPhase.RUN)
        access, control = self.access, self.control

        async def delete(found: Found) -> None:
            ref = looking.ref_to(found.item)
            if ref is not None:
                await self.writer.delete(ref, found.uid, "Foreground")

        stage = Stage(
            applications=self.live.applications,
            writer=self.writer,
            objects=Objects(looking.objects, delete, Explaining(looking, access.now).explain),
            now=access.now,
            tell=control.tell,
            argocd=access.argocd,
            nodes=self.platform.applications,
            graph=self.platform.graph,
            detached=detached,
        )
        steps = Removals(stage)
        conduct = Conduct(steps.carry_out, access.now, control.tell, control.stop, control.fail, stage.waits)
        outcomes = await embedded.run(plan, self.platform, conduct)
        self._diagnostics = steps.diagnostics
        return outcomes

    def _gone(self, scene: Scene, outcomes: Iterable[Outcome]) -> list[Place]:
        """Keys of the Applications to delete that are gone."""
        left = {outcome.name for outcome in outcomes if not outcome.is_good}
        names = [name for name in scene.places if name not in left]
        first = {(maker.item.namespace, maker.item.name) for maker in self._detachment.first}
        return sorted(
            {scene.places[name] for name in names} | (first & scene.going.keys()) - set(scene.places.values())
        )

    async def _cleaned(self, keeping: Keeping, scene: Scene, gone: list[Place]) -> Removal:
        await keeping.give_up()
        kept = await keeping.kept()
        leftovers = self._leftovers(keeping.looking, scene, gone, kept)
        live = tuple(self.live.applications.view.values())
        await leftovers.clean(scene.made_namespaces(gone, live))
        self.begin(RunPhase.VERIFY)
        return await self._told(leftovers, kept)

    async def _left(self) -> Removal | None:
        """Return the removal if the platform is already gone; `None` if something is left that can be cleaned up.

        That may be only the Lease of a run that died after its last delete.
        """
        if self._wish.scope.is_whole and await self.lock.read():
            return None
        looking, scene = await self._looked()
        gone = list(scene.places.values())
        left = inventory.left_behind(scene.looked, (), scene.leaving(gone))
        idle = [found for found in inventory.idle_definitions(scene.looked, left) if not found.is_kept]
        if self._detachment.first or idle:
            return None
        self.begin(RunPhase.VERIFY)
        return await self._told(self._leftovers(looking, scene, gone, Kept()), Kept())

    def _leftovers(self, looking: Looking, scene: Scene, gone: list[Place], kept: Kept) -> Leftovers:
        explaining = Explaining(looking, self.access.now)
        return Leftovers(looking, self.writer, explaining, scene.leaving(gone, kept.items), scene.belongings(gone))

    async def _told(self, leftovers: Leftovers, kept: Kept) -> Removal:
        orphans = await leftovers.orphans()
        if leftovers.unseen:
            self.notice(unseen_words(leftovers.unseen), Level.WARN)
        return Removal((*kept.retained, *leftovers.retained), (*kept.orphans, *orphans))

    def _ended(self, plan: Plan, snapshot: Snapshot, outcomes: tuple[Outcome, ...], removal: Removal) -> Report:
        run, platform = self.run(), self.platform
        if not plan.can_run:
            return reports.of_plan(run, platform, plan, snapshot)
        unchanged = plans.untouched(platform, plan, snapshot)
        ending = Ending(snapshot, self._diagnostics)
        return reports.of_run(run, platform, plan, (*unchanged, *outcomes), ending, removal)
