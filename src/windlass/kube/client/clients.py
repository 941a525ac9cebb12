"""`KubeClient`: a `KubeReader` that can also write to the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from windlass.kube.api_errors import BadAnswer
from windlass.kube.client.readers import JSON_BODY_HEADERS, JSON_HEADERS, KubeReader
from windlass.kube.client.resources import SERVICE_ACCOUNTS
from windlass.kube.transport.calls import Call
from windlass.kube.transport.transports import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windlass.kube.client.objects import PropagationPolicy, RawObject
    from windlass.kube.client.resources import Query, Ref
    from windlass.kube.transport.calls import CallSender

_APPLY_HEADERS = (*JSON_HEADERS, ("Content-Type", "application/apply-patch+yaml"))  # JSON is valid YAML
_MERGE_PATCH_HEADERS = (*JSON_HEADERS, ("Content-Type", "application/merge-patch+json"))
_JSON_PATCH_HEADERS = (*JSON_HEADERS, ("Content-Type", "application/json-patch+json"))


class KubeClient(KubeReader):
    """Writes objects under one field manager."""

    def __init__(self, sender: CallSender, *, field_manager: str = "windlass") -> None:
        super().__init__(sender)
        self._field_manager = field_manager
        self._check_write: Callable[[], None] | None = None

    async def create(self, ref: Ref, item: RawObject, *, dry_run: bool = False) -> RawObject:
        """Create an object in a collection, or on a subresource.

        Not retried if the response is lost, because the object may have been created.
        """
        return await self._write("create", "POST", ref, (JSON_BODY_HEADERS, item), self._query(dry_run))

    async def replace(self, ref: Ref, item: RawObject, *, dry_run: bool = False) -> RawObject:
        """Replace an object; if `item` has a resourceVersion, only if that is still the current one."""
        return await self._write("update", "PUT", ref, (JSON_BODY_HEADERS, item), self._query(dry_run))

    async def patch(self, ref: Ref, changes: RawObject | Sequence[RawObject], *, dry_run: bool = False) -> RawObject:
        """Send a merge patch (a mapping) or a JSON patch (a list of operations).

        A merge patch without resourceVersion is idempotent and may be retried; a JSON patch may not.
        """
        if isinstance(changes, dict):
            idempotent = "resourceVersion" not in (changes.get("metadata") or {})
            return await self._write(
                "patch", "PATCH", ref, (_MERGE_PATCH_HEADERS, changes), self._query(dry_run), idempotent
            )
        return await self._write("patch", "PATCH", ref, (_JSON_PATCH_HEADERS, changes), self._query(dry_run))

    async def apply(self, ref: Ref, item: RawObject, *, force: bool = False, dry_run: bool = False) -> RawObject:
        """Server-side apply. Raises `Conflict` if another manager owns a field, unless `force` is set."""
        query = (*self._query(dry_run), ("force", "true" if force else ""))
        return await self._write("apply", "PATCH", ref, (_APPLY_HEADERS, item), query, idempotent=True)

    async def delete(
        self,
        ref: Ref,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: PropagationPolicy = "Background",
        dry_run: bool = False,
    ) -> RawObject:
        """Delete an object; `uid` and `resource_version` are preconditions if given.

        With a uid the request cannot delete a later object of the same name, so it may be retried.
        """
        preconditions = {name: value for name, value in (("uid", uid), ("resourceVersion", resource_version)) if value}
        options: RawObject = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if preconditions:
            options["preconditions"] = preconditions
        if dry_run:  # in the body: given a body, the server ignores the query and would really delete
            options["dryRun"] = ["All"]
        return await self._write("delete", "DELETE", ref, (JSON_BODY_HEADERS, options), (), idempotent=bool(uid))

    async def evict(self, pod: Ref, *, uid: str = "", dry_run: bool = False) -> RawObject:
        """Evict a pod. A 429 means that its PodDisruptionBudget does not allow it yet; it is retried like any 429."""
        body: RawObject = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
        }
        if uid:
            body["deleteOptions"] = {"preconditions": {"uid": uid}}
        return await self.create(pod.with_subresource("eviction"), body, dry_run=dry_run)

    async def request_token(
        self, account: str, namespace: str, *, expiration_seconds: int = 3600, audiences: Sequence[str] = ()
    ) -> str:
        """Request a short-lived token for a ServiceAccount."""
        spec: RawObject = {"expirationSeconds": expiration_seconds}
        if audiences:
            spec["audiences"] = list(audiences)
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        ref = SERVICE_ACCOUNTS.named(account, namespace).with_subresource("token")
        status = (await self.create(ref, body)).get("status") or {}
        if not status.get("token"):
            raise BadAnswer("no token in the answer", where=f"create {ref} at {self.server}")
        return str(status["token"])

    def _query(self, dry_run: bool) -> Query:
        return (("fieldManager", self._field_manager), ("dryRun", "All" if dry_run else ""))

    async def _write(
        self, verb: str, method: str, ref: Ref, body: tuple[Any, Any], query: Query, idempotent: bool = False
    ) -> RawObject:
        headers, item = body
        request = Request(method, ref.target(query), headers, msgspec.json.encode(item), idempotent)
        call = Call(verb, ref.kind, request, self._check_write)
        result: RawObject = self._decode(call, await self._sender.send(call), dict[str, Any])
        return result
