"""Warnings about platforms that are valid but probably not intended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.platform.model.snapshots import ApplicationState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.snapshots import Snapshot

Suspicion = tuple[str, str]
"""The node, empty if the warning is not about one; and the message."""


def suspicions(platform: Platform) -> Iterator[Suspicion]:
    if not platform.applications:
        yield "", "the platform has no applications"
    elif not platform.subset:
        yield "", "`only` selects nothing: nothing would ever be done"
    yield from _isolated_stacks(platform)
    for name, application in platform.applications.items():
        patience = application.patience
        if patience.expected > patience.sync + patience.health:
            yield name, f"{name} is expected to take longer than it may"
        if name in platform.resource_nodes and not platform.graph.needs[name]:
            yield name, f"{name} is a resource that waits for nothing: who makes it?"


def implied(platform: Platform) -> Iterator[tuple[str, str, str]]:
    """(name, dependency, message) for each dependency that other dependencies already imply."""
    for name, dependency in platform.graph.implied_edges():
        yield name, dependency, f"{name} waits for {dependency} anyway, through others"


def out_of_order(platform: Platform, snapshot: Snapshot) -> Iterator[Suspicion]:
    """Applications with automated sync from a branch, tag or range: they may sync before their dependencies."""
    for name, state in sorted(snapshot.states.items()):
        if not isinstance(state, ApplicationState) or not platform.graph.needs.get(name):
            continue
        if state.is_automated and state.is_moving:
            refs = ", ".join(sorted({source.target_revision for source in state.sources if source.is_moving}))
            yield name, f"{name} syncs itself from {refs}, which moves: it may go ahead of what it waits for"


def _isolated_stacks(platform: Platform) -> Iterator[Suspicion]:
    """Stacks without any dependency to or from another stack, if there are several stacks."""
    stack_of = {name: application.stack for name, application in platform.applications.items()}
    joined = {
        stack
        for name, needed in platform.graph.needs.items()
        for dependency in needed
        if stack_of[name] != stack_of[dependency]
        for stack in (stack_of[name], stack_of[dependency])
    }
    populated = [stack.name for stack in platform.stacks if stack.applications]
    if len(populated) > 1:
        for stack in populated:
            if stack not in joined:
                yield "", f"stack {stack} neither waits for another stack nor is waited for"
