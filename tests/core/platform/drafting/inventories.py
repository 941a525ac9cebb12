"""Inventories of an Argo CD from a few lines of text."""

from __future__ import annotations

from typing import Any

from windlass.core.platform.drafting.ownership import (
    ArgoInventory,
    ArgoKind,
    ArgoRef,
    LabelExpression,
    ObservedApplication,
    ObservedApplicationSet,
)
from windlass.core.platform.model.annotations import parse_names


def app(name: str) -> ArgoRef:
    """`name` or `namespace/name`."""
    namespace, _, short = name.rpartition("/")
    return ArgoRef(ArgoKind.APPLICATION, namespace or "argocd", short)


def appset(name: str) -> ArgoRef:
    return app(name)._replace(kind=ArgoKind.APPLICATION_SET)


def step(*environments: str) -> tuple[LabelExpression, ...]:
    return (LabelExpression("env", frozenset(environments)),)


def inventory(text: str, *sets: ObservedApplicationSet, **changes: Any) -> ArgoInventory:
    """One Application a line: `name key=value ...`.

    `wave`, `project`, `by` (the mark of its parent), `of` (its ApplicationSet), `env` (a label), `lists` (comma
    separated, sets with a star in front), `says` (the annotation).
    """
    found = []
    for line in text.strip().splitlines():
        name, *rest = line.split()
        words = dict(word.split("=") for word in rest)
        listed = [each for each in words.get("lists", "").split(",") if each]
        found.append(
            ObservedApplication(
                app(name),
                project=words.get("project", "default"),
                labels={"env": words["env"]} if "env" in words else {},
                sync_wave=int(words.get("wave", 0)),
                owner=appset(words["of"]) if "of" in words else None,
                tracked_by=words.get("by", ""),
                listed_children=frozenset(appset(each[1:]) if each.startswith("*") else app(each) for each in listed),
                depends_on=parse_names(words["says"]) if "says" in words else None,
            )
        )
    return ArgoInventory(tuple(found), sets, **changes)
