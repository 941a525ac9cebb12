"""CustomResourceDefinitions: the kinds they define, their validation and their status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from windlass.sandbox.apiserver.objects.kinds import Kind, ScalePaths
from windlass.sandbox.apiserver.objects.name_rules import CLEANUP
from windlass.sandbox.apiserver.objects.schemas import read
from windlass.sandbox.apiserver.wire import api_status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.sandbox.apiserver.wire.api_status import Body, FieldError

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
ACCEPTED = (
    ("NamesAccepted", "NoConflicts", "no conflicts found"),
    ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
)
REJECTED = (
    ("NamesAccepted", "KindConflict", "the kind is already in use"),
    ("Established", "NotAccepted", "not all names are accepted"),
)
SCHEMA = "spec.versions[{}].schema.openAPIV3Schema"


def kinds_of(definition: Body) -> Iterator[Kind]:
    """The served versions, the storage version first."""
    spec = definition["spec"]
    names = spec["names"]
    for version in sorted(spec["versions"], key=lambda version: not version.get("storage")):
        if not version.get("served"):
            continue
        subresources = version.get("subresources") or {}
        scale = subresources.get("scale")
        published = version["schema"]["openAPIV3Schema"]
        yield Kind(
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
            unconditional=False,
            schema=read(published),
            scale=_scale(scale) if scale else None,
            custom=True,
            published=published,
        )


def _scale(found: Body) -> ScalePaths:
    return ScalePaths(found["specReplicasPath"], found["statusReplicasPath"], found.get("labelSelectorPath", ""))


def errors(definition: Body) -> list[FieldError]:
    """Validation errors: problems that would break the sandbox, or that the real server is known to reject."""
    spec, found = definition.get("spec", {}), []
    names = spec.get("names", {})
    wanted = f"{names.get('plural')}.{spec.get('group')}"
    if definition["metadata"]["name"] != wanted:
        why = 'must be spec.names.plural+"."+spec.group'
        found.append(api_status.invalid_value("metadata.name", definition["metadata"]["name"], why))
    if spec.get("scope") not in {"Cluster", "Namespaced"}:
        found.append(api_status.unsupported("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced")))
    if sum(bool(version.get("storage")) for version in spec.get("versions", ())) != 1:
        found.append(
            api_status.invalid_value("spec.versions", "", "must have exactly one version marked as storage version")
        )
    for index, version in enumerate(spec.get("versions", ())):
        found += _version_errors(version, SCHEMA.format(index))
    return found


def _version_errors(version: Body, where: str) -> list[FieldError]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    scale = (version.get("subresources") or {}).get("scale") or {}
    found = []
    if schema is None:
        return [api_status.required(where, "schemas are required")]
    if not schema.get("type"):
        found.append(api_status.required("spec.validation.openAPIV3Schema.type", "must not be empty at the root"))
    if scale and not scale.get("specReplicasPath", "").startswith(".spec."):
        path = scale.get("specReplicasPath", "")
        found.append(
            api_status.invalid_value(
                "spec.subresources.scale.specReplicasPath", path, "should be a json path under .spec"
            )
        )
    try:
        read(schema)
    except msgspec.ValidationError as error:
        found.append(api_status.invalid_value(where, "", str(error)))
    return found


def status(definition: Body, now: str, *, accepted: bool) -> Body:
    """Status of a CustomResourceDefinition: established, or rejected because its kind is already in use."""
    spec = definition["spec"]
    rows = ACCEPTED if accepted else REJECTED
    conditions: list[Any] = [
        {"type": kind, "status": str(accepted), "lastTransitionTime": now, "reason": reason, "message": message}
        for kind, reason, message in rows
    ]
    names = spec["names"] if accepted else {"plural": "", "kind": ""}
    return {"conditions": conditions, "acceptedNames": names, "storedVersions": _stored(spec)}


def prepare(definition: Body) -> None:
    """Set in place what the server adds on create: derived names, the cleanup finalizer, an initial status."""
    spec = definition["spec"]
    names = spec["names"]
    spec["names"] = {"singular": names["kind"].lower(), "listKind": f"{names['kind']}List", **names}
    definition["metadata"].setdefault("finalizers", []).append(CLEANUP)
    blank = {"plural": "", "kind": ""}
    definition["status"] = {"conditions": None, "acceptedNames": blank, "storedVersions": _stored(spec)}


def _stored(spec: Body) -> list[str]:
    return [version["name"] for version in spec["versions"] if version.get("storage")]
