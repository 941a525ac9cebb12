"""The kinds of Argo CD, as permissive definitions of our own. An Application has no status subresource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.sandbox.actors import pieces

if TYPE_CHECKING:
    from windlass.sandbox.statuses import Body

GROUP = "argoproj.io"
KINDS = (
    ("Application", ["app", "apps"], ("spec", "status", "operation")),
    ("AppProject", ["appproj", "appprojs"], ("spec", "status")),
    ("ApplicationSet", ["appset", "appsets"], ("spec", "status")),
)


def definitions() -> list[Body]:
    return [
        pieces.open_definition(
            f"{GROUP}/v1alpha1", {"kind": kind, "shortNames": short}, fields, status=kind == "ApplicationSet"
        )
        for kind, short, fields in KINDS
    ]
