"""`InProcessClient`: the API verbs for code in the same process.

There is no HTTP, but the same authorization, validation, faults and journal apply.
"""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING, Any

import msgspec

from windlass.sandbox.apiserver.objects import patches
from windlass.sandbox.apiserver.requests import DEFAULT_OPTIONS, ApiRequest, RequestOptions
from windlass.sandbox.apiserver.store import StoredObject
from windlass.sandbox.apiserver.wire.api_status import StatusError

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.objects.kinds import ServedKind
    from windlass.sandbox.apiserver.requests import ApiResult, UserInfo
    from windlass.sandbox.apiserver.server import ApiServer
    from windlass.sandbox.apiserver.wire.api_status import Body


class InProcessClient:
    """A client that acts as one user. Kinds are named `pods`, `deployments.apps`.

    Returned objects are copies; with `share_objects` they are shared with the store and must not be modified. Raises
    StatusError, whose `code` and `reason` are those of the Status.
    """

    def __init__(self, server: ApiServer, user: UserInfo, agent: str, *, share_objects: bool = False) -> None:
        self._server = server
        self._user = user
        self._agent = agent
        self._share_objects = share_objects

    async def get(self, kind: str, name: str, namespace: str = "") -> Body:
        return await self._perform_for_object(self._build_request("get", kind, namespace, name))

    async def find(self, kind: str, name: str, namespace: str = "") -> Body | None:
        """The object; `None` if it does not exist."""
        found = self._server.store.get(kind, namespace, name)
        return None if found is None else await self.get(kind, name, namespace)

    async def list(self, kind: str, namespace: str = "", *, labels: str = "", fields: str = "") -> list[Body]:
        request = self._build_request("list", kind, namespace, options=RequestOptions(labels=labels, fields=fields))
        result = await self._perform(request)
        assert isinstance(result.item, bytes)
        items: list[Body] = msgspec.json.decode(result.item)["items"]
        return [{**request.kind.type_meta, **item} for item in items]

    async def create(self, kind: str, body: Body, namespace: str = "") -> Body:
        target_namespace = namespace or body["metadata"].get("namespace", "")
        return await self._perform_for_object(self._build_request("create", kind, target_namespace, body=body))

    async def update(self, kind: str, body: Body, *, subresource: str = "") -> Body:
        meta = body["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        return await self._perform_for_object(
            self._build_request("update", kind, *key, body=body, subresource=subresource)
        )

    async def patch(self, kind: str, name: str, changes: Any, namespace: str = "", *, subresource: str = "") -> Body:
        """Apply a merge patch (`changes` is a mapping) or a JSON patch (a list)."""
        media_type = patches.MERGE_PATCH if isinstance(changes, dict) else patches.JSON_PATCH
        request = self._build_request(
            "patch", kind, namespace, name, body=changes, patch=media_type, subresource=subresource
        )
        return await self._perform_for_object(request)

    async def apply(self, kind: str, body: Body, *, force: bool = True, subresource: str = "") -> Body:
        meta = body["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        fields: dict[str, Any] = {"patch": patches.APPLY_PATCH, "subresource": subresource}
        fields["body"] = {**self._find_kind(kind).type_meta, **body}
        fields["options"] = RequestOptions(manager=self._agent, force=force)
        return await self._perform_for_object(self._build_request("patch", kind, *key, **fields))

    async def delete(self, kind: str, name: str, namespace: str = "", *, options: RequestOptions | None = None) -> None:
        await self._perform(self._build_request("delete", kind, namespace, name, options=options or DEFAULT_OPTIONS))

    def write_log(self, namespace: str, pod: str, container: str, text: str) -> None:
        """Append to the log of a container."""
        logs = self._server.subresources.logs
        key = (namespace, pod, container)
        logs[key] = logs.get(key, "") + text

    async def _perform(self, request: ApiRequest) -> ApiResult:
        await asyncio.sleep(0)  # noqa: TID251 - yield to other tasks, as a network call would
        return await self._server.perform(request)

    async def _perform_for_object(self, request: ApiRequest) -> Body:
        item = (await self._perform(request)).item
        if isinstance(item, StoredObject):
            return {**request.kind.type_meta, **(item.body if self._share_objects else item.load())}
        assert isinstance(item, dict)
        return item if self._share_objects else copy.deepcopy(item)

    def _build_request(self, verb: str, kind: str, namespace: str = "", name: str = "", **fields: Any) -> ApiRequest:
        identity: dict[str, Any] = {"user": self._user, "agent": self._agent}
        return ApiRequest(verb=verb, kind=self._find_kind(kind), namespace=namespace, name=name, **identity, **fields)

    def _find_kind(self, kind_id: str) -> ServedKind:
        found = self._server.catalogue.by_id(kind_id)
        if found is None:
            raise StatusError(404, "NotFound", f"the sandbox does not serve {kind_id}")
        return found
