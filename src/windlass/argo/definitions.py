"""What defines each Application: another Application by its list of resources, or an ApplicationSet that owns it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from windlass.argo.cd.application_resources import defined_objects
from windlass.argo.cd.applications import APPLICATIONS, Application, ObjectKey, parse_parent
from windlass.argo.cd.ownership import owner_set_name, tracking_owner
from windlass.core.platform.drafting.ownership import ArgoKind, ArgoRef
from windlass.core.platform.model.snapshots import ParentApplication
from windlass.kube.api_errors import missing_right

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from windlass.kube.api_errors import KubeError


@dataclass(frozen=True, slots=True)
class ArgoObjects:
    """What is known of Argo CD's objects at one moment."""

    applications: Mapping[ObjectKey, Application]
    set_problems: Mapping[ObjectKey, str] = field(default_factory=dict)
    """Why ApplicationSets cannot generate their Applications."""
    set_error: KubeError | None = None
    """Why ApplicationSets cannot be read; `None` if they can."""
    unanswered: Collection[ObjectKey] = ()
    """Applications that Argo CD was asked to compare again, and did not."""
    argocd_namespace: str = "argocd"
    nodes: Mapping[ObjectKey, str] = field(default_factory=dict)
    """Names of the nodes of the platform."""


class _Link(NamedTuple):
    parent: ArgoRef
    is_child_in_sync: bool = True
    defines_child: bool = True


class Definitions:
    """The parents of all Applications and ApplicationSets."""

    def __init__(self, objects: ArgoObjects) -> None:
        self._objects = objects
        self._links: dict[ArgoRef, _Link] = {}
        self._parsed: dict[ArgoRef, ParentApplication] = {}
        for key, application in sorted(objects.applications.items()):
            self._add_children(_application_ref(key), application)
        for key, application in objects.applications.items():
            if link := self._owner_link(key, application):
                self._links.setdefault(_application_ref(key), link)

    def _add_children(self, parent: ArgoRef, application: Application) -> None:
        for row in defined_objects(application):
            child = ArgoRef(ArgoKind(row.kind), row.namespace, row.name)
            link = _Link(parent, row.is_in_sync, not row.is_surplus)
            is_better = child not in self._links or (link.defines_child and not self._links[child].defines_child)
            if child != parent and is_better:  # an Application may contain itself
                self._links[child] = link

    def _owner_link(self, key: ObjectKey, application: Application) -> _Link | None:
        if owner := owner_set_name(application.metadata):
            return _Link(ArgoRef(ArgoKind.APPLICATION_SET, key[0], owner))
        namespace, _, name = tracking_owner(application.metadata).rpartition("_")
        tracked_by = (namespace or self._objects.argocd_namespace, name)
        parent = self._objects.applications.get(tracked_by)
        # Without a comparison Argo CD may list nothing: only then the mark on the child tells its parent.
        is_broken = parent is not None and tracked_by != key and bool(parse_parent(parent).problem)
        return _Link(_application_ref(tracked_by)) if is_broken else None

    def parent_of(self, key: ObjectKey) -> ParentApplication | None:
        return self._parent(_application_ref(key), frozenset())

    def _parent(self, child: ArgoRef, below: frozenset[ArgoRef]) -> ParentApplication | None:
        link = self._links.get(child)
        if link is None or link.parent in below:
            return None
        if link.parent not in self._parsed:
            self._parsed[link.parent] = self._parse(link.parent)
        return replace(
            self._parsed[link.parent],
            is_child_in_sync=link.is_child_in_sync,
            defines_child=link.defines_child,
            parent=self._parent(link.parent, below | {child}),
        )

    def set_namespaces(self, nodes: Iterable[ObjectKey]) -> frozenset[str]:
        """Namespaces of the ApplicationSets that define one of these Applications, directly or not."""
        parents = filter(None, map(self.parent_of, nodes))
        lineages = (each for parent in parents for each in parent.lineage)
        return frozenset(each.namespace for each in lineages if each.kind == ArgoKind.APPLICATION_SET)

    def _parse(self, ref: ArgoRef) -> ParentApplication:
        key = (ref.namespace, ref.name)
        application = self._objects.applications.get(key)
        if ref.kind is ArgoKind.APPLICATION and application is not None:
            is_answering, node = key not in self._objects.unanswered, self._objects.nodes.get(key, "")
            return replace(parse_parent(application), is_answering=is_answering, node=node)
        parent = ParentApplication(*key, is_automated=True, kind=str(ref.kind))
        if ref.kind is not ArgoKind.APPLICATION_SET:
            return parent
        if error := self._objects.set_error:
            return replace(parent, read_error=error.what, missing_right=missing_right(error))
        return replace(parent, problem=self._objects.set_problems.get(key, ""))

    def platform_parents(self, nodes: Iterable[ObjectKey], root: ObjectKey) -> tuple[ParentApplication, ...]:
        """Everything that defines one of these Applications, directly or not, and the root."""
        found: dict[str, ParentApplication] = {}
        if root in self._objects.applications:
            found["/".join(root)] = self._parse(_application_ref(root))
        for key in sorted(nodes):
            parent = self.parent_of(key)
            for each in parent.lineage if parent and parent.defines_child else ():
                found.setdefault(str(each), each)
        return tuple(found[name] for name in sorted(found))

    def unknown_applications(
        self, nodes: Collection[ObjectKey], parents: Iterable[ParentApplication]
    ) -> Iterator[ObjectKey]:
        """Applications that these parents define and that are neither nodes nor parents themselves."""
        refs = {_ref(parent) for parent in parents}
        for child, link in sorted(self._links.items()):
            is_known = child in refs or (child.namespace, child.name) in nodes
            if child.kind is ArgoKind.APPLICATION and link.defines_child and link.parent in refs and not is_known:
                yield (child.namespace, child.name)

    def are_all_in_sync(self, parents: Iterable[ParentApplication]) -> bool:
        """Whether everything that these parents define exists as they define it."""
        refs = {_ref(parent) for parent in parents}
        links = [link for link in self._links.values() if link.parent in refs and link.defines_child]
        return all(link.is_child_in_sync for link in links)


def _ref(parent: ParentApplication) -> ArgoRef:
    return ArgoRef(ArgoKind(parent.kind), parent.namespace, parent.name)


def _application_ref(key: ObjectKey) -> ArgoRef:
    return ArgoRef(ArgoKind(APPLICATIONS.kind), *key)
