"""The removal step of one node, used by every orchestrator: delete it and all it manages, wait until all is gone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windlass.argo.cd.application_writer import PASSING
from windlass.argo.cd.applications import APPLICATIONS, Place, parse
from windlass.argo.cd.resource_tracking import (
    family,
    instance_at,
    item_at,
    made_by,
    makes_namespace,
    names_of,
    place_of,
    target_item,
)
from windlass.core.platform import gates
from windlass.core.platform.events import NodeStarted, NodeWaits
from windlass.core.platform.gates import Failed, Open, Reason, Wait
from windlass.core.platform.model.applications import ApplicationRef
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import ResourceState
from windlass.core.platform.outcomes import Ended
from windlass.kube.api_errors import KubeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping
    from datetime import datetime

    from windlass.argo.cd.application_watch import Applications, Follower
    from windlass.argo.cd.application_writer import Writer
    from windlass.argo.cd.applications import Application
    from windlass.core.platform.events import Tell
    from windlass.core.platform.model.applications import Application as Node
    from windlass.core.platform.model.graphs import Graph
    from windlass.core.platform.model.snapshots import State
    from windlass.core.platform.planning.plans import Step
    from windlass.core.platform.teardown.inventory import Found, Item


@dataclass(frozen=True, slots=True)
class Present:
    """The objects that exist, out of those asked for. `unreadable`: what could not be read."""

    found: tuple[Found, ...] = ()
    unseen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Objects:
    """Access to objects of any kind by their key."""

    present: Callable[[Collection[Item]], Awaitable[Present]]
    delete: Callable[[Found], Awaitable[None]]
    explain: Callable[[Collection[Item]], Awaitable[tuple[str, ...]]]
    """Explains why objects are not deleted."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What all removal steps of a run share."""

    applications: Applications
    writer: Writer
    objects: Objects
    now: Callable[[], datetime]
    """Current time on the API server's clock."""
    tell: Tell
    argocd: str
    nodes: Mapping[str, Node]
    graph: Graph
    """Dependencies of the whole platform."""
    detached: Mapping[Place, Application]
    """Applications that were already deleted without their resources."""
    waits: dict[str, str] = field(default_factory=dict)
    """What each node is waiting for, as last reported."""

    def place(self, name: str) -> Place | None:
        target = self.nodes[name].target
        return (target.namespace or self.argocd, target.name) if isinstance(target, ApplicationRef) else None


class Removals:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._places = frozenset(place for name in stage.nodes if (place := stage.place(name)))
        self._dependents = stage.graph.reversed()
        self.diagnostics: dict[str, tuple[str, ...]] = {}
        """For each node that could not be removed, what blocks its deletion."""

    async def carry_out(self, step: Step) -> Ended:
        self._stage.tell(NodeStarted(step.name, step.verb))
        if there := self._dependents_of(step.name):
            return Ended(Failed(Reason.PRESENT, f"{there} depends on it and is there again", is_final=True))
        removal = _Removal(self._stage, self._stage.nodes[step.name], self._places)
        judgement = await removal.judgement()
        if isinstance(judgement, Failed):
            self.diagnostics[step.name] = await self._explained(removal.held)
        return Ended(judgement)

    def _dependents_of(self, name: str) -> str:
        """A dependent that still exists, or an empty string. It blocks the removal even if the plan did not know it."""
        view = self._stage.applications.view
        names = sorted(self._dependents.closure([name]) - {name})
        return next((each for each in names if (place := self._stage.place(each)) and place in view), "")

    async def _explained(self, held: Collection[Item]) -> tuple[str, ...]:
        try:
            return await self._stage.objects.explain(held)
        except KubeError as error:
            return (f"what holds it could not be read: {error.what}",)


@dataclass(slots=True)
class _Removal:
    stage: Stage
    node: Node
    places: frozenset[Place]
    held: tuple[Item, ...] = ()
    """Objects that still exist."""
    is_alone: bool = False
    """The Application is gone; objects it managed may still exist."""
    unseen: tuple[str, ...] = ()
    asked: frozenset[str] = frozenset()
    """UIDs whose deletion was requested; the server keeps the request, so it is never repeated."""
    told: tuple[str, str] = ("", "")

    async def judgement(self) -> Open | Failed:
        place = self.stage.place(self.node.name)
        assert place is not None
        with self.stage.applications.following(place) as follower:
            application = follower.current or self.stage.detached.get(place)
            made = self._made(application) if application else frozenset()
            seen = gates.first_seen(follower.state, self.stage.now())
            while True:
                if failed := await self._asked(follower, made):
                    return failed
                seen = gates.followed(seen, await self._state(follower, made), self.stage.now())
                judgement = gates.judge_absence(seen, self.node.patience.health, self.stage.now())
                if isinstance(judgement, Open):
                    return self._proved(judgement, application)
                if isinstance(judgement, Failed):
                    return replace(judgement, detail=self._words(judgement.detail), is_final=True)
                self._waits(judgement)
                await follower.next()

    def _made(self, application: Application) -> frozenset[Item]:
        """Objects that must be deleted with the Application.

        Excludes other nodes, which have their own steps, and CustomResourceDefinitions, which Argo CD does not delete.
        """
        if parse(application).is_remote:
            return frozenset()
        members = family(application, self.stage.applications.view, self.places)
        items = frozenset().union(*(made_by(member) for member in members if not parse(member).is_remote))
        items -= {target_item(member) for member in members if makes_namespace(member)}
        return frozenset(item for item in items if not item.is_definition and not self._is_node(item))

    def _is_node(self, item: Item) -> bool:
        return _is_application(item) and (item.namespace, item.name) in self.places

    async def _asked(self, follower: Follower, made: frozenset[Item]) -> Failed | None:
        """Request the deletion, unless that is already done. `None` unless the server refuses it."""
        try:
            if follower.current is None:
                await self._disposed(made)
            elif not follower.current.metadata.deletion_timestamp and follower.current.metadata.uid not in self.asked:
                await self._removed(follower.current)
        except PASSING:
            return None  # the next iteration reads the result
        except KubeError as error:
            self.held = tuple(sorted(made))
            return Failed(Reason.PRESENT, f"its deletion was refused: {error.what}", is_final=True)
        return None

    async def _removed(self, application: Application) -> None:
        for member in family(application, self.stage.applications.view, self.places):
            if member is not application:
                await self.stage.writer.cascade(member)
        if parse(application).operation_requested:
            application = await self.stage.writer.end_operation(application)  # otherwise Argo CD waits for it
        await self.stage.writer.remove(application)
        self.asked |= {application.metadata.uid}

    async def _disposed(self, made: frozenset[Item]) -> None:
        """Delete the objects of an Application that was deleted without cascade."""
        if self.stage.place(self.node.name) not in self.stage.detached:
            return
        for found in (await self._present(made)).found:
            if found.is_deleting or found.uid in self.asked:
                continue
            member = self.stage.applications.view.get((found.item.namespace, found.item.name))
            if member and _is_application(found.item):
                await self.stage.writer.remove(member)
            else:
                await self.stage.objects.delete(found)
            self.asked |= {found.uid}

    async def _present(self, made: frozenset[Item]) -> Present:
        """The objects that exist, without those tracked by another Application or excluded from deletion."""
        place = self.stage.place(self.node.name)
        assert place is not None
        members = {instance_at(place, self.stage.argocd), ""}
        members |= {
            instance_at((item.namespace, item.name), self.stage.argocd) for item in made if _is_application(item)
        }
        there = await self.stage.objects.present(made)
        theirs = (found for found in there.found if found.mark in members and not found.is_kept)
        return replace(there, found=tuple(theirs))

    async def _state(self, follower: Follower, made: frozenset[Item]) -> State | None:
        """State of the Application or, once that is gone, of its remaining objects; `None` if nothing is left."""
        if follower.current is not None:
            self.held = (*sorted(made), item_at(place_of(follower.current)))
            return parse(follower.current)
        if not made:
            return None
        try:
            there = await self._present(made)
        except PASSING:
            return ResourceState(Health.UNKNOWN, "nobody can tell", is_deleting=True)
        self.is_alone = True
        self.held, self.unseen = tuple(found.item for found in there.found), there.unseen
        if not there.found:
            return None
        is_deleting = all(found.is_deleting for found in there.found)
        return ResourceState(Health.PROGRESSING, names_of(self.held), is_deleting=is_deleting)

    def _proved(self, judgement: Open, application: Application | None) -> Open:
        """Record that the removal is unverified if objects are in another cluster or could not be read."""
        is_remote = application is not None and parse(application).is_remote
        is_verified = not is_remote and not self.unseen
        return Open(replace(judgement.evidence, is_directly_verified=is_verified))

    def _words(self, detail: str) -> str:
        return f"{names_of(self.held)}: {detail}" if self.is_alone else detail

    def _waits(self, waiting: Wait) -> None:
        trouble = self.stage.applications.trouble
        words = f"no news from the server: {trouble}" if trouble else self._words(waiting.detail)
        if (told := (str(waiting.reason), words)) != self.told:
            self.told = told
            self.stage.waits[self.node.name] = words
            self.stage.tell(NodeWaits(self.node.name, *told))


def _is_application(item: Item) -> bool:
    return (item.group, item.kind) == (APPLICATIONS.group, APPLICATIONS.kind)
