"""`windlass lint`: checks of the platform file and the environment file that need no cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.core.platform.planning.lint_warnings import implied, suspicions
from windlass.settings.platforms import REFERENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.settings.loader import Settings


def lines(settings: Settings) -> Iterator[str]:
    """Output for valid files: warnings and notices first, then a summary of what was loaded."""
    warnings = sorted(_warnings(settings))
    yield from (f"{place}: warning: {what}" if place else f"warning: {what}" for place, what in warnings)
    yield from (f"notice: {notice}" for notice in settings.mounts.notices)
    if settings.environment is not None:
        yield f"environment {settings.environment.model.name}: {settings.environment.marks.where}"
    platform = settings.assembled.platform
    edges = sum(map(len, platform.graph.needs.values()))
    part = f", {len(platform.subset)} selected" if len(platform.subset) < len(platform.applications) else ""
    yield (
        f"platform {platform.name}: {len(platform.applications)} applications{part} in {len(platform.stacks)} stacks, "
        f"{edges} dependencies, {len(platform.graph.waves)} waves; no mistakes, {len(warnings)} warnings"
    )


def _warnings(settings: Settings) -> Iterator[tuple[str, str]]:
    """Location and message. Implied dependencies of the embedded platform are left out: users cannot edit it."""
    found = settings.assembled
    for name, what in suspicions(found.platform):
        yield found.places.get(name, ""), what
    for name in found.without_profile:
        yield found.places[name], f"{name} has no profile: the limits of simple applications hold"
    for name, dependency, what in implied(found.platform):
        place = found.edge_places.get((name, dependency), REFERENCE)
        if not place.startswith(REFERENCE):
            yield place, what
