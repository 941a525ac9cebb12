"""What happens beside a run: events in the cluster and by other clients, at the times that a scenario gives."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tests.simulation.foreign_objects import claim_of
from tests.simulation.scenarios import ANOTHER_CLIENT, APPLICATIONS, ARGOCD, NAMESPACE
from tests.simulation.witnesses import LEASES
from windlass.argo.cd.root_application import MANAGED_BY_LABELS
from windlass.argo.cd.root_application import NAME as ROOT_NAME
from windlass.operations.cluster_identity import LEASE_NAME
from windlass.sandbox.apiserver.access.authentication import controller_user
from windlass.sandbox.apiserver.wire.api_status import StatusError
from windlass.sandbox.argocd.repositories import ComparisonFailure, MemoryRepository

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.simulation.play import Play
    from tests.simulation.scenarios import Event
    from windlass.sandbox.in_process_client import InProcessClient

Body = dict[str, Any]
CONTESTED_ROUNDS = 300
DELETING: Body = {"metadata": {"deletionTimestamp": "now"}}


class SimulatedRepository(MemoryRepository):
    """A repository whose server may be down: branches cannot be resolved then, known commits can.

    Commits may vanish, as after a force push.
    """

    is_down = False

    def __init__(self) -> None:
        super().__init__()
        self._vanished: dict[str, dict[str, str]] = {}

    def vanish(self, commit: str) -> None:
        if commit in self._commits:
            self._vanished[commit] = self._commits.pop(commit)

    def restore(self, commit: str) -> None:
        """Somebody who still has it pushes a commit again."""
        if commit in self._vanished:
            self._commits[commit] = self._vanished.pop(commit)

    def resolve(self, revision: str) -> str:
        if self.is_down and revision not in self._commits:
            raise ComparisonFailure("failed to list refs: dial tcp: connection refused")
        return super().resolve(revision)


class Events:
    """Plays the events of a scenario. Each kind of event is one method."""

    def __init__(self, play: Play) -> None:
        self._play = play
        self._root_before: Body | None = None
        self._kinds: dict[str, Callable[[Event], Awaitable[None]]] = {
            "outage": self._outage,
            "unseen-outage": self._unseen_outage,
            "validate": self._play.observers.validate,
            "wait": self._play.observers.wait,
            "plan": self._play.observers.plan,
            "clock-step": self._clock_step,
            "git-down": self._git_down,
            "controller-down": self._controller_down,
            "rollback": self._rollback,
            "contest": self._contest,
            "selective-sync": self._selective_sync,
            "terminate": self._terminate,
            "delete": self._delete,
            "orphan": self._orphan,
            "recreate": self._recreate,
            "edit": self._edit,
            "automate": self._automate,
            "root-automate": self._change_root,
            "root-label": self._change_root,
            "root-source": self._change_root,
            "root-delete": self._delete_root,
            "lease-delete": self._delete_lease,
            "force-push": self._force_push,
            "seen-push": self._seen_push,
            "lost-commit": self._lose_commit,
            "create": self._create,
            "bind": self._bind,
            "pass": self._pass,
        }

    async def play(self, event: Event) -> None:
        if event.after_operation:
            await self._play.witness.started[event.target].wait()
        await self._play.sandbox.clock.sleep(event.at)
        target = f" of {event.target}" if event.target else ""
        self._play.story.append(f"{self._play.sandbox.clock.timestamp()} {event.kind}{target} {event.seconds or ''}")
        with suppress(StatusError):  # another write came first, or the object does not exist
            await self._kinds[event.kind](event)

    async def repair(self) -> None:
        """Undo whatever is still wrong: from now on a run must succeed."""
        play, scenario = self._play, self._play.scenario
        play.argocd.dropped_updates.clear()
        play.repository.restore(play.witness.commits[-1])
        if self._root_before is not None:
            await self._restore_root(self._root_before)
        if scenario.parent == "set":
            await self._await_generated()
        for part in () if scenario.has_root or scenario.parent else scenario.commits[0].values():
            wanted = scenario.application(part, "main")
            await self._restore(part.name, wanted)

    async def _await_generated(self) -> None:
        """The ApplicationSet creates again what was deleted; no run can know that it will."""
        names = self._play.scenario.commits[0]
        while any((self._application(name) or DELETING)["metadata"].get("deletionTimestamp") for name in names):
            await self._play.sandbox.clock.sleep(1.0)

    async def _restore(self, name: str, wanted: Body) -> None:
        found = self._application(name)
        while found and found["metadata"].get("deletionTimestamp"):
            await self._play.sandbox.clock.sleep(10.0)
            found = self._application(name)
        if found is None:
            await self._client.create(APPLICATIONS, wanted)
        elif found["spec"] != wanted["spec"]:
            sources = {key: wanted["spec"].get(key) for key in ("source", "sources")}
            changes = {**sources, "syncPolicy": wanted["spec"].get("syncPolicy")}
            await self._client.patch(APPLICATIONS, name, {"spec": changes}, ARGOCD)

    async def _restore_root(self, before: Body) -> None:
        with suppress(StatusError):  # it was deleted: a run creates it
            changes = {"source": before["spec"]["source"], "syncPolicy": None}
            patch = {"metadata": {"labels": MANAGED_BY_LABELS}, "spec": changes}
            await self._client.patch(APPLICATIONS, ROOT_NAME, patch, ARGOCD)

    @property
    def _client(self) -> InProcessClient:
        """A client that no fault affects."""
        return self._play.sandbox.client(controller_user(ANOTHER_CLIENT))

    def _application(self, name: str) -> Body | None:
        found = self._play.sandbox.server.store.get(APPLICATIONS, ARGOCD, name)
        return found.load() if found else None

    def _touch(self, *names: str, allowance: float | None = None) -> None:
        """A run cannot have seen yet what happens to these nodes now.

        `allowance`: the seconds after which it must have, if they are not those of the scenario.
        """
        scenario, now = self._play.scenario, self._play.sandbox.clock.now()
        for name in names or scenario.commits[0]:
            self._play.witness.touched[name] = (now, scenario.allowance if allowance is None else allowance)

    async def _unseen_outage(self, event: Event) -> None:
        """Pods become unready, and Argo CD goes on showing Healthy: only the objects tell."""
        overrides = self._play.argocd.health_overrides
        overrides[event.target] = "Healthy"
        try:
            await self._outage(event, self._play.scenario.object_allowance)
        finally:
            del overrides[event.target]

    async def _outage(self, event: Event, allowance: float | None = None) -> None:
        outages, pattern = self._play.workloads.behaviours.outages, f"{event.target}:*"
        self._touch(event.target, allowance=allowance)
        outages.add(pattern)
        self._wake_pods(event.target)
        try:
            await self._play.sandbox.clock.sleep(event.seconds)
        finally:
            outages.discard(pattern)
            self._wake_pods(event.target)

    def _wake_pods(self, name: str) -> None:
        for pod in self._play.witness.pods(name):
            self._play.workloads.controllers["Pods"].enqueue(("pods", pod.namespace, pod.name))

    async def _clock_step(self, event: Event) -> None:
        self._play.clock_step += timedelta(seconds=event.seconds)

    async def _git_down(self, event: Event) -> None:
        self._play.repository.is_down = True
        try:
            await self._play.sandbox.clock.sleep(event.seconds)
        finally:
            self._play.repository.is_down = False

    async def _controller_down(self, event: Event) -> None:
        self._play.argocd.pause()
        try:
            await self._play.sandbox.clock.sleep(event.seconds)
        finally:
            self._play.argocd.restart()

    async def _operate(self, name: str, sync: Body) -> None:
        """Request an operation as Argo CD's own API does: only if none is in progress."""
        found = self._application(name)
        if found is None or found.get("operation"):
            return
        self._touch(name, allowance=self._play.scenario.watch_allowance)
        version = {"resourceVersion": found["metadata"]["resourceVersion"]}
        operation = {"initiatedBy": {"username": ANOTHER_CLIENT}, "retry": {}, "sync": sync}
        await self._client.patch(APPLICATIONS, name, {"metadata": version, "operation": operation}, ARGOCD)

    async def _rollback(self, event: Event) -> None:
        await self._operate(event.target, self._revisions(event.target, self._play.witness.commits[0]))

    def _revisions(self, name: str, revision: str) -> Body:
        has_two = name in self._play.scenario.two_sources
        return {"revisions": [revision, revision]} if has_two else {"revision": revision}

    async def _contest(self, event: Event) -> None:
        """Roll back again and again, whatever the run does."""
        for _ in range(CONTESTED_ROUNDS):
            with suppress(StatusError):
                await self._rollback(event)
            await self._play.sandbox.clock.sleep(2.0)

    async def _selective_sync(self, event: Event) -> None:
        rows = [{"kind": "ConfigMap", "name": event.target}]
        revisions = self._revisions(event.target, self._play.witness.commits[-1])
        await self._operate(event.target, {"resources": rows, **revisions})

    async def _terminate(self, event: Event) -> None:
        found = self._application(event.target) or {}
        if found.get("operation") and found.get("status", {}).get("operationState", {}).get("phase") == "Running":
            self._touch(event.target)
            self._play.witness.terminated.add(event.target)
            patch = {"status": {"operationState": {"phase": "Terminating"}}}
            await self._client.patch(APPLICATIONS, event.target, patch, ARGOCD)

    async def _delete(self, event: Event) -> None:
        self._touch(event.target)
        self._play.removals.excused.add(event.target)
        await self._client.delete(APPLICATIONS, event.target, ARGOCD)
        await self._play.sandbox.clock.sleep(event.seconds)

    async def _orphan(self, event: Event) -> None:
        self._touch(event.target)
        self._play.removals.excused.add(event.target)
        await self.delete_without_objects(event.target)

    async def delete_without_objects(self, name: str) -> None:
        await self._client.patch(APPLICATIONS, name, {"metadata": {"finalizers": None}}, ARGOCD)
        await self._client.delete(APPLICATIONS, name, ARGOCD)

    async def _recreate(self, event: Event) -> None:
        found = self._application(event.target)
        if found:
            await self._orphan(event)
            kept = {name: found["metadata"].get(name) for name in ("name", "namespace", "finalizers", "annotations")}
            body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "spec": found["spec"]}
            await self._client.create(APPLICATIONS, {**body, "metadata": kept})

    async def _edit(self, event: Event) -> None:
        self._touch(event.target)
        source = self._play.scenario.source_fields(event.target, self._play.witness.commits[0])
        await self._client.patch(APPLICATIONS, event.target, {"spec": source}, ARGOCD)

    async def _automate(self, event: Event) -> None:
        self._touch(event.target)
        patch = {"spec": {"syncPolicy": {"automated": {"selfHeal": True}}}}
        await self._client.patch(APPLICATIONS, event.target, patch, ARGOCD)
        self._play.witness.automated.add(event.target)

    async def _change_root(self, event: Event) -> None:
        found = self._application(ROOT_NAME)
        if found is None:
            return
        self._touch()
        self._root_before = self._root_before or found
        patches: dict[str, Body] = {
            "root-automate": {"spec": {"syncPolicy": {"automated": {"selfHeal": True}}}},
            "root-label": {"metadata": {"labels": None}},
            "root-source": {"spec": {"source": {"targetRevision": self._play.witness.commits[0]}}},
        }
        await self._client.patch(APPLICATIONS, ROOT_NAME, patches[event.kind], ARGOCD)
        if event.kind == "root-automate":
            self._play.witness.automated.update((ROOT_NAME, *self._play.scenario.commits[0]))

    async def _delete_root(self, _: Event) -> None:
        self._touch()
        await self._client.delete(APPLICATIONS, ROOT_NAME, ARGOCD)

    async def _seen_push(self, _: Event) -> None:
        """A push of which Argo CD is told, as by a webhook: it compares the root at once."""
        self._play.push()
        patch = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}
        await self._client.patch(APPLICATIONS, ROOT_NAME, patch, ARGOCD)

    async def _force_push(self, _: Event) -> None:
        """The next commit replaces all that were there; nothing, if there is no next one."""
        before = list(self._play.witness.commits)
        self._play.push()
        if len(self._play.witness.commits) > len(before):
            self._touch()
            for commit in before:
                self._play.repository.vanish(commit)

    async def _lose_commit(self, _: Event) -> None:
        """The newest commit is gone, and its branch with it, until something is pushed."""
        self._touch()
        self._play.repository.vanish(self._play.witness.commits[-1])

    async def _create(self, event: Event) -> None:
        part, revision = self._play.scenario.commits[-1][event.target], self._play.witness.commits[-1]
        self._touch(event.target)
        await self._client.create(APPLICATIONS, self._play.scenario.application(part, revision))

    async def _bind(self, event: Event) -> None:
        """An Application that exists gets a claim; its volume is bound before anything else happens."""
        body = self._application(event.target) or DELETING
        if not body["metadata"].get("deletionTimestamp"):
            await self._client.create("persistentvolumeclaims", claim_of(event.target, "late"), NAMESPACE)
            await self._play.sandbox.clock.sleep(15.0)

    async def _pass(self, _: Event) -> None:
        """Time passes: `Event.at`."""

    async def _delete_lease(self, _: Event) -> None:
        await self._client.delete(LEASES, LEASE_NAME, ARGOCD)
        self._play.witness.lease_deleted = self._play.sandbox.clock.now()
