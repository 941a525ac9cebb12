"""Small worlds written as text: `graph("keycloak: postgres vault")`, `snapshot("vault=degraded")`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from windlass.core.platform.model.applications import (
    ApplicationNode,
    ApplicationRef,
    NodeTiming,
    Platform,
    ResourceRef,
    Stack,
)
from windlass.core.platform.model.graphs import Graph
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import (
    ApplicationState,
    NodeState,
    Operation,
    OperationPhase,
    Snapshot,
    Source,
    SyncStatus,
)
from windlass.kube.decoding import ObjectDecoders
from windlass.kube.redactions import Redactor

T = TypeVar("T")
NOW = datetime(2026, 11, 15, 21, 0, 0, tzinfo=UTC)
OLD, NEW = "0" * 40, "1" * 40


def typed_object(item: Any, into: type[T]) -> T:
    """A decoded object as a reader without secrets makes it."""
    return ObjectDecoders(Redactor().message).convert(item, into)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def at(number: float) -> datetime:
    """So many seconds after NOW."""
    return NOW + seconds(number)


def needs(text: str) -> dict[str, list[str]]:
    """Lines, or parts between semicolons: a name, a colon, what it waits for. What is only waited for exists, too."""
    found: dict[str, list[str]] = {}
    for line in text.replace(";", "\n").splitlines():
        name, _, dependencies = line.partition(":")
        if name.strip():
            found.setdefault(name.strip(), []).extend(dependencies.split())
    for dependency in [name for names in found.values() for name in names]:
        found.setdefault(dependency, [])
    return found


def graph(text: str) -> Graph:
    return Graph.build(needs(text))


def platform(text: str, **changes: Any) -> Platform:
    """One stack `all`. A name with a star is critical, one with a plus is a resource node; `minutes` by name."""
    minutes: dict[str, float] = changes.pop("minutes", {})
    marked = needs(text)
    plain = {name.strip("*+"): [other.strip("*+") for other in others] for name, others in marked.items()}
    applications = {
        name: ApplicationNode(
            name,
            "all",
            ResourceRef("v1", "Thing", name, "things") if f"{name}+" in marked else ApplicationRef(name),
            critical=f"{name}*" in marked,
            timing=NodeTiming(expected=timedelta(minutes=minutes.get(name, 1))),
        )
        for name in plain
    }
    stacks = (Stack("all", tuple(sorted(plain))), Stack("empty"))
    made = Platform("test", stacks, applications, Graph.build(plain), frozenset(plain))
    return replace(made, **changes)


def source(revision: str = NEW, **changes: Any) -> Source:
    return replace(Source(revision, fingerprint=f"apps@{revision}"), **changes)


def operation(phase: OperationPhase = OperationPhase.SUCCEEDED, **changes: Any) -> Operation:
    finished = None if phase in {OperationPhase.RUNNING, OperationPhase.TERMINATING} else at(-60)
    made = Operation(phase, started_at=at(-62), finished_at=finished, revisions=(NEW,), run_id="run-0")
    return replace(made, **changes)


def state(health: Health = Health.HEALTHY, **changes: Any) -> ApplicationState:
    """In sync at NEW, by an operation of a minute ago."""
    made = ApplicationState(
        revisions=(NEW,),
        sync=SyncStatus.SYNCED,
        health=health,
        sources=(source(),),
        compared_sources=(source(),),
        operation=operation(),
        reconciled_at=at(-59),
    )
    return replace(made, **changes)


def snapshot(text: str = "", **states: NodeState) -> Snapshot:
    """`vault=degraded postgres=healthy`; what is not named is absent."""
    words = dict(word.split("=") for word in text.split())
    found: dict[str, NodeState] = {name: state(Health(word.capitalize())) for name, word in words.items()}
    return Snapshot(NOW, found | states)
