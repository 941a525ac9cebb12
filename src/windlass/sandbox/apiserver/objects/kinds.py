"""`ServedKind`: one version of a kind, and `Catalogue`: the kinds that the server currently serves."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from windlass.sandbox.apiserver.objects.schemas import OPEN, Node

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

READ_WRITE = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Paths of the fields that the scale subresource maps to."""

    replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ""


@dataclass(frozen=True, kw_only=True)
class Kind:
    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = READ_WRITE
    subresources: frozenset[str] = frozenset()
    has_generation: bool = False
    unconditional: bool = True
    """Whether a PUT without resourceVersion overwrites the stored object."""
    returns_deleted: bool = False
    """Whether DELETE returns the deleted object instead of a Status."""
    schema: Node = field(default=OPEN, compare=False)
    scale: ScalePaths | None = None
    custom: bool = False
    published: dict[str, Any] | None = field(default=None, compare=False)
    """The schema from the CustomResourceDefinition, for OpenAPI documents."""

    @cached_property
    def id(self) -> str:
        """`deployments.apps`; the same for all versions of a kind."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def head(self) -> dict[str, str]:
        """kind and apiVersion of every object of this kind."""
        return {"kind": self.kind, "apiVersion": self.api_version}

    @property
    def lists(self) -> str:
        return self.list_kind or f"{self.kind}List"

    @cached_property
    def prefix(self) -> bytes:
        """Start of the JSON of every object of this kind; `StoredObject.tail` is the rest."""
        return msgspec.json.encode(self.head)[:-1] + b","

    @property
    def is_virtual(self) -> bool:
        """Whether objects of this kind are never stored: reviews, which are only created."""
        return self.verbs == ("create",)


def _priority(version: str) -> tuple[int, int, int]:
    """Sort key: v2 before v1 before v1beta2 before v1beta1 before v1alpha1."""
    found = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if not found:
        return (0, 0, 0)
    return ({None: 3, "beta": 2, "alpha": 1}[found[2]], int(found[1]), int(found[3] or 0))


class Catalogue:
    """The served kinds, in the order in which they were added. The first version of a kind is the preferred one."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        self._first: dict[str, Kind] = {}
        self._named: dict[tuple[str, str], Kind] = {}
        for kind in kinds:
            self.add(kind)

    def add(self, kind: Kind) -> None:
        self._kinds[kind.group, kind.version, kind.plural] = kind
        self._first.setdefault(kind.id, kind)
        self._named[kind.api_version, kind.kind] = kind

    def drop(self, kind_id: str) -> None:
        for key, kind in [row for row in self._kinds.items() if row[1].id == kind_id]:
            del self._kinds[key]
            self._named.pop((kind.api_version, kind.kind), None)
        self._first.pop(kind_id, None)

    def at(self, group: str, version: str, plural: str) -> Kind | None:
        return self._kinds.get((group, version, plural))

    def is_built_in(self, group: str) -> bool:
        return any(kind.group == group and not kind.custom for kind in self._kinds.values())

    def find(self, kind_id: str) -> Kind | None:
        """The preferred version of a kind, by its id such as `deployments.apps`."""
        return self._first.get(kind_id)

    def named(self, api_version: str, kind: str) -> Kind | None:
        """The kind of an object with this apiVersion and kind."""
        return self._named.get((api_version, kind))

    def versions(self) -> dict[str, list[str]]:
        """Versions by group, the core group first."""
        found: dict[str, list[str]] = {"": ["v1"]}
        for group, version, _ in self._kinds:
            versions = found.setdefault(group, [])
            if version not in versions:
                versions.append(version)
        return {group: sorted(versions, key=_priority, reverse=True) for group, versions in found.items()}

    def within(self, group: str, version: str) -> list[Kind]:
        return [kind for kind in self._kinds.values() if (kind.group, kind.version) == (group, version)]

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())
