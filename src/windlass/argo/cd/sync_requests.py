"""Sync operations as Argo CD's API server writes them: a bare operation would ignore `spec.syncPolicy`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.argo.cd.applications import RUN_ID_KEY, USERNAME, Application

if TYPE_CHECKING:
    from windlass.kube.client.objects import RawObject


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """What to sync. If `resources` is empty, everything is synced."""

    revisions: tuple[str, ...]
    run_id: str
    resources: tuple[RawObject, ...] = ()


def sync_operation(application: Application, request: SyncRequest) -> RawObject:
    """The `operation` field: sources, options, retries and pruning come from the Application's spec.

    Revisions, run ID and resources come from the request. A sync of selected resources never prunes.
    """
    spec = application.spec
    policy = spec.sync_policy if spec else None
    sync: RawObject = _source_fields(application, request.revisions)
    if policy and policy.sync_options:
        sync["syncOptions"] = policy.sync_options
    if policy and policy.automated and policy.automated.prune and not request.resources:
        sync["prune"] = True
    if request.resources:
        sync["resources"] = list(request.resources)
    operation: RawObject = {
        "initiatedBy": {"username": USERNAME, "automated": False},
        "info": [{"name": RUN_ID_KEY, "value": request.run_id}],
        "sync": sync,
    }
    if policy and policy.retry:
        operation["retry"] = policy.retry
    return operation


def _source_fields(application: Application, revisions: tuple[str, ...]) -> RawObject:
    spec = application.spec
    if spec and spec.sources:
        return {"sources": spec.sources, "revisions": list(revisions)}
    fields: RawObject = {"revision": revisions[0]} if revisions else {}
    return {"source": spec.source, **fields} if spec and spec.source else fields
