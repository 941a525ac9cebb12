"""Applications and ApplicationSets as `import` reads them: their owners, sync waves, rollout steps and dependencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from windlass.argo.cd.applications import GROUP
from windlass.core.platform.drafting.ownership import FoundApplication, FoundSet, Kind, Match, Thing
from windlass.core.platform.model.annotations import DEPENDS_ON, names_in
from windlass.kube.client.objects import Plain, Typed
from windlass.kube.client.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.kube.client.objects import Metadata

SETS = Resource(GROUP, "v1alpha1", "applicationsets", "ApplicationSet")
WAVE = "argocd.argoproj.io/sync-wave"
TRACKING = "argocd.argoproj.io/tracking-id"
INSTANCE = "app.kubernetes.io/instance"
"""Identifies the owning Application if Argo CD tracks resources by label."""
_HEALTH_CHECK = "resource.customizations.health.argoproj.io_"
_OLD_HEALTH_CHECKS = "resource.customizations"


class _Part(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Base of all parts; every field may be null."""


class _Row(_Part, frozen=True, gc=False):
    group: str | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    health: Plain | None = None


class _Spec(_Part, frozen=True, gc=False):
    project: str | None = None


class _Status(_Part, frozen=True, gc=False):
    resources: list[_Row] | None = None
    controller_namespace: str | None = None


class Made(Typed, frozen=True, gc=False):
    """An Application, with the fields needed for `import`."""

    spec: _Spec | None = None
    status: _Status | None = None


class _Expression(_Part, frozen=True, gc=False):
    key: str | None = None
    operator: str | None = None
    values: list[str] | None = None


class _Step(_Part, frozen=True, gc=False):
    match_expressions: list[_Expression] | None = None


class _RollingSync(_Part, frozen=True, gc=False):
    steps: list[_Step] | None = None


class _Strategy(_Part, frozen=True, gc=False):
    type: str | None = None
    rolling_sync: _RollingSync | None = None


class _SetSpec(_Part, frozen=True, gc=False):
    strategy: _Strategy | None = None


class Generator(Typed, frozen=True, gc=False):
    """An ApplicationSet, with the fields needed for `import`."""

    spec: _SetSpec | None = None


def found_application(made: Made) -> FoundApplication:
    metadata = made.metadata
    owners = (owner for owner in metadata.owner_references if owner.kind == Kind.SET)
    return FoundApplication(
        thing=Thing(Kind.APPLICATION, metadata.namespace, metadata.name),
        project=(made.spec.project if made.spec else None) or "default",
        labels=metadata.labels,
        wave=_wave(metadata),
        owner=next((Thing(Kind.SET, metadata.namespace, owner.name) for owner in owners), None),
        tracked_by=_tracked_by(metadata),
        lists=frozenset(
            Thing(Kind(row.kind), row.namespace or metadata.namespace, row.name)
            for row in _rows(made)
            if row.kind in set(Kind) and row.name
        ),
        depends_on=depends_on(metadata),
    )


def found_set(generator: Generator) -> FoundSet:
    metadata = generator.metadata
    return FoundSet(
        Thing(Kind.SET, metadata.namespace, metadata.name), _wave(metadata), _tracked_by(metadata), _steps(generator)
    )


def depends_on(metadata: Metadata) -> tuple[str, ...] | None:
    """Dependencies that the Application's annotation lists; `None` without the annotation."""
    text = metadata.annotations.get(DEPENDS_ON)
    return None if text is None else names_in(text)


def home_of(made: Made) -> str:
    """Namespace of the Argo CD that reconciles the Application; empty if the status does not contain it."""
    return (made.status.controller_namespace if made.status else None) or ""


def shows_health_of_children(made: Made) -> bool:
    return any(row.kind == Kind.APPLICATION and row.health for row in _rows(made))


def has_application_health(settings: Mapping[str, str]) -> bool:
    """Whether Argo CD is configured to assess Applications: the health of a parent then includes its children."""
    old = settings.get(_OLD_HEALTH_CHECKS) or ""
    return any(
        settings.get(f"{_HEALTH_CHECK}{kind}") or f"{GROUP}/{kind}" in old for kind in (str(Kind.APPLICATION), "*")
    )


def _rows(made: Made) -> list[_Row]:
    rows = (made.status.resources if made.status else None) or []
    return [row for row in rows if row.group == GROUP]


def _wave(metadata: Metadata) -> int:
    """0 if the annotation is not a number, as in Argo CD."""
    try:
        return int(metadata.annotations.get(WAVE, "0"))
    except ValueError:
        return 0


def _tracked_by(metadata: Metadata) -> str:
    """Owner from the tracking ID, which is `OWNER:GROUP/KIND:NAMESPACE/NAME`, or from the label if there is no ID.

    An ID that names another object was copied from it and is ignored.
    """
    owner, _, rest = metadata.annotations.get(TRACKING, "").partition(":")
    if rest.rpartition("/")[2] == metadata.name:
        return owner
    return metadata.labels.get(INSTANCE, "") if not rest else ""


def _steps(generator: Generator) -> tuple[tuple[Match, ...], ...]:
    strategy = (generator.spec.strategy if generator.spec else None) or _Strategy()
    rolling = strategy.rolling_sync if strategy.type == "RollingSync" else None
    steps = (rolling.steps if rolling else None) or []
    return tuple(tuple(_match(each) for each in step.match_expressions or ()) for step in steps)


def _match(expression: _Expression) -> Match:
    """An unknown operator matches nothing, as in Argo CD."""
    values = frozenset(expression.values or ()) if expression.operator in {"In", "NotIn"} else frozenset()
    return Match(expression.key or "", values, is_negated=expression.operator == "NotIn")
