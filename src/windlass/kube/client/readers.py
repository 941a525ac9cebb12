"""`KubeReader`: all read operations of the API client."""

from __future__ import annotations

import asyncio
import gc
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, overload
from urllib.parse import urlencode

import msgspec

from windlass.kube.api_errors import BadAnswer, DeadlineExceeded, Expired
from windlass.kube.client import discovery, watches
from windlass.kube.client.objects import RawObject, T, TypedT
from windlass.kube.decoding import A, DecodingError, ObjectDecoders, decode_json
from windlass.kube.transport.calls import Call
from windlass.kube.transport.transports import MAX_BODY_BYTES, Request, Response, read_body

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from windlass.kube.client.discovery import Discovery
    from windlass.kube.client.resources import Query, Ref, Resource
    from windlass.kube.clocks import Clock
    from windlass.kube.redactions import Redactor
    from windlass.kube.transport.calls import CallCounts, CallSender

REVIEW_GROUPS = ("authorization.k8s.io", "authentication.k8s.io")
PAGE_SIZE = 500  # objects per page of a list; limits memory use here and in the server
MAX_LIST_ITEMS = 200_000  # Kubernetes is tested with 150,000 pods; a server that never ends a list must not fill memory
MAX_LIST_PAGES = 2_000  # also of pages that are almost empty
MAX_LOG_BYTES = 1 << 18  # of one log; the lines that are shown of it are far shorter
WATCH_TIMEOUT = 300  # seconds; the server ends a watch after one to two times this; the jitter spreads reconnects
WATCH_SILENCE_TIMEOUT = 90  # seconds; bookmarks come about every minute, so longer silence means a dead connection
Headers = tuple[tuple[str, str], ...]
JSON_HEADERS: Headers = (("Accept", "application/json"),)
METADATA_HEADERS: Headers = (
    ("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"),
)


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
class WatchStart:
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


@dataclass(frozen=True, slots=True)
class ProxiedGet:
    """A GET to a service, by way of the API server. The Authorization header is for the API server alone."""

    service: Ref
    """With the subresource `proxy`; the name is `scheme:service:port`."""
    path: str
    """Encoded, and beginning with a slash."""
    query: Query = ()
    headers: Headers = field(default=(), repr=False)
    timeout: float = 30.0
    max_bytes: int = MAX_BODY_BYTES

    @property
    def target(self) -> str:
        return (
            f"{self.service.path}{self.path}?{urlencode(self.query)}" if self.query else self.service.path + self.path
        )


class KubeReader:
    """Read-only client. Pass this type to code that must not write; mypy then rejects calls of write methods."""

    def __init__(self, sender: CallSender) -> None:
        self._sender = sender
        self._decoders = ObjectDecoders(sender.transport.redactor.message)

    @property
    def counts(self) -> CallCounts:
        return self._sender.counts

    @property
    def clock(self) -> Clock:
        return self._sender.clock

    @property
    def server(self) -> str:
        return self._sender.transport.server

    @property
    def notices(self) -> tuple[str, ...]:
        """What the report and the log of a run must say about the connection."""
        return self._sender.notices

    @property
    def redactor(self) -> Redactor:
        """Removes the credentials of the connection from text; its `message` is what to show of a cluster's text."""
        return self._sender.transport.redactor

    async def close(self) -> None:
        await self._sender.transport.close()

    @overload
    async def get(self, ref: Ref) -> RawObject: ...
    @overload
    async def get(self, ref: Ref, into: type[TypedT]) -> TypedT: ...
    async def get(self, ref: Ref, into: Any = RawObject) -> Any:
        call = Call("get", ref.kind, _get_request(ref.target()))
        return self._decode(call, await self._sender.send(call), into)

    def convert(self, item: RawObject, into: type[TypedT]) -> TypedT:
        """An object that a write returned, typed. Raises `BadAnswer`."""
        try:
            return self._decoders.convert(item, into)
        except DecodingError as error:
            raise BadAnswer(f"the response is not what was requested: {error}", where=self.server) from None

    @overload
    async def list(self, ref: Ref, *, select: Selection = ...) -> Listing[RawObject]: ...
    @overload
    async def list(self, ref: Ref, into: type[T], *, select: Selection = ...) -> Listing[T]: ...
    async def list(self, ref: Ref, into: Any = RawObject, *, select: Selection = EVERYTHING) -> Listing[Any]:
        """List all objects, page by page. If the continue token expires, list again without paging."""
        return await self._list_all(ref, into, select, JSON_HEADERS)

    async def list_metadata(self, ref: Ref, into: type[TypedT], *, select: Selection = EVERYTHING) -> Listing[TypedT]:
        """Like `list`, but asks the server for metadata only, so that the data of Secrets is not transferred."""
        return await self._list_all(ref, into, select, METADATA_HEADERS)

    async def _list_all(self, ref: Ref, into: Any, select: Selection, headers: Headers) -> Listing[Any]:
        try:
            return await self._fetch_pages(ref, into, (*select.query, ("limit", str(PAGE_SIZE))), headers)
        except Expired:
            return await self._fetch_pages(ref, into, select.query, headers)

    async def _fetch_pages(self, ref: Ref, into: Any, query: Query, headers: Headers) -> Listing[Any]:
        items: list[Any] = []
        token = ""
        for _ in range(MAX_LIST_PAGES):
            call = Call("list", ref.kind, _get_request(ref.target((*query, ("continue", token))), headers))
            response = await self._sender.send(call)
            with _pause_garbage_collection():
                page = self._decode(call, response, _Page[into])
            items += page.items or []
            if not page.metadata.continue_:
                return Listing(items, page.metadata.resource_version)
            if page.metadata.continue_ == token:
                raise BadAnswer("each page says to continue with itself", where=self._sender.where(call))
            if len(items) > MAX_LIST_ITEMS:
                break
            token = page.metadata.continue_
        raise BadAnswer(f"the list does not end after {len(items):,} objects", where=self._sender.where(call))

    @overload
    def watch(
        self, ref: Ref, since: WatchStart, *, select: Selection = ...
    ) -> AsyncGenerator[watches.WatchEvent[RawObject] | watches.Bookmark, None]: ...
    @overload
    def watch(
        self, ref: Ref, since: WatchStart, into: type[T], *, select: Selection = ...
    ) -> AsyncGenerator[watches.WatchEvent[T] | watches.Bookmark, None]: ...
    def watch(
        self, ref: Ref, since: WatchStart, into: Any = RawObject, *, select: Selection = EVERYTHING
    ) -> AsyncGenerator[watches.WatchEvent[Any] | watches.Bookmark, None]:
        """The events of one watch connection. Use `Reflector` for a watch that resumes."""
        seconds = int(WATCH_TIMEOUT * (1 + self.clock.random()))
        query = (("watch", "1"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", str(seconds)), *since.query)
        call = Call("watch", ref.kind, _get_request(ref.target((*query, *select.query))))
        decoder = watches.line_decoder(self._decoders, into)
        return watches.watch_events(self._sender, call, decoder, WATCH_SILENCE_TIMEOUT)

    async def logs(self, pod: Ref, *, container: str = "", tail: int = 0, previous: bool = False) -> str:
        """The log of a container, or its last `tail` lines, but not more than `MAX_LOG_BYTES` of them."""
        ref = pod.with_subresource("log")
        query = (
            ("container", container),
            ("tailLines", str(tail or "")),
            ("previous", "true" if previous else ""),
            ("limitBytes", str(MAX_LOG_BYTES)),
        )
        response = await self._sender.send(Call("get", ref.kind, _get_request(ref.target(query))))
        text = response.body[:MAX_LOG_BYTES].decode("utf-8", "replace")
        if len(response.body) < MAX_LOG_BYTES:
            return text
        return text.rpartition("\n")[0] or text  # without half a line, which may end with half a secret

    async def get_through_service(self, proxied: ProxiedGet, into: type[A]) -> A:
        """What a service in the cluster answers to a GET; the API server forwards it.

        It is not repeated if it fails: the service may have worked on it. A redirect is an error, so that the headers
        reach no other server.
        """
        call = Call("get", proxied.service.kind, _get_request(proxied.target, (*JSON_HEADERS, *proxied.headers)))
        try:
            async with asyncio.timeout(proxied.timeout), self._sender.open(call, proxied.timeout) as stream:
                body = await read_body(stream.chunks(), proxied.max_bytes)
        except TimeoutError:
            what = f"no complete answer within {proxied.timeout:g} s"
            raise DeadlineExceeded(what, where=self._sender.where(call)) from None
        answer: A = self._decode(call, Response(stream.status, stream.headers, body), into)
        return answer

    async def review(self, resource: Resource, spec: RawObject, namespace: str = "") -> RawObject:
        """Create a review (access, token, subject). This is a POST, but it changes nothing.

        Any other resource is refused: a reader must not be able to create an object.
        """
        if not resource.group.endswith(REVIEW_GROUPS) or not resource.plural.endswith("reviews"):
            raise ValueError(f"{resource} is not a review")
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
        target = resource.in_namespace(namespace).target()
        request = Request("POST", target, JSON_BODY_HEADERS, msgspec.json.encode(body), idempotent=True)
        call = Call("review", str(resource), request)
        result: RawObject = self._decode(call, await self._sender.send(call), RawObject)
        return result

    async def version(self) -> str:
        """The version of the server, such as `v1.34.2`."""
        call = Call("get", "version", _get_request("/version"))
        result = self._decode(call, await self._sender.send(call), RawObject)
        return str(result.get("gitVersion", ""))

    async def discover(self) -> Discovery:
        """Discover the served resources: two requests, plus one per group version if discovery is not aggregated."""
        return await discovery.discover(self._sender)

    def _decode(self, call: Call, response: Response, into: Any) -> Any:
        try:
            return decode_json(response.body, self._decoders.decoder(into))
        except DecodingError as error:
            raise BadAnswer(
                f"the response is not what was requested: {error}", where=self._sender.where(call)
            ) from None


@contextmanager
def _pause_garbage_collection() -> Iterator[None]:
    """Disable garbage collection while a page is decoded: it would scan thousands of new objects and free none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


JSON_BODY_HEADERS = (*JSON_HEADERS, ("Content-Type", "application/json"))


def _get_request(target: str, headers: Headers = JSON_HEADERS) -> Request:
    return Request("GET", target, headers, idempotent=True)
