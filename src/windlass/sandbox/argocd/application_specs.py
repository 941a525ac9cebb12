"""What an Application or an operation asks for: sources and revisions, single or several. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.wire.api_status import Body

NAMESPACE = "argocd"
CASCADE = "resources-finalizer.argocd.argoproj.io"
REFRESH = "argocd.argoproj.io/refresh"
EMPTY_STATUS: Body = {
    "health": {},
    "sourceHydrator": {},
    "summary": {},
    "sync": {"comparedTo": {"destination": {}, "source": {"repoURL": ""}}, "status": ""},
}
"""What Argo CD writes of a status when it writes an Application whole, which it does to begin an operation itself."""


@dataclass(slots=True)
class Pace:
    """Seconds, about as measured on the real one."""

    first: float = 0.05
    """From a new Application to its first status."""
    notice: float = 0.03
    """From `.operation` to Running."""
    sync: float = 0.8
    """From Running to the objects being applied."""
    finish: float = 0.04
    """From there to the end of the operation."""
    recent: float = 0.08
    """From a changed object to a comparison with the revision known before."""
    latest: float = 0.1
    """From the end of an operation to a comparison with the wanted revision."""
    refresh: float = 0.3
    """From the annotation to the end of the comparison."""
    wave: float = 2.0
    """From a healthy wave to the next."""
    removal: float = 0.2
    """From an object that is gone to a look at what is left of an Application that is being deleted."""
    resync: float = 180.0
    """Between comparisons that nobody asked for."""
    jitter: float = 0.0
    """By which share each may be shorter or longer, by chance."""


class Stale(StrEnum):
    """What an Application may show after a sync before it shows the truth."""

    OLD_VERDICT = "old verdict"
    """Revision, time and health from before the sync."""
    LAGGING = "lagging reconcile"
    """The new revision with the old health and a time before the end of the sync."""
    SAME_SECOND = "same second"
    """The new revision with the old health and a time in the second in which the sync ended."""
    WRONG_REVISION = "wrong revision"
    """All is well, with a later time, but of another revision."""


@dataclass(frozen=True, slots=True)
class Lie:
    how: Stale
    seconds: float = 5.0
    """How long, unless somebody asks for a refresh."""


def instance_name(meta: Body) -> str:
    """How objects are marked with their Application: by its name, with its namespace where that is another one."""
    where = meta.get("namespace", NAMESPACE)
    return str(meta["name"]) if where == NAMESPACE else f"{where}_{meta['name']}"


def sources_of(holder: Body) -> list[Body]:
    """Of a spec, of an operation's sync, or of what was compared; empty if it names none."""
    return holder.get("sources") or ([holder["source"]] if holder.get("source") else [])


def named(spec: Body, name: str, values: list[Body] | list[str]) -> Body:
    """`source` and `revision`, or `sources` and `revisions`, as the spec has it."""
    return {f"{name}s": values} if spec.get("sources") else {name: values[0]} if values else {}


def revisions_of(holder: Body) -> list[str]:
    return holder.get("revisions") or ([holder["revision"]] if holder.get("revision") else [])


def compared_to(spec: Body) -> Body:
    return {"destination": spec["destination"], **named(spec, "source", sources_of(spec))}


def looked_at(spec: Body) -> Body:
    """What of a spec, when it changes, is looked at at once."""
    automated = (spec.get("syncPolicy") or {}).get("automated")
    return {**compared_to(spec), "project": spec.get("project"), "automated": automated}


def is_running(app: Body) -> bool:
    phase = app.get("status", {}).get("operationState", {}).get("phase")
    return "operation" in app and phase in {"Running", "Terminating"}


def automated_operation(app: Body, out_of_sync: list[Body]) -> Body | None:
    """The operation that Argo CD begins by itself for an Application that is out of sync."""
    spec, status = app["spec"], app.get("status", {})
    policy = spec.get("syncPolicy") or {}
    automated = policy.get("automated")
    if automated is None or automated.get("enabled") is False or "operation" in app:
        return None
    wanted = revisions_of(status["sync"])
    sync: Body = {**({"prune": True} if automated.get("prune") else {}), **named(spec, "revision", wanted)}
    sync |= named(spec, "source", sources_of(spec))
    if policy.get("syncOptions"):
        sync["syncOptions"] = policy["syncOptions"]
    last = status.get("operationState") or {}
    result = last.get("syncResult") or {}
    if last and revisions_of(result) == wanted and sources_of(result) == sources_of(spec):
        if last["phase"] != "Succeeded" or not automated.get("selfHeal"):
            return None
        names = ("group", "kind", "name")
        sync["resources"] = [{name: row[name] for name in names if name in row} for row in out_of_sync]
        sync["autoHealAttemptsCount"] = last["operation"].get("sync", {}).get("autoHealAttemptsCount", 0) + 1
    return {"initiatedBy": {"automated": True}, "retry": policy.get("retry") or {"limit": 5}, "sync": sync}
