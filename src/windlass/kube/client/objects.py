"""Kubernetes objects, raw or typed, and their identity."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

RawObject = dict[str, Any]
"""An object as decoded JSON, with all fields."""
PropagationPolicy = Literal["Background", "Foreground", "Orphan"]
"""What a deletion does with the dependents of an object."""


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool = False


class ObjectMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
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


class TypedObject(msgspec.Struct, frozen=True, gc=False):
    """Base of typed objects. Declare only the fields that are used; the decoder skips the others without building them.

    Decoded objects cannot form reference cycles, so `gc=False` exempts them from garbage collection: a list of
    thousands decodes twice as fast. Set it on nested structs, too.
    """

    metadata: ObjectMeta


T = TypeVar("T", bound=RawObject | TypedObject)
TypedT = TypeVar("TypedT", bound=TypedObject)


class ObjectVersion(NamedTuple):
    """One state of one object: the uid tells it from earlier objects of the same name."""

    namespace: str
    name: str
    uid: str
    resource_version: str

    @property
    def key(self) -> tuple[str, str]:
        return (self.namespace, self.name)


def object_version(item: RawObject | TypedObject) -> ObjectVersion:
    if isinstance(item, TypedObject):
        meta = item.metadata
        return ObjectVersion(meta.namespace, meta.name, meta.uid, meta.resource_version)
    metadata = item.get("metadata") or {}
    namespace, name = metadata.get("namespace") or "", metadata.get("name") or ""
    return ObjectVersion(namespace, name, metadata.get("uid") or "", metadata.get("resourceVersion") or "")
