"""`ApiServer`: authorizes, executes and records every request, whether it came over HTTP or in process."""

from __future__ import annotations

from contextlib import aclosing
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from windlass.sandbox.apiserver.access.authentication import Identities
from windlass.sandbox.apiserver.access.rbac import Authorizing
from windlass.sandbox.apiserver.deletes import Deleting
from windlass.sandbox.apiserver.faults import Faults, Severed
from windlass.sandbox.apiserver.journal import Entry, Journal
from windlass.sandbox.apiserver.objects import custom_resources, events, patches
from windlass.sandbox.apiserver.objects.builtin_kinds import built_in_kinds
from windlass.sandbox.apiserver.objects.kinds import Catalogue
from windlass.sandbox.apiserver.reads import Reading, named, require_version
from windlass.sandbox.apiserver.requests import ADMIN, Outcome
from windlass.sandbox.apiserver.store import Store, Stored
from windlass.sandbox.apiserver.subresources import Subresources, scale_of
from windlass.sandbox.apiserver.watches import Watch
from windlass.sandbox.apiserver.wire import api_status
from windlass.sandbox.apiserver.wire.api_status import Refusal
from windlass.sandbox.apiserver.writes import Writing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from datetime import datetime

    from windlass.sandbox.apiserver.faults import Fault
    from windlass.sandbox.apiserver.requests import Ask, User
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.clock import Sources


class Server:
    def __init__(self, sources: Sources, *, enforce_rbac: bool = False) -> None:
        self.sources = sources
        self.store = Store(sources.now)
        self.catalogue = Catalogue([*built_in_kinds(), events.VIEW])
        self._events = next(kind for kind in self.catalogue if kind.id == "events")
        self.identities = Identities(self.store, sources)
        self.authorizing = Authorizing(self.store, self.identities, enforce=enforce_rbac)
        if not enforce_rbac:
            # kubectl sends no token over plain HTTP, and without RBAC every user may do everything.
            self.identities.unknown = ADMIN
        self.faults = Faults()
        self.journal = Journal()
        self.watches: dict[int, Watch] = {}
        """Open watches by id, oldest first."""
        self._tickets = 0
        self._reading = Reading(self.store)
        self._writing = Writing(self.store, sources)
        self._writing.check = self._check
        self._deleting = Deleting(self.store, sources)
        self._verbs = {
            "get": self._reading.get,
            "create": self._writing.create,
            "update": self._writing.update,
            "patch": self._writing.patch,
            "delete": self._deleting.delete,
            "deletecollection": self._deleting.delete_collection,
        }
        self.subresources = Subresources(self.store, self._deleting, self.identities)

    async def perform(self, ask: Ask) -> Outcome:
        """Execute a request, subject to faults. Raises StatusError, or ConnectionSevered if no response is sent."""
        code, name = 0, ask.name or _name_in(ask.body)
        try:
            outcome = await self._disturbed(ask)
            code = outcome.code
            if isinstance(outcome.item, Stored):
                name = outcome.item.name
        except Refusal as refusal:
            code = refusal.code
            raise
        finally:
            self._note(ask, name, code)
        return outcome

    async def _disturbed(self, ask: Ask) -> Outcome:
        self.authorizing.require(ask)
        faults = self.faults.take(ask)
        if not faults:
            return self._carry_out(ask)
        for fault in faults:
            if fault.latency:
                await self.sources.sleep(fault.latency)
            if fault.sever == "before":
                raise Severed(sent=False)
            if refusal := fault.refusal():
                raise refusal
        outcome = self._carry_out(ask, max(fault.lag for fault in faults))
        if any(fault.sever == "after" for fault in faults):
            raise Severed(sent=True)
        return outcome

    def _note(self, ask: Ask, name: str, code: int) -> None:
        kind = f"{ask.kind.id}/{ask.subresource}" if ask.subresource else ask.kind.id
        verb = "apply" if ask.patch == patches.APPLY else ask.verb
        when = _told(self.sources.now())
        entry = Entry(when, ask.user.name, verb, kind, ask.namespace, name, code, ask.agent, ask.options.dry_run)
        self.journal.write(entry)

    def note_path(self, user: User, what: str, agent: str, code: int) -> None:
        """Record a request that names no object or is invalid: discovery, health, an unknown path, a wrong option."""
        verb, _, path = what.partition(" ")
        self.journal.write(Entry(_told(self.sources.now()), user.name, verb, path, code=code, agent=agent))

    def _carry_out(self, ask: Ask, lag: float = 0.0) -> Outcome:
        kind = ask.kind
        if ask.verb not in kind.verbs:
            raise api_status.method_not_allowed()
        if kind is events.VIEW:
            return Outcome(200, events.shown(named(self.store, replace(ask, kind=self._events)).body))
        if kind.is_virtual:
            return Outcome(201, self.authorizing.review(ask))
        if ask.subresource:
            return self._through_a_door(ask)
        if ask.verb == "watch":
            return Outcome(200, self._watch(ask, lag))
        if ask.verb == "list":
            is_behind = lag and ask.options.resource_version == "0"
            at = self.store.version_at(self.sources.now() - timedelta(seconds=lag)) if is_behind else None
            return self._reading.list(ask, at)
        return self._verbs[ask.verb](ask)

    def _through_a_door(self, ask: Ask) -> Outcome:
        doors = {"log": self.subresources.log, "eviction": self.subresources.evict, "token": self.subresources.token}
        if ask.subresource not in ask.kind.subresources:
            raise api_status.not_found(ask.kind, ask.name) if ask.kind.custom else api_status.unknown_path()
        if ask.subresource in doors:
            return doors[ask.subresource](ask)
        if ask.verb not in {"get", "update", "patch"}:
            raise api_status.method_not_allowed()
        outcome = self._verbs[ask.verb](ask)
        if ask.subresource != "scale":
            return outcome
        body: Any = outcome.item
        return Outcome(outcome.code, scale_of(ask.kind, body if isinstance(body, dict) else body.body))

    def _watch(self, ask: Ask, lag: float) -> Watch:
        require_version(ask.options.resource_version, self.store.version)
        return Watch(ask, self.store, self.sources, lag)

    async def lines(self, watch: Watch) -> AsyncGenerator[bytes, None]:
        """Events of an open watch, in chunks of whole lines."""
        self._tickets += 1
        ticket = self._tickets
        self.watches[ticket] = watch
        try:
            async with aclosing(watch.lines()) as lines:
                async for line in lines:
                    yield line
        finally:
            del self.watches[ticket]

    def disturb(self, how: str, fault: Fault) -> int:
        """Disrupt the open watches that `fault` selects (see `ServedWatch.disrupt`). Returns how many."""
        hit = [watch for watch in self.watches.values() if fault.is_for(watch.ask)]
        for watch in hit:
            watch.disturb(how)
        return len(hit)

    def _check(self, ask: Ask, before: Body | None, after: Body) -> None:
        kind = ask.kind
        self.authorizing.require_held(ask, after)
        if kind.id == "pods" and before is None:
            account = after["spec"]["serviceAccountName"]
            if self.store.get("serviceaccounts", ask.namespace, account) is None:
                why = f'{ask.namespace}/{account}: serviceaccount "{account}" not found'
                raise api_status.forbidden(kind, after["metadata"]["name"], f"error looking up service account {why}")
        if kind.id != custom_resources.DEFINITIONS:
            return
        errors = custom_resources.errors(after)
        if errors:
            raise api_status.invalid(kind, after["metadata"]["name"], errors)
        if before is None:
            custom_resources.prepare(after)


@lru_cache(maxsize=64)
def _told(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")


def _name_in(body: Any) -> str:
    """`metadata.name` of a request body; empty if there is none."""
    meta = body.get("metadata") if isinstance(body, dict) else None
    return str(meta.get("name", "")) if isinstance(meta, dict) else ""
