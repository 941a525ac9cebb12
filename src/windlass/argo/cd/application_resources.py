"""The resources that an Application's status lists: children, drift, sync results."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from windlass.argo.cd.applications import (
    _NO_STATUS,
    APPLICATIONS,
    Application,
    ManagedResource,
    ObjectKey,
    ResourceResult,
    resource_kind,
)
from windlass.core.platform.model.snapshots import ApplicationState, OperationPhase, ResourceKind, SyncStatus

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from windlass.kube.client.objects import RawObject


def kinds_with_health(application: Application) -> frozenset[ResourceKind]:
    """Kinds whose health Argo CD assesses.

    If Argo CD stores resource health outside the Application, every kind is returned, since none can be ruled out.
    """
    status = application.status or _NO_STATUS
    is_hidden = bool(status.resource_health_source)
    return frozenset(resource_kind(row) for row in status.resources or () if is_hidden or row.health)


def desired_resources(application: Application) -> Iterator[ManagedResource]:
    """Managed resources that are part of the desired state: neither hooks nor resources to be pruned."""
    rows = (application.status or _NO_STATUS).resources or ()
    return (row for row in rows if row.kind and row.name and not row.hook and not row.requires_pruning and row.is_legal)


def illegal_rows(application: Application) -> int:
    """How many resources of the status cannot be the address of an object; they are left out."""
    return sum(not row.is_legal for row in (application.status or _NO_STATUS).resources or ())


def child_applications(application: Application) -> Iterator[tuple[ObjectKey, bool]]:
    """Keys of the Applications that this one defines, each with whether it is in sync with its definition."""
    for row in (application.status or _NO_STATUS).resources or ():
        if _is_application(row) and not row.requires_pruning and row.is_legal:
            namespace = row.namespace or application.metadata.namespace
            yield (namespace, row.name or ""), row.status == SyncStatus.SYNCED


class DefinedObject(NamedTuple):
    """An Application or ApplicationSet among the resources of an Application."""

    kind: str
    namespace: str
    name: str
    is_in_sync: bool
    is_surplus: bool
    """The sources do not contain it any more: it would be pruned."""


def defined_objects(application: Application) -> Iterator[DefinedObject]:
    for row in (application.status or _NO_STATUS).resources or ():
        if row.group == APPLICATIONS.group and row.kind in {APPLICATIONS.kind, "ApplicationSet"} and not row.hook:
            if not row.is_legal:
                continue
            namespace, is_in_sync = row.namespace or application.metadata.namespace, row.status == SyncStatus.SYNCED
            yield DefinedObject(row.kind, namespace, row.name or "", is_in_sync, bool(row.requires_pruning))


def out_of_sync_resources(application: Application, *, exclude: Container[ObjectKey]) -> list[RawObject]:
    """OutOfSync resources in the format of an operation's `resources`, without the Applications in `exclude`."""
    rows = (application.status or _NO_STATUS).resources or ()
    rows = [row for row in rows if row.status == SyncStatus.OUT_OF_SYNC and row.is_legal]
    default_namespace = application.metadata.namespace
    return [
        _operation_resource(row)
        for row in rows
        if not (_is_application(row) and (row.namespace or default_namespace, row.name or "") in exclude)
    ]


def parse_own_state(application: Application, nodes: Container[ObjectKey]) -> ApplicationState:
    """The state of the Application without the nodes that it defines, which have steps of their own.

    If only such nodes are out of sync, it is Synced, and an operation that did not succeed was about them.
    """
    state = application.state
    is_out_of_sync = state.sync is SyncStatus.OUT_OF_SYNC and out_of_sync_resources(application, exclude=())
    if not is_out_of_sync or out_of_sync_resources(application, exclude=nodes):
        return state
    operation = state.operation
    if operation is not None and operation.phase is not OperationPhase.SUCCEEDED and not state.operation_requested:
        operation = None
    return replace(state, sync=SyncStatus.SYNCED, operation=operation)


def resources_to_sync(application: Application, nodes: Container[ObjectKey]) -> tuple[RawObject, ...]:
    """What to sync, without nodes that it defines, which have steps of their own; empty for everything.

    If only nodes are out of sync, its own state is Synced, and nothing is synced.
    """
    everything = out_of_sync_resources(application, exclude=())
    non_nodes = out_of_sync_resources(application, exclude=nodes)
    return tuple(non_nodes) if len(non_nodes) < len(everything) else ()


def _operation_resource(row: ManagedResource) -> RawObject:
    fields = {"group": row.group, "kind": row.kind, "namespace": row.namespace, "name": row.name}
    return {key: value for key, value in fields.items() if value}


def _is_application(row: ManagedResource | ResourceResult) -> bool:
    return (row.group, row.kind) == (APPLICATIONS.group, APPLICATIONS.kind)


class ResourceAddress(NamedTuple):
    """Address of an object that an Application manages; absent fields are empty strings."""

    group: str
    kind: str
    namespace: str
    name: str


def resource_addresses(application: Application) -> list[ResourceAddress]:
    rows = (application.status or _NO_STATUS).resources or ()
    return [
        ResourceAddress(row.group or "", row.kind or "", row.namespace or "", row.name or "")
        for row in rows
        if row.name and row.is_legal
    ]


def failed_resources(application: Application) -> Iterator[tuple[str, str, str]]:
    """Kind, name and message of each resource that the last operation failed to sync."""
    state = (application.status or _NO_STATUS).operation_state
    result = state.sync_result if state else None
    for row in (result.resources if result else None) or ():
        if row.status == "SyncFailed" and row.is_legal:
            yield row.kind or "", row.name or "", row.message or ""


def child_sync_result(application: Application, child: ObjectKey) -> tuple[str, str]:
    """Status and message of a child Application in the last operation's result; both empty if it is not listed.

    The message is as Argo CD wrote it: of any length.
    """
    state = (application.status or _NO_STATUS).operation_state
    result = state.sync_result if state else None
    for row in (result.resources if result else None) or ():
        if _is_application(row) and (row.namespace or application.metadata.namespace, row.name) == child:
            return row.status or "", row.message or ""
    return "", ""
