"""HTTP in, HTTP out: paths, queries and bodies become requests of the server; outcomes become answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from windlass.sandbox import discovering, patches, statuses
from windlass.sandbox.asks import Ask, Options
from windlass.sandbox.authorizing import Attributes
from windlass.sandbox.identities import impersonated
from windlass.sandbox.statuses import Refusal
from windlass.sandbox.stores import Stored
from windlass.sandbox.watching import Watch

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from windlass.sandbox.asks import Outcome, User
    from windlass.sandbox.kinds import Kind
    from windlass.sandbox.servers import Server

JSON = (("Content-Type", "application/json"),)
PATCHES = frozenset({patches.MERGE, patches.JSON_PATCH, patches.STRATEGIC, patches.APPLY})
_DECODE = msgspec.json.Decoder().decode
_TRUE = frozenset({"1", "true", "True"})


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole body, or one that is still arriving."""

    code: int
    headers: tuple[tuple[str, str], ...] = JSON
    body: bytes = b""
    watch: Watch | None = None
    stream: AsyncGenerator[bytes, None] | None = None
    """What the watch sends."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a path names."""

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
    extra: dict[str, str] = field(default_factory=dict)


async def handle(
    server: Server, method: str, target: str, headers: Mapping[str, str], body: bytes = b"", user: User | None = None
) -> Answer:
    """Answers one HTTP request; `user` stands in for credentials. Raises Severed where a fault takes the answer."""
    try:
        who = impersonated(user or server.identities.authenticated(headers), headers)
        split = urlsplit(target)
        query = dict(parse_qsl(split.query, keep_blank_values=True))
        call = _Call(method, unquote(split.path), query, headers, body, who)
        place = _place(server, call.path)
        if place is None:
            return _told(server, call)
        ask = _ask(call, place)
        outcome = await server.perform(ask)
        if isinstance(outcome.item, Watch):
            return Answer(outcome.code, JSON, watch=outcome.item, stream=server.lines(outcome.item))
        return _answer(place.kind, outcome)
    except Refusal as refusal:
        return refused(refusal)


def refused(refusal: Refusal) -> Answer:
    seconds = (refusal.details or {}).get("retryAfterSeconds")
    wait = (("Retry-After", str(seconds)),) if seconds else ()
    return Answer(refusal.code, (*JSON, *wait), msgspec.json.encode(refusal.body))


def _told(server: Server, call: _Call) -> Answer:
    if not server.authorizing.allows(call.user, Attributes(verb="get", path=call.path)):
        what = f'User "{call.user.name}" cannot get path "{call.path}"'
        raise Refusal(403, "Forbidden", f"forbidden: {what}", {})
    told, media = discovering.told(server.catalogue, call.path.rstrip("/") or "/", call.headers.get("Accept", ""))
    body = told.encode() if isinstance(told, str) else msgspec.json.encode(told)
    return Answer(200, (("Content-Type", media),), body)


def _place(server: Server, path: str) -> Place | None:
    """None for a path that names no objects."""
    match path.strip("/").split("/"):
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
        raise statuses.unknown_path()
    return Place(kind, namespace, name, subresource)


def _ask(call: _Call, place: Place) -> Ask:
    verb = _verb(call, place)
    content = call.headers.get("Content-Type", "").partition(";")[0].strip()
    if verb == "patch" and content not in PATCHES:
        raise statuses.unsupported_media(content)
    if verb == "create" and place.kind.namespaced and not place.namespace:
        raise statuses.method_not_allowed()
    body = _decoded(call.body, content)
    return Ask(
        verb=verb,
        kind=place.kind,
        namespace=place.namespace,
        name=place.name,
        subresource=place.subresource,
        body=body,
        patch=content if verb == "patch" else "",
        user=call.user,
        agent=call.headers.get("User-Agent", ""),
        options=_delete_options(call.query, body) if verb.startswith("delete") else _options(call.query),
        extra=call.query,
    )


def _verb(call: _Call, place: Place) -> str:
    if call.method == "GET":
        if call.query.get("watch") in _TRUE and not place.subresource:
            return "watch"
        return "get" if place.name else "list"
    verbs = {
        "POST": "create",
        "PUT": "update",
        "PATCH": "patch",
        "DELETE": "delete" if place.name else "deletecollection",
    }
    verb = verbs.get(call.method, "")
    on_collection = {"create": not place.name or bool(place.subresource), "deletecollection": True}
    if not verb or not on_collection.get(verb, bool(place.name)):
        raise statuses.method_not_allowed()
    return verb


def _options(query: Mapping[str, str]) -> Options:
    return Options(
        dry_run=_dry_run(query.get("dryRun")),
        manager=query.get("fieldManager", ""),
        force=query.get("force") in _TRUE,
        validation=query.get("fieldValidation") or "Warn",
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        limit=int(query.get("limit") or 0),
        token=query.get("continue", ""),
        resource_version=query.get("resourceVersion", ""),
        version_match=query.get("resourceVersionMatch", ""),
        bookmarks=query.get("allowWatchBookmarks") in _TRUE,
        initial_events=query.get("sendInitialEvents") in _TRUE,
        seconds=float(query["timeoutSeconds"]) if query.get("timeoutSeconds") else None,
    )


def _delete_options(query: Mapping[str, str], body: Any) -> Options:
    given = body if isinstance(body, dict) else {}
    conditions = given.get("preconditions") or {}
    grace = given.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
    orphan = given.get("orphanDependents")
    legacy = "" if orphan is None else "Orphan" if orphan else "Background"
    return Options(
        dry_run=_dry_run(*given.get("dryRun", ()), query.get("dryRun")),
        labels=query.get("labelSelector", ""),
        fields=query.get("fieldSelector", ""),
        propagation=given.get("propagationPolicy") or query.get("propagationPolicy") or legacy,
        grace=None if grace is None else int(grace),
        uid=conditions.get("uid") or "",
        resource_version=conditions.get("resourceVersion") or "",
    )


def _dry_run(*values: str | None) -> bool:
    for value in filter(None, values):
        if value != "All":
            message = f'Invalid value: ["{value}"]: Unsupported value: "{value}": supported values: "All"'
            raise Refusal(422, "Invalid", f'CreateOptions.meta.k8s.io "" is invalid: dryRun: {message}', {})
        return True
    return False


def _decoded(body: bytes, content: str) -> Any:
    if not body:
        return None
    try:
        return _DECODE(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if content == patches.APPLY or content.endswith("yaml"):
            return _yaml(body)
        raise statuses.bad_request(f"the object provided is unrecognized (must be of type JSON): {error}") from None


def _yaml(body: bytes) -> Any:
    import yaml  # noqa: PLC0415 - only for clients that send it

    class Loader(yaml.SafeLoader):
        """Without timestamps: Kubernetes has only strings."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in rows if tag != "tag:yaml.org,2002:timestamp"]
        for first, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        return yaml.load(body, Loader)  # noqa: S506 - a safe loader
    except yaml.YAMLError as error:
        raise statuses.bad_request(f"error decoding YAML: {error}") from None


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
