"""Which PersistentVolumeClaims and PersistentVolumes a teardown affects, and what happens to them. Pure functions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

ObjectKey = tuple[str, str]
"""Namespace and name."""


class VolumePolicy(StrEnum):
    RETAIN = "retain"
    DELETE = "delete"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    key: ObjectKey
    uid: str


@dataclass(frozen=True, slots=True)
class ClaimTemplate:
    """A volumeClaimTemplate of a StatefulSet, from which each of its pods gets a claim."""

    name: str
    stateful_set: str
    namespace: str

    def matches(self, key: ObjectKey) -> bool:
        prefix = f"{self.name}-{self.stateful_set}-"
        return key[0] == self.namespace and re.fullmatch(re.escape(prefix) + r"\d+", key[1]) is not None


@dataclass(frozen=True, slots=True)
class Volume:
    name: str
    claim: ObjectKey
    is_retained: bool
    """Its reclaim policy is Retain: the volume and its data outlive the claim."""
    driver: str = ""


@dataclass(frozen=True, slots=True)
class ClaimSelection:
    """The claims that a teardown affects."""

    claims: frozenset[ObjectKey]
    """Claims that the removed Applications manage."""
    templates: tuple[ClaimTemplate, ...]
    """Templates of their StatefulSets."""
    namespaces: frozenset[str]
    """Namespaces that only they use: every claim in these is affected."""


def volume_notices(policy: VolumePolicy, volumes: Iterable[Volume]) -> list[str]:
    """One line per volume: what a teardown with this policy does to it."""
    effects = {
        VolumePolicy.RETAIN: "is retained",
        VolumePolicy.DELETE: "goes, and its data with it",
        VolumePolicy.SNAPSHOT: "goes after a snapshot of it is ready",
    }
    retained = "stays, for its own reclaim policy is Retain"
    return [
        f"PersistentVolume {each.name} of claim {'/'.join(each.claim)} "
        f"{retained if each.is_retained and policy is not VolumePolicy.RETAIN else effects[policy]}"
        for each in volumes
    ]


def stateful_set_claims(claims: Iterable[VolumeClaim], templates: Collection[ClaimTemplate]) -> tuple[VolumeClaim, ...]:
    """Claims created from these templates. Kubernetes does not delete them with their StatefulSet."""
    return tuple(claim for claim in claims if any(template.matches(claim.key) for template in templates))


def affected_volumes(
    claims: Iterable[VolumeClaim], volumes: Iterable[Volume], selection: ClaimSelection
) -> tuple[Volume, ...]:
    """Those of the bound volumes whose claim is deleted, or may be deleted with its namespace."""
    claim_keys = {claim.key for claim in stateful_set_claims(claims, selection.templates)} | selection.claims
    return tuple(each for each in volumes if each.claim in claim_keys or each.claim[0] in selection.namespaces)


def snapshot_class(driver: str, classes: Collection[tuple[str, str, bool]]) -> str:
    """The VolumeSnapshotClass of a driver, preferably the default; empty if there is none.

    `classes` are (name, driver, is default).
    """
    matching = sorted((not is_default, name) for name, of, is_default in classes if of == driver)
    return matching[0][1] if matching else ""
