"""Applications and ApplicationSets as `import` reads them: their owners, sync waves, rollout steps and dependencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from windlass.argo.cd.applications import GROUP, ResourceRow
from windlass.core.platform.drafting.ownership import (
    ArgoKind,
    ArgoRef,
    LabelExpression,
    ObservedApplication,
    ObservedApplicationSet,
)
from windlass.core.platform.model.annotations import DEPENDS_ON, parse_names
from windlass.core.platform.model.snapshots import QUOTED_END, QUOTED_START
from windlass.kube.client.objects import RawObject, TypedObject
from windlass.kube.client.resources import Resource
from windlass.kube.decoding import Message  # noqa: TC001 - msgspec needs it at run time
from windlass.printable_text import shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.kube.client.objects import ObjectMeta

APPLICATION_SETS = Resource(GROUP, "v1alpha1", "applicationsets", "ApplicationSet")
SYNC_WAVE_ANNOTATION = "argocd.argoproj.io/sync-wave"
TRACKING_ANNOTATION = "argocd.argoproj.io/tracking-id"
INSTANCE_LABEL = "app.kubernetes.io/instance"
"""Identifies the owning Application if Argo CD tracks resources by label."""
_HEALTH_CHECK_PREFIX = "resource.customizations.health.argoproj.io_"
_LEGACY_HEALTH_CHECKS = "resource.customizations"


class _OwnershipStruct(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Base of all parts; every field may be null."""


class _ListedResource(ResourceRow, frozen=True, gc=False):
    health: RawObject | None = None


class _ProjectSpec(_OwnershipStruct, frozen=True, gc=False):
    project: str | None = None


class _OwnershipStatus(_OwnershipStruct, frozen=True, gc=False):
    resources: list[_ListedResource] | None = None
    controller_namespace: str | None = None


class ApplicationManifest(TypedObject, frozen=True, gc=False):
    """An Application, with the fields needed for `import`."""

    spec: _ProjectSpec | None = None
    status: _OwnershipStatus | None = None


class _Expression(_OwnershipStruct, frozen=True, gc=False):
    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class _RolloutStep(_OwnershipStruct, frozen=True, gc=False):
    match_expressions: list[_Expression] | None = None


class _RollingSync(_OwnershipStruct, frozen=True, gc=False):
    steps: list[_RolloutStep] | None = None


class _Strategy(_OwnershipStruct, frozen=True, gc=False):
    type: str | None = None
    rolling_sync: _RollingSync | None = None


class _ApplicationSetSpec(_OwnershipStruct, frozen=True, gc=False):
    strategy: _Strategy | None = None


class _SetCondition(_OwnershipStruct, frozen=True, gc=False):
    type: str | None = None
    status: str | None = None
    message: Message | None = None


class _ApplicationSetStatus(_OwnershipStruct, frozen=True, gc=False):
    conditions: list[_SetCondition] | None = None


class ApplicationSetManifest(TypedObject, frozen=True, gc=False):
    """An ApplicationSet, with the fields that tell how it orders Applications and whether it can generate them."""

    spec: _ApplicationSetSpec | None = None
    status: _ApplicationSetStatus | None = None


def parse_application_manifest(manifest: ApplicationManifest) -> ObservedApplication:
    metadata = manifest.metadata
    owner = owner_set_name(metadata)
    return ObservedApplication(
        ref=ArgoRef(ArgoKind.APPLICATION, metadata.namespace, metadata.name),
        project=(manifest.spec.project if manifest.spec else None) or "default",
        labels=metadata.labels,
        sync_wave=_sync_wave(metadata),
        owner=ArgoRef(ArgoKind.APPLICATION_SET, metadata.namespace, owner) if owner else None,
        tracked_by=tracking_owner(metadata),
        listed_children=frozenset(
            ArgoRef(ArgoKind(row.kind), row.namespace or metadata.namespace, row.name)
            for row in _argo_resources(manifest)
            if row.kind in set(ArgoKind) and row.name
        ),
        depends_on=declared_dependencies(metadata),
    )


def parse_application_set(manifest: ApplicationSetManifest) -> ObservedApplicationSet:
    metadata = manifest.metadata
    return ObservedApplicationSet(
        ArgoRef(ArgoKind.APPLICATION_SET, metadata.namespace, metadata.name),
        _sync_wave(metadata),
        tracking_owner(metadata),
        _rollout_steps(manifest),
    )


def generation_problem(manifest: ApplicationSetManifest) -> str:
    """Why the ApplicationSet cannot generate its Applications; empty if it can."""
    conditions = (manifest.status.conditions if manifest.status else None) or ()
    errors = [row for row in conditions if (row.type, row.status) == ("ErrorOccurred", "True")]
    return shortened(errors[0].message or "an error occurred", QUOTED_START, QUOTED_END) if errors else ""


def owner_set_name(metadata: ObjectMeta) -> str:
    """Name of the ApplicationSet that owns the Application, which is in the same namespace; empty if none does."""
    return next((owner.name for owner in metadata.owner_references if owner.kind == ArgoKind.APPLICATION_SET), "")


def declared_dependencies(metadata: ObjectMeta) -> tuple[str, ...] | None:
    """Dependencies that the Application's annotation lists; `None` without the annotation."""
    text = metadata.annotations.get(DEPENDS_ON)
    return None if text is None else parse_names(text)


def controller_namespace(manifest: ApplicationManifest) -> str:
    """Namespace of the Argo CD that reconciles the Application; empty if the status does not contain it."""
    return (manifest.status.controller_namespace if manifest.status else None) or ""


def reports_child_health(manifest: ApplicationManifest) -> bool:
    return any(row.kind == ArgoKind.APPLICATION and row.health for row in _argo_resources(manifest))


def has_application_health_check(settings: Mapping[str, str]) -> bool:
    """Whether Argo CD is configured to assess Applications: the health of a parent then includes its children."""
    legacy_checks = settings.get(_LEGACY_HEALTH_CHECKS) or ""
    return any(
        settings.get(f"{_HEALTH_CHECK_PREFIX}{kind}") or f"{GROUP}/{kind}" in legacy_checks
        for kind in (str(ArgoKind.APPLICATION), "*")
    )


def _argo_resources(manifest: ApplicationManifest) -> list[_ListedResource]:
    rows = (manifest.status.resources if manifest.status else None) or []
    return [row for row in rows if row.group == GROUP and row.is_legal]


def illegal_rows(manifest: ApplicationManifest) -> int:
    """How many resources of its status cannot be the address of an object; they are left out."""
    rows = (manifest.status.resources if manifest.status else None) or []
    return sum(not row.is_legal for row in rows)


def _sync_wave(metadata: ObjectMeta) -> int:
    """0 if the annotation is not a number, as in Argo CD."""
    try:
        return int(metadata.annotations.get(SYNC_WAVE_ANNOTATION, "0"))
    except ValueError:
        return 0


def tracking_owner(metadata: ObjectMeta) -> str:
    """Owner from the tracking ID, which is `OWNER:GROUP/KIND:NAMESPACE/NAME`, or from the label if there is no ID.

    An ID that names another object was copied from it and is ignored.
    """
    owner, _, rest = metadata.annotations.get(TRACKING_ANNOTATION, "").partition(":")
    if rest.rpartition("/")[2] == metadata.name:
        return owner
    return metadata.labels.get(INSTANCE_LABEL, "") if not rest else ""


def _rollout_steps(manifest: ApplicationSetManifest) -> tuple[tuple[LabelExpression, ...], ...]:
    strategy = (manifest.spec.strategy if manifest.spec else None) or _Strategy()
    rolling = strategy.rolling_sync if strategy.type == "RollingSync" else None
    steps = (rolling.steps if rolling else None) or []
    return tuple(tuple(_parse_match(each) for each in step.match_expressions or ()) for step in steps)


def _parse_match(expression: _Expression) -> LabelExpression:
    """An unknown operator matches nothing, as in Argo CD."""
    values = frozenset(expression.values or ()) if expression.operator in {"In", "NotIn"} else frozenset()
    return LabelExpression(expression.key or "", values, is_negated=expression.operator == "NotIn")
