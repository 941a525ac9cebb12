"""Merge patch, JSON patch and strategic merge patch. Each returns a new value and does not modify its target. Pure."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from windlass.sandbox.apiserver.wire.api_status import StatusError, bad_request

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.objects.schemas import SchemaNode

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


def merge_patch(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def strategic_merge_patch(target: Any, patch: Any, node: SchemaNode) -> Any:
    """A merge patch that merges keyed lists item by item and understands directives such as `$patch`."""
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    merged = dict(target) if isinstance(target, dict) else {}
    if "$retainKeys" in patch:
        merged = {name: value for name, value in merged.items() if name in patch["$retainKeys"]}
    for name, value in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            list_name = name.partition("/")[2]
            merged[list_name] = [item for item in merged.get(list_name, ()) if item not in value]
        elif name.startswith("$"):
            continue
        elif value is None or (isinstance(value, dict) and value.get("$patch") == "delete"):
            merged.pop(name, None)
        elif isinstance(value, list):
            merged[name] = _merge_list(merged.get(name) or [], value, node.field_schema(name))
        else:
            merged[name] = strategic_merge_patch(merged.get(name), value, node.field_schema(name))
    return merged


def _merge_list(target: list[Any], patch: list[Any], node: SchemaNode) -> list[Any]:
    if node.list_type == "atomic" or {"$patch": "replace"} in patch:
        return [item for item in patch if item != {"$patch": "replace"}]
    if node.list_type == "set":
        return target + [item for item in patch if item not in target]
    key = node.list_keys[0]
    merged = list(target)
    for item in patch:
        index = next((i for i, old in enumerate(merged) if old.get(key) == item.get(key)), None)
        if item.get("$patch") == "delete":
            merged = [old for old in merged if old.get(key) != item.get(key)]
        elif index is None:
            merged.append(strategic_merge_patch({}, item, node.item_schema))
        else:
            merged[index] = strategic_merge_patch(merged[index], item, node.item_schema)
    return merged


def json_patch(target: Any, operations: Any) -> Any:
    if not isinstance(operations, list):
        raise bad_request("error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    value = copy.deepcopy(target)
    for operation in operations:
        try:
            value = _apply_operation(value, operation)
        except (KeyError, IndexError, TypeError, ValueError):
            raise _patch_error(operation) from None
    return value


def _apply_operation(value: Any, operation: dict[str, Any]) -> Any:
    op, path = operation["op"], _parse_pointer(operation["path"])
    if op == "test":
        if _value_at(value, path) != operation.get("value"):
            raise ValueError(path)
        return value
    if op in {"move", "copy"}:
        source = _parse_pointer(operation["from"])
        moved = copy.deepcopy(_value_at(value, source))
        return _add(_remove(value, source) if op == "move" else value, path, moved)
    if op == "remove":
        return _remove(value, path)
    if op == "replace":
        if isinstance(parent := _value_at(value, path[:-1]), dict):
            return _add(value, path, operation["value"])  # like the real server, add a missing key
        parent[int(path[-1])] = operation["value"]
        return value
    if op == "add":
        return _add(value, path, operation["value"])
    raise ValueError(f"unexpected kind: {op}")


def _patch_error(operation: Any) -> StatusError:
    verb, path = (operation.get("op"), operation.get("path")) if isinstance(operation, dict) else ("", "")
    text = f"{verb} operation does not apply: doc is missing path: {path}: missing value"
    if verb == "test":
        text = f"testing value {path} failed: test failed"
    return StatusError(422, "Invalid", f"the server rejected our request due to an error in our request: {text}", {})


def _parse_pointer(text: str) -> list[str]:
    if text and not text.startswith("/"):
        raise ValueError(text)
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _value_at(value: Any, path: list[str]) -> Any:
    for part in path:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def _add(value: Any, path: list[str], item: Any) -> Any:
    parent, last = _value_at(value, path[:-1]), path[-1]
    if isinstance(parent, list):
        index = len(parent) if last == "-" else int(last)
        if not 0 <= index <= len(parent):
            raise IndexError(last)
        parent.insert(index, item)
    else:
        parent[last] = item
    return value


def _remove(value: Any, path: list[str]) -> Any:
    parent, last = _value_at(value, path[:-1]), path[-1]
    del parent[int(last) if isinstance(parent, list) else last]
    return value
