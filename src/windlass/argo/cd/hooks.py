"""Sync hooks of an Application: those of the last operation, and those left over from earlier ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from windlass.argo.cd.applications import HOOK_ANNOTATION, INTERNAL_HOOK
from windlass.core.platform.model.snapshots import Hook

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.argo.cd.applications import Application, ManagedResource, ResourceResult

ARGOCD_HOOK_ANNOTATION, HELM_HOOK_ANNOTATION = "argocd.argoproj.io/hook", "helm.sh/hook"
HELM_HOOK_PHASES = {
    "pre-install": "PreSync", "pre-upgrade": "PreSync", "post-install": "PostSync", "post-upgrade": "PostSync",
}  # fmt: skip
"""Helm hook types and the Argo CD phases they map to."""


class HookResource(NamedTuple):
    """An object that is, or was, a hook. `type` is empty if only the object's annotations tell its hook type."""

    group: str
    version: str
    kind: str
    namespace: str
    name: str
    type: str

    def parse_hook(self, annotations: Mapping[str, str]) -> Hook | None:
        """The hook according to the object's annotations; `None` if it is not a sync hook."""
        type_ = self.type or _hook_type(annotations)
        return Hook(self.kind, self.name, type_, annotations.get(HOOK_ANNOTATION) == INTERNAL_HOOK) if type_ else None


def hook_resources(application: Application) -> list[HookResource]:
    """Hooks of the last operation, and hooks of earlier operations that still exist.

    Empty if the Application's annotation declares its hooks internal.
    """
    if application.metadata.annotations.get(HOOK_ANNOTATION) == INTERNAL_HOOK:
        return []
    status = application.status
    state = status.operation_state if status else None
    result = state.sync_result if state else None
    operation_hooks = [
        _hook_resource(row, row.hook_type)
        for row in (result.resources if result else None) or ()
        if row.hook_type and row.is_legal
    ]
    known = {row[:-1] for row in operation_hooks}
    rows = (status.resources if status else None) or ()
    existing = (_hook_resource(row, "") for row in rows if row.hook and row.is_legal)
    return [*operation_hooks, *(row for row in existing if row[:-1] not in known)]


def _hook_resource(row: ResourceResult | ManagedResource, type_: str) -> HookResource:
    return HookResource(row.group or "", row.version or "", row.kind or "", row.namespace or "", row.name or "", type_)


def _hook_type(annotations: Mapping[str, str]) -> str:
    """The first hook type; Argo CD uses Helm's annotation only if its own is missing."""
    if argocd_types := annotations.get(ARGOCD_HOOK_ANNOTATION):
        return argocd_types.partition(",")[0].strip()
    helm_types = annotations.get(HELM_HOOK_ANNOTATION, "")
    return next(
        (HELM_HOOK_PHASES[each] for each in map(str.strip, helm_types.split(",")) if each in HELM_HOOK_PHASES), ""
    )
