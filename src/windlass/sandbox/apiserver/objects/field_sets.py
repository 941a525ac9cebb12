"""Sets of field paths as trees of FieldsV1 steps: `f:` a field, `k:` a keyed item, `v:` a value, `.` the node itself.

In FieldsV1, a member without children is an empty object. The functions that compute sets from values give such a
member a `.` instead; `to_fields_v1` removes it. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from windlass.sandbox.apiserver.objects.schemas import NESTED
from windlass.sandbox.apiserver.wire.api_status import broken, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.sandbox.apiserver.objects.schemas import Node
    from windlass.sandbox.apiserver.wire.api_status import Body

FieldSet = dict[str, Any]
MEMBER: FieldSet = {".": {}}
# Maps of built-in kinds that are members of a field set themselves; other objects there always exist.
MAPS = frozenset({"labels", "annotations", "data", "binaryData", "matchLabels", "nodeSelector", "limits", "requests"})


def render(fields: FieldSet) -> FieldSet:
    ordered = sorted(fields.items())
    return {step: {} if step == "." or child == MEMBER else render(child) for step, child in ordered}


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


def paths(fields: FieldSet, above: str = "") -> Iterator[str]:
    """Members as paths in error messages: `.spec.containers[name="main"].image`."""
    for step, child in sorted(fields.items()):
        if step == ".":
            yield above
            continue
        yield from paths(child or MEMBER, above + _shown_step(step))


def _shown_step(step: str) -> str:
    mark, _, text = step.partition(":")
    if mark == "f":
        return f".{text}"
    value = msgspec.json.decode(text)
    if mark == "k":
        return "[" + ",".join(f"{name}={shown(key)}" for name, key in sorted(value.items())) + "]"
    return f"[={shown(value)}]" if mark == "v" else f"[{value}]"


def claimed(value: Any, node: Node, path: str = "") -> FieldSet:
    """The fields that a manager owns after applying this value."""
    fields: FieldSet = {}
    if is_granular_map(value, node):
        for name, child in value.items():
            found = claimed(child, node.at(name), f"{path}.{name}")
            if not node.sketched and name not in node.properties:
                found = {".": {}, **found}
            if found:
                fields[f"f:{name}"] = found
        return fields
    if is_granular_list(value, node):
        for child in value:
            step = _step(child, node)
            if step in fields:
                raise broken(f"{path}: duplicate entries for key {_shown_step(step)}")
            below = path + _shown_step(step)
            fields[step] = MEMBER if node.list_type == "set" else {".": {}, **claimed(child, node.item, below)}
        return fields
    return MEMBER


def whole(value: Any, node: Node, name: str = "") -> FieldSet:
    """Every field of a value that is added or removed as a whole."""
    fields: FieldSet = {}
    if is_granular_map(value, node):
        for key, child in value.items():
            fields[f"f:{key}"] = whole(child, node.at(key), key) if isinstance(child, NESTED) else MEMBER
    elif is_granular_list(value, node):
        for step, child in keyed(value, node).items():
            fields[step] = MEMBER if node.list_type == "set" else {".": {}, **whole(child, node.item)}
    else:
        return MEMBER
    return fields if node.sketched and name not in MAPS else {".": {}, **fields}


def compared(old: Any, new: Any, node: Node) -> tuple[FieldSet, FieldSet]:
    """The fields that were written (added or changed) and those that were removed between two states."""
    if is_granular_map(old, node) and is_granular_map(new, node):
        return _compared_parts(old, new, node, "f:")
    if is_granular_list(old, node) and is_granular_list(new, node):
        return _compared_parts(keyed(old, node), keyed(new, node), node, "")
    return (whole(new, node) if old != new else {}), {}


def _compared_parts(before: Body, after: Body, node: Node, mark: str) -> tuple[FieldSet, FieldSet]:
    written: FieldSet = {}
    removed: FieldSet = {}
    for name, now in after.items():
        was = before.get(name, msgspec.UNSET)
        if was is now or was == now:
            continue
        step, rule = mark + name, node.at(name) if mark else node.item
        if not isinstance(now, NESTED):
            written[step] = MEMBER
        elif was is msgspec.UNSET:
            written[step] = _entire(step, now, rule)
        else:
            for fields, found in zip((written, removed), compared(was, now, rule), strict=True):
                if found:
                    fields[step] = found
    for name, was in before.items():
        if name not in after:
            removed[mark + name] = _entire(mark + name, was, node.at(name) if mark else node.item)
    return written, removed


def _entire(step: str, value: Any, node: Node) -> FieldSet:
    """All fields of a child that was added or removed; an item of a keyed list is a member itself."""
    return {".": {}, **whole(value, node)} if step[0] == "k" else whole(value, node, step[2:])


def is_granular_map(value: Any, node: Node) -> bool:
    return isinstance(value, dict) and bool(value) and node.map_type != "atomic"


def is_granular_list(value: Any, node: Node) -> bool:
    return isinstance(value, list) and node.list_type != "atomic"


def keyed(items: list[Any], node: Node) -> dict[str, Any]:
    """Items of a set or keyed list by their step."""
    return {_step(item, node): item for item in items}


def _step(item: Any, node: Node) -> str:
    if node.list_type == "set" or not isinstance(item, dict):
        return "v:" + msgspec.json.encode(item).decode()
    key = {}
    for name in sorted(node.list_keys):
        found = item.get(name, node.item.at(name).default)
        if found is not msgspec.UNSET:
            key[name] = found
    return "k:" + msgspec.json.encode(key).decode()
