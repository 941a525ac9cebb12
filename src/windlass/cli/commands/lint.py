"""`windlass lint`: checks of the platform file and the environment file that need no cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.platform.planning.lint_warnings import platform_warnings, redundant_dependencies
from windlass.settings.platforms import REFERENCE_SOURCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.settings.loader import Settings


def lint_report(settings: Settings) -> Iterator[str]:
    """Output for valid files: warnings and notices first, then a summary of what was loaded."""
    warnings = sorted(_warnings(settings))
    yield from (f"{location}: warning: {what}" if location else f"warning: {what}" for location, what in warnings)
    yield from (f"notice: {notice}" for notice in settings.mounts.notices)
    if settings.environment_file is not None:
        yield f"environment {settings.environment_file.model.name}: {settings.environment_file.positions.source}"
    platform = settings.definition.platform
    edges = sum(map(len, platform.graph.dependencies.values()))
    selection = (
        f", {len(platform.managed_nodes)} selected" if len(platform.managed_nodes) < len(platform.applications) else ""
    )
    yield (
        f"platform {platform.name}: {len(platform.applications)} applications{selection} "
        f"in {len(platform.stacks)} stacks, {edges} dependencies, {len(platform.graph.waves)} waves; "
        f"no mistakes, {len(warnings)} warnings"
    )


def _warnings(settings: Settings) -> Iterator[tuple[str, str]]:
    """Location and message. Implied dependencies of the embedded platform are left out: users cannot edit it."""
    definition = settings.definition
    for name, what in platform_warnings(definition.platform):
        yield definition.locations.get(name, ""), what
    for name in definition.without_profile:
        yield definition.locations[name], f"{name} has no profile: the limits of simple applications hold"
    for name, dependency, what in redundant_dependencies(definition.platform):
        location = definition.edge_locations.get((name, dependency), REFERENCE_SOURCE)
        if not location.startswith(REFERENCE_SOURCE):
            yield location, what
