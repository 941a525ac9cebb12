"""Get and list: selectors, paging from one consistent snapshot, exact and stale resource versions."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from windlass.sandbox.apiserver.objects import selectors
from windlass.sandbox.apiserver.requests import Outcome
from windlass.sandbox.apiserver.wire import api_status

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.objects.kinds import Kind
    from windlass.sandbox.apiserver.requests import Ask
    from windlass.sandbox.apiserver.store import Store, Stored

GONE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
# Fields that field selectors support besides metadata.name and metadata.namespace.
SELECTABLE = {
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
class Filter:
    """Label and field selector of a request."""

    labels: selectors.Requirements
    fields: selectors.Requirements

    def admits(self, item: Stored) -> bool:
        if not selectors.match(self.labels, item.labels.get):
            return False
        return not self.fields or selectors.match(self.fields, lambda path: _field(item, path))


def _field(item: Stored, path: str) -> str:
    if path == "metadata.name":
        return item.name
    return item.namespace if path == "metadata.namespace" else selectors.field_at(item.body, path)


def filter_of(ask: Ask) -> Filter:
    options = ask.options
    fields = selectors.parse_fields(options.fields)
    allowed = ("metadata.name", "metadata.namespace", *SELECTABLE.get(ask.kind.id, ()))
    for requirement in fields:
        if requirement.key not in allowed:
            known = ask.kind.custom or ask.kind.id in SELECTABLE
            only = f'"{requirement.key}" is not a known field selector: only "metadata.name", "metadata.namespace"'
            raise api_status.bad_request(f"field label not supported: {requirement.key}" if known else only)
    return Filter(selectors.parse_labels(options.labels), fields)


class _Token(msgspec.Struct):
    rv: int
    start: str
    v: str = "meta.k8s.io/v1"


def named(store: Store, ask: Ask) -> Stored:
    """The object that a request names. Raises StatusError 404 if it does not exist."""
    found = store.get(ask.kind.id, ask.namespace, ask.name)
    if found is None:
        raise api_status.not_found(ask.kind, ask.name)
    return found


class Reading:
    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, ask: Ask) -> Outcome:
        return Outcome(200, named(self._store, ask))

    def list(self, ask: Ask, at: int | None = None) -> Outcome:
        """List objects. `stale_version` is set when a lagging watch cache answers: the list is as of that version."""
        options, wanted = ask.options, filter_of(ask)
        version, start = self._begin(ask, at)
        items = [item for item in self._store.list(ask.kind.id, ask.namespace, version) if wanted.admits(item)]
        if start:
            items = [item for item in items if _place(item) > start]
        meta = {"resourceVersion": str(version)}
        if options.limit and len(items) > options.limit:
            page = items[: options.limit]
            meta["continue"] = _token(version, _place(page[-1]))
            if not (wanted.labels or wanted.fields):
                meta["remainingItemCount"] = len(items) - len(page)  # type: ignore[assignment]
            items = page
        return Outcome(200, rendered_list(ask.kind, items, meta))

    def _begin(self, ask: Ask, at: int | None) -> tuple[int, str]:
        """The version to list, and the key after which to continue."""
        options, current = ask.options, self._store.version
        if options.token:
            if options.resource_version not in {"", "0"}:
                raise api_status.bad_request("specifying resource version is not allowed when using continue")
            return self._continued(options.token)
        require_version(options.resource_version, current)
        if options.version_match == "Exact":
            version = int(options.resource_version)
            if version < self._store.floor:
                raise api_status.expired("The resourceVersion for the provided list is too old.")
            return version, ""
        return (current if at is None else at), ""

    def _continued(self, text: str) -> tuple[int, str]:
        try:
            token = msgspec.json.decode(base64.urlsafe_b64decode(text + "=="), type=_Token)
        except (binascii.Error, msgspec.MsgspecError, UnicodeDecodeError):
            why = "illegal base64 data or unknown form"
            raise api_status.bad_request(f"invalid continue token: continue key is not valid: {why}") from None
        if token.rv == -1:
            return self._store.version, token.start
        if token.rv < self._store.floor:
            refusal = api_status.expired(GONE)
            refusal.list_meta = {"continue": _token(-1, token.start)}
            raise refusal
        return token.rv, token.start


def require_version(text: str, current: int) -> None:
    """Raise the Timeout error of a server that waited for this version and did not reach it."""
    if text and int(text) > current:
        message = f"Too large resource version: {text}, current: {current}"
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        details = {"causes": [cause], "retryAfterSeconds": 1}
        raise api_status.Refusal(504, "Timeout", f"Timeout: {message}", details)


def rendered_list(kind: Kind, items: list[Stored], meta: dict[str, str]) -> bytes:
    """JSON of a list. Items of built-in kinds have no kind and apiVersion, as in the real server's typed lists."""
    head = msgspec.json.encode({"kind": kind.lists, "apiVersion": kind.api_version, "metadata": meta})[:-1]
    prefix = kind.prefix if kind.custom else b"{"
    return head + b',"items":[' + b",".join(prefix + item.tail for item in items) + b"]}"


def _place(item: Stored) -> str:
    return f"{item.namespace}/{item.name}"


def _token(version: int, start: str) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(_Token(version, start))).decode().rstrip("=")
