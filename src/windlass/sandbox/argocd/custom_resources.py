"""The CRDs of Argo CD, with only the fields its controllers require; Applications have no status subresource."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.sandbox.controllers import object_builders
from windlass.sandbox.controllers.object_builders import OPEN

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.wire.api_status import Body

GROUP = "argoproj.io"


def _having(**properties: Any) -> Body:
    return {**OPEN, "required": [name for name in properties if name not in OPTIONAL], "properties": properties}


OPTIONAL = ("source", "sources")
TEXT = {"type": "string"}
SOURCE = _having(repoURL=TEXT)
TEMPLATE = _having(metadata=_having(name=TEXT), spec=OPEN)
SOURCES = {"type": "array", "items": SOURCE}
KINDS = (
    ("Application", ["app", "apps"], _having(destination=OPEN, project=TEXT, source=SOURCE, sources=SOURCES)),
    ("AppProject", ["appproj", "appprojs"], OPEN),
    ("ApplicationSet", ["appset", "appsets"], _having(generators={"type": "array", "items": OPEN}, template=TEMPLATE)),
)


def definitions() -> list[Body]:
    found = []
    for kind, short, spec in KINDS:
        fields = {"spec": spec, "status": OPEN, **({"operation": OPEN} if kind == "Application" else {})}
        names = {"kind": kind, "shortNames": short}
        made = object_builders.open_definition(f"{GROUP}/v1alpha1", names, fields, status=kind == "ApplicationSet")
        found.append(made)
    return found
