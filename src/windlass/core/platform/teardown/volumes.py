"""Which PersistentVolumeClaims and PersistentVolumes a teardown affects, and what happens to them. Pure functions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

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
    owner_uids: tuple[str, ...] = ()
    volume: str = ""
    """Name of its volume; empty as long as it is not bound."""
    is_kept: bool = False
    """Its annotations exclude it from deletion."""


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
class RetentionMark:
    """What an earlier teardown wrote on a volume when it changed its reclaim policy to Retain."""

    application: ObjectKey
    claim_uid: str
    previous_policy: str


@dataclass(frozen=True, slots=True)
class Volume:
    name: str
    claim: ObjectKey
    is_retained: bool
    """Its reclaim policy is Retain: the volume and its data outlive the claim."""
    driver: str = ""
    claim_uid: str = ""
    mark: RetentionMark | None = None
    is_bound: bool = True
    policy: str = ""
    """Its reclaim policy."""

    @property
    def is_retained_by_us(self) -> bool:
        """Retained by an earlier teardown, and not used by another claim since."""
        return self.is_retained and self.mark is not None and self.mark.claim_uid == self.claim_uid

    @property
    def description(self) -> str:
        return f"PersistentVolume {self.name} of claim {'/'.join(self.claim)}"


@dataclass(frozen=True, slots=True)
class ClaimSelection:
    """The claims of one Application that is removed."""

    claims: frozenset[ObjectKey] = frozenset()
    """Claims that it manages."""
    used: frozenset[ObjectKey] = frozenset()
    """Claims that its pods use."""
    templates: tuple[ClaimTemplate, ...] = ()
    """Templates of its StatefulSets."""
    owner_uids: frozenset[str] = frozenset()
    """Objects that it owns, directly or through other objects: their claims are its claims."""
    namespaces: frozenset[str] = frozenset()
    """Namespaces that only removed Applications use: every claim in these is affected."""

    def merge(self, other: ClaimSelection) -> ClaimSelection:
        return ClaimSelection(
            self.claims | other.claims,
            self.used | other.used,
            tuple(dict.fromkeys((*self.templates, *other.templates))),
            self.owner_uids | other.owner_uids,
            self.namespaces | other.namespaces,
        )

    def manages(self, claim: VolumeClaim) -> bool:
        """Whether only a deletion of the claim itself deletes it, once the Application is gone."""
        return claim.key in self.claims or (claim.uid in self.owner_uids and not claim.owner_uids)

    def owns(self, claim: VolumeClaim) -> bool:
        return (
            claim.key in self.claims | self.used
            or not self.owner_uids.isdisjoint((claim.uid, *claim.owner_uids))
            or any(template.matches(claim.key) for template in self.templates)
        )

    def affects(self, claim: VolumeClaim) -> bool:
        return self.owns(claim) or claim.key[0] in self.namespaces


def volume_notices(policy: VolumePolicy, volumes: Iterable[Volume]) -> list[str]:
    """One line per volume: what a teardown with this policy does to it."""
    effects = {
        VolumePolicy.RETAIN: "is retained",
        VolumePolicy.DELETE: "is deleted with its data",
        VolumePolicy.SNAPSHOT: "is deleted after its snapshot is ready",
    }
    retained = "is kept: its own reclaim policy is Retain"

    def effect(volume: Volume) -> str:
        is_deleted = policy is VolumePolicy.DELETE and volume.is_retained_by_us
        stays = volume.is_retained and policy is not VolumePolicy.RETAIN and not is_deleted
        return retained if stays else effects[policy]

    return [f"{each.description} {effect(each)}" for each in volumes]


def abandoned_claims(
    claims: Iterable[VolumeClaim], selections: Iterable[ClaimSelection], living: Collection[ClaimTemplate]
) -> tuple[VolumeClaim, ...]:
    """Claims that nothing deletes, now that their Applications are gone.

    These are claims of StatefulSets, which Kubernetes leaves behind, and claims that the Applications managed; not
    those of StatefulSets that exist (`living`: their templates), and not those that are marked to be kept.
    """
    chosen = tuple(selections)
    return tuple(
        claim
        for claim in claims
        if not claim.is_kept
        and not any(template.matches(claim.key) for template in living)
        and any(each.manages(claim) or any(t.matches(claim.key) for t in each.templates) for each in chosen)
    )


def reclaimable_volumes(
    volumes: Iterable[Volume], applications: Collection[ObjectKey], in_use: Collection[ObjectKey]
) -> tuple[Volume, ...]:
    """Volumes that an earlier teardown retained for these Applications, and whose claim is not in use."""
    return tuple(
        each
        for each in volumes
        if each.is_retained_by_us and each.mark and each.mark.application in applications and each.claim not in in_use
    )


def claim_applications(
    claims: Iterable[VolumeClaim], selections: Mapping[ObjectKey, ClaimSelection]
) -> dict[ObjectKey, ObjectKey]:
    """The affected claims, each with the Application that owns it or, failing that, uses its namespace."""
    applications: dict[ObjectKey, ObjectKey] = {}
    for claim in claims:
        owners = [key for key, each in selections.items() if each.owns(claim)]
        owners += [key for key, each in selections.items() if each.affects(claim)]
        if owners:
            applications[claim.key] = owners[0]
    return applications


def snapshot_class(driver: str, classes: Collection[tuple[str, str, bool]]) -> str:
    """The VolumeSnapshotClass of a driver, preferably the default; empty if there is none.

    `classes` are (name, driver, is default).
    """
    matching = sorted((not is_default, name) for name, of, is_default in classes if of == driver)
    return matching[0][1] if matching else ""
