"""The end of a scenario: the platform is torn down, whatever goes wrong; nothing is left, and it is deployed again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.simulation.foreign_objects import ForeignObjects, claim_of
from tests.simulation.scenarios import NAMESPACE, Act
from tests.simulation.witnesses import everything
from windlass.core.platform.reporting.reports import Action
from windlass.core.platform.teardown.volumes import VolumePolicy
from windlass.sandbox.apiserver.access.authentication import controller_user
from windlass.sandbox.apiserver.wire.api_status import StatusError
from windlass.sandbox.controllers.behaviours import Behaviour

if TYPE_CHECKING:
    from tests.simulation.play import Play
    from tests.simulation.scenarios import HeldObject, TeardownScenario
    from windlass.sandbox.apiserver.store import StoreChange
    from windlass.sandbox.in_process_client import InProcessClient

CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"
HELD = "example.org/held"
SETTLED = 15.0  # seconds in which Argo CD has seen all that was changed


@dataclass
class TeardownPlay:
    play: Play
    scenario: TeardownScenario
    kept: dict[str, str] = field(default_factory=dict)
    """The volumes that must stay, by name, and their uids."""
    orphaned: dict[str, str] = field(default_factory=dict)
    """The volumes that may go: another client removes the objects that own their claims."""

    def __post_init__(self) -> None:
        self.foreign = ForeignObjects(self.play)

    async def run(self) -> None:
        await self._prepare()
        for act in self.scenario.acts:
            await self.play.run(act)
        for hold in self.scenario.holds:
            await self._release(hold)
        await self.foreign.remove()
        if not await self._is_gone():
            return
        await self.play.define()
        await self.play.deploy_whole()

    @property
    def _other_client(self) -> InProcessClient:
        """A client that no fault affects."""
        return self.play.sandbox.client(controller_user("another-client"))

    async def _prepare(self) -> None:
        play = self.play
        play.argocd.delays.delete = self.scenario.removal
        for name, seconds in self.scenario.stops.items():
            play.workloads.behaviours.by_image[f"{name}:*"] = Behaviour(stops_after=seconds)
        for name in self.scenario.volumes:
            await self._other_client.create(CLAIMS, claim_of(name), NAMESPACE)
        await self.foreign.create(self.scenario.foreign, self.scenario.policy)
        await play.sandbox.clock.sleep(SETTLED)
        play.removals.excused.clear()
        store = play.sandbox.server.store
        if self.scenario.policy is VolumePolicy.RETAIN:
            orphans = {f"owned-{name}" for name in self.scenario.orphaned}
            for volume in store.list(VOLUMES):
                is_orphan = volume.load()["spec"]["claimRef"]["name"] in orphans
                (self.orphaned if is_orphan else self.kept)[volume.name] = volume.uid
            store.listen(VOLUMES, "", self._hear)
        play.removals.excused.update(self.scenario.orphaned)
        for name in self.scenario.orphaned:
            await play.events.delete_without_objects(name)
            self.foreign.orphans.append(name)
        for hold in self.scenario.holds:
            await self._patched(hold, [HELD])
            play.sandbox.start(self._later(hold), name=f"release of {hold.name}")

    def _hear(self, change: StoreChange) -> None:
        if change.type == "ADDED":  # another client has bound it later
            self.kept[change.new.name] = change.new.uid
        if change.new.uid in self.kept.values() and b'"deletionTimestamp"' in change.new.tail:
            self.play.witness.problems.append(f"the volume {change.new.name} must stay, and is deleted")

    async def _later(self, hold: HeldObject) -> None:
        await self.play.sandbox.clock.sleep(hold.seconds)
        await self._release(hold)

    async def _release(self, hold: HeldObject) -> None:
        await self._patched(hold, [])

    async def _patched(self, hold: HeldObject, wanted: list[str]) -> None:
        with suppress(StatusError):  # it does not exist
            found = await self._other_client.get(hold.kind, hold.name, hold.namespace)
            others = [name for name in found["metadata"].get("finalizers") or () if name != HELD]
            change = {"metadata": {"finalizers": [*others, *wanted] or None}}
            await self._other_client.patch(hold.kind, hold.name, change, hold.namespace)

    async def _is_gone(self) -> bool:
        """Nothing goes wrong any more: a run succeeds, and the next has nothing to do."""
        play, note = self.play, self.play.witness.problems.append
        if await play.converged(Act(Action.TEARDOWN)) is None:
            return False
        unknown = self.foreign.possible_leftovers
        left = {each for each in everything(play.sandbox) - play.empty if not unknown & {each[1], each[2]}}
        kept = {(VOLUMES, "", name) for name in self.kept}
        left -= {(VOLUMES, "", name) for name in self.orphaned}
        if left != kept:
            note(f"after the teardown there is {sorted(left - kept)}, and there is not {sorted(kept - left)}")
        again = await play.run(Act(Action.TEARDOWN))
        if again.report is None or again.report.summary.exit_code:
            note(f"the second teardown ended: {again.error!r}")
        elif again.writes:
            note(f"the second teardown wrote {[f'{each.verb} {each.kind} {each.name}' for each in again.writes]}")
        return True
