"""HTTP to API requests and back: parses paths, queries and bodies, and renders results and errors."""

from __future__ import annotations

import json
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
from msgspec import structs

from windlass.sandbox.apiserver import discovery, request_options
from windlass.sandbox.apiserver.access import rbac
from windlass.sandbox.apiserver.access.authentication import impersonated_user
from windlass.sandbox.apiserver.objects import patches
from windlass.sandbox.apiserver.objects.kinds import ServedKind
from windlass.sandbox.apiserver.objects.tables import build_table, wants_table
from windlass.sandbox.apiserver.requests import ANONYMOUS, READ_VERBS, ApiRequest, RequestOptions
from windlass.sandbox.apiserver.store import StoredObject
from windlass.sandbox.apiserver.watches import ServedWatch
from windlass.sandbox.apiserver.wire import api_status, protobuf, yaml
from windlass.sandbox.apiserver.wire.api_status import StatusError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping

    from windlass.sandbox.apiserver.requests import ApiResult, UserInfo
    from windlass.sandbox.apiserver.server import ApiServer

JSON_HEADERS = (("Content-Type", "application/json"),)
PATCH_MEDIA_TYPES = frozenset(
    {patches.MERGE_PATCH, patches.JSON_PATCH, patches.STRATEGIC_MERGE_PATCH, patches.APPLY_PATCH}
)
_DECODE = msgspec.json.Decoder().decode
MAX_BODY_BYTES = 3 << 20  # bytes


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An HTTP response with a complete body or a stream."""

    code: int
    headers: tuple[tuple[str, str], ...] = JSON_HEADERS
    body: bytes = b""
    watch: ServedWatch | None = None
    stream: AsyncGenerator[bytes, None] | None = None
    """Events of the watch."""


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """The resource that a URL path names."""

    kind: ServedKind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class _HttpRequest:
    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: bytes
    user: UserInfo
    raw_query: str = ""


async def handle(
    server: ApiServer,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes = b"",
    user: UserInfo | None = None,
) -> HttpResponse:
    """Handle one HTTP request; `user` replaces credentials. Raises ConnectionSevered if a fault demands it."""
    split = urlsplit(target)
    query = dict(parse_qsl(split.query, keep_blank_values=True))
    http_request = _HttpRequest(method, unquote(split.path), query, headers, body, user or ANONYMOUS, split.query)
    try:
        http_request = replace(http_request, user=_authenticate(server, user, headers))
        resource = _parse_path(server, http_request)
        parsed = (
            _discovery_response(server, http_request)
            if resource is None
            else _build_request(server, http_request, resource)
        )
    except StatusError as error:
        parsed = error_response(error)
    if isinstance(parsed, HttpResponse):
        server.record_path(
            http_request.user, f"{method.lower()} {http_request.path}", headers.get("User-Agent", ""), parsed.code
        )
        return parsed
    try:
        result = await server.perform(parsed)
    except StatusError as error:
        return error_response(error)
    as_table = parsed.verb in READ_VERBS and not parsed.subresource and wants_table(headers.get("Accept", ""))
    if isinstance(result.item, ServedWatch):
        lines = server.watch_lines(result.item)
        stream = _table_lines(server, parsed, lines) if as_table else lines
        return HttpResponse(result.code, JSON_HEADERS, watch=result.item, stream=stream)
    if as_table:
        return _table_response(server, parsed, result)
    return _success_response(parsed.kind, result)


def _authenticate(server: ApiServer, user: UserInfo | None, headers: Mapping[str, str]) -> UserInfo:
    caller = user or server.authenticator.authenticate(headers)
    if not headers.get("Impersonate-User"):
        return caller
    server.authorizer.authorize_impersonation(caller, headers["Impersonate-User"])
    return impersonated_user(headers)


def error_response(error: StatusError) -> HttpResponse:
    if error.plain_text:
        return HttpResponse(error.code, (("Content-Type", "text/plain; charset=utf-8"),), error.plain_text.encode())
    seconds = (error.details or {}).get("retryAfterSeconds")
    retry_after = (("Retry-After", str(seconds)),) if seconds else ()
    return HttpResponse(error.code, (*JSON_HEADERS, *retry_after), msgspec.json.encode(error.body))


def _discovery_response(server: ApiServer, http_request: _HttpRequest) -> HttpResponse:
    server.authorizer.authorize_path(http_request.user, http_request.path)
    document, media_type = discovery.find_document(
        server.catalogue, http_request.path.rstrip("/") or "/", http_request.headers.get("Accept", "")
    )
    body = document.encode() if isinstance(document, str) else msgspec.json.encode(document)
    return HttpResponse(200, (("Content-Type", media_type), ("Vary", "Accept")), body)


def _parse_path(server: ApiServer, http_request: _HttpRequest) -> ResourcePath | None:
    """The resource that the path names; `None` if it names no objects."""
    match http_request.path.strip("/").split("/"):
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
    kind = server.catalogue.by_resource(group, version, plural)
    if subresource == "proxy":
        more = []  # the path that the service is asked for
    if kind is None or any(more) or (namespace and not kind.namespaced) or (name and kind.namespaced and not namespace):
        unknown = ResourcePath(ServedKind(group=group, version=version, plural=plural, kind=plural), namespace, name)
        verb = _verb(http_request, unknown)
        server.authorizer.authorize(
            ApiRequest(verb=verb, kind=unknown.kind, namespace=namespace, name=name, user=http_request.user)
        )
        raise api_status.unknown_path() if server.catalogue.is_builtin_group(group) else api_status.page_not_found()
    return ResourcePath(kind, namespace, name, subresource)


def _build_request(server: ApiServer, http_request: _HttpRequest, resource: ResourcePath) -> ApiRequest:
    verb = _verb(http_request, resource)
    named = ApiRequest(
        verb=verb,
        kind=resource.kind,
        namespace=resource.namespace,
        name=resource.name,
        subresource=resource.subresource,
        user=http_request.user,
        options=RequestOptions(fields=http_request.query.get("fieldSelector", "")),
    )
    if not server.authorizer.allows(named.user, rbac.request_attributes(named)):
        return named  # `perform` refuses it; the body of a user without rights is never decoded
    content_type = http_request.headers.get("Content-Type", "").partition(";")[0].strip()
    _check_media_types(http_request, verb, content_type)
    body = _decode_body(http_request.body, content_type, verb, resource.kind)
    patch = content_type if verb == "patch" else ""
    options = (
        request_options.parse_delete_options(http_request.query, body) if verb.startswith("delete")
        else request_options.parse_read_options(http_request.query, is_watch=verb == "watch") if verb in READ_VERBS
        else request_options.parse_write_options(http_request.query, verb, patch)
    )  # fmt: skip
    if options.validation == "Strict" and (duplicates := _duplicate_fields(http_request.body)):
        listed = ", ".join(f'duplicate field "{path}"' for path in duplicates)
        raise api_status.decoding_error(resource.kind, f"strict decoding error: {listed}")
    agent, extra = http_request.headers.get("User-Agent", ""), http_request.query
    if resource.subresource == "proxy":
        path = http_request.path.partition("/proxy/")[2]
        extra = {"path": path, "query": http_request.raw_query, "cookie": http_request.headers.get("Cookie", "")}
    return structs.replace(named, body=body, patch=patch, agent=agent, options=options, extra=extra)


def _check_media_types(http_request: _HttpRequest, verb: str, content_type: str) -> None:
    accepted = http_request.headers.get("Accept", "") or "*/*"
    if not any(word in accepted for word in ("json", "*/*", "application/*")):
        known = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
        raise StatusError(406, "NotAcceptable", f"only the following media types are accepted: {known}", {})
    if verb == "patch" and content_type not in PATCH_MEDIA_TYPES:
        raise api_status.unsupported_media_type(
            patches.JSON_PATCH, patches.MERGE_PATCH, patches.STRATEGIC_MERGE_PATCH, patches.APPLY_PATCH
        )
    # Without a media type the body is taken as JSON, as the real server does: the official Python client names none.
    is_known = not content_type or content_type.endswith(("json", "yaml", "protobuf", "*/*"))
    if http_request.body and verb != "patch" and not is_known:
        raise api_status.unsupported_media_type("application/json", "application/yaml")
    if len(http_request.body) > MAX_BODY_BYTES:
        raise StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {MAX_BODY_BYTES}", {})


def _verb(http_request: _HttpRequest, resource: ResourcePath) -> str:
    if http_request.method == "GET":
        if http_request.query.get("watch") in {"1", "true", "True"} and not resource.name:
            return "watch"
        return "get" if resource.name else "list"
    if http_request.method == "PUT" and not resource.name and resource.kind.is_custom:
        raise api_status.bad_request("name must be provided")
    verbs = {
        "POST": "create",
        "PUT": "update",
        "PATCH": "patch",
        "DELETE": "delete" if resource.name else "deletecollection",
    }
    verb = verbs.get(http_request.method, "")
    has_required_namespace = bool(resource.namespace) or not resource.kind.namespaced
    allowed = {
        "create": has_required_namespace and (not resource.name or bool(resource.subresource)),
        "deletecollection": has_required_namespace,
    }
    if not verb or not allowed.get(verb, bool(resource.name)):
        raise api_status.method_not_allowed()
    return verb


def _decode_body(body: bytes, content_type: str, verb: str, kind: ServedKind) -> Any:
    if not body:
        return None
    if content_type == protobuf.MEDIA_TYPE:
        decoded = protobuf.decode(body)
        if decoded is None:
            unsupported = api_status.unsupported_media_type("application/json", "application/yaml")
            raise StatusError(415, unsupported.reason, f"{unsupported}; {protobuf.UNSUPPORTED_HINT}", {})
        return decoded if "kind" in decoded and verb in {"create", "update"} else None
    try:
        return yaml.check_complexity(_DECODE(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, yaml.TooComplex) as error:
        if content_type == patches.APPLY_PATCH or content_type.endswith("yaml"):
            return yaml.parse_yaml(body)
        head = f"the object provided is unrecognized (must be of type {kind.kind})"
        raise api_status.bad_request(f"{'error decoding patch' if verb == 'patch' else head}: {error}") from None


class _JsonPairs(list[tuple[str, Any]]):
    """A JSON object as pairs, in which a field may occur twice."""


def _duplicate_fields(body: bytes) -> list[str]:
    """Fields that occur twice in one object; the JSON decoder silently drops one of them."""

    def paths(pairs: _JsonPairs, prefix: str) -> Iterator[str]:
        for index, (name, value) in enumerate(pairs):
            if name in [other for other, _ in pairs[:index]]:
                yield prefix + name
            if isinstance(value, _JsonPairs):
                yield from paths(value, f"{prefix}{name}.")

    try:
        document = json.loads(body or b"{}", object_pairs_hook=_JsonPairs)
    except ValueError:
        return []
    return list(paths(document, "")) if isinstance(document, _JsonPairs) else []


def _success_response(kind: ServedKind, result: ApiResult) -> HttpResponse:
    item = result.item
    warnings = tuple(("Warning", f'299 - "{_escape_quotes(text)}"') for text in result.warnings)
    headers = (*JSON_HEADERS, *warnings)
    if isinstance(item, StoredObject):
        return HttpResponse(result.code, headers, kind.json_prefix + item.tail)
    if isinstance(item, bytes):
        return HttpResponse(result.code, headers, item)
    if isinstance(item, dict):
        return HttpResponse(result.code, headers, msgspec.json.encode(item))
    assert isinstance(item, str)
    return HttpResponse(result.code, (("Content-Type", "text/plain"),), item.encode())


def _table_response(server: ApiServer, request: ApiRequest, result: ApiResult) -> HttpResponse:
    found = msgspec.json.decode(_success_response(request.kind, result).body)
    items = found["items"] if request.verb == "list" else [found]
    version = {"resourceVersion": found["metadata"]["resourceVersion"]}
    meta = found["metadata"] if request.verb == "list" else version
    table = build_table(request.kind, items, meta, server.clock.now(), request.extra.get("includeObject", "Metadata"))
    return HttpResponse(result.code, JSON_HEADERS, msgspec.json.encode(table))


async def _table_lines(
    server: ApiServer, request: ApiRequest, chunks: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    """The events of a watch with a Table of one row instead of each object; only the first one defines the columns."""
    include, headers = request.extra.get("includeObject", "Metadata"), True
    async with aclosing(chunks):
        async for chunk in chunks:
            for line in chunk.splitlines():
                event = msgspec.json.decode(line)
                if event["type"] in {"ADDED", "MODIFIED", "DELETED"}:
                    item, now = event["object"], server.clock.now()
                    meta = {"resourceVersion": item["metadata"]["resourceVersion"]}
                    event["object"] = build_table(request.kind, [item], meta, now, include, headers=headers)
                    headers = False
                yield msgspec.json.encode(event) + b"\n"


def _escape_quotes(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
