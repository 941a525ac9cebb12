"""The kinds of Argo CD, as permissive definitions of our own. An Application has no status subresource."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windlass.sandbox.statuses import Body

GROUP = "argoproj.io"
OPEN: Body = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
KINDS = (
    ("applications", "Application", ("app", "apps"), ("spec", "status", "operation")),
    ("appprojects", "AppProject", ("appproj", "appprojs"), ("spec", "status")),
    ("applicationsets", "ApplicationSet", ("appset", "appsets"), ("spec", "status")),
)


def definitions() -> list[Body]:
    return [_definition(*row) for row in KINDS]


def _definition(plural: str, kind: str, short: tuple[str, ...], fields: tuple[str, ...]) -> Body:
    properties: Body = {"metadata": {"type": "object"}, **dict.fromkeys(fields, OPEN)}
    schema = {"type": "object", "required": ["metadata", "spec"], "properties": properties}
    version: Body = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if kind == "ApplicationSet":
        version["subresources"] = {"status": {}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "shortNames": list(short)}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }
