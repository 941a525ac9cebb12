"""Sources and revisions of Applications and operations, single or multiple, and settings of the controller. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.wire.api_status import Body

NAMESPACE = "argocd"
FINALIZER = "resources-finalizer.argocd.argoproj.io"
REFRESH_ANNOTATION = "argocd.argoproj.io/refresh"
EMPTY_STATUS: Body = {
    "health": {},
    "sourceHydrator": {},
    "summary": {},
    "sync": {"comparedTo": {"destination": {}, "source": {"repoURL": ""}}, "status": ""},
}
"""Zero values that Argo CD adds when it writes a whole Application, as it does to start an automated sync."""


@dataclass(slots=True)
class ControllerDelays:
    """Delays of the application controller in seconds, close to those measured on Argo CD."""

    first: float = 0.05
    """From a new or changed Application to its comparison."""
    start: float = 0.03
    """From `.operation` to Running."""
    sync: float = 0.8
    """From Running to applying the first resources."""
    finish: float = 0.04
    """From there to the next step or the end of the operation."""
    recent: float = 0.08
    """From a changed resource to a comparison with the revision of the last one."""
    latest: float = 0.1
    """From the end of an operation to a comparison with the target revision."""
    refresh: float = 0.3
    """From the refresh annotation to the end of the comparison."""
    wave: float = 2.0
    """From a healthy wave to the next."""
    delete: float = 0.2
    """From a deleted resource to the next step of the cascading deletion."""
    resync: float = 180.0
    """Between periodic comparisons."""
    jitter: float = 0.0
    """Fraction by which each delay varies at random, shorter or longer."""


class Staleness(StrEnum):
    """Ways in which the status of an Application may be stale after a sync."""

    OLD_STATUS = "old verdict"
    """Revision, time and health from before the sync."""
    LAGGING = "lagging reconcile"
    """The new revision with the old health and a time before the end of the sync."""
    SAME_SECOND = "same second"
    """The new revision with the old health and a time in the second in which the sync ended."""
    WRONG_REVISION = "wrong revision"
    """Synced at a later time, but with another revision."""


@dataclass(frozen=True, slots=True)
class StaleStatus:
    """A stale status that an Application shows after each sync."""

    staleness: Staleness
    seconds: float = 5.0
    """How long the status stays stale; a refresh ends it earlier."""


def instance_name(meta: Body) -> str:
    """Name of an Application in tracking ids and labels: `name`, or `namespace_name` outside Argo CD's namespace."""
    namespace = meta.get("namespace", NAMESPACE)
    return str(meta["name"]) if namespace == NAMESPACE else f"{namespace}_{meta['name']}"


def cascades(app: Body) -> bool:
    """Whether the deletion of the Application deletes its resources."""
    return any(name.startswith(FINALIZER) for name in app["metadata"].get("finalizers") or ())


def without_cascade(meta: Body) -> Body:
    """The change of metadata that removes the finalizer; its uid has it refused if the Application was recreated."""
    return {
        "uid": meta["uid"],
        "finalizers": [name for name in meta["finalizers"] if not name.startswith(FINALIZER)] or None,
    }


def get_sources(holder: Body) -> list[Body]:
    """Sources of a spec, of an operation's `sync` or of a sync result; empty if it has none."""
    return holder.get("sources") or ([holder["source"]] if holder.get("source") else [])


def source_fields(spec: Body, name: str, values: list[Body] | list[str]) -> Body:
    """`{name: value}` for an Application with one source, `{names: values}` if its spec has `sources`."""
    return {f"{name}s": values} if spec.get("sources") else {name: values[0]} if values else {}


def get_revisions(holder: Body) -> list[str]:
    return holder.get("revisions") or ([holder["revision"]] if holder.get("revision") else [])


def compared_to(spec: Body) -> Body:
    return {"destination": spec["destination"], **source_fields(spec, "source", get_sources(spec))}


def compared_spec(spec: Body) -> Body:
    """The parts of a spec whose change triggers a comparison at once."""
    automated = (spec.get("syncPolicy") or {}).get("automated")
    return {**compared_to(spec), "project": spec.get("project"), "automated": automated}


def is_running(app: Body) -> bool:
    phase = app.get("status", {}).get("operationState", {}).get("phase")
    return "operation" in app and phase in {"Running", "Terminating"}


def automated_operation(app: Body, out_of_sync: list[Body]) -> Body | None:
    """The automated sync or self-heal operation of an Application that is out of sync, `None` if there is none."""
    spec, status = app["spec"], app.get("status", {})
    policy = spec.get("syncPolicy") or {}
    automated = policy.get("automated")
    if automated is None or automated.get("enabled") is False or "operation" in app:
        return None
    revisions = get_revisions(status["sync"])
    sync: Body = {**({"prune": True} if automated.get("prune") else {}), **source_fields(spec, "revision", revisions)}
    sync |= source_fields(spec, "source", get_sources(spec))
    if policy.get("syncOptions"):
        sync["syncOptions"] = policy["syncOptions"]
    last = status.get("operationState") or {}
    result = last.get("syncResult") or {}
    if last and get_revisions(result) == revisions and get_sources(result) == get_sources(spec):
        if last["phase"] != "Succeeded" or not automated.get("selfHeal"):
            return None
        names = ("group", "kind", "name")
        sync["resources"] = [{name: row[name] for name in names if name in row} for row in out_of_sync]
        sync["autoHealAttemptsCount"] = last["operation"].get("sync", {}).get("autoHealAttemptsCount", 0) + 1
    return {"initiatedBy": {"automated": True}, "retry": policy.get("retry") or {"limit": 5}, "sync": sync}
