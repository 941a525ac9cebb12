"""Every value of the configuration with its origin, for `windlass config`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.settings.durations import render_duration
from windlass.settings.platforms import REFERENCE_SOURCE
from windlass.settings.settings import EffectiveValue

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from windlass.settings.environment_files import EnvironmentFile
    from windlass.settings.file_fields import FileModel
    from windlass.settings.mounts import Mounts
    from windlass.settings.platform_files import PlatformFile
    from windlass.settings.platforms import PlatformDefinition
    from windlass.settings.variables import SettingValue
    from windlass.settings.yaml_positions import FieldPath, ParsedFile, YamlPositions

MASK = "***"


def effective_values(
    values: Mapping[str, SettingValue],
    environment_file: ParsedFile[EnvironmentFile] | None,
    mounts: Mounts,
    definition: PlatformDefinition,
    platform_file: ParsedFile[PlatformFile] | None,
) -> Iterator[EffectiveValue]:
    yield from setting_values(values)
    if environment_file is not None:
        yield from _fields(environment_file.model, environment_file.positions, (), "environment")
    for name, path in mounts.secrets.items():
        yield EffectiveValue(f"secret.{name}", MASK, str(path))
    for (group, kind), path in mounts.health_checks.items():
        yield EffectiveValue(f"health-check.{group}/{kind}", path.name, str(path))
    platform = definition.platform
    origin = platform_file.positions.source if platform_file else REFERENCE_SOURCE
    yield EffectiveValue("platform.name", platform.name, origin)
    yield EffectiveValue("platform.applications", len(platform.applications), origin)
    yield EffectiveValue("platform.selected", len(platform.managed_nodes), origin)
    yield EffectiveValue("platform.maxParallel", platform.max_parallel, origin)
    yield EffectiveValue("platform.barrier", str(platform.barrier), origin)


def setting_values(values: Mapping[str, SettingValue]) -> Iterator[EffectiveValue]:
    """Options, variables and defaults."""
    for name, value in values.items():
        shown = MASK if value.setting.is_secret and value.value is not None else _plain_value(value.value)
        yield EffectiveValue(name, shown, value.origin if value.value is not None else "not set")


def _fields(model: FileModel, positions: YamlPositions, path: FieldPath, prefix: str) -> Iterator[EffectiveValue]:
    for name, field in type(model).model_fields.items():
        key, value = field.alias or name, getattr(model, name)
        if hasattr(value, "model_fields_set"):
            yield from _fields(value, positions, (*path, key), f"{prefix}.{key}")
        elif value is not None:
            origin = positions.location((*path, key)) if name in model.model_fields_set else "default"
            yield EffectiveValue(f"{prefix}.{key}", _plain_value(value), origin)


def _plain_value(value: object) -> str | int | bool | None:
    if isinstance(value, timedelta):
        return render_duration(value)
    return value if isinstance(value, bool | int | None) else str(value)
