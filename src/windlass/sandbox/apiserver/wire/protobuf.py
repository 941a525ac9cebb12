"""Decoding of the kinds that kubectl sends as protobuf: reviews, TokenRequests, and objects of `kubectl create`."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.sandbox.apiserver.wire.api_status import Body

MEDIA = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\0"
INSTEAD = "of kinds with many fields the sandbox reads no protobuf: add --dry-run=client -o yaml | kubectl create -f -"
# Fields of messages by number: name and type. A dict is a message, "texts" a map to strings, "coded" a map to bytes,
# None a field to skip.
META: dict[int, tuple[str, Any]] = {
    1: ("name", "text"), 2: ("generateName", "text"), 3: ("namespace", "text"), 4: ("", None), 5: ("", None),
    6: ("", None), 7: ("", None), 8: ("", None), 11: ("labels", "texts"), 12: ("annotations", "texts"),
}  # fmt: skip
RESOURCE = {
    1: ("namespace", "text"), 2: ("verb", "text"), 3: ("group", "text"), 4: ("version", "text"),
    5: ("resource", "text"), 6: ("subresource", "text"), 7: ("name", "text"),
}  # fmt: skip
NONRESOURCE = {1: ("path", "text"), 2: ("verb", "text")}
ACCESS = {1: ("resourceAttributes", RESOURCE), 2: ("nonResourceAttributes", NONRESOURCE)}
MESSAGES: dict[str, dict[int, tuple[str, Any]]] = {
    "SelfSubjectAccessReview": {2: ("spec", ACCESS), 3: ("", None)},
    "SelfSubjectRulesReview": {2: ("spec", {1: ("namespace", "text")}), 3: ("", None)},
    "SelfSubjectReview": {2: ("", None)},
    "TokenRequest": {2: ("spec", {4: ("expirationSeconds", "number")}), 3: ("", None)},
    "Namespace": {2: ("", None), 3: ("", None)},
    "ConfigMap": {2: ("data", "texts"), 3: ("binaryData", "coded"), 4: ("immutable", "number")},
    "Secret": {2: ("data", "coded"), 3: ("type", "text"), 4: ("stringData", "texts")},
    "ServiceAccount": {},
}


def decoded(data: bytes) -> Body | None:
    """The decoded object; `None` if its kind or one of its fields is not supported."""
    envelope = dict(_fields(data[len(MAGIC) :])) if data.startswith(MAGIC) else {}
    head = _message(envelope.get(1, b""), {1: ("apiVersion", "text"), 2: ("kind", "text")})
    table = MESSAGES.get(head.get("kind", ""))
    if table is None:
        return None
    try:
        return {**head, **_message(envelope.get(2, b""), {1: ("metadata", META), **table})}
    except KeyError:
        return None


def _message(data: bytes, table: dict[int, tuple[str, Any]]) -> Body:
    found: Body = {}
    for number, value in _fields(data):
        name, kind = table[number]
        if kind in ("texts", "coded"):
            pair = dict(_fields(value))
            text = base64.b64encode(pair.get(2, b"")) if kind == "coded" else pair.get(2, b"")
            found.setdefault(name, {})[pair.get(1, b"").decode()] = text.decode()
        elif kind == "text" and value:
            found[name] = value.decode()
        elif kind == "number":
            found[name] = value
        elif isinstance(kind, dict):
            found[name] = _message(value, kind)
    return found


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        value, place = _varint(data, place)
        if tag & 7 == 2:
            value, place = data[place : place + value], place + value  # type: ignore[assignment]
        yield tag >> 3, value


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while data[place] & 0x80:
        value |= (data[place] & 0x7F) << shift
        shift, place = shift + 7, place + 1
    return value | data[place] << shift, place + 1
