"""The sync step of one node, used by every orchestrator: ensure it is defined, sync it, wait until its gate opens."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windlass.argo.cd import root_application
from windlass.argo.cd.application_watch import TICK
from windlass.argo.cd.applications import Place, parent_of, parse, requested_run, rows_out_of_sync
from windlass.argo.cd.parent_sync import Definitions
from windlass.argo.cd.sync_requests import Wish
from windlass.core.platform import gates
from windlass.core.platform.events import Level, NodeStarted, NodeWaits, Noticed
from windlass.core.platform.gates import Failed, Open, Reason, RefreshNeeded, Seen, Wait, Wanted
from windlass.core.platform.model.applications import ApplicationRef, ResourceRef
from windlass.core.platform.model.snapshots import ApplicationState, Parent, wanted_revisions
from windlass.core.platform.outcomes import Ended
from windlass.core.platform.planning.plans import why_sync
from windlass.kube.api_errors import KubeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import datetime

    from windlass.argo.cd.application_watch import Applications, Follower
    from windlass.argo.cd.application_writer import Writer
    from windlass.core.platform.events import Tell
    from windlass.core.platform.model.applications import Application
    from windlass.core.platform.model.snapshots import ResourceState
    from windlass.core.platform.planning.plans import Step
    from windlass.kube.clocks import Clock

AFTER_SYNC = frozenset({
    Reason.PROGRESSING, Reason.SUSPENDED, Reason.MISSING, Reason.UNKNOWN, Reason.NOT_STABLE, Reason.NO_ACTIVITY,
    Reason.OUT_OF_TIME,
})  # fmt: skip
"""Reasons of a timeout after a successful sync; another sync would change nothing."""


NAMESPACE_RACE = re.compile(r'namespaces "[^"]+" already exists')


@dataclass(frozen=True, slots=True)
class Stage:
    """What all sync steps of a run share."""

    applications: Applications
    writer: Writer
    read: Callable[[ResourceRef], Awaitable[ResourceState | None]]
    clock: Clock
    now: Callable[[], datetime]
    """Current time on the API server's clock."""
    tell: Tell
    run_id: str
    argocd: str
    nodes: Mapping[str, Application]
    parents: Mapping[str, Parent]
    """Parent Application of each node, as of the plan."""
    waits: dict[str, str] = field(default_factory=dict)
    """What each node is waiting for, as last reported."""

    def place(self, ref: ApplicationRef) -> Place:
        return (ref.namespace or self.argocd, ref.name)


class Steps:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._definitions = Definitions(stage.applications, stage.writer, stage.now, stage.run_id)
        targets = [node.target for node in stage.nodes.values()]
        self._places = frozenset(stage.place(target) for target in targets if isinstance(target, ApplicationRef))

    async def carry_out(self, step: Step) -> Ended:
        """Run the step to its end, with up to the node's number of attempts.

        A lost race is retried once without counting as an attempt.
        """
        node, attempt, was_raced = self._stage.nodes[step.name], 1, False
        while True:
            self._stage.tell(NodeStarted(step.name, step.verb, attempt))
            this = _Attempt(self._stage, self._definitions, node, self._places)
            judgement = await this.judgement(is_first=attempt == 1 and not was_raced)
            if not was_raced and is_raced(judgement):
                was_raced = True
                continue
            pause = node.retries.pause_after(attempt)
            if isinstance(judgement, Open) or pause is None or judgement.is_final:
                return Ended(judgement, attempt)
            told = f"attempt {attempt} failed: {judgement.detail}; the next one in {pause.total_seconds():g} s"
            self._stage.tell(Noticed(Level.WARN, told, step.name))
            self._stage.waits[step.name] = told
            await self._stage.clock.sleep(pause.total_seconds())
            attempt += 1


def is_raced(judgement: Open | Failed) -> bool:
    """Whether another client's operation replaced ours, or two syncs created one namespace and Argo CD failed one."""
    if not isinstance(judgement, Failed):
        return False
    return judgement.reason is Reason.OVERTAKEN or NAMESPACE_RACE.search(judgement.detail) is not None


class _Attempt:
    def __init__(self, stage: Stage, definitions: Definitions, node: Application, places: frozenset[Place]) -> None:
        self._stage = stage
        self._definitions = definitions
        self._node = node
        self._places = places
        self._told: tuple[str, str] = ("", "")
        self._began = stage.now()

    async def judgement(self, *, is_first: bool) -> Open | Failed:
        target = self._node.target
        if isinstance(target, ResourceRef):
            return await self._resource(target)
        place = self._stage.place(target)
        with self._stage.applications.following(place) as follower:
            if failed := await self._defined(place, follower):
                return failed
            if not is_first:
                await self._looked_at_again(follower)
            return await self._synced(follower)

    async def _looked_at_again(self, follower: Follower) -> None:
        """Request a refresh and wait for it: the status may predate the failed attempt."""
        if follower.current is not None and await self._refreshed(follower):
            while follower.state and follower.state.refresh_requested and not self._is_late():
                await follower.next()

    async def _resource(self, ref: ResourceRef) -> Open | Failed:
        wanted = Wanted((), (), self._node.patience)
        seen = gates.first_seen(await self._stage.read(ref), self._stage.now())
        while isinstance(judgement := gates.judge(wanted, seen, self._stage.now()), Wait | RefreshNeeded):
            self._waits(judgement)
            await self._stage.clock.sleep(TICK)
            seen = gates.followed(seen, await self._stage.read(ref), self._stage.now())
        return replace(judgement, is_final=True) if isinstance(judgement, Failed) else judgement

    async def _defined(self, place: Place, follower: Follower) -> Failed | None:
        """Wait until the Application exists as its parent defines it; sync the parent if needed. `None` on success."""
        planned = self._stage.parents.get(self._node.name)
        is_moved = planned is not None and not planned.is_followed and place not in self._definitions.brought
        asked = False
        while follower.current is None or (is_moved and not asked):
            parent = planned or self._parent_of(place)
            if parent and not parent.is_automated and not asked:
                asked = True
                self._waits(Wait(Reason.ABSENT, f"{parent}, which defines it, is being synced"))
                if why := await self._definitions.bring(parent, place):
                    return Failed(Reason.OPERATION_FAILED, why)
            if follower.current is None:
                if failed := self._broken_root():
                    return failed
                detail = f"{parent}, which defines it, has not created it" if parent else "no Application defines it"
                if self._is_late():
                    return Failed(Reason.ABSENT, detail, is_final=True)
                self._waits(Wait(Reason.ABSENT, detail))
                await follower.next()
            elif parent is None or parent.is_automated:
                break
        return None

    def _broken_root(self) -> Failed | None:
        """Failure if the root Application reports errors after the grace period, in which they may resolve."""
        root = self._stage.applications.view.get((self._stage.argocd, root_application.NAME))
        errors = parse(root).errors if root else ()
        if not errors or self._stage.now() - self._began < self._node.patience.degraded_grace:
            return None
        return Failed(Reason.ERROR_CONDITION, f"{root_application.NAME}, which should define it: {errors[0]}")

    def _parent_of(self, place: Place) -> Parent | None:
        found = self._stage.applications.parent_of(place)
        return parent_of(found, is_followed=False) if found else None

    async def _synced(self, follower: Follower) -> Open | Failed:
        """Request a sync, if needed, as soon as no other operation is pending; then wait for the gate."""
        follower.catch_up()  # the parent may have changed it just now
        while follower.current is not None:
            state = parse(follower.current)
            wanted = wanted_revisions(state)
            waiting = _not_yet(state, wanted)
            if waiting is None:
                if not why_sync(state, wanted):
                    return await self._gate(follower, gates.first_seen(state, self._stage.now()), wanted, "")
                wish = Wish(wanted, self._stage.run_id, self._own_resources(follower))
                answer = await self._stage.writer.try_sync(follower.current, wish)
                if isinstance(answer, str):
                    return Failed(Reason.OPERATION_FAILED, answer)
                if answer is not None:
                    seen = gates.first_seen(state, self._stage.now())
                    follower.wrote(answer)
                    seen = gates.followed(seen, parse(answer), self._stage.now())
                    return await self._gate(follower, seen, wanted, self._stage.run_id)
            elif failed := self._given_up(state, waiting):
                return failed
            else:
                self._waits(waiting)
            await follower.next()
        return Failed(Reason.ABSENT, "it was deleted")

    def _given_up(self, state: ApplicationState, waiting: Wait) -> Failed | None:
        """Failure if no sync could be requested within the timeout; error conditions have a shorter grace period."""
        patience, waited = self._node.patience, self._stage.now() - self._began
        if waiting.reason is Reason.NOT_COMPARED and state.errors and waited >= patience.degraded_grace:
            return Failed(Reason.ERROR_CONDITION, str(state.errors[0]))
        if self._is_late():
            detail = f"{waiting.detail}, after {patience.sync.total_seconds():g} s"
            return Failed(waiting.reason, detail, is_final=waiting.reason is Reason.DELETING)
        return None

    def _own_resources(self, follower: Follower) -> tuple[dict[str, str], ...]:
        """Out-of-sync resources that are not nodes; empty, which syncs everything, if none or all of them are nodes.

        Nodes that the Application defines are left out because they have sync steps of their own.
        """
        application = follower.current
        assert application is not None
        everything = rows_out_of_sync(application, without=())
        own = rows_out_of_sync(application, without=self._places)
        return tuple(own) if len(own) < len(everything) else ()

    async def _gate(self, follower: Follower, seen: Seen, revisions: tuple[str, ...], run_id: str) -> Open | Failed:
        assert follower.current is not None
        wanted = Wanted(revisions, parse(follower.current).sources, self._node.patience, run_id or None)
        while True:
            moved = _moved(wanted, seen)
            if isinstance(moved, Failed):
                return moved
            judgement = moved or gates.judge(wanted, seen, self._stage.now())
            if isinstance(judgement, Open):
                return judgement
            if isinstance(judgement, Failed):
                await self._end_operation(follower)
                return replace(judgement, is_final=seen.succeeded_since is not None and judgement.reason in AFTER_SYNC)
            if isinstance(judgement, RefreshNeeded) and await self._refreshed(follower):
                seen = gates.followed(seen, follower.state, self._stage.now())
                continue
            self._waits(judgement)
            if await follower.next():
                seen = gates.followed(seen, follower.state, self._stage.now())

    async def _refreshed(self, follower: Follower) -> bool:
        """Request a refresh; return whether the request was written."""
        assert follower.current is not None
        answer = await self._stage.writer.try_refresh(follower.current)
        if answer is not None:
            follower.wrote(answer)
        return answer is not None

    async def _end_operation(self, follower: Follower) -> None:
        """End the operation if this run requested it: a failed step must not leave one running."""
        application = follower.current
        if application is None or requested_run(application) != self._stage.run_id:
            return
        try:
            await self._stage.writer.end_operation(application)
        except KubeError as error:
            self._stage.tell(Noticed(Level.WARN, f"its operation could not be ended: {error.what}", self._node.name))

    def _is_late(self) -> bool:
        return self._stage.now() - self._began >= self._node.patience.sync

    def _waits(self, waiting: Wait | RefreshNeeded) -> None:
        trouble = self._stage.applications.trouble
        told = (str(waiting.reason), f"no news from the server: {trouble}" if trouble else waiting.detail)
        if told != self._told:
            self._told = told
            self._stage.waits[self._node.name] = told[1]
            self._stage.tell(NodeWaits(self._node.name, *told))


def _not_yet(state: ApplicationState, wanted: tuple[str, ...]) -> Wait | None:
    """Why no sync can be requested now; `None` if one can."""
    if state.is_deleting:
        return Wait(Reason.DELETING, "it is being deleted")
    if state.operation_requested:
        return Wait(Reason.OPERATION_RUNNING, "an operation that is not ours waits or runs")
    if not wanted or not state.sources:
        return Wait(Reason.NOT_COMPARED, "Argo CD has not looked at it yet")
    return None


def _moved(wanted: Wanted, seen: Seen) -> Failed | RefreshNeeded | None:
    """Failure or refresh if the sources or the resolved revision changed: this sync can no longer be verified."""
    state = seen.last
    if not isinstance(state, ApplicationState):
        return None
    if state.sources != wanted.sources:
        return Failed(Reason.OVERTAKEN, "its definition has changed meanwhile")
    if not state.is_moving or state.refresh_requested or state.revisions == wanted.revisions:
        return None
    told = f"what it follows has moved to {gates.short(state.revisions)} meanwhile"
    if wanted.run_id is None:
        return Failed(Reason.OVERTAKEN, told)
    if seen.succeeded_since is None or state.revisions in seen.earlier_revisions:
        return None
    return Failed(Reason.OVERTAKEN, told) if seen.refresh_asked else RefreshNeeded(Reason.OVERTAKEN, told)
