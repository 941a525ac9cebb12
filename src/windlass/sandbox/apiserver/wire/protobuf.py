"""Decoding of the kinds that kubectl sends as protobuf: reviews, TokenRequests, and objects of `kubectl create`."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.sandbox.apiserver.wire.api_status import Body

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\0"
UNSUPPORTED_HINT = (
    "of kinds with many fields the sandbox reads no protobuf: add --dry-run=client -o yaml | kubectl create -f -"
)
# Fields of messages by number: name and type. A dict is a message, "texts" a map to strings, "coded" a map to bytes,
# None a field to skip.
METADATA_FIELDS: dict[int, tuple[str, Any]] = {
    1: ("name", "text"), 2: ("generateName", "text"), 3: ("namespace", "text"), 4: ("", None), 5: ("", None),
    6: ("", None), 7: ("", None), 8: ("", None), 11: ("labels", "texts"), 12: ("annotations", "texts"),
}  # fmt: skip
RESOURCE_ATTRIBUTES = {
    1: ("namespace", "text"), 2: ("verb", "text"), 3: ("group", "text"), 4: ("version", "text"),
    5: ("resource", "text"), 6: ("subresource", "text"), 7: ("name", "text"),
}  # fmt: skip
NON_RESOURCE_ATTRIBUTES = {1: ("path", "text"), 2: ("verb", "text")}
ACCESS_REVIEW_SPEC = {
    1: ("resourceAttributes", RESOURCE_ATTRIBUTES),
    2: ("nonResourceAttributes", NON_RESOURCE_ATTRIBUTES),
}
MESSAGE_FIELDS: dict[str, dict[int, tuple[str, Any]]] = {
    "SelfSubjectAccessReview": {2: ("spec", ACCESS_REVIEW_SPEC), 3: ("", None)},
    "SelfSubjectRulesReview": {2: ("spec", {1: ("namespace", "text")}), 3: ("", None)},
    "SelfSubjectReview": {2: ("", None)},
    "TokenRequest": {2: ("spec", {4: ("expirationSeconds", "number")}), 3: ("", None)},
    "Namespace": {2: ("", None), 3: ("", None)},
    "ConfigMap": {2: ("data", "texts"), 3: ("binaryData", "coded"), 4: ("immutable", "number")},
    "Secret": {2: ("data", "coded"), 3: ("type", "text"), 4: ("stringData", "texts")},
    "ServiceAccount": {},
}


def decode(data: bytes) -> Body | None:
    """The decoded object; `None` if its kind or one of its fields is not supported."""
    envelope = dict(_iterate_fields(data[len(MAGIC) :])) if data.startswith(MAGIC) else {}
    head = _decode_message(envelope.get(1, b""), {1: ("apiVersion", "text"), 2: ("kind", "text")})
    table = MESSAGE_FIELDS.get(head.get("kind", ""))
    if table is None:
        return None
    try:
        return {**head, **_decode_message(envelope.get(2, b""), {1: ("metadata", METADATA_FIELDS), **table})}
    except KeyError:
        return None


def _decode_message(data: bytes, table: dict[int, tuple[str, Any]]) -> Body:
    message: Body = {}
    for number, value in _iterate_fields(data):
        name, kind = table[number]
        if kind in ("texts", "coded"):
            pair = dict(_iterate_fields(value))
            text = base64.b64encode(pair.get(2, b"")) if kind == "coded" else pair.get(2, b"")
            message.setdefault(name, {})[pair.get(1, b"").decode()] = text.decode()
        elif kind == "text" and value:
            message[name] = value.decode()
        elif kind == "number":
            message[name] = value
        elif isinstance(kind, dict):
            message[name] = _decode_message(value, kind)
    return message


def _iterate_fields(data: bytes) -> Iterator[tuple[int, Any]]:
    offset = 0
    while offset < len(data):
        tag, offset = _decode_varint(data, offset)
        value, offset = _decode_varint(data, offset)
        if tag & 7 == 2:
            value, offset = data[offset : offset + value], offset + value  # type: ignore[assignment]
        yield tag >> 3, value


def _decode_varint(data: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while data[offset] & 0x80:
        value |= (data[offset] & 0x7F) << shift
        shift, offset = shift + 7, offset + 1
    return value | data[offset] << shift, offset + 1
