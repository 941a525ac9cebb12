"""Kubernetes objects, raw or typed, and their identity."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import msgspec

Plain = dict[str, Any]
"""An object as decoded JSON, with all fields."""


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
    """Base of typed objects. Declare only the fields that are used; the decoder skips the others without building them.

    Decoded objects cannot form reference cycles, so `gc=False` exempts them from garbage collection: a list of
    thousands decodes twice as fast. Set it on nested structs, too.
    """

    metadata: Metadata


T = TypeVar("T", bound=Plain | Typed)
TypedT = TypeVar("TypedT", bound=Typed)


class Identity(NamedTuple):
    """One state of one object: the uid tells it from earlier objects of the same name."""

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
