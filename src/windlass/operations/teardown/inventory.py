"""What existed before a teardown, so that afterwards it is known what is left of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windlass.argo.cd.applications import APPLICATIONS, parse
from windlass.argo.cd.ownership import SETS
from windlass.argo.cd.resource_tracking import (
    instance_at,
    item_at,
    made_by,
    makes_namespace,
    target_item,
    target_namespace,
)
from windlass.core.platform.model import scopes
from windlass.core.platform.model.applications import ApplicationRef
from windlass.core.platform.teardown import inventory
from windlass.core.platform.teardown.inventory import Item, Leaving

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from windlass.argo.cd.applications import Application, Place
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.scopes import Scope
    from windlass.core.platform.teardown.inventory import Found
    from windlass.core.platform.teardown.parents import Detachment

DEFINITIONS = frozenset(
    Item(*inventory.DEFINITION, "", f"{name}.{APPLICATIONS.group}")
    for name in (APPLICATIONS.plural, SETS.plural, "appprojects")
)
"""The CRDs of Argo CD, which the teardown itself needs; they are never deleted."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The Applications that a teardown deletes, those that remain, and all objects of the cluster."""

    argocd: str
    nodes: frozenset[Item]
    """Keys of every node of the platform that is an Application."""
    places: Mapping[str, Place]
    """Keys of the nodes in scope that are Applications, existing or not, by node."""
    going: Mapping[Place, Application]
    """Existing Applications to delete."""
    staying: tuple[Application, ...]
    looked: tuple[Found, ...] = ()
    by_label: bool = False
    """Argo CD tracks its resources by label only."""

    def seen(self, looked: tuple[Found, ...]) -> Scene:
        """Return a copy with all objects of the cluster."""
        return replace(self, looked=looked, by_label=inventory.are_labels_marks(looked, self.made))

    @property
    def made(self) -> frozenset[Item]:
        """Keys of the objects that the Applications to delete manage in this cluster."""
        return frozenset().union(*(_made(application) for application in self.going.values()))

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Target namespaces that only Applications to delete use."""
        wanted = [target_namespace(application) for application in self.going.values()]
        return inventory.own_namespaces(wanted, _namespaces(self.staying), self.argocd)

    def made_namespaces(self, gone: Collection[Place], live: Collection[Application]) -> tuple[str, ...]:
        """Namespaces created for Applications that are gone, and not used by any that still exists."""
        theirs = [self.going[place] for place in gone if place in self.going]
        wanted = [target_namespace(application) for application in theirs if makes_namespace(application)]
        return inventory.own_namespaces(wanted, _namespaces(live), self.argocd)

    def leaving(self, gone: Collection[Place], kept: frozenset[Item] = frozenset()) -> Leaving:
        """The Applications at these keys, with what they managed; `kept` and nodes are excluded."""
        made = frozenset().union(*(_made(self.going[place]) for place in gone if place in self.going))
        names = frozenset(instance_at(place, self.argocd) for place in gone)
        targets = frozenset(target_item(application) for application in self.going.values())
        return Leaving(names, made, self.by_label, self.nodes | DEFINITIONS | targets | kept)

    def belongings(self, gone: Collection[Place]) -> frozenset[str]:
        """UIDs of the objects that these Applications own, directly or through other objects."""
        return inventory.belongings(self.looked, self.leaving(gone))


def scene_of(
    view: Mapping[Place, Application], platform: Platform, scope: Scope, detachment: Detachment, argocd: str
) -> Scene:
    targets = {name: node.target for name, node in platform.applications.items()}
    every = {name: (t.namespace or argocd, t.name) for name, t in targets.items() if isinstance(t, ApplicationRef)}
    selected = scopes.selected(platform, scope)
    places = {name: place for name, place in every.items() if name in selected}
    first = {(maker.item.namespace, maker.item.name) for maker in detachment.first if maker.item.kind != SETS.kind}
    meant = set(places.values()) | first
    return Scene(
        argocd=argocd,
        nodes=frozenset(item_at(place) for place in every.values()),
        places=places,
        going={place: view[place] for place in sorted(meant) if place in view},
        staying=tuple(application for place, application in view.items() if place not in meant),
    )


def _made(application: Application) -> frozenset[Item]:
    """Empty for an Application in another cluster: objects of the same name in this cluster are not its own."""
    return frozenset() if parse(application).is_remote else made_by(application)


def _namespaces(applications: Collection[Application]) -> frozenset[str]:
    return frozenset(target_namespace(application) for application in applications)
