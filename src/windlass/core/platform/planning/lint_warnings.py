"""Warnings about platforms that are valid but probably not intended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.platform.model.snapshots import ApplicationState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.snapshots import Snapshot

LintWarning = tuple[str, str]
"""The node, empty if the warning is not about one; and the message."""


def platform_warnings(platform: Platform) -> Iterator[LintWarning]:
    if not platform.applications:
        yield "", "the platform has no applications"
    elif not platform.managed_nodes:
        yield "", "`only` selects no application"
    yield from _isolated_stacks(platform)
    for name, application in platform.applications.items():
        timing = application.timing
        if timing.expected > timing.sync + timing.health:
            yield name, f"{name} is expected to take longer than its timeouts allow"
        if timing.stability > timing.health or not timing.health:
            yield name, f"{name} can never succeed: it must be healthy for longer than its health timeout"
        if name in platform.resource_nodes and not platform.graph.dependencies[name]:
            yield name, f"{name} is an object without dependencies: which application creates it?"


def redundant_dependencies(platform: Platform) -> Iterator[tuple[str, str, str]]:
    """(name, dependency, message) for each dependency that other dependencies already imply."""
    for name, dependency in platform.graph.implied_edges():
        yield name, dependency, f"{name} depends on {dependency} already, through other dependencies"


def automated_sync_warnings(platform: Platform, snapshot: Snapshot) -> Iterator[LintWarning]:
    """Applications with automated sync from a branch, tag or range: they may sync before their dependencies."""
    for name, state in sorted(snapshot.states.items()):
        if not isinstance(state, ApplicationState) or not platform.graph.dependencies.get(name):
            continue
        if state.is_automated and state.has_mutable_revision:
            refs = ", ".join(
                sorted({source.target_revision for source in state.sources if source.has_mutable_revision})
            )
            yield name, f"{name} syncs automatically from {refs}, which can move: it may sync before its dependencies"


def _isolated_stacks(platform: Platform) -> Iterator[LintWarning]:
    """Stacks without any dependency to or from another stack, if there are several stacks."""
    stack_of = {name: application.stack for name, application in platform.applications.items()}
    connected = {
        stack
        for name, needed in platform.graph.dependencies.items()
        for dependency in needed
        if stack_of[name] != stack_of[dependency]
        for stack in (stack_of[name], stack_of[dependency])
    }
    populated = [stack.name for stack in platform.stacks if stack.applications]
    if len(populated) > 1:
        for stack in populated:
            if stack not in connected:
                yield "", f"stack {stack} has no dependency on another stack, and none depends on it"
