"""Validation of objects against their schema, with the real server's error messages. Pure.

CEL rules and the rarer keywords of JSON Schema (oneOf, anyOf, allOf, not, multipleOf, exclusive bounds, minProperties,
maxProperties) are not implemented.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from windlass.sandbox.apiserver.objects.schemas import as_mapping, child_path, constrains_values, item_at
from windlass.sandbox.apiserver.wire.api_status import (
    FieldError,
    duplicate,
    invalid_value,
    required_error,
    too_long,
    unsupported_error,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.sandbox.apiserver.objects.schemas import SchemaNode

BASE64 = re.compile(r"(?:[A-Za-z0-9+/\s]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?\s*")
RFC3339_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}


def errors(value: Any, node: SchemaNode, path: str = "", previous: Any = None) -> list[FieldError]:
    """Validation errors. Parts that equal `previous`, which was valid, are not validated again."""
    problems: list[FieldError] = []
    _validate(value, node, path, previous, problems)
    return problems


def first_type_error(value: Any, node: SchemaNode, previous: Any = None) -> str:
    """Path and message of the first field with a value of the wrong type; empty if there is none."""
    type_errors = (error for error in errors(value, node, "", previous) if error.reason == "FieldValueTypeInvalid")
    return next((f"{error.field}: {error.message}" for error in type_errors), "")


def _validate(value: Any, node: SchemaNode, path: str, previous: Any, problems: list[FieldError]) -> None:
    if node.nullable if value is None else value == previous:
        return
    expected = _expected_type(value, node)
    if expected:
        name = _type_name(value)
        message = f'{_in_body(path)} must be of type {expected}: "{name}"'
        problems.append(invalid_value(path or "<nil>", name, message, reason="FieldValueTypeInvalid"))
        return
    if node.enum is not None and value not in node.enum:
        problems.append(unsupported_error(path, value, node.enum))
    if isinstance(value, dict):
        _validate_object(value, node, path, previous, problems)
    elif isinstance(value, list):
        _validate_list(value, node, path, previous, problems)
    elif isinstance(value, str):
        problems += _string_errors(value, node, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        problems += _number_errors(value, node, path)


def _expected_type(value: Any, node: SchemaNode) -> str:
    """The expected type if the value has another; else empty."""
    if node.int_or_string:
        fits = isinstance(value, int | str) and not isinstance(value, bool)
        return "" if fits else "integer,string"
    if not node.type:
        return ""
    is_bool = isinstance(value, bool)
    fits = isinstance(value, PYTHON_TYPES[node.type]) and (not is_bool or node.type == "boolean")
    if node.type == "integer" and isinstance(value, float) and value.is_integer():
        fits = True
    return "" if fits else node.type


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return next(name for name, types in PYTHON_TYPES.items() if isinstance(value, types))


def _validate_object(
    value: dict[str, Any], node: SchemaNode, path: str, previous: Any, problems: list[FieldError]
) -> None:
    previous_fields = as_mapping(previous)
    problems += [required_error(child_path(path, name)) for name in node.required if name not in value]
    for name, child in value.items():
        previous_child = previous_fields.get(name)
        if (child is None or child != previous_child) and constrains_values(schema := node.field_schema(name)):
            _validate(child, schema, child_path(path, name), previous_child, problems)


def _validate_list(value: list[Any], node: SchemaNode, path: str, previous: Any, problems: list[FieldError]) -> None:
    if node.max_items is not None and len(value) > node.max_items:
        message = f"Too many: {len(value)}: must have at most {node.max_items} items"
        problems.append(FieldError("FieldValueTooMany", path, message))
    for index, item in enumerate(value):
        _validate(item, node.item_schema, f"{path}[{index}]", item_at(previous, index), problems)
    problems += _duplicate_errors(value, node, path)


def _duplicate_errors(value: list[Any], node: SchemaNode, path: str) -> Iterator[FieldError]:
    seen = []
    for index, item in enumerate(value if node.list_type != "atomic" else ()):
        key = {name: item.get(name) for name in node.list_keys} if node.list_type == "map" else item
        if key in seen:
            yield duplicate(f"{path}[{index}]", key)
        seen.append(key)


def _string_errors(value: str, node: SchemaNode, path: str) -> Iterator[FieldError]:
    if node.format == "date-time" and not RFC3339_TIME.fullmatch(value):
        message = f'{_in_body(path)} must be of type date-time: "{value}"'
        yield invalid_value(path, value, message, reason="FieldValueTypeInvalid")
    if node.format == "byte" and not BASE64.fullmatch(value):
        yield FieldError("FieldValueTypeInvalid", path, "illegal base64 data")
    if len(value) < node.min_length:
        yield invalid_value(path, value, f"{_in_body(path)} should be at least {node.min_length} chars long")
    if node.max_length is not None and len(value) > node.max_length:
        yield too_long(path, node.max_length)
    if node.pattern and not re.search(node.pattern, value):
        yield invalid_value(path, value, f"{_in_body(path)} should match '{node.pattern}'")


def _number_errors(value: float, node: SchemaNode, path: str) -> Iterator[FieldError]:
    if node.minimum is not None and value < node.minimum:
        yield invalid_value(path, value, f"{_in_body(path)} should be greater than or equal to {node.minimum:g}")
    if node.maximum is not None and value > node.maximum:
        yield invalid_value(path, value, f"{_in_body(path)} should be less than or equal to {node.maximum:g}")


def _in_body(path: str) -> str:
    return f"{path} in body"
