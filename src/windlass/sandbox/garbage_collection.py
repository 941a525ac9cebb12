"""The controllers that every cluster runs: garbage collection, namespace deletion, and serving of custom resources.

They react to changes of the store; nothing polls.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from windlass.sandbox.apiserver.access.authentication import controller_user
from windlass.sandbox.apiserver.deletes import FOREGROUND_FINALIZER, ORPHAN_FINALIZER
from windlass.sandbox.apiserver.faults import ConnectionSevered
from windlass.sandbox.apiserver.objects import custom_resources
from windlass.sandbox.apiserver.objects.name_rules import CRD_CLEANUP_FINALIZER
from windlass.sandbox.apiserver.requests import RequestOptions
from windlass.sandbox.apiserver.wire.api_status import StatusError
from windlass.sandbox.in_process_client import InProcessClient

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.server import ApiServer
    from windlass.sandbox.apiserver.store import StoreChange, StoredObject
    from windlass.sandbox.apiserver.wire.api_status import Body

REACTION_DELAY = 0.05  # seconds between a change and the reaction to it


NAMESPACE_SUCCESS_CONDITIONS = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    ("NamespaceDeletionContentFailure", "ContentDeleted", "All content deleted, may be waiting on finalization"),
)  # fmt: skip


class GarbageCollector:
    """Garbage collector, namespace controller, service account controller and CustomResourceDefinition controller."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._store = server.store
        self._garbage_client, self._namespace_client, self._account_client = (
            InProcessClient(server, controller_user(name), "kube-controller-manager", share_objects=True)
            for name in ("generic-garbage-collector", "namespace-controller", "service-account-controller")
        )
        self._queue: dict[tuple[str, str], None] = {}
        self._wake = asyncio.Event()
        self._terminating: dict[str, None] = {}
        server.store.listen("", "", self._on_change)

    def _on_change(self, change: StoreChange) -> None:
        """Queue what the change affects. Kinds are served as soon as their CustomResourceDefinition is stored."""
        new = change.new
        if new.kind_id == custom_resources.CRD_KIND_ID:
            self._serve_custom_kinds(change)
        if change.type == "DELETED":
            for dependent in self._store.dependents(new.uid):
                self._enqueue("object", dependent.uid)
            if new.namespace in self._terminating:
                self._enqueue("namespace", new.namespace)
            for owner in new.owners:
                self._enqueue("object", owner)
            if self._server.catalogue.by_id(new.kind_id) is not None:
                self._enqueue("kind", new.kind_id)
        elif new.kind_id == "namespaces":
            self._enqueue("namespace", new.name)
        elif new.kind_id == custom_resources.CRD_KIND_ID:
            self._enqueue("kind", new.name)
        if change.type != "DELETED" and (new.owners or b'"deletionTimestamp"' in new.tail):
            self._enqueue("object", new.uid)

    def _enqueue(self, item_type: str, key: str) -> None:
        self._queue[item_type, key] = None
        self._wake.set()

    def _serve_custom_kinds(self, change: StoreChange) -> None:
        catalogue, definition = self._server.catalogue, change.new.body
        catalogue.remove(change.new.name)
        if change.type != "DELETED" and self._is_accepted(definition):
            self._store.start_history(change.new.name)
            for kind in custom_resources.served_kinds(definition):
                catalogue.add(kind)

    def _is_accepted(self, definition: Body) -> bool:
        """Whether its kind is free: within a group, a kind belongs to the CustomResourceDefinition that came first."""
        group, name = definition["spec"]["group"], definition["spec"]["names"]["kind"]
        same_kind = (kind for kind in self._server.catalogue if (kind.group, kind.kind) == (group, name))
        return all(kind.id == definition["metadata"]["name"] for kind in same_kind)

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            await self._server.clock.sleep(REACTION_DELAY)
            await self.process_queue()

    async def process_queue(self) -> None:
        """Process everything queued; requests that failed for a temporary reason are queued again."""
        self._wake.clear()
        handlers = {
            "object": self._process_object,
            "namespace": self._process_namespace,
            "kind": self._process_definition,
        }
        retries: dict[tuple[str, str], None] = {}
        while self._queue:
            item_type, key = next(iter(self._queue))
            del self._queue[item_type, key]
            try:
                await handlers[item_type](key)
            except (StatusError, ConnectionSevered) as error:
                # Ignore errors such as conflicts: the object changed in between, and that change is queued as well.
                if isinstance(error, ConnectionSevered) or error.code >= 429:
                    retries[item_type, key] = None
        for item_type, key in retries:
            self._enqueue(item_type, key)

    async def _process_object(self, uid: str) -> None:
        stored = self._store.by_uid(uid)
        if stored is None:
            return
        meta = stored.body["metadata"]
        finalizers = meta.get("finalizers") or []
        if meta.get("deletionTimestamp") and ORPHAN_FINALIZER in finalizers:
            for dependent in self._store.dependents(uid):
                await self._remove_owner_reference(dependent, uid)
            await self._remove_finalizer(stored, finalizers, ORPHAN_FINALIZER)
        elif meta.get("deletionTimestamp") and FOREGROUND_FINALIZER in finalizers:
            await self._delete_in_foreground(stored, finalizers)
        elif stored.owners and not meta.get("deletionTimestamp"):
            await self._collect_dependent(stored, meta)

    async def _delete_in_foreground(self, stored: StoredObject, finalizers: list[str]) -> None:
        """Delete the dependents, then the owner. Only dependents with blockOwnerDeletion delay the owner."""
        blocking = False
        for dependent in self._store.dependents(stored.uid):
            meta = dependent.body["metadata"]
            owner = next(owner for owner in meta["ownerReferences"] if owner["uid"] == stored.uid)
            blocking = blocking or bool(owner.get("blockOwnerDeletion"))
            if not meta.get("deletionTimestamp"):
                await self._delete(dependent, "Foreground" if self._store.dependents(dependent.uid) else "Background")
        if not blocking or not self._store.dependents(stored.uid):
            await self._remove_finalizer(stored, finalizers, FOREGROUND_FINALIZER)

    async def _collect_dependent(self, stored: StoredObject, meta: Body) -> None:
        """Delete a dependent without existing owners; else remove its references to owners that do not exist."""
        existing = [owner for owner in stored.owners if self._owner_exists(owner, stored)]
        if not existing:
            await self._delete(stored, "Background")
        elif len(existing) < len(stored.owners):
            kept = [owner for owner in meta["ownerReferences"] if owner["uid"] in existing]
            await self._patch(stored, {"metadata": {"ownerReferences": kept, "uid": stored.uid}})

    def _owner_exists(self, uid: str, dependent: StoredObject) -> bool:
        owner = self._store.by_uid(uid)
        return owner is not None and owner.namespace in {"", dependent.namespace}

    async def _remove_owner_reference(self, dependent: StoredObject, uid: str) -> None:
        owners = [o for o in dependent.body["metadata"]["ownerReferences"] if o["uid"] != uid]
        await self._patch(dependent, {"metadata": {"ownerReferences": owners or None, "uid": dependent.uid}})

    async def _remove_finalizer(self, stored: StoredObject, finalizers: list[str], name: str) -> None:
        kept = [finalizer for finalizer in finalizers if finalizer != name]
        await self._patch(stored, {"metadata": {"finalizers": kept or None, "uid": stored.uid}})

    async def _patch(self, stored: StoredObject, patch: Body) -> None:
        await self._garbage_client.patch(stored.kind_id, stored.name, patch, stored.namespace)

    async def _delete(self, stored: StoredObject, policy: str) -> None:
        options = RequestOptions(propagation=policy, uid=stored.uid)
        await self._garbage_client.delete(stored.kind_id, stored.name, stored.namespace, options=options)

    async def _process_namespace(self, name: str) -> None:
        stored = self._store.get("namespaces", "", name)
        if stored is None:
            self._terminating.pop(name, None)
            return
        body = stored.body
        if not body["metadata"].get("deletionTimestamp"):
            await self._create_namespace_defaults(name)
            return
        self._terminating[name] = None
        remaining = await self._delete_namespace_contents(name)
        stored = self._store.get("namespaces", "", name)
        if stored is None:
            return
        if remaining:
            self._report_remaining(stored, remaining)
        elif body.get("spec", {}).get("finalizers"):
            self._finalize(stored)

    async def _delete_namespace_contents(self, name: str) -> list[StoredObject]:
        """Delete every object in a namespace and return the objects that still exist."""
        remaining = []
        for kind_id in dict.fromkeys(kind.id for kind in self._server.catalogue if kind.namespaced):
            for item in self._store.list(kind_id, name):
                if b'"deletionTimestamp"' not in item.tail:
                    await self._namespace_client.delete(
                        kind_id, item.name, name, options=RequestOptions(propagation="Background")
                    )
            remaining += self._store.list(kind_id, name)
        return remaining

    def _report_remaining(self, stored: StoredObject, remaining: list[StoredObject]) -> None:
        body = stored.body
        conditions = _namespace_conditions(remaining, self._server.clock.timestamp())
        current = [condition["message"] for condition in body["status"].get("conditions", ())]
        if current != [condition["message"] for condition in conditions]:
            self._store.put("namespaces", {**body, "status": {**body["status"], "conditions": conditions}})

    def _finalize(self, stored: StoredObject) -> None:
        body = stored.body
        if body["metadata"].get("finalizers"):
            self._store.put("namespaces", {**body, "spec": {}})
        else:
            self._store.remove(stored)

    async def _create_namespace_defaults(self, namespace: str) -> None:
        if self._store.get("serviceaccounts", namespace, "default") is None:
            await self._account_client.create("serviceaccounts", {"metadata": {"name": "default"}}, namespace)
            ca_bundle = {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": ""}}
            await self._account_client.create("configmaps", ca_bundle, namespace)

    async def _process_definition(self, name: str) -> None:
        """Establish a new CustomResourceDefinition; delete the custom resources of a deleted one before it goes."""
        stored = self._store.get(custom_resources.CRD_KIND_ID, "", name)
        if stored is None:
            return
        body = stored.body
        if not body["metadata"].get("deletionTimestamp"):
            if not body.get("status", {}).get("conditions"):
                now = self._server.clock.timestamp()
                status = custom_resources.build_status(body, now, accepted=self._is_accepted(body))
                self._store.put(stored.kind_id, {**body, "status": status})
            return
        for item in self._store.list(name):
            if b'"deletionTimestamp"' not in item.tail:
                await self._delete(item, "Background")
        finalizers = body["metadata"].get("finalizers") or []
        if not self._store.list(name) and CRD_CLEANUP_FINALIZER in finalizers:
            await self._remove_finalizer(stored, finalizers, CRD_CLEANUP_FINALIZER)


def _namespace_conditions(objects: list[StoredObject], now: str) -> list[Body]:
    """Status conditions of a terminating namespace that still contains these objects."""
    kinds = Counter(item.kind_id for item in objects)
    finalizers = Counter(name for item in objects for name in item.body["metadata"].get("finalizers") or ())
    remaining = ", ".join(f"{kind}. has {count} resource instances" for kind, count in sorted(kinds.items()))
    blocking = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    content_message = f"Some resources are remaining: {remaining}" if objects else "All content successfully removed"
    finalizer_message = f"Some content in the namespace has finalizers remaining: {blocking}"
    rows = [(kind, "False", reason, message) for kind, reason, message in NAMESPACE_SUCCESS_CONDITIONS]
    rows += [
        (
            "NamespaceContentRemaining",
            str(bool(objects)),
            "SomeResourcesRemain" if objects else "ContentRemoved",
            content_message,
        ),
        (
            "NamespaceFinalizersRemaining",
            str(bool(blocking)),
            "SomeFinalizersRemain" if blocking else "ContentHasNoFinalizers",
            finalizer_message if blocking else "All content-preserving finalizers finished",
        ),
    ]
    return [
        {"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}
        for kind, status, reason, message in rows
    ]
