"""Sets of field paths as trees of FieldsV1 steps: `f:` a field, `k:` a keyed item, `v:` a value, `.` the node itself.

In FieldsV1, a member without children is an empty object. The functions that compute sets from values give such a
member a `.` instead; `to_fields_v1` removes it. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from windlass.sandbox.apiserver.objects.schemas import COLLECTION_TYPES
from windlass.sandbox.apiserver.wire.api_status import format_value, internal_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.sandbox.apiserver.objects.schemas import SchemaNode
    from windlass.sandbox.apiserver.wire.api_status import Body

FieldSet = dict[str, Any]
MEMBER: FieldSet = {".": {}}
# Maps of built-in kinds that are members of a field set themselves; other objects there always exist.
MAP_FIELDS = frozenset(
    {"labels", "annotations", "data", "binaryData", "matchLabels", "nodeSelector", "limits", "requests"}
)


def to_fields_v1(fields: FieldSet) -> FieldSet:
    ordered = sorted(fields.items())
    return {step: {} if step == "." or child == MEMBER else to_fields_v1(child) for step, child in ordered}


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left or not right:
        return left or right
    merged = {**left, **right}
    for step, child in right.items():
        if step in left and left[step] != child:
            merged[step] = union(left[step] or MEMBER, child or MEMBER)
    return dict(sorted(merged.items())) if len(merged) > len(left) else merged


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    kept = {}
    for step, child in left.items():
        if step not in right:
            kept[step] = child
        elif step != "." and (rest := difference(child or MEMBER, right[step] or MEMBER)):
            kept[step] = {} if rest == MEMBER else rest
    return kept


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    both = {}
    for step, child in left.items():
        if step not in right:
            continue
        if step == ".":
            both[step] = child
        elif shared := intersection(child or MEMBER, right[step] or MEMBER):
            both[step] = {} if shared == MEMBER else shared
    return both


def paths(fields: FieldSet, prefix: str = "") -> Iterator[str]:
    """Members as paths in error messages: `.spec.containers[name="main"].image`."""
    for step, child in sorted(fields.items()):
        if step == ".":
            yield prefix
            continue
        yield from paths(child or MEMBER, prefix + _format_step(step))


def _format_step(step: str) -> str:
    step_type, _, text = step.partition(":")
    if step_type == "f":
        return f".{text}"
    value = msgspec.json.decode(text)
    if step_type == "k":
        return "[" + ",".join(f"{name}={format_value(key)}" for name, key in sorted(value.items())) + "]"
    return f"[={format_value(value)}]" if step_type == "v" else f"[{value}]"


def applied_fields(value: Any, node: SchemaNode, path: str = "") -> FieldSet:
    """The fields that a manager owns after applying this value."""
    fields: FieldSet = {}
    if is_granular_map(value, node):
        for name, child in value.items():
            child_fields = applied_fields(child, node.field_schema(name), f"{path}.{name}")
            if not node.sketched and name not in node.properties:
                child_fields = {".": {}, **child_fields}
            if child_fields:
                fields[f"f:{name}"] = child_fields
        return fields
    if is_granular_list(value, node):
        for child in value:
            step = _item_step(child, node)
            if step in fields:
                raise internal_error(f"{path}: duplicate entries for key {_format_step(step)}")
            child_path = path + _format_step(step)
            fields[step] = (
                MEMBER if node.list_type == "set" else {".": {}, **applied_fields(child, node.item_schema, child_path)}
            )
        return fields
    return MEMBER


def all_fields(value: Any, node: SchemaNode, name: str = "") -> FieldSet:
    """Every field of a value that is added or removed as a whole."""
    fields: FieldSet = {}
    if is_granular_map(value, node):
        for key, child in value.items():
            fields[f"f:{key}"] = (
                all_fields(child, node.field_schema(key), key) if isinstance(child, COLLECTION_TYPES) else MEMBER
            )
    elif is_granular_list(value, node):
        for step, child in items_by_step(value, node).items():
            fields[step] = MEMBER if node.list_type == "set" else {".": {}, **all_fields(child, node.item_schema)}
    else:
        return MEMBER
    return fields if node.sketched and name not in MAP_FIELDS else {".": {}, **fields}


def compare(old: Any, new: Any, node: SchemaNode) -> tuple[FieldSet, FieldSet]:
    """The fields that were written (added or changed) and those that were removed between two states."""
    if is_granular_map(old, node) and is_granular_map(new, node):
        return _compare_children(old, new, node, "f:")
    if is_granular_list(old, node) and is_granular_list(new, node):
        return _compare_children(items_by_step(old, node), items_by_step(new, node), node, "")
    return (all_fields(new, node) if old != new else {}), {}


def _compare_children(before: Body, after: Body, node: SchemaNode, prefix: str) -> tuple[FieldSet, FieldSet]:
    written: FieldSet = {}
    removed: FieldSet = {}
    for name, new in after.items():
        old = before.get(name, msgspec.UNSET)
        if old is new or old == new:
            continue
        step, schema = prefix + name, node.field_schema(name) if prefix else node.item_schema
        if not isinstance(new, COLLECTION_TYPES):
            written[step] = MEMBER
        elif old is msgspec.UNSET:
            written[step] = _all_child_fields(step, new, schema)
        else:
            for fields, changed in zip((written, removed), compare(old, new, schema), strict=True):
                if changed:
                    fields[step] = changed
    for name, old in before.items():
        if name not in after:
            removed[prefix + name] = _all_child_fields(
                prefix + name, old, node.field_schema(name) if prefix else node.item_schema
            )
    return written, removed


def _all_child_fields(step: str, value: Any, node: SchemaNode) -> FieldSet:
    """All fields of a child that was added or removed; an item of a keyed list is a member itself."""
    return {".": {}, **all_fields(value, node)} if step[0] == "k" else all_fields(value, node, step[2:])


def is_granular_map(value: Any, node: SchemaNode) -> bool:
    return isinstance(value, dict) and bool(value) and node.map_type != "atomic"


def is_granular_list(value: Any, node: SchemaNode) -> bool:
    return isinstance(value, list) and node.list_type != "atomic"


def items_by_step(items: list[Any], node: SchemaNode) -> dict[str, Any]:
    """Items of a set or keyed list by their step."""
    return {_item_step(item, node): item for item in items}


def _item_step(item: Any, node: SchemaNode) -> str:
    if node.list_type == "set" or not isinstance(item, dict):
        return "v:" + msgspec.json.encode(item).decode()
    key = {}
    for name in sorted(node.list_keys):
        value = item.get(name, node.item_schema.field_schema(name).default)
        if value is not msgspec.UNSET:
            key[name] = value
    return "k:" + msgspec.json.encode(key).decode()
