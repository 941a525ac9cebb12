"""The events of one watch connection: decoding, bookmarks, errors sent by the server, detection of silence."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Literal, cast

import msgspec

from windlass.kube.api_errors import STATUS, BadAnswer, ConnectionLost, error_for
from windlass.kube.client.objects import T
from windlass.kube.decoding import UNREADABLE, Unreadable, read
from windlass.kube.transport.line_splitter import LineSplitter

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from windlass.kube.transport.calls import Call, Calls

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
Type = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True, slots=True)
class Event(Generic[T]):
    type: Type
    item: T


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A resourceVersion from which a watch can resume; no object changed."""

    resource_version: str
    ends_initial_events: bool


class _Line(msgspec.Struct, Generic[T]):
    type: str
    object: T


class _Mark(msgspec.Struct, rename="camel"):
    resource_version: str
    annotations: dict[str, str] = {}  # msgspec copies empty defaults


class _Marked(msgspec.Struct):
    metadata: _Mark


_MARKED = msgspec.json.Decoder(_Marked)
_RAW_LINES = msgspec.json.Decoder(_Line[msgspec.Raw])  # type: ignore[type-var]  # any JSON, left undecoded


@cache
def _decoder(into: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_Line[into])


async def events(calls: Calls, call: Call, into: type[T], silence: float) -> AsyncGenerator[Event[T] | Bookmark, None]:
    """Yield events until the server ends the watch normally. Raises `Expired` if the start version is too old."""
    decoder = _decoder(cast("Any", into))
    splitter = LineSplitter()
    async with calls.open(call) as stream:
        chunks = stream.chunks()
        while True:
            try:
                async with asyncio.timeout(silence):
                    chunk = await anext(chunks, None)
            except TimeoutError:
                raise ConnectionLost(f"the server has been silent for {silence:g} s") from None
            if chunk is None:
                break
            for line in splitter.feed(chunk):
                try:
                    event, problem = read(line, decoder), ""
                except Unreadable as error:
                    event, problem = None, str(error)
                if event is not None and event.type in {"ADDED", "MODIFIED", "DELETED"}:
                    yield Event(event.type, event.object)
                elif line.strip():
                    yield _bookmark(line, problem, calls.where(call))
    if splitter.rest.strip():
        raise ConnectionLost("the watch ended in the middle of an event", where=calls.where(call))


def _bookmark(line: bytes, problem: str, where: str) -> Bookmark:
    """Parse a line that is not a change: return a bookmark, or raise the server's error or `BadResponse`."""
    try:
        raw = _RAW_LINES.decode(line)
        if raw.type == "ERROR":
            raise error_for(read(raw.object, STATUS), where)
        if raw.type == "BOOKMARK":
            mark = read(raw.object, _MARKED).metadata
            return Bookmark(mark.resource_version, mark.annotations.get(INITIAL_EVENTS_END) == "true")
        problem = f"unknown or incomplete event of type {raw.type[:20]!r}{problem and ': '}{problem}"
    except (Unreadable, *UNREADABLE) as error:
        problem = str(error)
    raise BadAnswer(f"the watch sent a line of {len(line)} bytes that is no event: {problem}")
