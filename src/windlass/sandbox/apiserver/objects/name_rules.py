"""Validation of names, labels, annotations, finalizers and owner references. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from windlass.sandbox.apiserver.wire import api_status
from windlass.sandbox.apiserver.wire.api_status import FieldError, invalid_value, required_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.sandbox.apiserver.objects.kinds import ServedKind
    from windlass.sandbox.apiserver.wire.api_status import Body

LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
LABEL_VALUE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
SUBDOMAIN_MESSAGE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')"
)
LABEL_MESSAGE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
)
LABEL_VALUE_MESSAGE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{LABEL_VALUE}')"
)
QUALIFIED_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
QUALIFIED_NAME_MESSAGE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    f"character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{QUALIFIED_NAME}')"
)
FINALIZER_MESSAGE = "name is neither a standard finalizer name nor is it fully qualified"
CRD_CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
STANDARD_FINALIZERS = frozenset({"orphan", "foregroundDeletion", "kubernetes", CRD_CLEANUP_FINALIZER})
CHECKED_FIELDS = ("name", "labels", "annotations", "ownerReferences", "finalizers")
MAX_NAME_LENGTH = 253
MAX_ANNOTATIONS_BYTES = 256 << 10  # bytes, keys and values together
# Kinds whose names must be DNS labels. In rbac.authorization.k8s.io any path segment is a valid name.
LABEL_NAMED_KINDS = frozenset({"namespaces", "services"})


def metadata_errors(kind: ServedKind, meta: Body, previous: Body | None = None) -> list[FieldError]:
    """Errors of the metadata; none if the validated fields equal those of `previous`, which was valid."""
    if previous is not None and all(meta.get(name) == previous.get(name) for name in CHECKED_FIELDS):
        return []
    return [*_name_errors(kind, meta.get("name", "")), *_label_errors(meta), *_owner_and_finalizer_errors(kind, meta)]


def _name_errors(kind: ServedKind, name: str) -> Iterator[FieldError]:
    where, is_label = "metadata.name", kind.plural in LABEL_NAMED_KINDS and not kind.is_custom
    if not name:
        yield required_error(where, "name or generateName is required")
    elif kind.group == "rbac.authorization.k8s.io":
        return
    elif not re.fullmatch(LABEL if is_label else SUBDOMAIN, name):
        dots_message = "must not contain dots" if is_label and "." in name else ""
        yield invalid_value(where, name, dots_message or (LABEL_MESSAGE if is_label else SUBDOMAIN_MESSAGE))
    if len(name) > (63 if is_label else MAX_NAME_LENGTH):
        yield invalid_value(where, name, f"must be no more than {63 if is_label else MAX_NAME_LENGTH} bytes")


def _label_errors(meta: Body) -> Iterator[FieldError]:
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    for field, keys in (("metadata.labels", labels), ("metadata.annotations", annotations)):
        for key in keys:
            if not re.fullmatch(QUALIFIED_NAME, key.rpartition("/")[2]):
                yield invalid_value(field, key, QUALIFIED_NAME_MESSAGE)
    for value in labels.values():
        if len(value) > 63 or not re.fullmatch(LABEL_VALUE, value):
            yield invalid_value("metadata.labels", value, LABEL_VALUE_MESSAGE)
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > MAX_ANNOTATIONS_BYTES:
        yield api_status.too_long("metadata.annotations", MAX_ANNOTATIONS_BYTES)


def _owner_and_finalizer_errors(kind: ServedKind, meta: Body) -> Iterator[FieldError]:
    owners = meta.get("ownerReferences") or ()
    for name in ("apiVersion", "kind", "name", "uid"):
        if not all(owner.get(name) for owner in owners):
            yield invalid_value(f"metadata.ownerReferences.{name}", "", f"{name} must not be empty")
    if sum(bool(owner.get("controller")) for owner in owners) > 1:
        listed = ", ".join(f"{owner['kind']}/{owner['name']}" for owner in owners if owner.get("controller"))
        why = f"Only one reference can have Controller set to true. Found: {listed}"
        yield FieldError("FieldValueInvalid", "metadata.ownerReferences", why)
    for index, name in enumerate(() if kind.is_custom else meta.get("finalizers") or ()):
        if "/" not in name and name not in STANDARD_FINALIZERS:
            yield invalid_value(f"metadata.finalizers[{index}]", name, FINALIZER_MESSAGE)


def finalizer_errors(before: Body, after: Body) -> list[FieldError]:
    old, new = (body["metadata"].get("finalizers") or [] for body in (before, after))
    added = [name for name in new if name not in old]
    if not before["metadata"].get("deletionTimestamp") or not added:
        return []
    listed = "[]string{" + ", ".join(f'"{name}"' for name in added) + "}"
    why = f"no new finalizers can be added if the object is being deleted, found new finalizers {listed}"
    return [api_status.forbidden_field("metadata.finalizers", why)]
