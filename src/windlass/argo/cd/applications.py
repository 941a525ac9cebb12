"""The Argo CD Application resource: the fields Windlass reads, and their conversion to the core model.

Any field may be absent or null: a new Application has no status, and a new operation clears the state of the previous
one.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from windlass.core.platform.model.health import parse_health
from windlass.core.platform.model.snapshots import (
    RUNNING,
    ApplicationState,
    Condition,
    Hook,
    Operation,
    Parent,
    Phase,
    ResourceKind,
    Source,
    Sync,
)
from windlass.errors import WindlassError
from windlass.kube.client.objects import Plain, Typed
from windlass.kube.client.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

GROUP = "argoproj.io"
APPLICATIONS = Resource(GROUP, "v1alpha1", "applications", "Application")
REFRESH = "argocd.argoproj.io/refresh"
RUN_ID = "windlass.dev/run-id"
"""Key, in the `info` list of an operation, of the ID of the run that requested it."""
HOOK, INTERNAL = "windlass.dev/hook", "internal"
HERE = frozenset({"", "in-cluster", "https://kubernetes.default.svc"})
"""Destination names and server addresses that mean the cluster Argo CD itself runs in."""
Place = tuple[str, str]
"""Namespace and name."""
LONG_AGO = datetime.min.replace(tzinfo=UTC)
_FREE_FORM = "valuesObject"  # free-form Helm values, in which an empty value is significant


class NotServed(WindlassError):
    """The API server does not serve Applications, so Argo CD is probably not installed in this cluster."""

    trouble = "TargetNotFound"

    def __init__(self, where: str) -> None:
        hint = "is this the cluster that Argo CD is in?"
        super().__init__("Argo CD's Application is not served here", where=where, hint=hint)


class _Part(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Base of all parts of an Application; every field may be null."""


class _Destination(_Part, frozen=True, gc=False):
    server: str | None = None
    name: str | None = None
    namespace: str | None = None


class _Automated(_Part, frozen=True, gc=False):
    enabled: bool | None = None
    prune: bool | None = None


class _SyncPolicy(_Part, frozen=True, gc=False):
    automated: _Automated | None = None
    sync_options: list[str] | None = None
    retry: Plain | None = None


class _Sourced(_Part, frozen=True, gc=False):
    """One source or several. Argo CD writes an empty `source` next to `sources`."""

    source: Plain | None = None
    sources: list[Plain] | None = None


class _Spec(_Sourced, frozen=True, gc=False):
    project: str | None = None
    destination: _Destination | None = None
    sync_policy: _SyncPolicy | None = None


class _Revised(_Part, frozen=True, gc=False):
    revision: str | None = None
    revisions: list[str] | None = None


class _Health(_Part, frozen=True, gc=False):
    status: str | None = None
    message: str | None = None


class _Sync(_Revised, frozen=True, gc=False):
    status: str | None = None
    compared_to: _Sourced | None = None


class _InitiatedBy(_Part, frozen=True, gc=False):
    username: str | None = None
    automated: bool | None = None


class _Info(_Part, frozen=True, gc=False):
    name: str | None = None
    value: str | None = None


class _OperationSync(_Revised, frozen=True, gc=False):
    resources: list[Plain] | None = None


class _Requested(_Part, frozen=True, gc=False):
    initiated_by: _InitiatedBy | None = None
    info: list[_Info] | None = None
    sync: _OperationSync | None = None


class ResultRow(_Part, frozen=True, gc=False):
    group: str | None = None
    version: str | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    status: str | None = None
    message: str | None = None
    hook_type: str | None = None


class _SyncResult(_Revised, frozen=True, gc=False):
    resources: list[ResultRow] | None = None


class _OperationState(_Part, frozen=True, gc=False):
    phase: str | None = None
    message: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    operation: _Requested | None = None
    sync_result: _SyncResult | None = None


class _Condition(_Part, frozen=True, gc=False):
    type: str | None = None
    message: str | None = None


class _History(_Revised, frozen=True, gc=False):
    deploy_started_at: str | None = None


class ResourceRow(_Part, frozen=True, gc=False):
    """An entry of `status.resources`: an object that the Application manages."""

    group: str | None = None
    version: str | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    status: str | None = None
    health: _Health | None = None
    hook: bool | None = None
    requires_pruning: bool | None = None


class _Status(_Part, frozen=True, gc=False):
    health: _Health | None = None
    sync: _Sync | None = None
    operation_state: _OperationState | None = None
    reconciled_at: str | None = None
    conditions: list[_Condition] | None = None
    history: list[_History] | None = None
    resources: list[ResourceRow] | None = None
    resource_health_source: str | None = None


_NO_STATUS = _Status()


class Application(Typed, frozen=True, gc=False):
    spec: _Spec | None = None
    status: _Status | None = None
    operation: _Requested | None = None


def parse(application: Application) -> ApplicationState:
    spec = application.spec or _Spec()
    status = application.status or _NO_STATUS
    sync, health = status.sync or _Sync(), status.health or _Health()
    annotations = application.metadata.annotations
    return ApplicationState(
        revisions=_revisions(sync),
        sync=Sync(sync.status) if sync.status in set(Sync) else Sync.UNKNOWN,
        health=parse_health(health.status),
        health_message=health.message or "",
        sources=_sources(spec),
        compared_to=_sources(sync.compared_to or _Sourced()),
        operation_requested=application.operation is not None,
        operation=_operation(status.operation_state, hooks_are_internal=annotations.get(HOOK) == INTERNAL),
        reconciled_at=_time(status.reconciled_at),
        refresh_requested=REFRESH in annotations,
        conditions=tuple(Condition(row.type or "", row.message or "") for row in status.conditions or ()),
        previous_revisions=_previous(status),
        is_automated=_is_automated(spec.sync_policy),
        is_deleting=bool(application.metadata.deletion_timestamp),
        is_remote=_is_remote(spec.destination or _Destination()),
        kinds=frozenset(kind_of_row(row) for row in status.resources or ()),
    )


def kinds_with_health(application: Application) -> frozenset[ResourceKind]:
    """Kinds whose health Argo CD assesses.

    If Argo CD stores resource health outside the Application, every kind is returned, since none can be ruled out.
    """
    status = application.status or _NO_STATUS
    is_hidden = bool(status.resource_health_source)
    return frozenset(kind_of_row(row) for row in status.resources or () if is_hidden or row.health)


def lasting_rows(application: Application) -> Iterator[ResourceRow]:
    """Managed resources that are part of the desired state: neither hooks nor resources to be pruned."""
    rows = (application.status or _NO_STATUS).resources or ()
    return (row for row in rows if row.kind and row.name and not row.hook and not row.requires_pruning)


def children(application: Application) -> Iterator[tuple[Place, bool]]:
    """Keys of the Applications that this one defines, each with whether it is in sync with its definition."""
    for row in (application.status or _NO_STATUS).resources or ():
        if _is_application(row) and not row.requires_pruning:
            namespace = row.namespace or application.metadata.namespace
            yield (namespace, row.name or ""), row.status == Sync.SYNCED


def parent_of(application: Application, *, is_followed: bool) -> Parent:
    status, spec = application.status or _NO_STATUS, application.spec or _Spec()
    operation = _operation(status.operation_state, hooks_are_internal=False)
    return Parent(
        application.metadata.namespace,
        application.metadata.name,
        _revisions(status.sync or _Sync()),
        is_automated=_is_automated(spec.sync_policy),
        is_followed=is_followed,
        moved_by_us_to=operation.revisions if operation and operation.run_id else (),
    )


def rows_out_of_sync(application: Application, *, without: Container[Place]) -> list[Plain]:
    """OutOfSync resources in the format of an operation's `resources`, without the Applications in `exclude`."""
    rows = (row for row in (application.status or _NO_STATUS).resources or () if row.status == Sync.OUT_OF_SYNC)
    here = application.metadata.namespace
    return [
        _named(row) for row in rows if not (_is_application(row) and (row.namespace or here, row.name or "") in without)
    ]


def _named(row: ResourceRow) -> Plain:
    found = {"group": row.group, "kind": row.kind, "namespace": row.namespace, "name": row.name}
    return {key: value for key, value in found.items() if value}


def _is_application(row: ResourceRow) -> bool:
    return (row.group, row.kind) == (APPLICATIONS.group, APPLICATIONS.kind)


class LiveRow(NamedTuple):
    """Address of an object that an Application manages; absent fields are empty strings."""

    group: str
    kind: str
    namespace: str
    name: str


def live_rows(application: Application) -> list[LiveRow]:
    rows = (application.status or _NO_STATUS).resources or ()
    return [LiveRow(row.group or "", row.kind or "", row.namespace or "", row.name or "") for row in rows if row.name]


def failed_rows(application: Application) -> Iterator[tuple[str, str, str]]:
    """Kind, name and message of each resource that the last operation failed to sync."""
    state = (application.status or _NO_STATUS).operation_state
    result = state.sync_result if state else None
    for row in (result.resources if result else None) or ():
        if row.status == "SyncFailed":
            yield row.kind or "", row.name or "", row.message or ""


def is_remote(application: Application) -> bool:
    """Whether the Application deploys to another cluster."""
    return _is_remote((application.spec or _Spec()).destination or _Destination())


def result_of(application: Application, child: Place) -> tuple[str, str]:
    """Status and message of a child Application in the last operation's result; both empty if it is not listed."""
    state = (application.status or _NO_STATUS).operation_state
    result = state.sync_result if state else None
    for row in (result.resources if result else None) or ():
        if row.kind == APPLICATIONS.kind and (row.namespace, row.name) == child:
            return row.status or "", row.message or ""
    return "", ""


def requested_run(application: Application) -> str | None:
    """ID of the run that requested the pending or running operation; `None` without one or if it is not of Windlass."""
    return _run_id(application.operation) if application.operation else None


def _run_id(asked: _Requested) -> str | None:
    return next((row.value for row in asked.info or () if row.name == RUN_ID and row.value), None)


def project_of(application: Application) -> str:
    return (application.spec.project if application.spec else None) or "default"


def _operation(state: _OperationState | None, *, hooks_are_internal: bool) -> Operation | None:
    if state is None or not state.phase:
        return None
    # Treat an unknown phase as running: it must never count as finished.
    phase = Phase(state.phase) if state.phase in set(Phase) else Phase.RUNNING
    asked = state.operation or _Requested()
    by = asked.initiated_by or _InitiatedBy()
    is_over = phase not in RUNNING
    # Until an operation finishes, message and result are those of the previous operation.
    result = (state.sync_result if is_over else None) or _SyncResult()
    rows = (row for row in result.resources or () if row.hook_type)
    return Operation(
        phase=phase,
        started_at=_time(state.started_at) or LONG_AGO,
        finished_at=_time(state.finished_at) if is_over else None,
        revisions=_revisions(result),
        run_id=_run_id(asked),
        started_by=by.username or ("automated sync" if by.automated else ""),
        is_partial=bool(asked.sync and asked.sync.resources),
        message=(state.message or "") if is_over else "",
        hooks=tuple(Hook(row.kind or "", row.name or "", row.hook_type or "", hooks_are_internal) for row in rows),
    )


def _previous(status: _Status) -> tuple[str, ...]:
    """Revisions of the last full sync in the history, or of the one before if the status shows that very operation."""
    history, state = status.history or [], status.operation_state
    if history and state and history[-1].deploy_started_at == state.started_at:
        history = history[:-1]
    return _revisions(history[-1]) if history else ()


def _revisions(holder: _Revised) -> tuple[str, ...]:
    return tuple(holder.revisions or ()) or ((holder.revision,) if holder.revision else ())


def _sources(holder: _Sourced) -> tuple[Source, ...]:
    found = holder.sources or ([holder.source] if holder.source else [])
    return tuple(_source(each) for each in found if each.get("repoURL"))


def _source(source: Plain) -> Source:
    fingerprint = msgspec.json.encode(_filled(source), order="sorted").decode()
    return Source(source.get("targetRevision") or "HEAD", fingerprint, is_chart=bool(source.get("chart")))


def _filled(value: Any) -> Any:
    """Copy of the value without empty fields.

    When Argo CD copies a source, it drops some empty fields and adds others, so they must not affect the comparison.
    """
    if isinstance(value, dict):
        kept = {key: each if key == _FREE_FORM else _filled(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in (None, "", False, {}, [])}
    return [_filled(each) for each in value] if isinstance(value, list) else value


def _is_automated(policy: _SyncPolicy | None) -> bool:
    return policy is not None and policy.automated is not None and policy.automated.enabled is not False


def _is_remote(destination: _Destination) -> bool:
    return (destination.server or "") not in HERE or (destination.name or "") not in HERE


def kind_of_row(row: ResourceRow) -> ResourceKind:
    return ResourceKind(row.group or "", row.kind or "")


def _time(text: str | None) -> datetime | None:
    """`None` if the text is missing or not a valid timestamp; UTC if it has no time zone."""
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
