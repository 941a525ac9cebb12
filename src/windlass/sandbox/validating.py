"""Whether an object fits its schema, and what the server says where it does not. CEL rules are not evaluated. Pure."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from windlass.sandbox.schemas import at_index, at_name, tells
from windlass.sandbox.statuses import FieldError, duplicate, invalid_value, required, too_long, unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.sandbox.schemas import Node

BASE64 = re.compile(r"(?:[A-Za-z0-9+/\s]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\s*")
TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}


def errors(value: Any, node: Node, path: str = "", known: Any = None) -> list[FieldError]:
    """What is wrong. What equals `known` was valid before, and still is."""
    return list(_errors(value, node, path, known))


def mistyped(value: Any, node: Node, known: Any = None) -> str:
    """The first field that has a value of another type than its own, and what is wrong with it."""
    found = (e for e in _errors(value, node, "", known) if e.reason == "FieldValueTypeInvalid")
    return next((f"{error.field}: {error.message}" for error in found), "")


def _errors(value: Any, node: Node, path: str, known: Any) -> Iterator[FieldError]:
    if node.nullable if value is None else value == known:
        return
    wrong = _wrong_type(value, node)
    if wrong:
        found = _type_name(value)
        message = f'{_in_body(path)} must be of type {wrong}: "{found}"'
        yield invalid_value(path or "<nil>", found, message, reason="FieldValueTypeInvalid")
        return
    if node.enum is not None and value not in node.enum:
        yield unsupported(path, value, node.enum)
    if isinstance(value, dict):
        yield from _of_object(value, node, path, known)
    elif isinstance(value, list):
        yield from _of_list(value, node, path, known)
    elif isinstance(value, str):
        yield from _of_string(value, node, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _of_number(value, node, path)
    yield from _of_alternatives(value, node, path)


def _wrong_type(value: Any, node: Node) -> str:
    """The type that was wanted, if another came."""
    if node.int_or_string:
        fits = isinstance(value, int | str) and not isinstance(value, bool)
        return "" if fits else "integer,string"
    if not node.type:
        return ""
    is_bool = isinstance(value, bool)
    fits = isinstance(value, TYPES[node.type]) and (not is_bool or node.type == "boolean")
    if node.type == "integer" and isinstance(value, float) and value.is_integer():
        fits = True
    return "" if fits else node.type


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return next(name for name, types in TYPES.items() if isinstance(value, types))


def _of_object(value: dict[str, Any], node: Node, path: str, known: Any) -> Iterator[FieldError]:
    for name in node.required:
        if name not in value:
            yield required(_child(path, name))
    for name, child in value.items():
        rule, below = node.at(name), at_name(known, name)
        if tells(rule) and (child is None or child != below):
            yield from _errors(child, rule, _child(path, name), below)
    if node.max_properties is not None and len(value) > node.max_properties:
        yield _too_many(path, len(value), node.max_properties)
    if len(value) < node.min_properties:
        yield invalid_value(path, len(value), f"{_in_body(path)} should have at least {node.min_properties} properties")


def _of_list(value: list[Any], node: Node, path: str, known: Any) -> Iterator[FieldError]:
    if node.max_items is not None and len(value) > node.max_items:
        yield _too_many(path, len(value), node.max_items)
    if len(value) < node.min_items:
        yield invalid_value(path, len(value), f"{_in_body(path)} should have at least {node.min_items} items")
    for index, item in enumerate(value):
        yield from _errors(item, node.item, f"{path}[{index}]", at_index(known, index))
    yield from _duplicates(value, node, path)


def _duplicates(value: list[Any], node: Node, path: str) -> Iterator[FieldError]:
    seen = []
    for index, item in enumerate(value if node.list_type != "atomic" else ()):
        key = {name: item.get(name) for name in node.list_keys} if node.list_type == "map" else item
        if key in seen:
            yield duplicate(f"{path}[{index}]", key)
        seen.append(key)


def _of_string(value: str, node: Node, path: str) -> Iterator[FieldError]:
    if node.format == "date-time" and not TIME.fullmatch(value):
        message = f'{_in_body(path)} must be of type date-time: "{value}"'
        yield invalid_value(path, value, message, reason="FieldValueTypeInvalid")
    if node.format == "byte" and not BASE64.fullmatch(value):
        yield FieldError("FieldValueTypeInvalid", path, "illegal base64 data")
    if len(value) < node.min_length:
        yield invalid_value(path, value, f"{_in_body(path)} should be at least {node.min_length} chars long")
    if node.max_length is not None and len(value) > node.max_length:
        yield too_long(path, node.max_length)
    if node.pattern and not _pattern(node.pattern).search(value):
        yield invalid_value(path, value, f"{_in_body(path)} should match '{node.pattern}'")


def _of_number(value: float, node: Node, path: str) -> Iterator[FieldError]:
    low, high = node.minimum, node.maximum
    if low is not None and (value <= low if node.exclusive_minimum else value < low):
        than = "greater than" if node.exclusive_minimum else "greater than or equal to"
        yield invalid_value(path, value, f"{_in_body(path)} should be {than} {low:g}")
    if high is not None and (value >= high if node.exclusive_maximum else value > high):
        than = "less than" if node.exclusive_maximum else "less than or equal to"
        yield invalid_value(path, value, f"{_in_body(path)} should be {than} {high:g}")
    if node.multiple_of and value % node.multiple_of:
        yield invalid_value(path, value, f"{_in_body(path)} should be a multiple of {node.multiple_of:g}")


def _of_alternatives(value: Any, node: Node, path: str) -> Iterator[FieldError]:
    for part in node.all_of:
        yield from _errors(value, part, path, None)
    if node.any_of and not any(not errors(value, part, path) for part in node.any_of):
        yield invalid_value(path, "", f'"{path}" must validate at least one schema (anyOf)')
    if node.one_of and sum(not errors(value, part, path) for part in node.one_of) != 1:
        yield invalid_value(path, "", f'"{path}" must validate one and only one schema (oneOf)')
    if node.not_ is not None and not errors(value, node.not_, path):
        yield invalid_value(path, "", f'"{path}" must not validate the schema (not)')


def _too_many(path: str, found: int, most: int) -> FieldError:
    return FieldError("FieldValueTooMany", path, f"Too many: {found}: must have at most {most} items")


def _in_body(path: str) -> str:
    return f"{path} in body"


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)
