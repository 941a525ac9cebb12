"""Hooks of a sync: those that ran in the last operation, and those that an earlier one left. Pure."""

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
"""What Argo CD makes of Helm's."""


class HookRow(NamedTuple):
    """An object that is, or was, a hook. `type` is empty where only the object itself says when it runs."""

    group: str
    version: str
    kind: str
    namespace: str
    name: str
    type: str

    def hook(self, annotations: Mapping[str, str]) -> Hook | None:
        """By what the object says of itself; None where it is no hook of a sync."""
        type_ = self.type or _type(annotations)
        return Hook(self.kind, self.name, type_, annotations.get(HOOK) == INTERNAL) if type_ else None


def hook_rows(application: Application) -> list[HookRow]:
    """Those of the last operation, and those that are still there from an earlier one.

    None if the Application says that they serve it alone.
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
    """Argo CD heeds those of Helm where there are none of its own."""
    if own := annotations.get(OWN):
        return own.partition(",")[0].strip()
    helm = annotations.get(HELM, "")
    return next((PHASES[each] for each in map(str.strip, helm.split(",")) if each in PHASES), "")
