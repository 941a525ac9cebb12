"""Delete: preconditions, grace period, finalizers and propagation policy."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.sandbox.apiserver import reads
from windlass.sandbox.apiserver.requests import ApiResult
from windlass.sandbox.apiserver.wire import api_status
from windlass.sandbox.clock import format_timestamp

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.requests import ApiRequest
    from windlass.sandbox.apiserver.store import Store, StoredObject
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.clock import SandboxClock

FOREGROUND_FINALIZER = "foregroundDeletion"
ORPHAN_FINALIZER = "orphan"
PROTECTED_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})
FINALIZERS_BY_POLICY = {"Foreground": FOREGROUND_FINALIZER, "Orphan": ORPHAN_FINALIZER}


class DeleteHandler:
    def __init__(self, store: Store, clock: SandboxClock) -> None:
        self._store = store
        self._clock = clock

    def delete(self, request: ApiRequest) -> ApiResult:
        return self._delete(request, reads.require_object(self._store, request))

    def delete_collection(self, request: ApiRequest) -> ApiResult:
        object_filter = reads.parse_filter(request)
        items = [item for item in self._store.list(request.kind.id, request.namespace) if object_filter.matches(item)]
        for item in items:
            self._delete(request, item)
        return ApiResult(200, reads.encode_list(request.kind, items, {"resourceVersion": str(self._store.version)}))

    def _delete(self, request: ApiRequest, stored: StoredObject) -> ApiResult:
        self._check_preconditions(request, stored)
        kind, body = request.kind, stored.body
        meta = body["metadata"]
        grace = _grace_period(request, body)
        finalizers = _finalizers_after_delete(request, meta)
        must_wait = bool(finalizers or grace or kind.id == "namespaces")
        if not must_wait:
            if not request.options.dry_run:
                self._store.remove(stored)
            deleted = {**kind.type_meta, **body}
            return ApiResult(
                200,
                deleted if kind.returns_deleted_object else api_status.success_status(kind, stored.name, stored.uid),
            )
        changed = self._terminating_body(body, grace, finalizers)
        if changed == body:
            return ApiResult(200, stored)
        if request.options.dry_run:
            return ApiResult(200, {**kind.type_meta, **changed})
        return ApiResult(200, self._store.put(kind.id, changed))

    def _terminating_body(self, body: Body, grace: int, finalizers: list[str]) -> Body:
        """The object marked as being deleted. A repeated delete changes only finalizers and a shorter grace period."""
        meta = {**body["metadata"]}
        if "deletionTimestamp" not in meta:
            when = self._clock.now() + timedelta(seconds=grace)
            meta["deletionTimestamp"] = format_timestamp(when)
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

    def _check_preconditions(self, request: ApiRequest, stored: StoredObject) -> None:
        for field, expected, actual, guess in (
            ("UID", request.options.uid, stored.uid, "deleted and then recreated"),
            ("ResourceVersion", request.options.resource_version, str(stored.version), "modified"),
        ):
            if expected and expected != actual:
                why = f"the {field} in the precondition ({expected}) does not match the {field} in record ({actual})"
                raise api_status.conflict(request.kind, stored.name, f"{why}. The object might have been {guess}")
        if request.kind.id == "namespaces" and stored.name in PROTECTED_NAMESPACES:
            raise api_status.forbidden_error(request.kind, stored.name, "this namespace may not be deleted")


def _grace_period(request: ApiRequest, body: Body) -> int:
    """Grace period in seconds: 0 except for pods that are assigned to a node and have not finished."""
    if request.kind.id != "pods":
        return 0
    spec = body.get("spec", {})
    if not spec.get("nodeName") or body.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
        return 0
    requested = request.options.grace
    return int(spec.get("terminationGracePeriodSeconds", 30) if requested is None else requested)


def _finalizers_after_delete(request: ApiRequest, meta: Body) -> list[str]:
    policy = request.options.propagation
    kept = [name for name in meta.get("finalizers") or () if not policy or name not in FINALIZERS_BY_POLICY.values()]
    policy_finalizer = FINALIZERS_BY_POLICY.get(policy)
    return [*kept, policy_finalizer] if policy_finalizer else kept
