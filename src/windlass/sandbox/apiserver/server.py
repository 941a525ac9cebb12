"""`ApiServer`: authorizes, executes and records every request, whether it came over HTTP or in process."""

from __future__ import annotations

from contextlib import aclosing
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from windlass.sandbox.apiserver.access.authentication import Authenticator
from windlass.sandbox.apiserver.access.rbac import RbacAuthorizer
from windlass.sandbox.apiserver.deletes import DeleteHandler
from windlass.sandbox.apiserver.faults import ConnectionSevered, Faults
from windlass.sandbox.apiserver.journal import Journal, JournalEntry
from windlass.sandbox.apiserver.objects import custom_resources, events, patches
from windlass.sandbox.apiserver.objects.builtin_kinds import built_in_kinds
from windlass.sandbox.apiserver.objects.kinds import Catalogue
from windlass.sandbox.apiserver.reads import ReadHandler, reject_future_version, require_object
from windlass.sandbox.apiserver.requests import ApiResult
from windlass.sandbox.apiserver.store import Store, StoredObject
from windlass.sandbox.apiserver.subresources import Subresources, build_scale
from windlass.sandbox.apiserver.watches import ServedWatch
from windlass.sandbox.apiserver.wire import api_status
from windlass.sandbox.apiserver.wire.api_status import StatusError
from windlass.sandbox.apiserver.writes import WriteHandler

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from datetime import datetime

    from windlass.sandbox.apiserver.faults import Fault
    from windlass.sandbox.apiserver.requests import ApiRequest, UserInfo
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.clock import SandboxClock


class ApiServer:
    def __init__(self, clock: SandboxClock, *, enforce_rbac: bool = False) -> None:
        self.clock = clock
        self.store = Store(clock.now)
        self.catalogue = Catalogue([*built_in_kinds(), events.EVENTS_V1_KIND])
        self._events_kind = next(kind for kind in self.catalogue if kind.id == "events")
        self.authenticator = Authenticator(self.store, clock)
        self.authorizer = RbacAuthorizer(self.store, self.authenticator, enforce=enforce_rbac)
        self.faults = Faults()
        self.journal = Journal()
        self.watches: dict[int, ServedWatch] = {}
        """Open watches by id, oldest first."""
        self._last_watch_id = 0
        self._read_handler = ReadHandler(self.store)
        self._write_handler = WriteHandler(self.store, clock, self._admit)
        self._delete_handler = DeleteHandler(self.store, clock)
        self._verbs = {
            "get": self._read_handler.get,
            "create": self._write_handler.create,
            "update": self._write_handler.update,
            "patch": self._write_handler.patch,
            "delete": self._delete_handler.delete,
            "deletecollection": self._delete_handler.delete_collection,
        }
        self.subresources = Subresources(self.store, self._delete_handler, self.authenticator)

    async def perform(self, request: ApiRequest) -> ApiResult:
        """Execute a request, subject to faults. Raises StatusError, or ConnectionSevered if no response is sent."""
        code, name = 0, request.name or _object_name(request.body)
        try:
            result = await self._perform_with_faults(request)
            code = result.code
            if isinstance(result.item, StoredObject):
                name = result.item.name
        except StatusError as error:
            code = error.code
            raise
        finally:
            self._record(request, name, code)
        return result

    async def _perform_with_faults(self, request: ApiRequest) -> ApiResult:
        self.authorizer.authorize(request)
        faults = self.faults.take_matching(request)
        if not faults:
            return self._execute(request)
        for fault in faults:
            if fault.latency:
                await self.clock.sleep(fault.latency)
            if fault.sever == "before":
                raise ConnectionSevered(sent=False)
            if error := fault.status_error():
                raise error
        result = self._execute(request, max(fault.lag for fault in faults))
        if any(fault.sever == "after" for fault in faults):
            raise ConnectionSevered(sent=True)
        return result

    def _record(self, request: ApiRequest, name: str, code: int) -> None:
        kind = f"{request.kind.id}/{request.subresource}" if request.subresource else request.kind.id
        verb = "apply" if request.patch == patches.APPLY_PATCH else request.verb
        when = _journal_time(self.clock.now())
        entry = JournalEntry(
            when, request.user.name, verb, kind, request.namespace, name, code, request.agent, request.options.dry_run
        )
        self.journal.append(entry)

    def record_path(self, user: UserInfo, request_line: str, agent: str, code: int) -> None:
        """Record a request that names no object or is invalid: discovery, health, an unknown path, a wrong option."""
        verb, _, path = request_line.partition(" ")
        self.journal.append(
            JournalEntry(_journal_time(self.clock.now()), user.name, verb, path, code=code, agent=agent)
        )

    def _execute(self, request: ApiRequest, lag: float = 0.0) -> ApiResult:
        kind = request.kind
        if request.verb not in kind.verbs:
            raise api_status.method_not_allowed()
        if kind is events.EVENTS_V1_KIND:
            return ApiResult(
                200, events.convert_event(require_object(self.store, replace(request, kind=self._events_kind)).body)
            )
        if kind.is_virtual:
            return ApiResult(201, self.authorizer.review(request))
        if request.subresource:
            return self._execute_subresource(request)
        if request.verb == "watch":
            return ApiResult(200, self._open_watch(request, lag))
        if request.verb == "list":
            is_stale = lag and request.options.resource_version == "0"
            stale_version = self.store.version_at(self.clock.now() - timedelta(seconds=lag)) if is_stale else None
            return self._read_handler.list(request, stale_version)
        return self._verbs[request.verb](request)

    def _execute_subresource(self, request: ApiRequest) -> ApiResult:
        handlers = {
            "log": self.subresources.read_log,
            "eviction": self.subresources.evict,
            "token": self.subresources.create_token,
            "proxy": self.subresources.forward,
        }
        if request.subresource not in request.kind.subresources:
            raise (
                api_status.not_found(request.kind, request.name)
                if request.kind.is_custom
                else api_status.unknown_path()
            )
        if request.subresource in handlers:
            return handlers[request.subresource](request)
        if request.verb not in {"get", "update", "patch"}:
            raise api_status.method_not_allowed()
        result = self._verbs[request.verb](request)
        if request.subresource != "scale":
            return result
        body: Any = result.item
        return ApiResult(result.code, build_scale(request.kind, body if isinstance(body, dict) else body.body))

    def _open_watch(self, request: ApiRequest, lag: float) -> ServedWatch:
        reject_future_version(request.options.resource_version, self.store.version)
        return ServedWatch(request, self.store, self.clock, lag)

    async def watch_lines(self, watch: ServedWatch) -> AsyncGenerator[bytes, None]:
        """Events of an open watch, in chunks of whole lines."""
        self._last_watch_id += 1
        watch_id = self._last_watch_id
        self.watches[watch_id] = watch
        try:
            async with aclosing(watch.lines()) as lines:
                async for line in lines:
                    yield line
        finally:
            del self.watches[watch_id]

    def disrupt_watches(self, mode: str, fault: Fault) -> int:
        """Disrupt the open watches that `fault` selects (see `ServedWatch.disrupt`). Returns how many."""
        matching = [watch for watch in self.watches.values() if fault.matches(watch.request)]
        for watch in matching:
            watch.disrupt(mode)
        return len(matching)

    def _admit(self, request: ApiRequest, before: Body | None, after: Body) -> None:
        kind = request.kind
        self.authorizer.prevent_escalation(request, after)
        if kind.id == "pods" and before is None:
            account = after["spec"]["serviceAccountName"]
            if self.store.get("serviceaccounts", request.namespace, account) is None:
                why = f'{request.namespace}/{account}: serviceaccount "{account}" not found'
                raise api_status.forbidden_error(
                    kind, after["metadata"]["name"], f"error looking up service account {why}"
                )
        if kind.id != custom_resources.CRD_KIND_ID:
            return
        errors = custom_resources.errors(after)
        if errors:
            raise api_status.invalid(kind, after["metadata"]["name"], errors)
        if before is None:
            custom_resources.apply_create_defaults(after)


@lru_cache(maxsize=64)
def _journal_time(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")


def _object_name(body: Any) -> str:
    """`metadata.name` of a request body; empty if there is none."""
    meta = body.get("metadata") if isinstance(body, dict) else None
    return str(meta.get("name", "")) if isinstance(meta, dict) else ""
