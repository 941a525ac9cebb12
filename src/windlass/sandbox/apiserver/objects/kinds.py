"""`ServedKind`: one version of a kind, and `Catalogue`: the kinds that the server currently serves."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from windlass.sandbox.apiserver.objects.schemas import OPEN_SCHEMA, SchemaNode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STANDARD_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Paths of the fields that the scale subresource maps to."""

    replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ""


@dataclass(frozen=True, kw_only=True)
class ServedKind:
    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = STANDARD_VERBS
    subresources: frozenset[str] = frozenset()
    has_generation: bool = False
    allows_unconditional_update: bool = True
    """Whether a PUT without resourceVersion overwrites the stored object."""
    returns_deleted_object: bool = False
    """Whether DELETE returns the deleted object instead of a Status."""
    schema: SchemaNode = field(default=OPEN_SCHEMA, compare=False)
    scale: ScalePaths | None = None
    is_custom: bool = False
    printer_columns: tuple[dict[str, Any], ...] = field(default=(), compare=False)
    """The columns of a custom kind that `kubectl get` shows."""
    openapi_schema: dict[str, Any] | None = field(default=None, compare=False)
    """The schema from the CustomResourceDefinition, for OpenAPI documents."""

    @cached_property
    def id(self) -> str:
        """`deployments.apps`; the same for all versions of a kind."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @cached_property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def type_meta(self) -> dict[str, str]:
        """kind and apiVersion of every object of this kind."""
        return {"kind": self.kind, "apiVersion": self.api_version}

    @property
    def list_kind_name(self) -> str:
        return self.list_kind or f"{self.kind}List"

    @cached_property
    def json_prefix(self) -> bytes:
        """Start of the JSON of every object of this kind; `StoredObject.tail` is the rest."""
        return msgspec.json.encode(self.type_meta)[:-1] + b","

    @property
    def is_virtual(self) -> bool:
        """Whether objects of this kind are never stored: reviews, which are only created."""
        return self.verbs == ("create",)


def _version_priority(version: str) -> tuple[int, int, int]:
    """Sort key: v2 before v1 before v1beta2 before v1beta1 before v1alpha1."""
    found = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    if not found:
        return (0, 0, 0)
    return ({None: 3, "beta": 2, "alpha": 1}[found[2]], int(found[1]), int(found[3] or 0))


class Catalogue:
    """The served kinds, in the order in which they were added. The first version of a kind is the preferred one."""

    def __init__(self, kinds: Iterable[ServedKind]) -> None:
        self._kinds: dict[tuple[str, str, str], ServedKind] = {}
        self._preferred: dict[str, ServedKind] = {}
        self._by_type: dict[tuple[str, str], ServedKind] = {}
        for kind in kinds:
            self.add(kind)

    def add(self, kind: ServedKind) -> None:
        self._kinds[kind.group, kind.version, kind.plural] = kind
        self._preferred.setdefault(kind.id, kind)
        self._by_type[kind.api_version, kind.kind] = kind

    def remove(self, kind_id: str) -> None:
        for key, kind in [row for row in self._kinds.items() if row[1].id == kind_id]:
            del self._kinds[key]
            self._by_type.pop((kind.api_version, kind.kind), None)
        self._preferred.pop(kind_id, None)

    def by_resource(self, group: str, version: str, plural: str) -> ServedKind | None:
        return self._kinds.get((group, version, plural))

    def is_builtin_group(self, group: str) -> bool:
        return any(kind.group == group and not kind.is_custom for kind in self._kinds.values())

    def by_id(self, kind_id: str) -> ServedKind | None:
        """The preferred version of a kind, by its id such as `deployments.apps`."""
        return self._preferred.get(kind_id)

    def by_type(self, api_version: str, kind: str) -> ServedKind | None:
        """The kind of an object with this apiVersion and kind."""
        return self._by_type.get((api_version, kind))

    def versions_by_group(self) -> dict[str, list[str]]:
        """Versions by group, the core group first."""
        groups: dict[str, list[str]] = {"": ["v1"]}
        for group, version, _ in self._kinds:
            versions = groups.setdefault(group, [])
            if version not in versions:
                versions.append(version)
        return {group: sorted(versions, key=_version_priority, reverse=True) for group, versions in groups.items()}

    def in_group_version(self, group: str, version: str) -> list[ServedKind]:
        return [kind for kind in self._kinds.values() if (kind.group, kind.version) == (group, version)]

    def __iter__(self) -> Iterator[ServedKind]:
        return iter(self._kinds.values())
