"""Delete: preconditions, grace period, finalizers and propagation policy."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.sandbox.apiserver import reads
from windlass.sandbox.apiserver.requests import Outcome
from windlass.sandbox.apiserver.wire import api_status
from windlass.sandbox.clock import told

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.requests import Ask
    from windlass.sandbox.apiserver.store import Store, Stored
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.clock import Sources

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
BY_POLICY = {"Foreground": FOREGROUND, "Orphan": ORPHAN}


class Deleting:
    def __init__(self, store: Store, sources: Sources) -> None:
        self._store = store
        self._sources = sources

    def delete(self, ask: Ask) -> Outcome:
        return self._delete(ask, reads.named(self._store, ask))

    def delete_collection(self, ask: Ask) -> Outcome:
        wanted = reads.filter_of(ask)
        items = [item for item in self._store.list(ask.kind.id, ask.namespace) if wanted.admits(item)]
        for item in items:
            self._delete(ask, item)
        return Outcome(200, reads.rendered_list(ask.kind, items, {"resourceVersion": str(self._store.version)}))

    def _delete(self, ask: Ask, found: Stored) -> Outcome:
        self._require(ask, found)
        kind, body = ask.kind, found.body
        meta = body["metadata"]
        grace = _grace(ask, body)
        finalizers = _finalizers(ask, meta)
        stays = bool(finalizers or grace or kind.id == "namespaces")
        if not stays:
            if not ask.options.dry_run:
                self._store.remove(found)
            gone = {**kind.head, **body}
            return Outcome(200, gone if kind.returns_deleted else api_status.success(kind, found.name, found.uid))
        changed = self._marked(body, grace, finalizers)
        if changed == body:
            return Outcome(200, found)
        if ask.options.dry_run:
            return Outcome(200, {**kind.head, **changed})
        return Outcome(200, self._store.put(kind.id, changed))

    def _marked(self, body: Body, grace: int, finalizers: list[str]) -> Body:
        """The object marked as being deleted. A repeated delete changes only finalizers and a shorter grace period."""
        meta = {**body["metadata"]}
        if "deletionTimestamp" not in meta:
            when = self._sources.now() + timedelta(seconds=grace)
            meta["deletionTimestamp"] = told(when)
            meta["deletionGracePeriodSeconds"] = grace
            if "generation" in meta:
                meta["generation"] += 1
        elif grace < meta.get("deletionGracePeriodSeconds", 0):
            meta["deletionGracePeriodSeconds"] = grace
        meta.pop("finalizers", None)
        body = {**body, "metadata": {**meta, **({"finalizers": finalizers} if finalizers else {})}}
        if "phase" in body.get("status", {}) and body.get("spec", {}).get("finalizers") == ["kubernetes"]:
            body["status"] = {**body["status"], "phase": "Terminating"}
        return body

    def _require(self, ask: Ask, found: Stored) -> None:
        for field, wanted, actual, guess in (
            ("UID", ask.options.uid, found.uid, "deleted and then recreated"),
            ("ResourceVersion", ask.options.resource_version, str(found.version), "modified"),
        ):
            if wanted and wanted != actual:
                why = f"the {field} in the precondition ({wanted}) does not match the {field} in record ({actual})"
                raise api_status.conflict(ask.kind, found.name, f"{why}. The object might have been {guess}")
        if ask.kind.id == "namespaces" and found.name in IMMORTAL:
            raise api_status.forbidden(ask.kind, found.name, "this namespace may not be deleted")


def _grace(ask: Ask, body: Body) -> int:
    """Grace period in seconds: 0 except for pods that are assigned to a node and have not finished."""
    if ask.kind.id != "pods":
        return 0
    spec = body.get("spec", {})
    if not spec.get("nodeName") or body.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
        return 0
    asked = ask.options.grace
    return int(spec.get("terminationGracePeriodSeconds", 30) if asked is None else asked)


def _finalizers(ask: Ask, meta: Body) -> list[str]:
    policy = ask.options.propagation
    kept = [name for name in meta.get("finalizers") or () if not policy or name not in BY_POLICY.values()]
    wanted = BY_POLICY.get(policy)
    return [*kept, wanted] if wanted else kept
