"""`KubeReader`: all read operations of the API client."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, overload

import msgspec

from windlass.kube.api_errors import BadAnswer, Expired
from windlass.kube.client import discovery, watches
from windlass.kube.client.objects import Plain, T, TypedT
from windlass.kube.decoding import Unreadable, read
from windlass.kube.transport.calls import Call
from windlass.kube.transport.transports import Request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from windlass.kube.client.discovery import Discovery
    from windlass.kube.client.resources import Query, Ref, Resource
    from windlass.kube.clocks import Clock
    from windlass.kube.transport.calls import CallCounts, Calls
    from windlass.kube.transport.transports import Response

PAGE = 500  # objects per page of a list; limits memory use here and in the server
WATCH_SECONDS = 300  # seconds; the server ends a watch after one to two times this; the jitter spreads reconnects
WATCH_SILENCE = 90  # seconds; bookmarks come about every minute, so longer silence means a dead connection
Headers = tuple[tuple[str, str], ...]
JSON: Headers = (("Accept", "application/json"),)
METADATA: Headers = (("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"),)


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    items: list[T]
    resource_version: str
    """Start a watch here to get the changes after this list."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Label and field selectors, in the syntax of kubectl."""

    labels: str = ""
    fields: str = ""

    @property
    def query(self) -> Query:
        return (("labelSelector", self.labels), ("fieldSelector", self.fields))


@dataclass(frozen=True, slots=True)
class Since:
    """Where a watch starts: after `resource_version`, or if empty with all objects as initial events (WatchList)."""

    resource_version: str = ""

    @property
    def query(self) -> Query:
        if self.resource_version:
            return (("resourceVersion", self.resource_version),)
        return (("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"))


EVERYTHING = Selection()


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct, Generic[T]):
    metadata: _ListMeta
    items: list[T] | None
    """Null is Go's nil slice; some aggregated APIs send it for an empty list."""


@cache
def _decoder(into: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(into)


@cache
def _page_decoder(into: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_Page[into])


class KubeReader:
    """Read-only client. Pass this type to code that must not write; mypy then rejects calls of write methods."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def counts(self) -> CallCounts:
        return self._calls.counts

    @property
    def clock(self) -> Clock:
        return self._calls.clock

    @property
    def server(self) -> str:
        return self._calls.transport.server

    async def close(self) -> None:
        await self._calls.transport.close()

    @overload
    async def get(self, ref: Ref) -> Plain: ...
    @overload
    async def get(self, ref: Ref, into: type[TypedT]) -> TypedT: ...
    async def get(self, ref: Ref, into: Any = Plain) -> Any:
        call = Call("get", ref.kind, _read(ref.target()))
        return self._decoded(call, await self._calls.send(call), _decoder(into))

    @overload
    async def list(self, ref: Ref, *, select: Selection = ...) -> Listing[Plain]: ...
    @overload
    async def list(self, ref: Ref, into: type[T], *, select: Selection = ...) -> Listing[T]: ...
    async def list(self, ref: Ref, into: Any = Plain, *, select: Selection = EVERYTHING) -> Listing[Any]:
        """List all objects, page by page. If the continue token expires, list again without paging."""
        return await self._listed(ref, into, select, JSON)

    async def list_metadata(self, ref: Ref, into: type[TypedT], *, select: Selection = EVERYTHING) -> Listing[TypedT]:
        """Like `list`, but asks the server for metadata only, so that the data of Secrets is not transferred."""
        return await self._listed(ref, into, select, METADATA)

    async def _listed(self, ref: Ref, into: Any, select: Selection, headers: Headers) -> Listing[Any]:
        try:
            return await self._pages(ref, into, (*select.query, ("limit", str(PAGE))), headers)
        except Expired:
            return await self._pages(ref, into, select.query, headers)

    async def _pages(self, ref: Ref, into: Any, query: Query, headers: Headers) -> Listing[Any]:
        decoder = _page_decoder(into)
        items: list[Any] = []
        token = ""
        while True:
            call = Call("list", ref.kind, _read(ref.target((*query, ("continue", token))), headers))
            response = await self._calls.send(call)
            with _undisturbed():
                page = self._decoded(call, response, decoder)
            items += page.items or []
            if not page.metadata.continue_:
                return Listing(items, page.metadata.resource_version)
            if page.metadata.continue_ == token:
                raise BadAnswer("each page says to continue with itself", where=self._calls.where(call))
            token = page.metadata.continue_

    @overload
    def watch(
        self, ref: Ref, since: Since, *, select: Selection = ...
    ) -> AsyncGenerator[watches.Event[Plain] | watches.Bookmark, None]: ...
    @overload
    def watch(
        self, ref: Ref, since: Since, into: type[T], *, select: Selection = ...
    ) -> AsyncGenerator[watches.Event[T] | watches.Bookmark, None]: ...
    def watch(
        self, ref: Ref, since: Since, into: Any = Plain, *, select: Selection = EVERYTHING
    ) -> AsyncGenerator[watches.Event[Any] | watches.Bookmark, None]:
        """The events of one watch connection. Use `Reflector` for a watch that resumes."""
        seconds = int(WATCH_SECONDS * (1 + self.clock.random()))
        query = (("watch", "1"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", str(seconds)), *since.query)
        call = Call("watch", ref.kind, _read(ref.target((*query, *select.query))))
        return watches.events(self._calls, call, into, WATCH_SILENCE)

    async def logs(self, pod: Ref, *, container: str = "", tail: int = 0, previous: bool = False) -> str:
        """The log of a container, or its last `tail` lines."""
        ref = pod.sub("log")
        query = (("container", container), ("tailLines", str(tail or "")), ("previous", "true" if previous else ""))
        response = await self._calls.send(Call("get", ref.kind, _read(ref.target(query))))
        return response.body.decode("utf-8", "replace")

    async def review(self, resource: Resource, spec: Plain, namespace: str = "") -> Plain:
        """Create a review (access, token, subject). This is a POST, but it changes nothing."""
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
        target = resource.within(namespace).target()
        request = Request("POST", target, CONTENT_JSON, msgspec.json.encode(body), repeatable=True)
        call = Call("review", str(resource), request)
        answer: Plain = self._decoded(call, await self._calls.send(call), _decoder(Plain))
        return answer

    async def version(self) -> str:
        """The version of the server, such as `v1.34.2`."""
        call = Call("get", "version", _read("/version"))
        answer = self._decoded(call, await self._calls.send(call), _decoder(Plain))
        return str(answer.get("gitVersion", ""))

    async def discover(self) -> Discovery:
        """Discover the served resources: two requests, plus one per group version if discovery is not aggregated."""
        return await discovery.discover(self._calls)

    def _decoded(self, call: Call, response: Response, decoder: msgspec.json.Decoder[Any]) -> Any:
        try:
            return read(response.body, decoder)
        except Unreadable as error:
            raise BadAnswer(f"the answer is not what was asked for: {error}", where=self._calls.where(call)) from None


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Disable garbage collection while a page is decoded: it would scan thousands of new objects and free none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


CONTENT_JSON = (*JSON, ("Content-Type", "application/json"))


def _read(target: str, headers: Headers = JSON) -> Request:
    return Request("GET", target, headers, repeatable=True)
