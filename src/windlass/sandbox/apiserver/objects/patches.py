"""Merge patch, JSON patch and strategic merge patch. Each returns a new value and does not modify its target. Pure."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from windlass.sandbox.apiserver.wire.api_status import Refusal, bad_request

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.objects.schemas import Node

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def merge(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def strategic(target: Any, patch: Any, node: Node) -> Any:
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
            listed = name.partition("/")[2]
            merged[listed] = [item for item in merged.get(listed, ()) if item not in value]
        elif name.startswith("$"):
            continue
        elif value is None or (isinstance(value, dict) and value.get("$patch") == "delete"):
            merged.pop(name, None)
        elif isinstance(value, list):
            merged[name] = _strategic_list(merged.get(name) or [], value, node.at(name))
        else:
            merged[name] = strategic(merged.get(name), value, node.at(name))
    return merged


def _strategic_list(target: list[Any], patch: list[Any], node: Node) -> list[Any]:
    if node.list_type == "atomic" or {"$patch": "replace"} in patch:
        return [item for item in patch if item != {"$patch": "replace"}]
    if node.list_type == "set":
        return target + [item for item in patch if item not in target]
    key = node.list_keys[0]
    merged = list(target)
    for item in patch:
        place = next((i for i, old in enumerate(merged) if old.get(key) == item.get(key)), None)
        if item.get("$patch") == "delete":
            merged = [old for old in merged if old.get(key) != item.get(key)]
        elif place is None:
            merged.append(strategic({}, item, node.item))
        else:
            merged[place] = strategic(merged[place], item, node.item)
    return merged


def json_patch(target: Any, operations: Any) -> Any:
    if not isinstance(operations, list):
        raise bad_request("error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    value = copy.deepcopy(target)
    for operation in operations:
        try:
            value = _operate(value, operation)
        except (KeyError, IndexError, TypeError, ValueError):
            raise _refused(operation) from None
    return value


def _operate(value: Any, operation: dict[str, Any]) -> Any:
    kind, path = operation["op"], _pointer(operation["path"])
    if kind == "test":
        if _at(value, path) != operation.get("value"):
            raise ValueError(path)
        return value
    if kind in {"move", "copy"}:
        source = _pointer(operation["from"])
        moved = copy.deepcopy(_at(value, source))
        return _add(_remove(value, source) if kind == "move" else value, path, moved)
    if kind == "remove":
        return _remove(value, path)
    if kind == "replace":
        if isinstance(parent := _at(value, path[:-1]), dict):
            return _add(value, path, operation["value"])  # like the real server, add a missing key
        parent[int(path[-1])] = operation["value"]
        return value
    if kind == "add":
        return _add(value, path, operation["value"])
    raise ValueError(f"unexpected kind: {kind}")


def _refused(operation: Any) -> Refusal:
    verb, path = (operation.get("op"), operation.get("path")) if isinstance(operation, dict) else ("", "")
    text = f"{verb} operation does not apply: doc is missing path: {path}: missing value"
    if verb == "test":
        text = f"testing value {path} failed: test failed"
    return Refusal(422, "Invalid", f"the server rejected our request due to an error in our request: {text}", {})


def _pointer(text: str) -> list[str]:
    if text and not text.startswith("/"):
        raise ValueError(text)
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _at(value: Any, path: list[str]) -> Any:
    for part in path:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def _add(value: Any, path: list[str], item: Any) -> Any:
    parent, last = _at(value, path[:-1]), path[-1]
    if isinstance(parent, list):
        place = len(parent) if last == "-" else int(last)
        if not 0 <= place <= len(parent):
            raise IndexError(last)
        parent.insert(place, item)
    else:
        parent[last] = item
    return value


def _remove(value: Any, path: list[str]) -> Any:
    parent, last = _at(value, path[:-1]), path[-1]
    del parent[int(last) if isinstance(parent, list) else last]
    return value
