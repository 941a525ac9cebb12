"""Sync operations as Argo CD's API server writes them: a bare operation would ignore `spec.syncPolicy`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.argo.cd.applications import RUN_ID, Application

if TYPE_CHECKING:
    from windlass.kube.client.objects import Plain

USER = "windlass"


@dataclass(frozen=True, slots=True)
class Wish:
    """What to sync. If `resources` is empty, everything is synced."""

    revisions: tuple[str, ...]
    run_id: str
    resources: tuple[Plain, ...] = ()


def sync_operation(application: Application, wish: Wish) -> Plain:
    """The `operation` field: sources, options, retries and pruning come from the Application's spec.

    Revisions, run ID and resources come from the request. A sync of selected resources never prunes.
    """
    spec = application.spec
    policy = spec.sync_policy if spec else None
    sync: Plain = _sourced(application, wish.revisions)
    if policy and policy.sync_options:
        sync["syncOptions"] = policy.sync_options
    if policy and policy.automated and policy.automated.prune and not wish.resources:
        sync["prune"] = True
    if wish.resources:
        sync["resources"] = list(wish.resources)
    operation: Plain = {
        "initiatedBy": {"username": USER, "automated": False},
        "info": [{"name": RUN_ID, "value": wish.run_id}],
        "sync": sync,
    }
    if policy and policy.retry:
        operation["retry"] = policy.retry
    return operation


def _sourced(application: Application, revisions: tuple[str, ...]) -> Plain:
    spec = application.spec
    if spec and spec.sources:
        return {"sources": spec.sources, "revisions": list(revisions)}
    found: Plain = {"revision": revisions[0]} if revisions else {}
    return {"source": spec.source, **found} if spec and spec.source else found
