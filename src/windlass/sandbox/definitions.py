"""CustomResourceDefinitions: the kinds they define, and their own status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from windlass.sandbox import statuses
from windlass.sandbox.kinds import Kind, ScalePaths
from windlass.sandbox.schemas import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.sandbox.statuses import Body, FieldError

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
SCHEMA = "spec.versions[{}].schema.openAPIV3Schema"


def kinds_of(definition: Body) -> Iterator[Kind]:
    """The served versions, the stored one first."""
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
    """The mistakes that would otherwise break the sandbox, or that a real server is known to refuse."""
    spec, found = definition.get("spec", {}), []
    names = spec.get("names", {})
    wanted = f"{names.get('plural')}.{spec.get('group')}"
    if definition["metadata"]["name"] != wanted:
        why = 'must be spec.names.plural+"."+spec.group'
        found.append(statuses.invalid_value("metadata.name", definition["metadata"]["name"], why))
    if sum(bool(version.get("storage")) for version in spec.get("versions", ())) != 1:
        found.append(
            statuses.invalid_value("spec.versions", "", "must have exactly one version marked as storage version")
        )
    for index, version in enumerate(spec.get("versions", ())):
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if schema is None:
            found.append(statuses.required(SCHEMA.format(index), "schemas are required"))
            continue
        try:
            read(schema)
        except msgspec.ValidationError as error:
            found.append(statuses.invalid_value(SCHEMA.format(index), "", str(error)))
    return found


def status(definition: Body, now: str) -> Body:
    """The status of a definition whose kinds are served."""
    spec = definition["spec"]
    names = {"singular": spec["names"]["kind"].lower(), "listKind": f"{spec['names']['kind']}List", **spec["names"]}
    rows: list[tuple[str, str, str]] = [
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ]
    conditions: list[Any] = [
        {"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
        for kind, reason, message in rows
    ]
    stored = [version["name"] for version in spec["versions"] if version.get("storage")]
    return {"conditions": conditions, "acceptedNames": names, "storedVersions": stored}
