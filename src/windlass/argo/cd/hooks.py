"""Sync hooks of an Application: those of the last operation, and those left over from earlier ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from windlass.argo.cd.applications import HOOK, INTERNAL
from windlass.core.platform.model.snapshots import Hook

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.argo.cd.applications import Application, ResourceRow, ResultRow

OWN, HELM = "argocd.argoproj.io/hook", "helm.sh/hook"
PHASES = {
    "pre-install": "PreSync", "pre-upgrade": "PreSync", "post-install": "PostSync", "post-upgrade": "PostSync",
}  # fmt: skip
"""Helm hook types and the Argo CD phases they map to."""


class HookRow(NamedTuple):
    """An object that is, or was, a hook. `type` is empty if only the object's annotations tell its hook type."""

    group: str
    version: str
    kind: str
    namespace: str
    name: str
    type: str

    def hook(self, annotations: Mapping[str, str]) -> Hook | None:
        """The hook according to the object's annotations; `None` if it is not a sync hook."""
        type_ = self.type or _type(annotations)
        return Hook(self.kind, self.name, type_, annotations.get(HOOK) == INTERNAL) if type_ else None


def hook_rows(application: Application) -> list[HookRow]:
    """Hooks of the last operation, and hooks of earlier operations that still exist.

    Empty if the Application's annotation declares its hooks internal.
    """
    if application.metadata.annotations.get(HOOK) == INTERNAL:
        return []
    status = application.status
    state = status.operation_state if status else None
    result = state.sync_result if state else None
    ran = [_row(row, row.hook_type) for row in (result.resources if result else None) or () if row.hook_type]
    known = {row[:-1] for row in ran}
    there = (_row(row, "") for row in (status.resources if status else None) or () if row.hook)
    return [*ran, *(row for row in there if row[:-1] not in known)]


def _row(row: ResultRow | ResourceRow, type_: str) -> HookRow:
    return HookRow(row.group or "", row.version or "", row.kind or "", row.namespace or "", row.name or "", type_)


def _type(annotations: Mapping[str, str]) -> str:
    """The first hook type; Argo CD uses Helm's annotation only if its own is missing."""
    if own := annotations.get(OWN):
        return own.partition(",")[0].strip()
    helm = annotations.get(HELM, "")
    return next((PHASES[each] for each in map(str.strip, helm.split(",")) if each in PHASES), "")
