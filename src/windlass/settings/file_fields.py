"""Field types and the base model of the platform file and the environment file."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema
from pydantic.alias_generators import to_camel

from windlass.settings.durations import DURATION_PATTERN, parse_duration

Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "examples": ["90s", "10m", "1h30m"]}),
]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
Text = Annotated[str, StringConstraints(min_length=1)]


class FileModel(BaseModel):
    """A mapping in camel case. Unknown fields are errors; `null` is the same as a missing field."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True
    )


def schema_text(model: type[FileModel]) -> str:
    """The JSON Schema of a file, for editors. docs/schemas publishes it; a test compares the published file with it."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema()}
    return json.dumps(schema, indent=2) + "\n"


class RetriesEntry(FileModel):
    max_attempts: Annotated[int, Field(ge=1, le=100)] | None = None
    """Maximum number of attempts of a step."""
    backoff: Duration | None = None
    """Pause before the second attempt; it doubles for each further attempt."""
