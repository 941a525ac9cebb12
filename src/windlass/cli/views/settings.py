"""`windlass config`: every effective setting with its origin, as text or JSON. Secrets are masked."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from windlass.settings.durations import render_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from windlass.settings.file_fields import FileModel
    from windlass.settings.loader import Settings
    from windlass.settings.yaml_positions import FieldPath, YamlPositions

MASK = "***"
Row = tuple[str, Any, str]
"""Name, value, origin."""


def text(settings: Settings) -> str:
    rows = [(name, _value_text(value), origin) for name, value, origin in _rows(settings)]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"{name:<{widths[0]}}  {value:<{widths[1]}}  {origin}" for name, value, origin in rows)


def document(settings: Settings) -> str:
    rows = [{"name": name, "value": value, "origin": origin} for name, value, origin in _rows(settings)]
    return json.dumps({"apiVersion": "windlass.dev/v1alpha1", "kind": "Settings", "settings": rows}, indent=2)


def _rows(settings: Settings) -> Iterator[Row]:
    for name, value in settings.values.items():
        shown = MASK if value.setting.is_secret and value.value is not None else _json_value(value.value)
        yield name, shown, value.origin if value.value is not None else "not set"
    if settings.environment_file is not None:
        yield from _fields(settings.environment_file.model, settings.environment_file.positions, (), "environment")
    for name, path in settings.mounts.secrets.items():
        yield f"secret.{name}", MASK, str(path)
    for (group, kind), path in settings.mounts.health_checks.items():
        yield f"health-check.{group}/{kind}", path.name, str(path)
    platform = settings.definition.platform
    origin = settings.platform_file.positions.source if settings.platform_file else "reference platform"
    yield "platform.name", platform.name, origin
    yield "platform.applications", len(platform.applications), origin
    yield "platform.selected", len(platform.managed_nodes), origin
    yield "platform.maxParallel", platform.max_parallel, origin
    yield "platform.barrier", str(platform.barrier), origin


def _fields(model: FileModel, positions: YamlPositions, path: FieldPath, prefix: str) -> Iterator[Row]:
    for name, field in type(model).model_fields.items():
        key, value = field.alias or name, getattr(model, name)
        if hasattr(value, "model_fields_set"):
            yield from _fields(value, positions, (*path, key), f"{prefix}.{key}")
        elif value is not None:
            origin = positions.location((*path, key)) if name in model.model_fields_set else "default"
            yield f"{prefix}.{key}", _json_value(value), origin


def _json_value(value: object) -> object:
    if isinstance(value, timedelta):
        return render_duration(value)
    return value if isinstance(value, bool | int | None) else str(value)


def _value_text(value: object) -> str:
    literals: Mapping[object, str] = {None: "-", True: "true", False: "false"}
    return literals[value] if value is None or isinstance(value, bool) else str(value)
