"""The Argo CD Application resource: the fields Windlass reads, and their conversion to the core model.

Any field may be absent or null: a new Application has no status, and a new operation clears the state of the previous
one.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import msgspec

from windlass.core.platform.model.health import parse_health
from windlass.core.platform.model.snapshots import (
    RUNNING_PHASES,
    ApplicationState,
    Condition,
    Hook,
    Operation,
    OperationPhase,
    ParentApplication,
    ResourceKind,
    Source,
    SyncStatus,
)
from windlass.errors import WindlassError
from windlass.kube.client.objects import ObjectMeta, RawObject, TypedObject
from windlass.kube.client.resources import Resource, are_path_segments
from windlass.kube.decoding import Message  # noqa: TC001 - msgspec needs it at run time

GROUP = "argoproj.io"
APPLICATIONS = Resource(GROUP, "v1alpha1", "applications", "Application")
REFRESH_ANNOTATION = "argocd.argoproj.io/refresh"
USERNAME = "windlass"
"""The user that Windlass names in the operations it requests."""
RUN_ID_KEY = "windlass.dev/run-id"
"""Key, in the `info` list of an operation, of the ID of the run that requested it."""
HOOK_ANNOTATION, INTERNAL_HOOK = "windlass.dev/hook", "internal"
LOCAL_DESTINATIONS = frozenset({"", "in-cluster", "https://kubernetes.default.svc"})
"""Destination names and server addresses that mean the cluster Argo CD itself runs in."""
ObjectKey = tuple[str, str]
"""Namespace and name."""
MIN_TIME = datetime.min.replace(tzinfo=UTC)
_HELM_VALUES = "valuesObject"  # free-form Helm values, in which an empty value is significant


class NotServed(WindlassError):
    """The API server does not serve Applications, so Argo CD is probably not installed in this cluster."""

    recommendation_key = "TargetNotFound"

    def __init__(self, where: str) -> None:
        hint = "is this the cluster that Argo CD is in?"
        super().__init__("Argo CD's Application is not served here", where=where, hint=hint)


class _AppStruct(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Base of all parts of an Application; every field may be null."""


class _Destination(_AppStruct, frozen=True, gc=False):
    server: str | None = None
    name: str | None = None
    namespace: str | None = None


class _Automated(_AppStruct, frozen=True, gc=False):
    enabled: bool | None = None
    prune: bool | None = None


class _SyncPolicy(_AppStruct, frozen=True, gc=False):
    automated: _Automated | None = None
    sync_options: list[str] | None = None
    retry: RawObject | None = None


class _SourceFields(_AppStruct, frozen=True, gc=False):
    """One source or several. Argo CD writes an empty `source` next to `sources`."""

    source: RawObject | None = None
    sources: list[RawObject] | None = None


class _AppSpec(_SourceFields, frozen=True, gc=False):
    project: str | None = None
    destination: _Destination | None = None
    sync_policy: _SyncPolicy | None = None


class _RevisionFields(_AppStruct, frozen=True, gc=False):
    revision: str | None = None
    revisions: list[str] | None = None


class _HealthStatus(_AppStruct, frozen=True, gc=False):
    status: str | None = None
    message: Message | None = None
    last_transition_time: str | None = None


class _SyncStatus(_RevisionFields, frozen=True, gc=False):
    status: str | None = None
    compared_to: _SourceFields | None = None


class _InitiatedBy(_AppStruct, frozen=True, gc=False):
    username: Message | None = None
    automated: bool | None = None


class _OperationInfo(_AppStruct, frozen=True, gc=False):
    name: str | None = None
    value: str | None = None


class _OperationSync(_RevisionFields, frozen=True, gc=False):
    resources: list[RawObject] | None = None


class _RequestedOperation(_AppStruct, frozen=True, gc=False):
    initiated_by: _InitiatedBy | None = None
    info: list[_OperationInfo] | None = None
    sync: _OperationSync | None = None


class ResourceRow(_AppStruct, frozen=True, gc=False):
    """A row about an object; one that cannot be the address of an object is left out by all that read addresses."""

    group: str | None = None
    version: str | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None

    @property
    def is_legal(self) -> bool:
        return are_path_segments(self.group, self.version, self.kind, self.namespace, self.name)


class ResourceResult(ResourceRow, frozen=True, gc=False):
    status: str | None = None
    message: str | None = None  # not a `Message`: an operation has hundreds, of which hardly any is shown
    hook_type: str | None = None


class _SyncResult(_RevisionFields, frozen=True, gc=False):
    resources: list[ResourceResult] | None = None


class _OperationState(_AppStruct, frozen=True, gc=False):
    phase: str | None = None
    message: Message | None = None
    started_at: str | None = None
    finished_at: str | None = None
    operation: _RequestedOperation | None = None
    sync_result: _SyncResult | None = None


class _Condition(_AppStruct, frozen=True, gc=False):
    type: Message | None = None
    message: Message | None = None


class _HistoryEntry(_RevisionFields, frozen=True, gc=False):
    deploy_started_at: str | None = None


class ManagedResource(ResourceRow, frozen=True, gc=False):
    """An entry of `status.resources`: an object that the Application manages."""

    status: str | None = None
    health: _HealthStatus | None = None
    hook: bool | None = None
    requires_pruning: bool | None = None


class _AppStatus(_AppStruct, frozen=True, gc=False):
    health: _HealthStatus | None = None
    sync: _SyncStatus | None = None
    operation_state: _OperationState | None = None
    reconciled_at: str | None = None
    conditions: list[_Condition] | None = None
    history: list[_HistoryEntry] | None = None
    resources: list[ManagedResource] | None = None
    resource_health_source: str | None = None


_NO_STATUS = _AppStatus()


class _OwnedStatus(msgspec.Struct, frozen=True, gc=False):
    reconciled_at: RawObject | None = msgspec.field(name="f:reconciledAt", default=None)


class _OwnedFields(msgspec.Struct, frozen=True, gc=False):
    status: _OwnedStatus | None = msgspec.field(name="f:status", default=None)


class _FieldOwner(msgspec.Struct, frozen=True, gc=False):
    """An entry of `managedFields`: when its manager last wrote, by the API server's clock, and what it owns."""

    time: str | None = None
    fields: _OwnedFields | None = msgspec.field(name="fieldsV1", default=None)


class _AppMeta(ObjectMeta, frozen=True, gc=False):
    managed_fields: list[_FieldOwner] | None = None


class Application(TypedObject, frozen=True, gc=True, dict=True):
    metadata: _AppMeta
    spec: _AppSpec | None = None
    status: _AppStatus | None = None
    operation: _RequestedOperation | None = None

    @property
    def version(self) -> int:
        """The resourceVersion as a number, which grows with each write; 0 if it is not one."""
        text = self.metadata.resource_version
        return int(text) if text.isdecimal() and len(text) <= 20 else 0  # Python refuses thousands of digits

    @cached_property
    def state(self) -> ApplicationState:
        return _parse_state(self)


def _parse_state(application: Application) -> ApplicationState:
    spec, status = application.spec or _AppSpec(), application.status or _NO_STATUS
    sync, health = status.sync or _SyncStatus(), status.health or _HealthStatus()
    annotations = application.metadata.annotations
    return ApplicationState(
        uid=application.metadata.uid,
        revisions=_revisions(sync),
        sync=SyncStatus(sync.status) if sync.status in set(SyncStatus) else SyncStatus.UNKNOWN,
        health=parse_health(health.status),
        health_message=health.message or "",
        health_since=_parse_time(health.last_transition_time),
        sources=_sources(spec),
        compared_sources=_sources(sync.compared_to or _SourceFields()),
        operation_requested=application.operation is not None,
        requesting_run_id=requested_run_id(application),
        operation=_parse_operation(
            status.operation_state, hooks_are_internal=annotations.get(HOOK_ANNOTATION) == INTERNAL_HOOK
        ),
        reconciled_at=_parse_time(status.reconciled_at),
        written_at=_written_at(application.metadata),
        stamped_at=_stamped_at(status),
        refresh_requested=REFRESH_ANNOTATION in annotations,
        conditions=tuple(Condition(row.type or "", row.message or "") for row in status.conditions or ()),
        previous_revisions=_previous_revisions(status),
        is_automated=_is_automated(spec.sync_policy),
        is_deleting=bool(application.metadata.deletion_timestamp),
        is_remote=_is_remote(spec.destination or _Destination()),
        resource_kinds=frozenset(resource_kind(row) for row in status.resources or ()),
    )


def parse_parent(application: Application) -> ParentApplication:
    """The Application as a parent, without what depends on the child."""
    state = application.state
    return ParentApplication(
        application.metadata.namespace,
        application.metadata.name,
        state.revisions,
        state.sources,
        is_automated=state.is_automated,
        last_run_revisions=state.operation.revisions if state.operation and state.operation.run_id else (),
        problem=state.comparison_problem,
        is_settled=state.operation is not None
        and not state.operation_requested
        and state.operation.is_finished
        and state.operation.revisions == state.revisions,
    )


def requested_run_id(application: Application) -> str | None:
    """ID of the run that requested the pending or running operation; `None` without one or if it is not of Windlass."""
    return _run_id(application.operation) if application.operation else None


def _run_id(operation: _RequestedOperation) -> str | None:
    """`None` unless Windlass requested it.

    The user must match too: Argo CD merges a requested operation into the one that its status shows, so the fields that
    another client leaves out, such as `info`, are those of the operation before.
    """
    initiator = operation.initiated_by or _InitiatedBy()
    if initiator.username != USERNAME:
        return None
    return next((row.value for row in operation.info or () if row.name == RUN_ID_KEY and row.value), None)


def project_name(application: Application) -> str:
    return (application.spec.project if application.spec else None) or "default"


def _parse_operation(state: _OperationState | None, *, hooks_are_internal: bool) -> Operation | None:
    if state is None or not state.phase:
        return None
    # Treat an unknown phase as running: it must never count as finished.
    phase = OperationPhase(state.phase) if state.phase in set(OperationPhase) else OperationPhase.RUNNING
    request = state.operation or _RequestedOperation()
    initiator = request.initiated_by or _InitiatedBy()
    is_over = phase not in RUNNING_PHASES
    # Until an operation finishes, message and result are those of the previous operation.
    result = (state.sync_result if is_over else None) or _SyncResult()
    hook_results = (row for row in result.resources or () if row.hook_type and row.is_legal)
    return Operation(
        phase=phase,
        started_at=_parse_time(state.started_at) or MIN_TIME,
        finished_at=_parse_time(state.finished_at) if is_over else None,
        revisions=_revisions(result),
        run_id=_run_id(request),
        started_by=initiator.username or ("automated sync" if initiator.automated else ""),
        is_automated=bool(initiator.automated) and not initiator.username,
        is_partial=bool(request.sync and request.sync.resources),
        message=(state.message or "") if is_over else "",
        hooks=tuple(
            Hook(row.kind or "", row.name or "", row.hook_type or "", hooks_are_internal) for row in hook_results
        ),
    )


def _written_at(metadata: _AppMeta) -> datetime | None:
    """When the manager that owns the time of the comparison last changed the Application: that is Argo CD."""
    for row in metadata.managed_fields or ():
        if row.fields and row.fields.status and row.fields.status.reconciled_at is not None:
            return _parse_time(row.time)
    return None


def _stamped_at(status: _AppStatus) -> datetime | None:
    operation, health = status.operation_state or _OperationState(), status.health or _HealthStatus()
    stamps = (operation.started_at, operation.finished_at, status.reconciled_at, health.last_transition_time)
    return _parse_time(max(filter(None, stamps), default=None))  # all have one format


def _previous_revisions(status: _AppStatus) -> tuple[str, ...]:
    """Revisions of the last full sync in the history, or of the one before if the status shows that very operation."""
    history, state = status.history or [], status.operation_state
    if history and state and history[-1].deploy_started_at == state.started_at:
        history = history[:-1]
    return _revisions(history[-1]) if history else ()


def _revisions(fields: _RevisionFields) -> tuple[str, ...]:
    return tuple(fields.revisions or ()) or ((fields.revision,) if fields.revision else ())


def _sources(fields: _SourceFields) -> tuple[Source, ...]:
    sources = fields.sources or ([fields.source] if fields.source else [])
    return tuple(_source(each) for each in sources if each.get("repoURL"))


def _source(source: RawObject) -> Source:
    fingerprint = msgspec.json.encode(_without_empty(source), order="sorted").decode()
    return Source(source.get("targetRevision") or "HEAD", fingerprint, is_chart=bool(source.get("chart")))


def _without_empty(value: Any) -> Any:
    """Copy of the value without empty fields.

    When Argo CD copies a source, it drops some empty fields and adds others, so they must not affect the comparison.
    """
    if isinstance(value, dict):
        fields = {key: each if key == _HELM_VALUES else _without_empty(each) for key, each in value.items()}
        return {key: each for key, each in fields.items() if each not in (None, "", False, {}, [])}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value


def _is_automated(policy: _SyncPolicy | None) -> bool:
    return policy is not None and policy.automated is not None and policy.automated.enabled is not False


def _is_remote(destination: _Destination) -> bool:
    return (destination.server or "") not in LOCAL_DESTINATIONS or (destination.name or "") not in LOCAL_DESTINATIONS


def resource_kind(row: ManagedResource) -> ResourceKind:
    return ResourceKind(row.group or "", row.kind or "")


def _parse_time(text: str | None) -> datetime | None:
    """`None` if the text is missing or not a valid timestamp; UTC if it has no time zone."""
    try:
        time = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
