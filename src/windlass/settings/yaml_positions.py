"""YAML files checked against a model, with the position of every value: each problem names its line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pydantic
import yaml

from windlass.core.platform.model.suggestions import did_you_mean
from windlass.errors import InvalidInput
from windlass.kube import yaml_documents
from windlass.printable_text import one_line
from windlass.settings.problems import SettingsProblem, problem_from_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

Model = TypeVar("Model", bound=pydantic.BaseModel)
FieldPath = tuple[str | int, ...]
MAX_NAME = 100  # characters of an invalid name that are shown

_Loader: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class YamlPositions:
    """Positions of the values of a YAML file.

    Values that come from an alias or a merge key have the position of the node that uses it.
    """

    source: str
    content: bytes

    def position(self, path: FieldPath) -> tuple[int, int]:
        """Line and column, counted from 1. A missing value has the position of its nearest existing parent."""
        while path not in self._positions and path:
            path = path[:-1]
        return self._positions[path]

    def location(self, path: FieldPath) -> str:
        line, column = self.position(path)
        return f"{self.source}:{line}:{column}"

    @cached_property
    def _positions(self) -> Mapping[FieldPath, tuple[int, int]]:
        positions: dict[FieldPath, tuple[int, int]] = {}
        root = yaml.compose(self.content, Loader=_Loader)
        queue: list[tuple[FieldPath, yaml.Node, yaml.Node]] = [((), root, root)]
        while queue:
            path, marked, node = queue.pop()
            positions[path] = (marked.start_mark.line + 1, marked.start_mark.column + 1)
            if isinstance(node, yaml.MappingNode):
                queue += [((*path, key.value), key, value) for key, value in node.value if key.value != "<<"]
            elif isinstance(node, yaml.SequenceNode):
                queue += [((*path, index), item, item) for index, item in enumerate(node.value)]
        return positions


@dataclass(frozen=True, slots=True)
class ParsedFile(Generic[Model]):
    """The content of a file, with the positions of its values."""

    model: Model
    positions: YamlPositions
    problems: tuple[SettingsProblem, ...] = ()
    """Unknown fields, which the model leaves out, so that the rest of the file can be checked as well."""


def parse_file(content: bytes, source: str, model: type[Model]) -> ParsedFile[Model] | list[SettingsProblem]:
    try:
        value = yaml_documents.load(content, source)
    except InvalidInput as error:
        return [problem_from_error(error)]
    if value is None:
        return [SettingsProblem(source, "the file is empty")]
    positions = YamlPositions(source, content)
    try:
        return ParsedFile(model.model_validate(value), positions)
    except pydantic.ValidationError as errors:
        details = sorted(errors.errors(include_url=False), key=lambda each: positions.position(each["loc"]))
    schema = model.model_json_schema()
    problems = [_problem(each, positions, schema) for each in details]
    if any(each["type"] != "extra_forbidden" for each in details):
        return problems
    for each in details:
        _remove_field(value, tuple(each["loc"]))
    return ParsedFile(model.model_validate(value), positions, tuple(problems))


def _remove_field(value: Any, path: FieldPath) -> None:
    for part in path[:-1]:
        value = value[part]
    value.pop(path[-1], None)  # aliases share one mapping, from which it may be gone


def _problem(  # noqa: PLR0911 - one return per type of error
    error: ErrorDetails, positions: YamlPositions, schema: Mapping[str, Any]
) -> SettingsProblem:
    path = tuple(error["loc"])
    name = ".".join(map(str, path))
    location = positions.location(path)
    match error["type"]:
        case "extra_forbidden":
            return SettingsProblem(
                location, f"unknown field {name}", did_you_mean(str(path[-1]), _known_fields(schema, path[:-1]))
            )
        case "missing":
            return SettingsProblem(location, f"{name} is missing")
        case "model_type" | "dict_type":
            return SettingsProblem(location, f"{name} must be a mapping" if name else "must be a mapping")
        case "string_pattern_mismatch":
            return SettingsProblem(location, *_name_problem(name, str(error["input"])))
        case "string_too_short":
            return SettingsProblem(location, f"{name} must not be empty")
        case "string_type" if isinstance(error["input"], bool | int | float):
            return SettingsProblem(
                location, f"{name} must be a text", "put it in quotes: bare, YAML reads it as something else"
            )
        case _:
            message = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
            return SettingsProblem(location, f"{name} {message}" if name else message)


def _name_problem(field: str, value: str) -> tuple[str, str]:
    """Problem and hint for a name that does not match the pattern of names."""
    valid = re.sub("[^a-z0-9.-]+", "-", value[:MAX_NAME].lower()).strip("-.")
    what = f"{field} {one_line(value[:MAX_NAME])!r} is not a name: use lower-case letters, digits, '-' and '.'"
    return what, f"try {valid!r}" if valid else ""


def _known_fields(schema: Mapping[str, Any], path: FieldPath) -> list[str]:
    """The fields that a mapping at this path may have."""
    here = schema
    for part in path:
        here = _resolve_schema(schema, here)
        here = here.get("items", {}) if isinstance(part, int) else _property_schema(here, part)
    return list(_resolve_schema(schema, here).get("properties", {}))


def _property_schema(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    by_pattern = schema.get("patternProperties", {}).values()
    schema_part: Mapping[str, Any] = schema.get("properties", {}).get(name) or next(iter(by_pattern), {})
    return schema_part


def _resolve_schema(schema: Mapping[str, Any], here: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a `$ref`, and choose the other alternative of a nullable type."""
    for choice in here.get("anyOf", []):
        if choice.get("type") != "null":
            here = choice
    if "$ref" in here:
        here = schema["$defs"][here["$ref"].rpartition("/")[2]]
    return here
