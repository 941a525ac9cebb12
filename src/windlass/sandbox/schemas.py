"""Structural schemas: what a kind's fields are, what is filled in, what is dropped, how lists are keyed. Pure."""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from windlass.sandbox.statuses import Body

META = ("apiVersion", "kind", "metadata")
NESTED = (dict, list)


class Node(msgspec.Struct, rename="camel", eq=False):
    """One place in a schema, in the words of OpenAPI as CustomResourceDefinitions use them."""

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
    """Of a built-in kind: what is not told is a known field all the same."""

    def at(self, name: str) -> Node:
        """The schema of a field; open where none is told."""
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


def prune(value: Any, node: Node, known: Any = None, path: str = "") -> list[str]:
    """Drops fields that the schema does not know, in place, and names them. What equals `known` is right already."""
    dropped: list[str] = []
    if value is known or value == known:
        return dropped
    if isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            dropped += prune(item, node.items, at_index(known, index), f"{path}[{index}]")
    elif isinstance(value, dict):
        was = fields_of(known)
        for name in list(value):
            child = node.properties.get(name, node.additional_properties)
            if not path and name in META:
                continue
            if isinstance(child, Node):
                if isinstance(value[name], NESTED) and tells(child):
                    dropped += prune(value[name], child, was.get(name), child_path(path, name))
            elif not node.preserves and child is not True:
                del value[name]
                dropped.append(child_path(path, name))
    return dropped


def fill(value: Any, node: Node, known: Any = None) -> None:
    """Writes defaults where a field is missing, drops null where null is not allowed; in place."""
    if value is known or value == known:
        return
    if isinstance(value, list):
        for index, item in enumerate(value if node.items is not None else ()):
            fill(item, node.item, at_index(known, index))
    elif isinstance(value, dict):
        rules, was = node.properties, fields_of(known)
        for name in [key for key, below in value.items() if below is None and key in rules and not rules[key].nullable]:
            del value[name]
        for name, default in _defaults(node):
            if name not in value:
                value[name] = copy.deepcopy(default)
        for name, below in value.items():
            rule = rules.get(name, node.additional_properties) if isinstance(below, NESTED) else None
            if isinstance(rule, Node) and tells(rule):
                fill(below, rule, was.get(name))


@lru_cache(maxsize=10_000)
def tells(node: Node) -> bool:
    """Whether it says what a value may be, here or below: a sketch often says no more than how a list is keyed."""
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
    """A schema that is open but for what its lines say: how lists are keyed, what is whole, what is filled in.

    `spec.containers[name] @container` is a list keyed by name whose items are the part named container,
    `finalizers[]` a set, `spec.selector{}` a map owned as a whole, `spec.replicas:integer=1` a type and a default,
    `data:texts` a mapping to text, `data:coded` one to base64, `spec.renewTime:time` a moment.
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
