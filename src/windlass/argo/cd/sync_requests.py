"""Sync operations as Argo CD's API server writes them: a bare operation would ignore `spec.syncPolicy`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from windlass.argo.cd.applications import RUN_ID_KEY, USERNAME, Application

if TYPE_CHECKING:
    from windlass.core.platform.model.snapshots import Source
    from windlass.kube.client.objects import RawObject


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """What to sync. If `resources` is empty, everything is synced."""

    revisions: tuple[str, ...]
    run_id: str
    resources: tuple[RawObject, ...] = ()
    sources: tuple[Source, ...] = ()
    """The sources to sync from; if empty, those that the Application has now."""


def sync_operation(application: Application, request: SyncRequest) -> RawObject:
    """The `operation` field: options, retries and pruning come from the Application's spec.

    Revisions, run ID, resources and sources come from the request. A sync of selected resources never prunes.
    """
    spec = application.spec
    policy = spec.sync_policy if spec else None
    sync: RawObject = _source_fields(application, request)
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


def _source_fields(application: Application, request: SyncRequest) -> RawObject:
    spec, revisions = application.spec, request.revisions
    several, one = (spec.sources, spec.source) if spec else (None, None)
    if request.sources and request.sources != application.state.sources:
        requested = [msgspec.json.decode(source.fingerprint) for source in request.sources]
        several, one = (requested, None) if several or len(requested) > 1 else (None, requested[0])
    if several:
        return {"sources": several, "revisions": list(revisions)}
    fields: RawObject = {"revision": revisions[0]} if revisions else {}
    return {"source": one, **fields} if one else fields
