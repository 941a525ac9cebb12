"""`KubeClient`: a `KubeReader` that can also write to the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from windlass.kube.api_errors import BadAnswer
from windlass.kube.client.readers import CONTENT_JSON, JSON, KubeReader
from windlass.kube.client.resources import SERVICE_ACCOUNTS
from windlass.kube.transport.calls import Call
from windlass.kube.transport.transports import Request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.kube.client.objects import Plain
    from windlass.kube.client.resources import Query, Ref
    from windlass.kube.transport.calls import Calls

Propagation = Literal["Background", "Foreground", "Orphan"]
_DECODER: msgspec.json.Decoder[dict[str, Any]] = msgspec.json.Decoder(dict[str, Any])
_APPLY = (*JSON, ("Content-Type", "application/apply-patch+yaml"))  # JSON is valid YAML
_MERGE = (*JSON, ("Content-Type", "application/merge-patch+json"))
_JSON_PATCH = (*JSON, ("Content-Type", "application/json-patch+json"))


class KubeClient(KubeReader):
    """Writes objects under one field manager."""

    def __init__(self, calls: Calls, *, manager: str = "windlass") -> None:
        super().__init__(calls)
        self._manager = manager

    async def create(self, ref: Ref, item: Plain, *, dry_run: bool = False) -> Plain:
        """Create an object in a collection, or on a subresource.

        Not retried if the response is lost, because the object may have been created.
        """
        return await self._write("create", "POST", ref, (CONTENT_JSON, item), self._query(dry_run))

    async def replace(self, ref: Ref, item: Plain, *, dry_run: bool = False) -> Plain:
        """Replace an object; if `item` has a resourceVersion, only if that is still the current one."""
        return await self._write("update", "PUT", ref, (CONTENT_JSON, item), self._query(dry_run))

    async def patch(self, ref: Ref, changes: Plain | Sequence[Plain], *, dry_run: bool = False) -> Plain:
        """Send a merge patch (a mapping) or a JSON patch (a list of operations).

        A merge patch without resourceVersion is idempotent and may be retried; a JSON patch may not.
        """
        if isinstance(changes, dict):
            repeatable = "resourceVersion" not in (changes.get("metadata") or {})
            return await self._write("patch", "PATCH", ref, (_MERGE, changes), self._query(dry_run), repeatable)
        return await self._write("patch", "PATCH", ref, (_JSON_PATCH, changes), self._query(dry_run))

    async def apply(self, ref: Ref, item: Plain, *, force: bool = False, dry_run: bool = False) -> Plain:
        """Server-side apply. Raises `Conflict` if another manager owns a field, unless `force` is set."""
        query = (*self._query(dry_run), ("force", "true" if force else ""))
        return await self._write("apply", "PATCH", ref, (_APPLY, item), query, repeatable=True)

    async def delete(
        self,
        ref: Ref,
        *,
        uid: str = "",
        version: str = "",
        propagation: Propagation = "Background",
        dry_run: bool = False,
    ) -> Plain:
        """Delete an object; `uid` and `resource_version` are preconditions if given.

        With a uid the request cannot delete a later object of the same name, so it may be retried.
        """
        conditions = {name: value for name, value in (("uid", uid), ("resourceVersion", version)) if value}
        options: Plain = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if conditions:
            options["preconditions"] = conditions
        if dry_run:  # in the body: given a body, the server ignores the query and would really delete
            options["dryRun"] = ["All"]
        return await self._write("delete", "DELETE", ref, (CONTENT_JSON, options), (), repeatable=bool(uid))

    async def evict(self, pod: Ref, *, uid: str = "", dry_run: bool = False) -> Plain:
        """Evict a pod. A 429 means that its PodDisruptionBudget does not allow it yet; it is retried like any 429."""
        body: Plain = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
        }
        if uid:
            body["deleteOptions"] = {"preconditions": {"uid": uid}}
        return await self.create(pod.sub("eviction"), body, dry_run=dry_run)

    async def request_token(
        self, account: str, namespace: str, *, seconds: int = 3600, audiences: Sequence[str] = ()
    ) -> str:
        """Request a short-lived token for a ServiceAccount."""
        spec: Plain = {"expirationSeconds": seconds}
        if audiences:
            spec["audiences"] = list(audiences)
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        ref = SERVICE_ACCOUNTS.named(account, namespace).sub("token")
        status = (await self.create(ref, body)).get("status") or {}
        if not status.get("token"):
            raise BadAnswer("no token in the answer", where=f"create {ref} at {self.server}")
        return str(status["token"])

    def _query(self, dry_run: bool) -> Query:
        return (("fieldManager", self._manager), ("dryRun", "All" if dry_run else ""))

    async def _write(
        self, verb: str, method: str, ref: Ref, body: tuple[Any, Any], query: Query, repeatable: bool = False
    ) -> Plain:
        headers, item = body
        request = Request(method, ref.target(query), headers, msgspec.json.encode(item), repeatable)
        call = Call(verb, ref.kind, request)
        answer: Plain = self._decoded(call, await self._calls.send(call), _DECODER)
        return answer
