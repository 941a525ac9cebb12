"""Which PersistentVolumeClaims and PersistentVolumes a teardown affects, and what happens to them. Pure functions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

Place = tuple[str, str]
"""Namespace and name."""


class Policy(StrEnum):
    RETAIN = "retain"
    DELETE = "delete"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True)
class Claim:
    place: Place
    uid: str


@dataclass(frozen=True, slots=True)
class Template:
    """A volumeClaimTemplate of a StatefulSet, from which each of its pods gets a claim."""

    name: str
    set_name: str
    namespace: str

    def made(self, place: Place) -> bool:
        head = f"{self.name}-{self.set_name}-"
        return place[0] == self.namespace and re.fullmatch(re.escape(head) + r"\d+", place[1]) is not None


@dataclass(frozen=True, slots=True)
class Volume:
    name: str
    claim: Place
    is_retained: bool
    """Its reclaim policy is Retain: the volume and its data outlive the claim."""
    driver: str = ""


@dataclass(frozen=True, slots=True)
class Meant:
    """The claims that a teardown affects."""

    claims: frozenset[Place]
    """Claims that the removed Applications manage."""
    templates: tuple[Template, ...]
    """Templates of their StatefulSets."""
    namespaces: frozenset[str]
    """Namespaces that only they use: every claim in these is affected."""


def foretold(policy: Policy, volumes: Iterable[Volume]) -> list[str]:
    """One line per volume: what a teardown with this policy does to it."""
    words = {
        Policy.RETAIN: "is retained",
        Policy.DELETE: "goes, and its data with it",
        Policy.SNAPSHOT: "goes after a snapshot of it is ready",
    }
    kept = "stays, for its own reclaim policy is Retain"
    return [
        f"PersistentVolume {each.name} of claim {'/'.join(each.claim)} "
        f"{kept if each.is_retained and policy is not Policy.RETAIN else words[policy]}"
        for each in volumes
    ]


def claims_of_sets(claims: Iterable[Claim], templates: Collection[Template]) -> tuple[Claim, ...]:
    """Claims created from these templates. Kubernetes does not delete them with their StatefulSet."""
    return tuple(claim for claim in claims if any(template.made(claim.place) for template in templates))


def endangered(claims: Iterable[Claim], volumes: Iterable[Volume], meant: Meant) -> tuple[Volume, ...]:
    """Those of the bound volumes whose claim is deleted, or may be deleted with its namespace."""
    theirs = {claim.place for claim in claims_of_sets(claims, meant.templates)} | meant.claims
    return tuple(each for each in volumes if each.claim in theirs or each.claim[0] in meant.namespaces)


def class_for(driver: str, classes: Collection[tuple[str, str, bool]]) -> str:
    """The VolumeSnapshotClass of a driver, preferably the default; empty if there is none.

    `classes` are (name, driver, is default).
    """
    fitting = sorted((not is_default, name) for name, of, is_default in classes if of == driver)
    return fitting[0][1] if fitting else ""
