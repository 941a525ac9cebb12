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
    "of this kind, or of one of its fields, the sandbox reads no protobuf: add --dry-run=client -o yaml | "
    "kubectl create -f -"
)
MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)
# Fields of messages by number: name and type. A dict is a message, a list a repeated field, "texts" a map to strings,
# "coded" a map to bytes, "port" a number or a string, None a field to skip. Other fields must be empty or zero.
Fields = dict[int, tuple[str, Any]]
TEXTS = ["text"]
METADATA_FIELDS: Fields = {
    1: ("name", "text"), 2: ("generateName", "text"), 3: ("namespace", "text"), 8: ("", None),
    11: ("labels", "texts"), 12: ("annotations", "texts"),
}  # fmt: skip
RESOURCE_ATTRIBUTES: Fields = {
    1: ("namespace", "text"), 2: ("verb", "text"), 3: ("group", "text"), 4: ("version", "text"),
    5: ("resource", "text"), 6: ("subresource", "text"), 7: ("name", "text"),
}  # fmt: skip
NON_RESOURCE_ATTRIBUTES: Fields = {1: ("path", "text"), 2: ("verb", "text")}
ACCESS_REVIEW_SPEC: Fields = {
    1: ("resourceAttributes", RESOURCE_ATTRIBUTES),
    2: ("nonResourceAttributes", NON_RESOURCE_ATTRIBUTES),
}
CONTAINER: Fields = {
    1: ("name", "text"), 2: ("image", "text"), 3: ("command", TEXTS), 4: ("args", TEXTS), 5: ("workingDir", "text"),
    6: ("ports", [{1: ("name", "text"), 3: ("containerPort", "number"), 4: ("protocol", "text")}]),
    7: ("env", [{1: ("name", "text"), 2: ("value", "text")}]),
}  # fmt: skip
POD_SPEC: Fields = {2: ("containers", [CONTAINER]), 3: ("restartPolicy", "text"), 8: ("serviceAccountName", "text")}
TEMPLATE: Fields = {1: ("metadata", METADATA_FIELDS), 2: ("spec", POD_SPEC)}
DEPLOYMENT_SPEC: Fields = {
    1: ("replicas", "number"), 2: ("selector", {1: ("matchLabels", "texts")}), 3: ("template", TEMPLATE),
    4: ("strategy", {1: ("type", "text")}),
}  # fmt: skip
JOB_SPEC: Fields = {1: ("parallelism", "number"), 2: ("completions", "number"), 6: ("template", TEMPLATE)}
CRON_JOB_SPEC: Fields = {
    1: ("schedule", "text"), 5: ("jobTemplate", {1: ("metadata", METADATA_FIELDS), 2: ("spec", JOB_SPEC)}),
}  # fmt: skip
SERVICE_PORT: Fields = {
    1: ("name", "text"), 2: ("protocol", "text"), 3: ("port", "number"), 4: ("targetPort", "port"),
    5: ("nodePort", "size"),
}  # fmt: skip
SERVICE_SPEC: Fields = {
    1: ("ports", [SERVICE_PORT]), 2: ("selector", "texts"), 3: ("clusterIP", "text"), 4: ("type", "text"),
    10: ("externalName", "text"),
}  # fmt: skip
RULES: Fields = {1: ("verbs", TEXTS), 2: ("apiGroups", TEXTS), 3: ("resources", TEXTS), 4: ("resourceNames", TEXTS),
                 5: ("nonResourceURLs", TEXTS)}  # fmt: skip
BINDING: Fields = {
    2: ("subjects", [{1: ("kind", "text"), 2: ("apiGroup", "text"), 3: ("name", "text"), 4: ("namespace", "text")}]),
    3: ("roleRef", {1: ("apiGroup", "text"), 2: ("kind", "text"), 3: ("name", "text")}),
}
MESSAGE_FIELDS: dict[str, Fields] = {
    "SelfSubjectAccessReview": {2: ("spec", ACCESS_REVIEW_SPEC), 3: ("", None)},
    "SelfSubjectRulesReview": {2: ("spec", {1: ("namespace", "text")}), 3: ("", None)},
    "SelfSubjectReview": {2: ("", None)},
    "TokenRequest": {2: ("spec", {4: ("expirationSeconds", "number")}), 3: ("", None)},
    "Namespace": {2: ("", None), 3: ("", None)},
    "ConfigMap": {2: ("data", "texts"), 3: ("binaryData", "coded"), 4: ("immutable", "flag")},
    "Secret": {2: ("data", "coded"), 3: ("type", "text"), 4: ("stringData", "texts"), 5: ("immutable", "flag")},
    "ServiceAccount": {},
    "Deployment": {2: ("spec", DEPLOYMENT_SPEC), 3: ("", None)},
    "Job": {2: ("spec", JOB_SPEC), 3: ("", None)},
    "CronJob": {2: ("spec", CRON_JOB_SPEC), 3: ("", None)},
    "Service": {2: ("spec", SERVICE_SPEC), 3: ("", None)},
    "Role": {2: ("rules", [RULES])},
    "ClusterRole": {2: ("rules", [RULES])},
    "RoleBinding": BINDING,
    "ClusterRoleBinding": BINDING,
}


def decode(data: bytes) -> Body | None:
    """The decoded object; `None` if its kind or one of its fields is not supported."""
    try:
        envelope = dict(_iterate_fields(data[len(MAGIC) :])) if data.startswith(MAGIC) else {}
        head = _decode_message(envelope.get(1, b""), {1: ("apiVersion", "text"), 2: ("kind", "text")})
        table = MESSAGE_FIELDS[head.get("kind", "")]
        return {**head, **_decode_message(envelope.get(2, b""), {1: ("metadata", METADATA_FIELDS), **table})}
    except MALFORMED:
        return None


def _decode_message(data: bytes, table: Fields) -> Body:
    message: Body = {}
    for number, value in _iterate_fields(data):
        if number not in table and not value:
            continue
        name, kind = table[number]
        if kind in ("texts", "coded"):
            pair = dict(_iterate_fields(value))
            text = base64.b64encode(pair.get(2, b"")) if kind == "coded" else pair.get(2, b"")
            message.setdefault(name, {})[pair.get(1, b"").decode()] = text.decode()
        elif isinstance(kind, list):
            message.setdefault(name, []).append(_decode_value(value, kind[0]))
        elif name and ((decoded := _decode_value(value, kind)) or kind in ("number", "flag", "port")):
            message[name] = decoded  # an absent text or message and an empty one are the same
    return message


def _decode_value(value: Any, kind: Any) -> Any:
    if isinstance(kind, dict):
        return _decode_message(value, kind)
    if kind == "port":
        fields = dict(_iterate_fields(value))
        return fields[3].decode() if fields.get(1) else fields.get(2, 0)
    return value.decode() if kind == "text" else bool(value) if kind == "flag" else value


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
