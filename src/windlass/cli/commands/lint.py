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


@click.command()
@setting_options(*FILE_SETTINGS)
@click.pass_obj
def lint(source: SettingsSource, /, **options: Any) -> None:
    """Check the platform file and the environment file; no cluster is needed. Mistakes end in 3."""
    for line in _lint_report(source.settings(options)):
        print_text(line)


def _lint_report(settings: Settings) -> Iterator[str]:
    """Output for valid files: warnings and notices first, then a summary of what was loaded."""
    warnings = sorted(_warnings(settings))
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
        f"platform {platform.name}: {len(platform.applications)} applications{selection} "
        f"in {len(platform.stacks)} stacks, {edges} dependencies, {len(platform.graph.waves)} waves; "
        f"no mistakes, {len(warnings)} warnings"
    )


def _warnings(settings: Settings) -> Iterator[tuple[str, str]]:
    """Location and message. Implied dependencies of the embedded platform are left out: users cannot edit it."""
    from windlass.core.platform.planning.lint_warnings import (  # noqa: PLC0415
        platform_warnings,
        redundant_dependencies,
    )
    from windlass.settings.platforms import REFERENCE_SOURCE  # noqa: PLC0415 - loads pydantic

    definition = settings.definition
    for name, what in platform_warnings(definition.platform):
        yield definition.locations.get(name, ""), what
    for name in definition.without_profile:
        yield definition.locations[name], f"{name} has no profile: the limits of simple applications hold"
    for name, dependency, what in redundant_dependencies(definition.platform):
        location = definition.edge_locations.get((name, dependency), REFERENCE_SOURCE)
        if not location.startswith(REFERENCE_SOURCE):
            yield location, what
