"""Objects of other clients beside a platform: a teardown must neither destroy nor change them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tests.sandbox.controllers.objects import claim
from tests.simulation.foreign_parents import FOREIGN_PARENTS
from tests.simulation.scenarios import NAMESPACE
from windlass.core.platform.teardown.volumes import VolumePolicy
from windlass.sandbox.apiserver.access.authentication import controller_user
from windlass.sandbox.apiserver.wire.api_status import StatusError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.simulation.play import Play
    from windlass.sandbox.apiserver.store import StoreChange

Body = dict[str, Any]
CLAIMS = "persistentvolumeclaims"
PODS_STOPPED = 60.0  # seconds in which all pods of a deleted workload have ended


class ForeignObjects:
    def __init__(self, play: Play) -> None:
        self._play = play
        self._client = play.sandbox.client(controller_user("another-client"))
        self._created: dict[str, tuple[str, str, str]] = {}
        self.orphans: list[str] = []
        """Applications whose objects another client has to delete."""

    async def create(self, foreign: Iterable[tuple[str, str]], policy: VolumePolicy) -> None:
        for what, name in foreign:
            kind, namespace, body = self._object(what, name)
            if what == "owned-claim" and policy is not VolumePolicy.RETAIN:
                continue
            if namespace != NAMESPACE and not self._play.sandbox.server.store.get("namespaces", "", namespace):
                continue  # an ApplicationSet has made the Application without it
            created = await self._client.create(kind, body, namespace)
            if what != "owned-claim":  # its owner is of the platform, so it goes; its volume must stay
                self._created[created["metadata"]["uid"]] = (kind, namespace, created["metadata"]["name"])
        for name, extras in sorted(self._play.scenario.extras.items()):
            if "old-namespace" in extras:
                found = await self._client.get("namespaces", f"{name}-created")
                self._created[found["metadata"]["uid"]] = ("namespaces", "", f"{name}-created")
        for kind in sorted({kind for kind, _, _ in self._created.values()}):
            self._play.sandbox.server.store.listen(kind, "", self._hear)

    def _object(self, what: str, name: str) -> tuple[str, str, Body]:
        match what:
            case "instance":
                api = f"{name}.example.org"
                widget = {"apiVersion": f"{api}/v1", "kind": "Widget", "metadata": {"name": f"foreign-{name}"}}
                return f"widgets.{api}", NAMESPACE, widget
            case "owned-claim":
                body: Body = claim(f"owned-{name}")
                part = self._play.scenario.commits[-1][name]
                kind = f"{part.kind.lower()}s.apps"
                owner = self._play.sandbox.server.store.get(kind, NAMESPACE, name)
                assert owner is not None
                reference = {"apiVersion": "apps/v1", "kind": part.kind, "name": name, "uid": owner.uid}
                body["metadata"]["ownerReferences"] = [reference]
                return CLAIMS, NAMESPACE, body
            case _:
                namespace = f"{name}-carried" if what == "secret" else f"{name}-created"
                return "secrets", namespace, {"metadata": {"name": f"foreign-{what}"}, "data": {}}

    def _hear(self, change: StoreChange) -> None:
        is_gone = change.type == "DELETED" or b'"deletionTimestamp"' in change.new.tail
        if change.new.uid in self._created and change.old is not None:
            kind, namespace, name = self._created.pop(change.new.uid)
            what = "destroyed" if is_gone else "changed"
            self._play.witness.problems.append(f"{kind} {namespace}/{name} of another client was {what}")

    async def remove(self) -> None:
        """Delete what is left of other clients: from now on a teardown must succeed."""
        created, self._created = self._created, {}
        for kind, namespace, name in created.values():
            with suppress(StatusError):
                if kind != "namespaces":
                    await self._client.delete(kind, name, namespace)
        for name in self.orphans:
            part = self._play.scenario.commits[-1][name]
            kinds = ["configmaps", *([f"{part.kind.lower()}s.apps"] if part.kind else [])]
            for kind in kinds:
                with suppress(StatusError):
                    await self._client.delete(kind, name, NAMESPACE)
        await self._play.sandbox.clock.sleep(PODS_STOPPED if self.orphans else 0.0)

    @property
    def possible_leftovers(self) -> set[str]:
        """Parents of other clients, which recreate nothing by themselves, and namespaces that Argo CD created: once
        their Application is gone, no later run can know whose they were."""
        extras = self._play.scenario.extras
        created = {f"{name}-created" for name, has in extras.items() if "created-namespace" in has}
        return created | (set(FOREIGN_PARENTS) - set(self._play.scenario.platform.applications))


def claim_of(name: str, prefix: str = "data") -> Body:
    """A claim of an application, as Argo CD would have created it."""
    body: Body = claim(f"{prefix}-{name}")
    tracking = f"{name}:/PersistentVolumeClaim:{NAMESPACE}/{prefix}-{name}"
    body["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": tracking}
    return body
