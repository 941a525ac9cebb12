"""The CRDs of Argo CD, with only the fields its controllers require; Applications have no status subresource."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.sandbox.controllers import object_builders
from windlass.sandbox.controllers.object_builders import OPEN_SCHEMA

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.wire.api_status import Body

GROUP = "argoproj.io"


def _object_schema(**properties: Any) -> Body:
    return {
        **OPEN_SCHEMA,
        "required": [name for name in properties if name not in OPTIONAL_FIELDS],
        "properties": properties,
    }


OPTIONAL_FIELDS = ("source", "sources")
STRING_SCHEMA = {"type": "string"}
SOURCE_SCHEMA = _object_schema(repoURL=STRING_SCHEMA)
TEMPLATE_SCHEMA = _object_schema(metadata=_object_schema(name=STRING_SCHEMA), spec=OPEN_SCHEMA)
SOURCES_SCHEMA = {"type": "array", "items": SOURCE_SCHEMA}
APPLICATION_COLUMNS = [
    {"name": "Sync Status", "type": "string", "jsonPath": ".status.sync.status"},
    {"name": "Health Status", "type": "string", "jsonPath": ".status.health.status"},
    {"name": "Revision", "type": "string", "jsonPath": ".status.sync.revision", "priority": 10},
    {"name": "Project", "type": "string", "jsonPath": ".spec.project", "priority": 10},
]
KINDS = (
    (
        "Application",
        ["app", "apps"],
        _object_schema(destination=OPEN_SCHEMA, project=STRING_SCHEMA, source=SOURCE_SCHEMA, sources=SOURCES_SCHEMA),
    ),
    ("AppProject", ["appproj", "appprojs"], OPEN_SCHEMA),
    (
        "ApplicationSet",
        ["appset", "appsets"],
        _object_schema(generators={"type": "array", "items": OPEN_SCHEMA}, template=TEMPLATE_SCHEMA),
    ),
)


def build_crds() -> list[Body]:
    crds = []
    for kind, short_names, spec in KINDS:
        fields = {"spec": spec, "status": OPEN_SCHEMA, **({"operation": OPEN_SCHEMA} if kind == "Application" else {})}
        names = {"kind": kind, "shortNames": short_names}
        crd = object_builders.build_crd(f"{GROUP}/v1alpha1", names, fields, status=kind == "ApplicationSet")
        if kind == "Application":
            crd["spec"]["versions"][0]["additionalPrinterColumns"] = APPLICATION_COLUMNS
        crds.append(crd)
    return crds
