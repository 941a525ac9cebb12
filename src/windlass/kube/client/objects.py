"""Objects: plain as they came, or typed with only the fields that someone looks at; and who is who among them."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import msgspec

Plain = dict[str, Any]
"""An object as it came: any kind, any field."""


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool = False


class Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}  # msgspec copies empty defaults
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str = ""
    deletion_timestamp: str = ""


class Typed(msgspec.Struct, frozen=True, gc=False):
    """Base of objects that name only the fields someone looks at; the parser skips the rest without building it.

    What was parsed cannot form a cycle, so the garbage collector need not walk it: with `gc=False` a list of thousands
    is read twice as fast. Give it to the parts as well.
    """

    metadata: Metadata


T = TypeVar("T", bound=Plain | Typed)
TypedT = TypeVar("TypedT", bound=Typed)


class Identity(NamedTuple):
    """Which object, which life of it, which state of that."""

    namespace: str
    name: str
    uid: str
    resource_version: str

    @property
    def key(self) -> tuple[str, str]:
        return (self.namespace, self.name)


def identity_of(item: Plain | Typed) -> Identity:
    if isinstance(item, Typed):
        meta = item.metadata
        return Identity(meta.namespace, meta.name, meta.uid, meta.resource_version)
    found = item.get("metadata") or {}
    namespace, name = found.get("namespace") or "", found.get("name") or ""
    return Identity(namespace, name, found.get("uid") or "", found.get("resourceVersion") or "")
