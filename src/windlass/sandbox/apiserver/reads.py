"""Get and list: selectors, paging from one consistent snapshot, exact and stale resource versions."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from windlass.sandbox.apiserver.objects import selectors
from windlass.sandbox.apiserver.requests import ApiResult
from windlass.sandbox.apiserver.wire import api_status

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.objects.kinds import ServedKind
    from windlass.sandbox.apiserver.requests import ApiRequest
    from windlass.sandbox.apiserver.store import Store, StoredObject

CONTINUE_EXPIRED_MESSAGE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
# Fields that field selectors support besides metadata.name and metadata.namespace.
SELECTABLE_FIELDS = {
    "pods": ("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "status.phase"),
    "events": (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
        "reason", "reportingComponent", "source", "type",
    ),
    "secrets": ("type",),
    "namespaces": ("status.phase",),
    "nodes": ("spec.unschedulable",),
    "jobs.batch": ("status.successful",),
    "replicasets.apps": ("status.replicas",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ObjectFilter:
    """Label and field selector of a request."""

    labels: selectors.Requirements
    fields: selectors.Requirements

    def matches(self, item: StoredObject) -> bool:
        if not selectors.matches_all(self.labels, item.labels.get):
            return False
        return not self.fields or selectors.matches_all(self.fields, lambda path: _field_value(item, path))


def _field_value(item: StoredObject, path: str) -> str:
    if path == "metadata.name":
        return item.name
    return item.namespace if path == "metadata.namespace" else selectors.field_text(item.body, path)


def parse_filter(request: ApiRequest) -> ObjectFilter:
    options = request.options
    fields = selectors.parse_field_selector(options.fields)
    allowed = ("metadata.name", "metadata.namespace", *SELECTABLE_FIELDS.get(request.kind.id, ()))
    for requirement in fields:
        if requirement.key not in allowed:
            has_selectable_fields = request.kind.is_custom or request.kind.id in SELECTABLE_FIELDS
            message = f'"{requirement.key}" is not a known field selector: only "metadata.name", "metadata.namespace"'
            raise api_status.bad_request(
                f"field label not supported: {requirement.key}" if has_selectable_fields else message
            )
    return ObjectFilter(selectors.parse_label_selector(options.labels), fields)


class _ContinueToken(msgspec.Struct):
    rv: int
    start: str
    v: str = "meta.k8s.io/v1"


def require_object(store: Store, request: ApiRequest) -> StoredObject:
    """The object that a request names. Raises StatusError 404 if it does not exist."""
    found = store.get(request.kind.id, request.namespace, request.name)
    if found is None:
        raise api_status.not_found(request.kind, request.name)
    return found


class ReadHandler:
    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, request: ApiRequest) -> ApiResult:
        return ApiResult(200, require_object(self._store, request))

    def list(self, request: ApiRequest, stale_version: int | None = None) -> ApiResult:
        """List objects. `stale_version` is set when a lagging watch cache answers: the list is as of that version."""
        options, object_filter = request.options, parse_filter(request)
        version, start = self._start_position(request, stale_version)
        items = [
            item
            for item in self._store.list(request.kind.id, request.namespace, version)
            if object_filter.matches(item)
        ]
        if start:
            items = [item for item in items if _continue_key(item) > start]
        meta = {"resourceVersion": str(version)}
        if options.limit and len(items) > options.limit:
            page = items[: options.limit]
            meta["continue"] = _encode_continue(version, _continue_key(page[-1]))
            if not (object_filter.labels or object_filter.fields):
                meta["remainingItemCount"] = len(items) - len(page)  # type: ignore[assignment]
            items = page
        return ApiResult(200, encode_list(request.kind, items, meta))

    def _start_position(self, request: ApiRequest, stale_version: int | None) -> tuple[int, str]:
        """The version to list, and the key after which to continue."""
        options, current = request.options, self._store.version
        if options.token:
            if options.resource_version not in {"", "0"}:
                raise api_status.bad_request("specifying resource version is not allowed when using continue")
            return self._decode_continue(options.token)
        reject_future_version(options.resource_version, current)
        if options.version_match == "Exact":
            version = int(options.resource_version)
            if version < self._store.oldest_version:
                raise api_status.expired_error("The resourceVersion for the provided list is too old.")
            return version, ""
        return (current if stale_version is None else stale_version), ""

    def _decode_continue(self, text: str) -> tuple[int, str]:
        try:
            token = msgspec.json.decode(base64.urlsafe_b64decode(text + "=="), type=_ContinueToken)
        except (binascii.Error, msgspec.MsgspecError, UnicodeDecodeError):
            why = "illegal base64 data or unknown form"
            raise api_status.bad_request(f"invalid continue token: continue key is not valid: {why}") from None
        if token.rv == -1:
            return self._store.version, token.start
        if token.rv < self._store.oldest_version:
            error = api_status.expired_error(CONTINUE_EXPIRED_MESSAGE)
            error.list_meta = {"continue": _encode_continue(-1, token.start)}
            raise error
        return token.rv, token.start


def reject_future_version(text: str, current: int) -> None:
    """Raise the Timeout error of a server that waited for this version and did not reach it."""
    if text and int(text) > current:
        message = f"Too large resource version: {text}, current: {current}"
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        details = {"causes": [cause], "retryAfterSeconds": 1}
        raise api_status.StatusError(504, "Timeout", f"Timeout: {message}", details)


def encode_list(kind: ServedKind, items: list[StoredObject], meta: dict[str, str]) -> bytes:
    """JSON of a list. Items of built-in kinds have no kind and apiVersion, as in the real server's typed lists."""
    head = msgspec.json.encode({"kind": kind.list_kind_name, "apiVersion": kind.api_version, "metadata": meta})[:-1]
    prefix = kind.json_prefix if kind.is_custom else b"{"
    return head + b',"items":[' + b",".join(prefix + item.tail for item in items) + b"]}"


def _continue_key(item: StoredObject) -> str:
    return f"{item.namespace}/{item.name}"


def _encode_continue(version: int, start: str) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(_ContinueToken(version, start))).decode().rstrip("=")
