"""Inventories of an Argo CD from a few lines of text."""

from __future__ import annotations

from typing import Any

from windlass.core.platform.drafting.ownership import FoundApplication, FoundSet, Inventory, Kind, Match, Thing
from windlass.core.platform.model.annotations import names_in


def app(name: str) -> Thing:
    """`name` or `namespace/name`."""
    namespace, _, short = name.rpartition("/")
    return Thing(Kind.APPLICATION, namespace or "argocd", short)


def appset(name: str) -> Thing:
    return app(name)._replace(kind=Kind.SET)


def step(*environments: str) -> tuple[Match, ...]:
    return (Match("env", frozenset(environments)),)


def inventory(text: str, *sets: FoundSet, **changes: Any) -> Inventory:
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
            FoundApplication(
                app(name),
                project=words.get("project", "default"),
                labels={"env": words["env"]} if "env" in words else {},
                wave=int(words.get("wave", 0)),
                owner=appset(words["of"]) if "of" in words else None,
                tracked_by=words.get("by", ""),
                lists=frozenset(appset(each[1:]) if each.startswith("*") else app(each) for each in listed),
                depends_on=names_in(words["says"]) if "says" in words else None,
            )
        )
    return Inventory(tuple(found), sets, **changes)
