"""`windlass config`: every effective setting with its origin, as text or JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windlass.settings.settings import EffectiveValue


def text(values: Sequence[EffectiveValue]) -> str:
    rows = [(each.name, _value_text(each.value), each.origin) for each in values]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(f"{name:<{widths[0]}}  {value:<{widths[1]}}  {origin}" for name, value, origin in rows)


def document(values: Sequence[EffectiveValue]) -> str:
    rows = [{"name": each.name, "value": each.value, "origin": each.origin} for each in values]
    return json.dumps({"apiVersion": "windlass.dev/v1alpha1", "kind": "Settings", "settings": rows}, indent=2)


def _value_text(value: str | int | bool | None) -> str:
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
