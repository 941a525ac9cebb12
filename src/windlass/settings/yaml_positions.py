"""YAML files checked against a model, with the position of every value: each problem names its line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pydantic
import yaml

from windlass.core.platform.model.suggestions import did_you_mean
from windlass.errors import InvalidInput
from windlass.kube import yaml_documents
from windlass.settings.problems import Mistake, mistake_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

Model = TypeVar("Model", bound=pydantic.BaseModel)
Path = tuple[str | int, ...]

_Loader: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Marks:
    """Positions of the values of a YAML file.

    Values that come from an alias or a merge key have the position of the node that uses it.
    """

    where: str
    content: bytes

    def at(self, path: Path) -> tuple[int, int]:
        """Line and column, counted from 1. A missing value has the position of its nearest existing parent."""
        while path not in self._marks and path:
            path = path[:-1]
        return self._marks[path]

    def place(self, path: Path) -> str:
        line, column = self.at(path)
        return f"{self.where}:{line}:{column}"

    @cached_property
    def _marks(self) -> Mapping[Path, tuple[int, int]]:
        found: dict[Path, tuple[int, int]] = {}
        root = yaml.compose(self.content, Loader=_Loader)
        queue: list[tuple[Path, yaml.Node, yaml.Node]] = [((), root, root)]
        while queue:
            path, at, node = queue.pop()
            found[path] = (at.start_mark.line + 1, at.start_mark.column + 1)
            if isinstance(node, yaml.MappingNode):
                queue += [((*path, key.value), key, value) for key, value in node.value if key.value != "<<"]
            elif isinstance(node, yaml.SequenceNode):
                queue += [((*path, place), item, item) for place, item in enumerate(node.value)]
        return found


@dataclass(frozen=True, slots=True)
class Checked(Generic[Model]):
    """The content of a valid file, with the positions of its values."""

    model: Model
    marks: Marks


def checked(content: bytes, where: str, model: type[Model]) -> Checked[Model] | list[Mistake]:
    try:
        value = yaml_documents.load(content, where)
    except InvalidInput as error:
        return [mistake_of(error)]
    if value is None:
        return [Mistake(where, "the file is empty")]
    marks = Marks(where, content)
    try:
        return Checked(model.model_validate(value), marks)
    except pydantic.ValidationError as errors:
        schema = model.model_json_schema()
        found = errors.errors(include_url=False)
        return [_mistake(error, marks, schema) for error in sorted(found, key=lambda error: marks.at(error["loc"]))]


def _mistake(error: ErrorDetails, marks: Marks, schema: Mapping[str, Any]) -> Mistake:
    path = tuple(error["loc"])
    name = ".".join(map(str, path))
    place = marks.place(path)
    match error["type"]:
        case "extra_forbidden":
            return Mistake(place, f"unknown field {name}", did_you_mean(str(path[-1]), _fields(schema, path[:-1])))
        case "missing":
            return Mistake(place, f"{name} is missing")
        case "model_type" | "dict_type":
            return Mistake(place, f"{name} must be a mapping" if name else "must be a mapping")
        case "string_type" if isinstance(error["input"], bool | int | float):
            return Mistake(place, f"{name} must be a text", "put it in quotes: bare, YAML reads it as something else")
        case _:
            said = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
            return Mistake(place, f"{name} {said}" if name else said)


def _fields(schema: Mapping[str, Any], path: Path) -> list[str]:
    """The fields that a mapping at this path may have."""
    here = schema
    for part in path:
        here = _resolved(schema, here)
        here = here.get("items", {}) if isinstance(part, int) else _property(here, part)
    return list(_resolved(schema, here).get("properties", {}))


def _property(schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    by_pattern = schema.get("patternProperties", {}).values()
    found: Mapping[str, Any] = schema.get("properties", {}).get(name) or next(iter(by_pattern), {})
    return found


def _resolved(schema: Mapping[str, Any], here: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a `$ref`, and choose the other alternative of a nullable type."""
    for choice in here.get("anyOf", []):
        if choice.get("type") != "null":
            here = choice
    if "$ref" in here:
        here = schema["$defs"][here["$ref"].rpartition("/")[2]]
    return here
