"""HTTP to API requests and back: parses paths, queries and bodies, and renders results and errors."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from windlass.sandbox.apiserver import discovery, request_options
from windlass.sandbox.apiserver.access.authentication import impersonated
from windlass.sandbox.apiserver.objects import patches
from windlass.sandbox.apiserver.objects.kinds import Kind
from windlass.sandbox.apiserver.requests import ANONYMOUS, READS, Ask
from windlass.sandbox.apiserver.store import Stored
from windlass.sandbox.apiserver.watches import Watch
from windlass.sandbox.apiserver.wire import api_status, protobuf, yaml
from windlass.sandbox.apiserver.wire.api_status import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping

    from windlass.sandbox.apiserver.requests import Outcome, User
    from windlass.sandbox.apiserver.server import Server

JSON = (("Content-Type", "application/json"),)
PATCHES = frozenset({patches.MERGE, patches.JSON_PATCH, patches.STRATEGIC, patches.APPLY})
_DECODE = msgspec.json.Decoder().decode
LARGEST_BODY = 3 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP response with a complete body or a stream."""

    code: int
    headers: tuple[tuple[str, str], ...] = JSON
    body: bytes = b""
    watch: Watch | None = None
    stream: AsyncGenerator[bytes, None] | None = None
    """Events of the watch."""


@dataclass(frozen=True, slots=True)
class Place:
    """The resource that a URL path names."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class _Call:
    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: bytes
    user: User


async def handle(
    server: Server, method: str, target: str, headers: Mapping[str, str], body: bytes = b"", user: User | None = None
) -> Answer:
    """Handle one HTTP request; `user` replaces credentials. Raises ConnectionSevered if a fault demands it."""
    split = urlsplit(target)
    query = dict(parse_qsl(split.query, keep_blank_values=True))
    call = _Call(method, unquote(split.path), query, headers, body, user or ANONYMOUS)
    try:
        call = replace(call, user=_caller(server, user, headers))
        place = _place(server, call)
        asked = _told(server, call) if place is None else _ask(call, place)
    except Refusal as refusal:
        asked = refused(refusal)
    if isinstance(asked, Answer):
        server.note_path(call.user, f"{method.lower()} {call.path}", headers.get("User-Agent", ""), asked.code)
        return asked
    try:
        outcome = await server.perform(asked)
    except Refusal as refusal:
        return refused(refusal)
    if isinstance(outcome.item, Watch):
        return Answer(outcome.code, JSON, watch=outcome.item, stream=server.lines(outcome.item))
    return _answer(asked.kind, outcome)


def _caller(server: Server, user: User | None, headers: Mapping[str, str]) -> User:
    who = user or server.identities.authenticated(headers)
    if not headers.get("Impersonate-User"):
        return who
    server.authorizing.require_impersonation(who, headers["Impersonate-User"])
    return impersonated(headers)


def refused(refusal: Refusal) -> Answer:
    if refusal.text:
        return Answer(refusal.code, (("Content-Type", "text/plain; charset=utf-8"),), refusal.text.encode())
    seconds = (refusal.details or {}).get("retryAfterSeconds")
    wait = (("Retry-After", str(seconds)),) if seconds else ()
    return Answer(refusal.code, (*JSON, *wait), msgspec.json.encode(refusal.body))


def _told(server: Server, call: _Call) -> Answer:
    server.authorizing.require_path(call.user, call.path)
    told, media = discovery.told(server.catalogue, call.path.rstrip("/") or "/", call.headers.get("Accept", ""))
    body = told.encode() if isinstance(told, str) else msgspec.json.encode(told)
    return Answer(200, (("Content-Type", media), ("Vary", "Accept")), body)


def _place(server: Server, call: _Call) -> Place | None:
    """The resource that the path names; `None` if it names no objects."""
    match call.path.strip("/").split("/"):
        case ["api", version, *rest] if rest:
            group = ""
        case ["apis", group, version, *rest] if rest:
            pass
        case _:
            return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and (group or rest[2] not in {"status", "finalize"}):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource, *more = [*rest, "", ""]
    kind = server.catalogue.at(group, version, plural)
    if kind is None or any(more) or (namespace and not kind.namespaced) or (name and kind.namespaced and not namespace):
        unknown = Place(Kind(group=group, version=version, plural=plural, kind=plural), namespace, name)
        verb = _verb(call, unknown)
        server.authorizing.require(Ask(verb=verb, kind=unknown.kind, namespace=namespace, name=name, user=call.user))
        raise api_status.unknown_path() if server.catalogue.is_built_in(group) else api_status.nowhere()
    return Place(kind, namespace, name, subresource)


def _ask(call: _Call, place: Place) -> Ask:
    verb = _verb(call, place)
    content = call.headers.get("Content-Type", "").partition(";")[0].strip()
    _require_media(call, verb, content)
    body = _decoded(call.body, content, verb, place.kind)
    patch = content if verb == "patch" else ""
    asked = (
        request_options.of_delete(call.query, body) if verb.startswith("delete")
        else request_options.of_read(call.query, watches=verb == "watch") if verb in READS
        else request_options.of_write(call.query, verb, patch)
    )  # fmt: skip
    if asked.validation == "Strict" and (twice := _duplicates(call.body)):
        told = ", ".join(f'duplicate field "{path}"' for path in twice)
        raise api_status.not_handled(place.kind, f"strict decoding error: {told}")
    return Ask(
        verb=verb,
        kind=place.kind,
        namespace=place.namespace,
        name=place.name,
        subresource=place.subresource,
        body=body,
        patch=patch,
        user=call.user,
        agent=call.headers.get("User-Agent", ""),
        options=asked,
        extra=call.query,
    )


def _require_media(call: _Call, verb: str, content: str) -> None:
    accepted = call.headers.get("Accept", "") or "*/*"
    if not any(word in accepted for word in ("json", "*/*", "application/*")):
        known = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
        raise Refusal(406, "NotAcceptable", f"only the following media types are accepted: {known}", {})
    if verb == "patch" and content not in PATCHES:
        raise api_status.unsupported_media(patches.JSON_PATCH, patches.MERGE, patches.STRATEGIC, patches.APPLY)
    if verb in {"create", "update"} and content and not content.endswith(("json", "yaml", "protobuf", "*/*")):
        raise api_status.unsupported_media("application/json", "application/yaml")
    if len(call.body) > LARGEST_BODY:
        raise Refusal(413, "RequestEntityTooLarge", f"Request entity too large: limit is {LARGEST_BODY}", {})


def _verb(call: _Call, place: Place) -> str:
    if call.method == "GET":
        if call.query.get("watch") in {"1", "true", "True"} and not place.name:
            return "watch"
        return "get" if place.name else "list"
    if call.method == "PUT" and not place.name and place.kind.custom:
        raise api_status.bad_request("name must be provided")
    verbs = {
        "POST": "create",
        "PUT": "update",
        "PATCH": "patch",
        "DELETE": "delete" if place.name else "deletecollection",
    }
    verb = verbs.get(call.method, "")
    at_home = bool(place.namespace) or not place.kind.namespaced
    fits = {"create": at_home and (not place.name or bool(place.subresource)), "deletecollection": at_home}
    if not verb or not fits.get(verb, bool(place.name)):
        raise api_status.method_not_allowed()
    return verb


def _decoded(body: bytes, content: str, verb: str, kind: Kind) -> Any:
    if not body:
        return None
    if content == protobuf.MEDIA:
        found = protobuf.decoded(body)
        if found is None:
            refusal = api_status.unsupported_media("application/json", "application/yaml")
            raise Refusal(415, refusal.reason, f"{refusal}; {protobuf.INSTEAD}", {})
        return found if "kind" in found and verb in {"create", "update"} else None
    try:
        return _DECODE(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if content == patches.APPLY or content.endswith("yaml"):
            return yaml.read(body)
        head = f"the object provided is unrecognized (must be of type {kind.kind})"
        raise api_status.bad_request(f"{'error decoding patch' if verb == 'patch' else head}: {error}") from None


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as pairs, in which a field may occur twice."""


def _duplicates(body: bytes) -> list[str]:
    """Fields that occur twice in one object; the JSON decoder silently drops one of them."""

    def paths(pairs: _Pairs, above: str) -> Iterator[str]:
        for place, (name, value) in enumerate(pairs):
            if name in [other for other, _ in pairs[:place]]:
                yield above + name
            if isinstance(value, _Pairs):
                yield from paths(value, f"{above}{name}.")

    try:
        whole = json.loads(body or b"{}", object_pairs_hook=_Pairs)
    except ValueError:
        return []
    return list(paths(whole, "")) if isinstance(whole, _Pairs) else []


def _answer(kind: Kind, outcome: Outcome) -> Answer:
    item = outcome.item
    warnings = tuple(("Warning", f'299 - "{_quoted(text)}"') for text in outcome.warnings)
    headers = (*JSON, *warnings)
    if isinstance(item, Stored):
        return Answer(outcome.code, headers, kind.prefix + item.tail)
    if isinstance(item, bytes):
        return Answer(outcome.code, headers, item)
    if isinstance(item, dict):
        return Answer(outcome.code, headers, msgspec.json.encode(item))
    assert isinstance(item, str)
    return Answer(outcome.code, (("Content-Type", "text/plain"),), item.encode())


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
