"""`InProcessClient`: the API verbs for code in the same process.

There is no HTTP, but the same authorization, validation, faults and journal apply.
"""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING, Any

import msgspec

from windlass.sandbox.apiserver.objects import patches
from windlass.sandbox.apiserver.requests import DEFAULTS, Ask, Options
from windlass.sandbox.apiserver.store import Stored
from windlass.sandbox.apiserver.wire.api_status import Refusal

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.objects.kinds import Kind
    from windlass.sandbox.apiserver.requests import Outcome, User
    from windlass.sandbox.apiserver.server import Server
    from windlass.sandbox.apiserver.wire.api_status import Body


class Caller:
    """A client that acts as one user. Kinds are named `pods`, `deployments.apps`.

    Returned objects are copies; with `share_objects` they are shared with the store and must not be modified. Raises
    StatusError, whose `code` and `reason` are those of the Status.
    """

    def __init__(self, server: Server, user: User, agent: str, *, shares: bool = False) -> None:
        self._server = server
        self._user = user
        self._agent = agent
        self._shares = shares

    async def get(self, kind: str, name: str, namespace: str = "") -> Body:
        return await self._object(self._ask("get", kind, namespace, name))

    async def find(self, kind: str, name: str, namespace: str = "") -> Body | None:
        """The object; `None` if it does not exist."""
        found = self._server.store.get(kind, namespace, name)
        return None if found is None else await self.get(kind, name, namespace)

    async def list(self, kind: str, namespace: str = "", *, labels: str = "", fields: str = "") -> list[Body]:
        ask = self._ask("list", kind, namespace, options=Options(labels=labels, fields=fields))
        outcome = await self._perform(ask)
        assert isinstance(outcome.item, bytes)
        items: list[Body] = msgspec.json.decode(outcome.item)["items"]
        return [{**ask.kind.head, **item} for item in items]

    async def create(self, kind: str, body: Body, namespace: str = "") -> Body:
        where = namespace or body["metadata"].get("namespace", "")
        return await self._object(self._ask("create", kind, where, body=body))

    async def update(self, kind: str, body: Body, *, subresource: str = "") -> Body:
        meta = body["metadata"]
        where = (meta.get("namespace", ""), meta["name"])
        return await self._object(self._ask("update", kind, *where, body=body, subresource=subresource))

    async def patch(self, kind: str, name: str, changes: Any, namespace: str = "", *, subresource: str = "") -> Body:
        """Apply a merge patch (`changes` is a mapping) or a JSON patch (a list)."""
        form = patches.MERGE if isinstance(changes, dict) else patches.JSON_PATCH
        ask = self._ask("patch", kind, namespace, name, body=changes, patch=form, subresource=subresource)
        return await self._object(ask)

    async def apply(self, kind: str, body: Body, *, force: bool = True, subresource: str = "") -> Body:
        meta = body["metadata"]
        where = (meta.get("namespace", ""), meta["name"])
        more: dict[str, Any] = {"patch": patches.APPLY, "subresource": subresource}
        more["body"] = {**self._kind(kind).head, **body}
        more["options"] = Options(manager=self._agent, force=force)
        return await self._object(self._ask("patch", kind, *where, **more))

    async def delete(self, kind: str, name: str, namespace: str = "", *, options: Options | None = None) -> None:
        await self._perform(self._ask("delete", kind, namespace, name, options=options or DEFAULTS))

    def write_log(self, namespace: str, pod: str, container: str, text: str) -> None:
        """Append to the log of a container."""
        logs = self._server.subresources.logs
        key = (namespace, pod, container)
        logs[key] = logs.get(key, "") + text

    async def _perform(self, ask: Ask) -> Outcome:
        await asyncio.sleep(0)  # noqa: TID251 - yield to other tasks, as a network call would
        return await self._server.perform(ask)

    async def _object(self, ask: Ask) -> Body:
        item = (await self._perform(ask)).item
        if isinstance(item, Stored):
            return {**ask.kind.head, **(item.body if self._shares else item.load())}
        assert isinstance(item, dict)
        return item if self._shares else copy.deepcopy(item)

    def _ask(self, verb: str, kind: str, namespace: str = "", name: str = "", **more: Any) -> Ask:
        who: dict[str, Any] = {"user": self._user, "agent": self._agent}
        return Ask(verb=verb, kind=self._kind(kind), namespace=namespace, name=name, **who, **more)

    def _kind(self, kind_id: str) -> Kind:
        found = self._server.catalogue.find(kind_id)
        if found is None:
            raise Refusal(404, "NotFound", f"the sandbox does not serve {kind_id}")
        return found
