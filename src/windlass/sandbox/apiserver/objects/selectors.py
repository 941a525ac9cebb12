"""Label and field selectors: parsed once, matched against each object. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windlass.sandbox.apiserver.wire.api_status import bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_KEY = r"([A-Za-z0-9][^\s!=,()<>]*)"
_SET = re.compile(rf"\s*{_KEY}\s+(in|notin)\s*\(([^()]*)\)\s*")
_EXISTS = re.compile(rf"\s*(!?)\s*{_KEY}\s*")
_EQUALS = re.compile(rf"\s*{_KEY}\s*(==|=|!=|<|>)\s*([^\s!=,()<>]*)\s*")
_FIELD = re.compile(r"\s*([^!=]+?)\s*(==|=|!=)\s*(.*?)\s*")
_COMMAS = re.compile(r",(?![^(]*\))")  # commas that are not inside parentheses


@dataclass(frozen=True, slots=True)
class Requirement:
    key: str
    operator: str
    """`in`, `notin`, `<`, `>`, `exists` or `absent`."""
    values: tuple[str, ...] = ()

    def matches(self, value: str | None) -> bool:
        if self.operator == "in":
            return value is not None and value in self.values
        if self.operator == "notin":
            return value is None or value not in self.values
        if self.operator in {"<", ">"}:
            if value is None or not (value + self.values[0]).isdecimal():
                return False
            return int(value) < int(self.values[0]) if self.operator == "<" else int(value) > int(self.values[0])
        return (value is not None) == (self.operator == "exists")


Requirements = tuple[Requirement, ...]


def parse_label_selector(text: str) -> Requirements:
    return tuple(_parse_label_requirement(part, text) for part in _COMMAS.split(text)) if text.strip() else ()


def _parse_label_requirement(part: str, text: str) -> Requirement:
    if found := _EQUALS.fullmatch(part):
        return Requirement(found[1], {"!=": "notin", "<": "<", ">": ">"}.get(found[2], "in"), (found[3],))
    if found := _SET.fullmatch(part):
        return Requirement(found[1], found[2], tuple(value.strip() for value in found[3].split(",")))
    if found := _EXISTS.fullmatch(part):
        return Requirement(found[2], "absent" if found[1] else "exists")
    raise bad_request(f"unable to parse requirement: found '{text}', expected: a label selector")


def parse_field_selector(text: str) -> Requirements:
    requirements = []
    for part in text.split(",") if text.strip() else ():
        found = _FIELD.fullmatch(part)
        if not found:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        requirements.append(Requirement(found[1], "notin" if found[2] == "!=" else "in", (found[3],)))
    return tuple(requirements)


def label_selector_requirements(selector: Mapping[str, Any]) -> Requirements:
    """The requirements of a LabelSelector object, as in workloads and PodDisruptionBudgets."""
    operators = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent"}
    equal = [Requirement(key, "in", (value,)) for key, value in sorted(selector.get("matchLabels", {}).items())]
    expressions = selector.get("matchExpressions", ())
    return (*equal, *(Requirement(r["key"], operators[r["operator"]], tuple(r.get("values", ()))) for r in expressions))


def matches_all(requirements: Requirements, lookup: Callable[[str], str | None]) -> bool:
    return all(requirement.matches(lookup(requirement.key)) for requirement in requirements)


def field_text(item: Mapping[str, Any], path: str) -> str:
    """The value of a field as a string; empty if it is not set."""
    value = value_at_path(item, path)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def value_at_path(value: Any, path: str) -> Any:
    """The value at a path such as `.spec.replicas`; `None` if it is not set."""
    for name in path.strip(".").split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
