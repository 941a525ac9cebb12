"""`windlass lint`: checks of the platform file and the environment file that need no cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windlass.cli.options import FILE_SETTINGS, setting_options
from windlass.cli.printed_lines import print_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.settings.settings import Settings
    from windlass.settings.source import SettingsSource

SIMILARITY = 0.75  # of a new name to one of the reference platform that was probably meant


@click.command()
@setting_options(*FILE_SETTINGS)
@click.pass_obj
def lint(source: SettingsSource, /, **options: Any) -> None:
    """Check the platform and environment files.

    No cluster is needed. Exit codes: 0 no errors, 3 errors.
    """
    for line in _lint_report(source.settings(options)):
        print_text(line)


def _lint_report(settings: Settings) -> Iterator[str]:
    """Output for valid files: warnings and notices first, then a summary of what was loaded."""
    from windlass.core.platform.reporting.text_layout import pluralize  # noqa: PLC0415

    warnings = sorted(_warnings(settings), key=lambda warning: (_place(warning[0]), warning[1]))
    yield from (f"{location}: warning: {what}" if location else f"warning: {what}" for location, what in warnings)
    yield from (f"notice: {notice}" for notice in settings.cluster.mounts.notices)
    if settings.environment_path:
        yield f"environment {settings.environment_name}: {settings.environment_path}"
    platform = settings.platform
    edges = sum(map(len, platform.graph.dependencies.values()))
    selection = (
        f", {len(platform.managed_nodes)} selected" if len(platform.managed_nodes) < len(platform.applications) else ""
    )
    yield (
        f"platform {platform.name}: {pluralize(len(platform.applications), 'application')}{selection} "
        f"in {pluralize(len(platform.stacks), 'stack')}, {pluralize(edges, 'dependency', 'dependencies')}, "
        f"{pluralize(len(platform.graph.waves), 'wave')}; no errors, {pluralize(len(warnings), 'warning')}"
    )


def _place(location: str) -> tuple[str, tuple[int, ...]]:
    """Sort key of `FILE:LINE:COLUMN`: line 14 comes before line 134."""
    file, *numbers = location.rsplit(":", 2)
    return (file, tuple(map(int, numbers))) if all(map(str.isdigit, numbers)) else (location, ())


def _warnings(settings: Settings) -> Iterator[tuple[str, str]]:
    """Location and message. Implied dependencies of the embedded platform are left out: users cannot edit it."""
    from windlass.core.platform.model.suggestions import similar_name  # noqa: PLC0415
    from windlass.core.platform.planning.lint_warnings import (  # noqa: PLC0415
        platform_warnings,
        redundant_dependencies,
    )
    from windlass.settings.platforms import REFERENCE_SOURCE, reference_names  # noqa: PLC0415 - loads pydantic

    definition = settings.definition
    for name, what in platform_warnings(definition.platform):
        yield definition.locations.get(name, ""), what
    similar = {
        name: hint for name in definition.added_nodes if (hint := similar_name(name, reference_names(), SIMILARITY))
    }
    for name, other in similar.items():
        what = f"{name} is not in the reference platform, so it is added as new; did you mean {other}?"
        yield definition.locations[name], what
    for name in definition.without_profile:
        if name not in similar:
            yield definition.locations[name], f"{name} has no profile: the timeouts of profile simple apply"
    for name, dependency, what in redundant_dependencies(definition.platform):
        location = definition.edge_locations.get((name, dependency), REFERENCE_SOURCE)
        if not location.startswith(REFERENCE_SOURCE):
            yield location, what
