"""Structural schemas: fields of a kind, defaulting and pruning, and list keys. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.wire.api_status import Body

META = ("apiVersion", "kind", "metadata")
NESTED = (dict, list)


class Node(msgspec.Struct, rename="camel", eq=False):
    """A node of an OpenAPI schema, with the keywords that CustomResourceDefinitions use."""

    type: str = ""
    format: str = ""
    properties: dict[str, Node] = {}  # msgspec copies empty defaults
    additional_properties: Node | bool | None = None
    items: Node | None = None
    required: tuple[str, ...] = ()
    default: Any = msgspec.UNSET
    nullable: bool = False
    enum: tuple[Any, ...] | None = None
    pattern: str = ""
    minimum: float | None = None
    maximum: float | None = None
    min_length: int = 0
    max_length: int | None = None
    max_items: int | None = None
    preserves: bool = msgspec.field(name="x-kubernetes-preserve-unknown-fields", default=False)
    int_or_string: bool = msgspec.field(name="x-kubernetes-int-or-string", default=False)
    list_type: str = msgspec.field(name="x-kubernetes-list-type", default="atomic")
    list_keys: tuple[str, ...] = msgspec.field(name="x-kubernetes-list-map-keys", default=())
    map_type: str = msgspec.field(name="x-kubernetes-map-type", default="granular")
    sketched: bool = False
    """Part of a built-in kind, whose compact schema omits most fields: an unlisted field is not unknown."""

    def at(self, name: str) -> Node:
        """The schema of a field; an open schema if none is defined."""
        found = self.properties.get(name)
        if found is not None:
            return found
        if isinstance(self.additional_properties, Node):
            return self.additional_properties
        return SKETCHED if self.sketched else OPEN

    @property
    def item(self) -> Node:
        return self.items or (SKETCHED if self.sketched else OPEN)


OPEN = Node(preserves=True)
SKETCHED = Node(preserves=True, sketched=True)


def shaped(value: Any, node: Node, known: Any, unknown: list[str], path: str = "", *, nulls: bool) -> Any:
    """A copy without unknown fields and with defaults; appends the paths of unknown fields to `unknown`.

    A value that equals `previous` is not processed again: `previous` itself is returned. With `keep_nulls`, null values
    stay unless the schema of the field is not nullable; without it, they are removed.
    """
    if value is known or value == known:
        return known
    if isinstance(value, list):
        each = enumerate(value)
        return [shaped(v, node.item, at_index(known, i), unknown, f"{path}[{i}]", nulls=nulls) for i, v in each]
    if not isinstance(value, dict):
        return value
    rules, was, filled = node.properties, fields_of(known), {}
    for name, below in value.items():
        rule = rules.get(name, node.additional_properties) if path or name not in META else True
        if below is None and (not nulls or (name in rules and not rules[name].nullable)):
            continue
        if not rule and not node.preserves:
            unknown.append(child_path(path, name))
        elif isinstance(below, NESTED):
            rule = rule if isinstance(rule, Node) else OPEN
            filled[name] = shaped(below, rule, was.get(name), unknown, child_path(path, name), nulls=nulls)
        else:
            filled[name] = below
    for name, default in _defaults(node):
        if name not in filled:
            filled[name] = shaped(default, rules[name], None, unknown, child_path(path, name), nulls=nulls)
    return filled


@lru_cache(maxsize=10_000)
def tells(node: Node) -> bool:
    """Whether it restricts values, here or below: a compact schema often defines only the keys of lists."""
    if node is OPEN or not node.sketched or node.type or node.default is not msgspec.UNSET:
        return node is not OPEN
    below = [*node.properties.values(), node.items, node.additional_properties]
    return any(tells(child) for child in below if isinstance(child, Node))


@lru_cache(maxsize=10_000)
def _defaults(node: Node) -> list[tuple[str, Any]]:
    return [(name, child.default) for name, child in node.properties.items() if child.default is not msgspec.UNSET]


def child_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def fields_of(known: Any) -> Body:
    return known if isinstance(known, dict) else {}


def at_index(known: Any, index: int) -> Any:
    return known[index] if isinstance(known, list) and index < len(known) else None


def read(schema: Body) -> Node:
    return msgspec.convert(schema, Node)


def sketch(text: str, parts: dict[str, Node] | None = None) -> Node:
    """An open schema, except for what the lines define: list keys, atomic maps, types and defaults.

    `spec.containers[name] @container` is a list keyed by name whose items have the fields of the part `container`,
    `finalizers[]` is a set, `spec.selector{}` an atomic map, `spec.replicas:integer=1` has a type and a default,
    `data:texts` is a map to strings, `data:coded` a map to base64, `spec.renewTime:time` a timestamp.
    """
    root = Node(preserves=True, sketched=True)
    for line in filter(None, map(str.strip, text.splitlines())):
        path, _, default = line.partition("=")
        path, _, part = path.strip().partition(" @")
        node = root
        for name in path.split("."):
            node = _grow(node, name)
        if default:
            node.default = msgspec.json.decode(default)
        if part:
            node.properties = (parts or {})[part].properties
    return root


def _grow(node: Node, step: str) -> Node:
    step, _, kind = step.partition(":")
    name = step.partition("[")[0].partition("{")[0]
    child = node.properties.setdefault(name, Node(preserves=True, sketched=True))
    if step.endswith("{}"):
        child.map_type = "atomic"
    if kind == "time":
        child.type, child.format = "string", "date-time"
    elif kind in {"texts", "coded"}:
        child.type = "object"
        child.additional_properties = Node(type="string", format="byte" if kind == "coded" else "")
    elif kind:
        child.type = kind
    if not step.endswith("]"):
        return child
    keys = tuple(filter(None, step[len(name) + 1 : -1].split(",")))
    child.list_type, child.list_keys = ("map", keys) if keys else ("set", ())
    child.items = child.items or Node(preserves=True, sketched=True)
    return child.items if keys else child
