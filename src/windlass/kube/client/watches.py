"""The events of one watch connection: decoding, bookmarks, errors sent by the server, detection of silence."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, get_args

import msgspec

from windlass.kube.api_errors import BadAnswer, ConnectionLost, error_from_status, status_from_json
from windlass.kube.client.objects import T
from windlass.kube.decoding import DECODE_ERRORS, DecodingError, decode_json
from windlass.kube.transport.line_splitter import LineSplitter

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from windlass.kube.decoding import ObjectDecoders
    from windlass.kube.redactions import Redactor
    from windlass.kube.transport.calls import Call, CallSender

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
EventType = Literal["ADDED", "MODIFIED", "DELETED"]
_KNOWN_TYPES = frozenset(get_args(EventType))


@dataclass(frozen=True, slots=True)
class WatchEvent(Generic[T]):
    type: EventType
    item: T


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A resourceVersion from which a watch can resume; no object changed."""

    resource_version: str
    ends_initial_events: bool


class _WatchLine(msgspec.Struct, Generic[T]):
    type: str
    object: T


class _BookmarkMetadata(msgspec.Struct, rename="camel"):
    resource_version: str
    annotations: dict[str, str] = {}  # msgspec copies empty defaults


class _BookmarkObject(msgspec.Struct):
    metadata: _BookmarkMetadata


_BOOKMARK_DECODER = msgspec.json.Decoder(_BookmarkObject)
_RAW_LINE_DECODER = msgspec.json.Decoder(_WatchLine[msgspec.Raw])  # type: ignore[type-var]  # any JSON, left undecoded


def line_decoder(decoders: ObjectDecoders, into: Any) -> msgspec.json.Decoder[Any]:
    """The decoder of lines about objects of this type."""
    return decoders.decoder(_WatchLine[into])


async def watch_events(
    sender: CallSender, call: Call, decoder: msgspec.json.Decoder[Any], silence_timeout: float
) -> AsyncGenerator[WatchEvent[T] | Bookmark, None]:
    """Yield events until the server ends the watch normally. Raises `Expired` if the start version is too old."""
    splitter = LineSplitter()
    async with sender.open(call) as stream:
        chunks = stream.chunks()
        while True:
            try:
                async with asyncio.timeout(silence_timeout):
                    chunk = await anext(chunks, None)
            except TimeoutError:
                raise ConnectionLost(f"the server has been silent for {silence_timeout:g} s") from None
            if chunk is None:
                break
            for line in splitter.feed(chunk):
                try:
                    event, problem = decode_json(line, decoder), ""
                except DecodingError as error:
                    event, problem = None, str(error)
                if event is not None and event.type in _KNOWN_TYPES:
                    yield WatchEvent(event.type, event.object)
                elif line.strip():
                    yield _parse_bookmark(line, problem, sender.where(call), sender.transport.redactor)
    if splitter.rest.strip():
        raise ConnectionLost("the watch ended in the middle of an event", where=sender.where(call))


def _parse_bookmark(line: bytes, problem: str, where: str, redactor: Redactor) -> Bookmark:
    """Parse a line that is not a change: return a bookmark, or raise the server's error or `BadAnswer`."""
    try:
        raw = _RAW_LINE_DECODER.decode(line)
        if raw.type == "ERROR":
            raise error_from_status(status_from_json(raw.object, redactor), where)
        if raw.type == "BOOKMARK":
            mark = decode_json(raw.object, _BOOKMARK_DECODER).metadata
            return Bookmark(mark.resource_version, mark.annotations.get(INITIAL_EVENTS_END) == "true")
        kind = raw.type if raw.type in _KNOWN_TYPES else "unknown to us"  # other text may be part of a secret
        problem = f"unknown or incomplete event of type {kind}{problem and ': '}{problem}"
    except (DecodingError, *DECODE_ERRORS) as error:
        problem = str(error)
    raise BadAnswer(f"the watch sent a line of {len(line)} bytes that is no event: {problem}")
