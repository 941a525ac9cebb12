"""Which objects an Application manages, and what manages Applications.

Derived from status, owner references, finalizers and tracking annotations, without I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.argo.cd.application_resources import child_applications
from windlass.argo.cd.applications import APPLICATIONS
from windlass.argo.cd.ownership import APPLICATION_SETS
from windlass.core.platform.model.snapshots import SyncStatus
from windlass.core.platform.teardown.inventory import ObservedObject, ResourceKey
from windlass.core.platform.teardown.parents import ParentObject

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from windlass.argo.cd.applications import Application, ObjectKey
    from windlass.kube.client.objects import ObjectMeta
    from windlass.kube.client.resources import Resource

CASCADE_FINALIZER = "resources-finalizer.argocd.argoproj.io"
"""An Application with this finalizer, or one with this prefix, deletes everything it manages when it is deleted."""
TRACKING_ANNOTATION, TRACKING_LABEL = "argocd.argoproj.io/tracking-id", "app.kubernetes.io/instance"
SYNC_OPTIONS_ANNOTATION, HELM_POLICY_ANNOTATION = "argocd.argoproj.io/sync-options", "helm.sh/resource-policy"
CREATE_NAMESPACE_OPTION = "CreateNamespace=true"


def application_resource_key(key: ObjectKey) -> ResourceKey:
    return ResourceKey(APPLICATIONS.group, APPLICATIONS.kind, *key)


def object_key(application: Application) -> ObjectKey:
    return (application.metadata.namespace, application.metadata.name)


def instance_name(key: ObjectKey, argocd_namespace: str) -> str:
    """The instance name with which Argo CD labels and annotates the objects of an Application."""
    return key[1] if key[0] == argocd_namespace else f"{key[0]}_{key[1]}"


def managed_resource_keys(application: Application) -> frozenset[ResourceKey]:
    rows = (application.status.resources if application.status else None) or ()
    return frozenset(
        ResourceKey(row.group or "", row.kind or "", row.namespace or "", row.name or "")
        for row in rows
        if row.is_legal
    )


def synced_resource_keys(application: Application) -> frozenset[ResourceKey]:
    """The resources that carry Argo CD's tracking mark: without it Argo CD shows a resource as OutOfSync."""
    rows = (application.status.resources if application.status else None) or ()
    synced = [row for row in rows if row.is_legal and row.status == SyncStatus.SYNCED]
    return frozenset(
        ResourceKey(row.group or "", row.kind or "", row.namespace or "", row.name or "") for row in synced
    )


def has_cascade_finalizer(application: Application) -> bool:
    return any(name.startswith(CASCADE_FINALIZER) for name in application.metadata.finalizers)


def target_namespace(application: Application) -> str:
    """The namespace of this cluster it deploys to; empty if it has none or deploys to another cluster."""
    destination = application.spec.destination if application.spec else None
    is_local = destination is not None and not application.state.is_remote
    return (destination.namespace or "") if destination and is_local else ""


def target_namespace_key(application: Application) -> ResourceKey:
    """Key of the namespace it deploys to, which is deleted after its contents even if the Application manages it."""
    return ResourceKey("", "Namespace", "", target_namespace(application))


def creates_namespace(application: Application) -> bool:
    policy = application.spec.sync_policy if application.spec else None
    return policy is not None and CREATE_NAMESPACE_OPTION in (policy.sync_options or ())


def application_subtree(
    application: Application, applications: Mapping[ObjectKey, Application], exclude: Collection[ObjectKey]
) -> list[Application]:
    """The Application and, recursively, those it defines; those in `exclude` are left out with their own children."""
    members: dict[ObjectKey, Application] = {}
    pending = [application]
    while pending:
        member = pending.pop()
        members[object_key(member)] = member
        child_keys = sorted(
            place for place, _ in child_applications(member) if place not in exclude and place not in members
        )
        pending += [applications[place] for place in child_keys if place in applications]
    return list(members.values())


def parent_objects(applications: Mapping[ObjectKey, Application]) -> list[ParentObject]:
    """Applications that define other Applications or ApplicationSets, and the ApplicationSets that own Applications."""
    parents = []
    children_by_set: dict[ResourceKey, set[ResourceKey]] = {}
    for key, application in applications.items():
        child_keys = {application_resource_key(child) for child, _ in child_applications(application)}
        child_keys |= {
            item
            for item in managed_resource_keys(application)
            if (item.group, item.kind) == (APPLICATION_SETS.group, APPLICATION_SETS.kind)
        }
        if child_keys - {application_resource_key(key)}:
            parents.append(
                ParentObject(
                    application_resource_key(key),
                    frozenset(child_keys) - {application_resource_key(key)},
                    application.state.is_automated,
                )
            )
        for owner in application.metadata.owner_references:
            if owner.kind == APPLICATION_SETS.kind:
                children_by_set.setdefault(
                    ResourceKey(APPLICATION_SETS.group, APPLICATION_SETS.kind, key[0], owner.name), set()
                ).add(application_resource_key(key))
    return parents + [
        ParentObject(item, frozenset(made), recreates_children=True) for item, made in sorted(children_by_set.items())
    ]


def observed_object(resource: Resource, meta: ObjectMeta) -> ObservedObject:
    key = ResourceKey(resource.group, resource.kind, meta.namespace, meta.name)
    return ObservedObject(
        key=key,
        uid=meta.uid,
        resource_name=str(resource),
        owner_uids=tuple(owner.uid for owner in meta.owner_references),
        tracking_instance=_tracking_instance(key, meta.annotations.get(TRACKING_ANNOTATION, "")),
        label_instance=meta.labels.get(TRACKING_LABEL, ""),
        finalizers=meta.finalizers,
        is_kept=is_deletion_disabled(meta.annotations),
        is_deleting=bool(meta.deletion_timestamp),
        created=meta.creation_timestamp,
    )


def _tracking_instance(key: ResourceKey, tracking_id: str) -> str:
    """Instance name from a tracking ID; empty if the ID names another object, from which it was copied.

    The namespace is not compared for cluster-scoped objects.
    """
    instance, _, target = tracking_id.partition(":")
    kind, _, target_name = target.partition(":")
    namespace, _, name = target_name.partition("/")
    is_own = kind == f"{key.group}/{key.kind}" and name == key.name and key.namespace in {"", namespace}
    return instance if is_own else ""


def is_deletion_disabled(annotations: Mapping[str, str]) -> bool:
    """Whether these annotations exclude an object from the deletion of its Application."""
    options = {option.strip() for option in annotations.get(SYNC_OPTIONS_ANNOTATION, "").split(",")}
    return "Delete=false" in options or annotations.get(HELM_POLICY_ANNOTATION) == "keep"


def summarize_keys(keys: Iterable[ResourceKey], limit: int = 3) -> str:
    names = [str(item) for item in keys]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
