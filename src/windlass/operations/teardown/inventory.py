"""What existed before a teardown, so that afterwards it is known what is left of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windlass.argo.cd.applications import APPLICATIONS
from windlass.argo.cd.ownership import APPLICATION_SETS
from windlass.argo.cd.resource_tracking import (
    application_resource_key,
    application_subtree,
    creates_namespace,
    instance_name,
    managed_resource_keys,
    object_key,
    synced_resource_keys,
    target_namespace,
    target_namespace_key,
)
from windlass.core.platform.model import scopes
from windlass.core.platform.model.applications import ApplicationRef
from windlass.core.platform.teardown import inventory
from windlass.core.platform.teardown.foreign_objects import PlatformObjects
from windlass.core.platform.teardown.inventory import PresentObjects, RemovedApplications, ResourceKey

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from windlass.argo.cd.applications import Application, ObjectKey
    from windlass.core.platform.model.scopes import Scope
    from windlass.operations.planner import PlannedRun

NOTHING_LISTED = PresentObjects()
ARGOCD_CRDS = frozenset(
    ResourceKey(*inventory.CRD_GROUP_KIND, "", f"{name}.{APPLICATIONS.group}")
    for name in (APPLICATIONS.plural, APPLICATION_SETS.plural, "appprojects")
)
"""The CRDs of Argo CD, which the teardown itself needs; they are never deleted."""


@dataclass(frozen=True, slots=True)
class TeardownInventory:
    """The Applications that a teardown deletes, those that remain, and all objects of the cluster."""

    argocd_namespace: str
    node_keys: frozenset[ResourceKey]
    """Keys of every node of the platform that is an Application."""
    keys_by_node: Mapping[str, ObjectKey]
    """Keys of the nodes in scope that are Applications, existing or not, by node."""
    to_delete: Mapping[ObjectKey, Application]
    """Existing Applications to delete."""
    remaining: tuple[Application, ...]
    members_by_node: Mapping[str, tuple[Application, ...]] = field(default_factory=dict)
    """For each existing node in scope: its Application, and those that it defines and that are no nodes."""
    listed: PresentObjects = NOTHING_LISTED
    tracks_by_label: bool = False
    """Argo CD tracks its resources by label only."""

    def with_objects(self, listed: PresentObjects) -> TeardownInventory:
        """Return a copy with all objects of the cluster."""
        tracks_by_label = self.tracks_by_label or inventory.uses_label_tracking(listed.objects, self._synced_keys)
        return replace(self, listed=listed, tracks_by_label=tracks_by_label)

    @property
    def _synced_keys(self) -> frozenset[ResourceKey]:
        """Keys of the objects in this cluster that the Applications to delete have in sync."""
        local = [application for application in self.to_delete.values() if not application.state.is_remote]
        return frozenset().union(*map(synced_resource_keys, local))

    @property
    def exclusive_namespaces(self) -> tuple[str, ...]:
        """Target namespaces that only Applications to delete use."""
        target_namespaces = [target_namespace(application) for application in self.to_delete.values()]
        return inventory.exclusive_namespaces(
            target_namespaces, _target_namespaces(self.remaining), self.argocd_namespace
        )

    def created_namespaces(
        self, gone: Collection[ObjectKey], live_applications: Collection[Application]
    ) -> dict[str, str]:
        """Namespaces created for Applications that are gone, and not used by any that still exists.

        The value is when the oldest Application that deploys to it was created.
        """
        gone_applications = [self.to_delete[key] for key in gone if key in self.to_delete]
        target_namespaces = [
            target_namespace(application) for application in gone_applications if creates_namespace(application)
        ]
        names = inventory.exclusive_namespaces(
            target_namespaces, _target_namespaces(live_applications), self.argocd_namespace
        )
        created = [(target_namespace(each), each.metadata.creation_timestamp) for each in self.to_delete.values()]
        return {name: min(time for target, time in created if target == name) for name in names}

    def containers(self, left_behind: Mapping[str, Collection[ResourceKey]]) -> dict[str, frozenset[ResourceKey]]:
        """Namespaces and CustomResourceDefinitions that go with each node in scope, and all that is in them.

        `left_behind`: objects of nodes whose Application is gone.
        """
        tracked: dict[str, set[ResourceKey]] = {}
        for found in self.listed.objects:
            tracked.setdefault(found.instance(by_label=self.tracks_by_label), set()).add(found.key)
        containers = {}
        for name, key in self.keys_by_node.items():
            members = self.members_by_node.get(name, ())
            instances = {instance_name(each, self.argocd_namespace) for each in (key, *map(object_key, members))}
            keys = {*left_behind.get(name, ())}.union(*(tracked.get(instance, ()) for instance in instances))
            keys = keys.union(*map(_managed_keys, members))
            containers[name] = frozenset(item for item in keys if item.is_container)
        return containers

    def platform_objects(self, claims: Iterable[ObjectKey] = ()) -> PlatformObjects:
        """The objects of all Applications to delete; `claims`: claims of theirs that have no owner."""
        parts = self.objects_by_application()
        applications = [part.applications for part in parts.values()]
        removed = replace(
            self.removed_applications(sorted(parts)),
            instances=frozenset().union(*(each.instances for each in applications)),
            managed_keys=frozenset().union(*(each.managed_keys for each in applications)),
        )
        keys = frozenset(ResourceKey("", "PersistentVolumeClaim", *key) for key in claims)
        keys = keys.union(*(part.keys for part in parts.values()))
        return PlatformObjects(removed, frozenset().union(*(part.uids for part in parts.values())), keys)

    def objects_by_application(self) -> dict[ObjectKey, PlatformObjects]:
        """The objects of each Application to delete and of those that it defines and that are no nodes."""
        members: dict[ObjectKey, tuple[Application, ...]] = {
            key: (application,) for key, application in self.to_delete.items()
        }
        members |= {key: self.members_by_node.get(name, ()) for name, key in self.keys_by_node.items()}
        return {key: self._application_objects(key, members[key]) for key in sorted(members)}

    def _application_objects(self, key: ObjectKey, members: tuple[Application, ...]) -> PlatformObjects:
        keys = {key, *map(object_key, members)}
        removed = replace(
            self.removed_applications(sorted(keys)), managed_keys=frozenset().union(*map(_managed_keys, members))
        )
        uids = inventory.owned_uids(self.listed.objects, removed)
        return PlatformObjects(removed, uids, frozenset(map(application_resource_key, keys)))

    def removed_applications(
        self, gone: Collection[ObjectKey], kept: frozenset[ResourceKey] = frozenset()
    ) -> RemovedApplications:
        """The Applications at these keys, with what they managed; `kept` and nodes are excluded."""
        managed = frozenset().union(*(_managed_keys(self.to_delete[key]) for key in gone if key in self.to_delete))
        instance_names = frozenset(instance_name(key, self.argocd_namespace) for key in gone)
        targets = frozenset(target_namespace_key(application) for application in self.to_delete.values())
        return RemovedApplications(
            instance_names, managed, self.tracks_by_label, self.node_keys | ARGOCD_CRDS | targets | kept
        )

    def owned_uids(self, gone: Collection[ObjectKey]) -> frozenset[str]:
        """UIDs of the objects that these Applications own, directly or through other objects."""
        return inventory.owned_uids(self.listed.objects, self.removed_applications(gone))


def build_inventory(
    applications: Mapping[ObjectKey, Application], planned: PlannedRun, scope: Scope, argocd_namespace: str
) -> TeardownInventory:
    platform = planned.platform
    targets = {name: node.target for name, node in platform.applications.items()}
    all_keys = {name: ref.key(argocd_namespace) for name, ref in targets.items() if isinstance(ref, ApplicationRef)}
    selected = scopes.selected_nodes(platform, scope)
    keys_by_node = {name: key for name, key in all_keys.items() if name in selected}
    parent_keys = {
        (parent.key.namespace, parent.key.name)
        for parent in planned.parent_removal.delete_first
        if parent.key.kind != APPLICATION_SETS.kind
    }
    deleted_keys = set(keys_by_node.values()) | parent_keys
    members_by_node = {
        name: tuple(application_subtree(applications[key], applications, frozenset(all_keys.values())))
        for name, key in keys_by_node.items()
        if key in applications
    }
    return TeardownInventory(
        argocd_namespace=argocd_namespace,
        node_keys=frozenset(application_resource_key(key) for key in all_keys.values()),
        keys_by_node=keys_by_node,
        to_delete={key: applications[key] for key in sorted(deleted_keys) if key in applications},
        remaining=tuple(application for key, application in applications.items() if key not in deleted_keys),
        members_by_node=members_by_node,
    )


def _managed_keys(application: Application) -> frozenset[ResourceKey]:
    """Empty for an Application in another cluster: objects of the same name in this cluster are not its own."""
    return frozenset() if application.state.is_remote else managed_resource_keys(application)


def _target_namespaces(applications: Collection[Application]) -> frozenset[str]:
    return frozenset(target_namespace(application) for application in applications)
