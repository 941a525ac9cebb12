"""CustomResourceDefinitions: the kinds they define, their validation and their status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from windlass.sandbox.apiserver.objects.kinds import ScalePaths, ServedKind
from windlass.sandbox.apiserver.objects.name_rules import CRD_CLEANUP_FINALIZER
from windlass.sandbox.apiserver.objects.schemas import parse_schema
from windlass.sandbox.apiserver.wire import api_status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.sandbox.apiserver.wire.api_status import Body, FieldError

CRD_KIND_ID = "customresourcedefinitions.apiextensions.k8s.io"
ACCEPTED_CONDITIONS = (
    ("NamesAccepted", "NoConflicts", "no conflicts found"),
    ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
)
REJECTED_CONDITIONS = (
    ("NamesAccepted", "KindConflict", "the kind is already in use"),
    ("Established", "NotAccepted", "not all names are accepted"),
)
SCHEMA_PATH = "spec.versions[{}].schema.openAPIV3Schema"


def served_kinds(definition: Body) -> Iterator[ServedKind]:
    """The served versions, the storage version first."""
    spec = definition["spec"]
    names = spec["names"]
    for version in sorted(spec["versions"], key=lambda version: not version.get("storage")):
        if not version.get("served"):
            continue
        subresources = version.get("subresources") or {}
        scale = subresources.get("scale")
        openapi_schema = version["schema"]["openAPIV3Schema"]
        yield ServedKind(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            kind=names["kind"],
            namespaced=spec["scope"] == "Namespaced",
            singular=names.get("singular") or names["kind"].lower(),
            list_kind=names.get("listKind", ""),
            short_names=tuple(names.get("shortNames", ())),
            categories=tuple(names.get("categories", ())),
            subresources=frozenset(subresources),
            has_generation=True,
            allows_unconditional_update=False,
            schema=parse_schema(openapi_schema),
            scale=_parse_scale_paths(scale) if scale else None,
            is_custom=True,
            openapi_schema=openapi_schema,
            printer_columns=tuple(version.get("additionalPrinterColumns") or ()),
        )


def _parse_scale_paths(scale: Body) -> ScalePaths:
    return ScalePaths(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath", ""))


def errors(definition: Body) -> list[FieldError]:
    """Validation errors: problems that would break the sandbox, or that the real server is known to reject."""
    spec, problems = definition.get("spec", {}), []
    names = spec.get("names", {})
    expected_name = f"{names.get('plural')}.{spec.get('group')}"
    if definition["metadata"]["name"] != expected_name:
        why = 'must be spec.names.plural+"."+spec.group'
        problems.append(api_status.invalid_value("metadata.name", definition["metadata"]["name"], why))
    if spec.get("scope") not in {"Cluster", "Namespaced"}:
        problems.append(api_status.unsupported_error("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced")))
    if sum(bool(version.get("storage")) for version in spec.get("versions", ())) != 1:
        problems.append(
            api_status.invalid_value("spec.versions", "", "must have exactly one version marked as storage version")
        )
    for index, version in enumerate(spec.get("versions", ())):
        problems += _version_errors(version, SCHEMA_PATH.format(index))
    return problems


def _version_errors(version: Body, where: str) -> list[FieldError]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    scale = (version.get("subresources") or {}).get("scale") or {}
    problems = []
    if schema is None:
        return [api_status.required_error(where, "schemas are required")]
    if not schema.get("type"):
        problems.append(
            api_status.required_error("spec.validation.openAPIV3Schema.type", "must not be empty at the root")
        )
    if scale and not scale.get("specReplicasPath", "").startswith(".spec."):
        path = scale.get("specReplicasPath", "")
        problems.append(
            api_status.invalid_value(
                "spec.subresources.scale.specReplicasPath", path, "should be a json path under .spec"
            )
        )
    try:
        parse_schema(schema)
    except msgspec.ValidationError as error:
        problems.append(api_status.invalid_value(where, "", str(error)))
    return problems


def build_status(definition: Body, now: str, *, accepted: bool) -> Body:
    """Status of a CustomResourceDefinition: established, or rejected because its kind is already in use."""
    spec = definition["spec"]
    rows = ACCEPTED_CONDITIONS if accepted else REJECTED_CONDITIONS
    conditions: list[Any] = [
        {"type": kind, "status": str(accepted), "lastTransitionTime": now, "reason": reason, "message": message}
        for kind, reason, message in rows
    ]
    names = spec["names"] if accepted else {"plural": "", "kind": ""}
    return {"conditions": conditions, "acceptedNames": names, "storedVersions": _storage_versions(spec)}


def apply_create_defaults(definition: Body) -> None:
    """Set in place what the server adds on create: derived names, the cleanup finalizer, an initial status."""
    spec = definition["spec"]
    names = spec["names"]
    spec["names"] = {"singular": names["kind"].lower(), "listKind": f"{names['kind']}List", **names}
    definition["metadata"].setdefault("finalizers", []).append(CRD_CLEANUP_FINALIZER)
    blank = {"plural": "", "kind": ""}
    definition["status"] = {"conditions": None, "acceptedNames": blank, "storedVersions": _storage_versions(spec)}


def _storage_versions(spec: Body) -> list[str]:
    return [version["name"] for version in spec["versions"] if version.get("storage")]
