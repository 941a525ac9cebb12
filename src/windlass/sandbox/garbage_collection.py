"""The controllers that every cluster runs: garbage collection, namespace deletion, and serving of custom resources.

They react to changes of the store; nothing polls.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from windlass.sandbox.apiserver.access.authentication import controller
from windlass.sandbox.apiserver.deletes import FOREGROUND, ORPHAN
from windlass.sandbox.apiserver.faults import Severed
from windlass.sandbox.apiserver.objects import custom_resources
from windlass.sandbox.apiserver.objects.name_rules import CLEANUP
from windlass.sandbox.apiserver.requests import Options
from windlass.sandbox.apiserver.wire.api_status import Refusal
from windlass.sandbox.in_process_client import Caller

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.server import Server
    from windlass.sandbox.apiserver.store import Change, Stored
    from windlass.sandbox.apiserver.wire.api_status import Body

REACTION = 0.05  # seconds between a change and the reaction to it


NAMESPACE_DONE = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    ("NamespaceDeletionContentFailure", "ContentDeleted", "All content deleted, may be waiting on finalization"),
)  # fmt: skip


class Collecting:
    """Garbage collector, namespace controller, service account controller and CustomResourceDefinition controller."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._store = server.store
        self._garbage, self._emptying, self._furnishing = (
            Caller(server, controller(name), "kube-controller-manager", shares=True)
            for name in ("generic-garbage-collector", "namespace-controller", "service-account-controller")
        )
        self._todo: dict[tuple[str, str], None] = {}
        self._wakened = asyncio.Event()
        self._terminating: dict[str, None] = {}
        server.store.listen("", "", self._notice)

    def _notice(self, change: Change) -> None:
        """Queue what the change affects. Kinds are served as soon as their CustomResourceDefinition is stored."""
        new = change.new
        if new.kind_id == custom_resources.DEFINITIONS:
            self._serve(change)
        if change.type == "DELETED":
            for dependent in self._store.dependents(new.uid):
                self._later("object", dependent.uid)
            if new.namespace in self._terminating:
                self._later("namespace", new.namespace)
            for owner in new.owners:
                self._later("object", owner)
            if self._server.catalogue.find(new.kind_id) is not None:
                self._later("kind", new.kind_id)
        elif new.kind_id == "namespaces":
            self._later("namespace", new.name)
        elif new.kind_id == custom_resources.DEFINITIONS:
            self._later("kind", new.name)
        if change.type != "DELETED" and (new.owners or b'"deletionTimestamp"' in new.tail):
            self._later("object", new.uid)

    def _later(self, what: str, which: str) -> None:
        self._todo[what, which] = None
        self._wakened.set()

    def _serve(self, change: Change) -> None:
        catalogue, definition = self._server.catalogue, change.new.body
        catalogue.drop(change.new.name)
        if change.type != "DELETED" and self._accepts(definition):
            self._store.begin(change.new.name)
            for kind in custom_resources.kinds_of(definition):
                catalogue.add(kind)

    def _accepts(self, definition: Body) -> bool:
        """Whether its kind is free: within a group, a kind belongs to the CustomResourceDefinition that came first."""
        group, name = definition["spec"]["group"], definition["spec"]["names"]["kind"]
        rivals = (kind for kind in self._server.catalogue if (kind.group, kind.kind) == (group, name))
        return all(kind.id == definition["metadata"]["name"] for kind in rivals)

    async def run(self) -> None:
        while True:
            await self._wakened.wait()
            await self._server.sources.sleep(REACTION)
            await self.settle()

    async def settle(self) -> None:
        """Process everything queued; requests that failed for a temporary reason are queued again."""
        self._wakened.clear()
        work = {"object": self._object, "namespace": self._namespace, "kind": self._kind}
        again: dict[tuple[str, str], None] = {}
        while self._todo:
            what, which = next(iter(self._todo))
            del self._todo[what, which]
            try:
                await work[what](which)
            except (Refusal, Severed) as error:
                # Ignore errors such as conflicts: the object changed in between, and that change is queued as well.
                if isinstance(error, Severed) or error.code >= 429:
                    again[what, which] = None
        for what, which in again:
            self._later(what, which)

    async def _object(self, uid: str) -> None:
        found = self._store.by_uid(uid)
        if found is None:
            return
        meta = found.body["metadata"]
        finalizers = meta.get("finalizers") or []
        if meta.get("deletionTimestamp") and ORPHAN in finalizers:
            for dependent in self._store.dependents(uid):
                await self._disown(dependent, uid)
            await self._release(found, finalizers, ORPHAN)
        elif meta.get("deletionTimestamp") and FOREGROUND in finalizers:
            await self._foreground(found, finalizers)
        elif found.owners and not meta.get("deletionTimestamp"):
            await self._orphaned(found, meta)

    async def _foreground(self, found: Stored, finalizers: list[str]) -> None:
        """Delete the dependents, then the owner. Only dependents with blockOwnerDeletion delay the owner."""
        blocking = False
        for dependent in self._store.dependents(found.uid):
            meta = dependent.body["metadata"]
            owner = next(owner for owner in meta["ownerReferences"] if owner["uid"] == found.uid)
            blocking = blocking or bool(owner.get("blockOwnerDeletion"))
            if not meta.get("deletionTimestamp"):
                await self._delete(dependent, "Foreground" if self._store.dependents(dependent.uid) else "Background")
        if not blocking or not self._store.dependents(found.uid):
            await self._release(found, finalizers, FOREGROUND)

    async def _orphaned(self, found: Stored, meta: Body) -> None:
        """Delete a dependent without existing owners; else remove its references to owners that do not exist."""
        living = [owner for owner in found.owners if self._lives(owner, found)]
        if not living:
            await self._delete(found, "Background")
        elif len(living) < len(found.owners):
            kept = [owner for owner in meta["ownerReferences"] if owner["uid"] in living]
            await self._patch(found, {"metadata": {"ownerReferences": kept, "uid": found.uid}})

    def _lives(self, uid: str, dependent: Stored) -> bool:
        owner = self._store.by_uid(uid)
        return owner is not None and owner.namespace in {"", dependent.namespace}

    async def _disown(self, dependent: Stored, uid: str) -> None:
        owners = [o for o in dependent.body["metadata"]["ownerReferences"] if o["uid"] != uid]
        await self._patch(dependent, {"metadata": {"ownerReferences": owners or None, "uid": dependent.uid}})

    async def _release(self, found: Stored, finalizers: list[str], name: str) -> None:
        kept = [finalizer for finalizer in finalizers if finalizer != name]
        await self._patch(found, {"metadata": {"finalizers": kept or None, "uid": found.uid}})

    async def _patch(self, found: Stored, patch: Body) -> None:
        await self._garbage.patch(found.kind_id, found.name, patch, found.namespace)

    async def _delete(self, found: Stored, policy: str) -> None:
        options = Options(propagation=policy, uid=found.uid)
        await self._garbage.delete(found.kind_id, found.name, found.namespace, options=options)

    async def _namespace(self, name: str) -> None:
        found = self._store.get("namespaces", "", name)
        if found is None:
            self._terminating.pop(name, None)
            return
        body = found.body
        if not body["metadata"].get("deletionTimestamp"):
            await self._furnish(name)
            return
        self._terminating[name] = None
        left = await self._emptied(name)
        found = self._store.get("namespaces", "", name)
        if found is None:
            return
        if left:
            self._report(found, left)
        elif body.get("spec", {}).get("finalizers"):
            self._finalize(found)

    async def _emptied(self, name: str) -> list[Stored]:
        """Delete every object in a namespace and return the objects that still exist."""
        left = []
        for kind_id in dict.fromkeys(kind.id for kind in self._server.catalogue if kind.namespaced):
            for item in self._store.list(kind_id, name):
                if b'"deletionTimestamp"' not in item.tail:
                    await self._emptying.delete(kind_id, item.name, name, options=Options(propagation="Background"))
            left += self._store.list(kind_id, name)
        return left

    def _report(self, found: Stored, left: list[Stored]) -> None:
        body = found.body
        told = _namespace_conditions(left, self._server.sources.timestamp())
        known = [condition["message"] for condition in body["status"].get("conditions", ())]
        if known != [condition["message"] for condition in told]:
            self._store.put("namespaces", {**body, "status": {**body["status"], "conditions": told}})

    def _finalize(self, found: Stored) -> None:
        body = found.body
        if body["metadata"].get("finalizers"):
            self._store.put("namespaces", {**body, "spec": {}})
        else:
            self._store.remove(found)

    async def _furnish(self, namespace: str) -> None:
        if self._store.get("serviceaccounts", namespace, "default") is None:
            await self._furnishing.create("serviceaccounts", {"metadata": {"name": "default"}}, namespace)
            trust = {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": ""}}
            await self._furnishing.create("configmaps", trust, namespace)

    async def _kind(self, name: str) -> None:
        """Establish a new CustomResourceDefinition; delete the custom resources of a deleted one before it goes."""
        found = self._store.get(custom_resources.DEFINITIONS, "", name)
        if found is None:
            return
        body = found.body
        if not body["metadata"].get("deletionTimestamp"):
            if not body.get("status", {}).get("conditions"):
                now = self._server.sources.timestamp()
                status = custom_resources.status(body, now, accepted=self._accepts(body))
                self._store.put(found.kind_id, {**body, "status": status})
            return
        for item in self._store.list(name):
            if b'"deletionTimestamp"' not in item.tail:
                await self._delete(item, "Background")
        finalizers = body["metadata"].get("finalizers") or []
        if not self._store.list(name) and CLEANUP in finalizers:
            await self._release(found, finalizers, CLEANUP)


def _namespace_conditions(left: list[Stored], now: str) -> list[Body]:
    """Status conditions of a terminating namespace that still contains these objects."""
    kinds = Counter(item.kind_id for item in left)
    finalizers = Counter(name for item in left for name in item.body["metadata"].get("finalizers") or ())
    remaining = ", ".join(f"{kind}. has {count} resource instances" for kind, count in sorted(kinds.items()))
    holding = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    content = f"Some resources are remaining: {remaining}" if left else "All content successfully removed"
    held = f"Some content in the namespace has finalizers remaining: {holding}"
    rows = [(kind, "False", reason, message) for kind, reason, message in NAMESPACE_DONE]
    rows += [
        ("NamespaceContentRemaining", str(bool(left)), "SomeResourcesRemain" if left else "ContentRemoved", content),
        (
            "NamespaceFinalizersRemaining",
            str(bool(holding)),
            "SomeFinalizersRemain" if holding else "ContentHasNoFinalizers",
            held if holding else "All content-preserving finalizers finished",
        ),
    ]
    return [
        {"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}
        for kind, status, reason, message in rows
    ]
