"""Structural schemas: fields of a kind, defaulting and pruning, and list keys. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.wire.api_status import Body

TYPE_AND_OBJECT_META = ("apiVersion", "kind", "metadata")
COLLECTION_TYPES = (dict, list)


class SchemaNode(msgspec.Struct, rename="camel", eq=False):
    """A node of an OpenAPI schema, with the keywords that CustomResourceDefinitions use."""

    type: str = ""
    format: str = ""
    properties: dict[str, SchemaNode] = {}  # msgspec copies empty defaults
    additional_properties: SchemaNode | bool | None = None
    items: SchemaNode | None = None
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

    def field_schema(self, name: str) -> SchemaNode:
        """The schema of a field; an open schema if none is defined."""
        found = self.properties.get(name)
        if found is not None:
            return found
        if isinstance(self.additional_properties, SchemaNode):
            return self.additional_properties
        return OPEN_BUILTIN_SCHEMA if self.sketched else OPEN_SCHEMA

    @property
    def item_schema(self) -> SchemaNode:
        return self.items or (OPEN_BUILTIN_SCHEMA if self.sketched else OPEN_SCHEMA)


OPEN_SCHEMA = SchemaNode(preserves=True)
OPEN_BUILTIN_SCHEMA = SchemaNode(preserves=True, sketched=True)


def default_and_prune(
    value: Any, node: SchemaNode, previous: Any, unknown: list[str], path: str = "", *, keep_nulls: bool
) -> Any:
    """A copy without unknown fields and with defaults; appends the paths of unknown fields to `unknown`.

    A value that equals `previous` is not processed again: `previous` itself is returned. With `keep_nulls`, null values
    stay unless the schema of the field is not nullable; without it, they are removed.
    """
    if value is previous or value == previous:
        return previous
    if isinstance(value, list):
        indexed = enumerate(value)
        return [
            default_and_prune(v, node.item_schema, item_at(previous, i), unknown, f"{path}[{i}]", keep_nulls=keep_nulls)
            for i, v in indexed
        ]
    if not isinstance(value, dict):
        return value
    properties, previous_fields, result = node.properties, as_mapping(previous), {}
    for name, child in value.items():
        schema = properties.get(name, node.additional_properties) if path or name not in TYPE_AND_OBJECT_META else True
        if child is None and (not keep_nulls or (name in properties and not properties[name].nullable)):
            continue
        if not schema and not node.preserves:
            unknown.append(child_path(path, name))
        elif isinstance(child, COLLECTION_TYPES):
            schema = schema if isinstance(schema, SchemaNode) else OPEN_SCHEMA
            result[name] = default_and_prune(
                child, schema, previous_fields.get(name), unknown, child_path(path, name), keep_nulls=keep_nulls
            )
        else:
            result[name] = child
    for name, default in _field_defaults(node):
        if name not in result:
            result[name] = default_and_prune(
                default, properties[name], None, unknown, child_path(path, name), keep_nulls=keep_nulls
            )
    return result


@lru_cache(maxsize=10_000)
def constrains_values(node: SchemaNode) -> bool:
    """Whether it restricts values, here or below: a compact schema often defines only the keys of lists."""
    if node is OPEN_SCHEMA or not node.sketched or node.type or node.default is not msgspec.UNSET:
        return node is not OPEN_SCHEMA
    children = [*node.properties.values(), node.items, node.additional_properties]
    return any(constrains_values(child) for child in children if isinstance(child, SchemaNode))


@lru_cache(maxsize=10_000)
def _field_defaults(node: SchemaNode) -> list[tuple[str, Any]]:
    return [(name, child.default) for name, child in node.properties.items() if child.default is not msgspec.UNSET]


def child_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def as_mapping(value: Any) -> Body:
    return value if isinstance(value, dict) else {}


def item_at(value: Any, index: int) -> Any:
    return value[index] if isinstance(value, list) and index < len(value) else None


def parse_schema(schema: Body) -> SchemaNode:
    return msgspec.convert(schema, SchemaNode)


def parse_compact_schema(text: str, parts: dict[str, SchemaNode] | None = None) -> SchemaNode:
    """An open schema, except for what the lines define: list keys, atomic maps, types and defaults.

    `spec.containers[name] @container` is a list keyed by name whose items have the fields of the part `container`,
    `finalizers[]` is a set, `spec.selector{}` an atomic map, `spec.replicas:integer=1` has a type and a default,
    `data:texts` is a map to strings, `data:coded` a map to base64, `spec.renewTime:time` a timestamp.
    """
    root = SchemaNode(preserves=True, sketched=True)
    for line in filter(None, map(str.strip, text.splitlines())):
        path, _, default = line.partition("=")
        path, _, part = path.strip().partition(" @")
        node = root
        for name in path.split("."):
            node = _add_field(node, name)
        if default:
            node.default = msgspec.json.decode(default)
        if part:
            node.properties = (parts or {})[part].properties
    return root


def _add_field(node: SchemaNode, step: str) -> SchemaNode:
    step, _, field_type = step.partition(":")
    name = step.partition("[")[0].partition("{")[0]
    child = node.properties.setdefault(name, SchemaNode(preserves=True, sketched=True))
    if step.endswith("{}"):
        child.map_type = "atomic"
    if field_type == "time":
        child.type, child.format = "string", "date-time"
    elif field_type in {"texts", "coded"}:
        child.type = "object"
        child.additional_properties = SchemaNode(type="string", format="byte" if field_type == "coded" else "")
    elif field_type:
        child.type = field_type
    if not step.endswith("]"):
        return child
    keys = tuple(filter(None, step[len(name) + 1 : -1].split(",")))
    child.list_type, child.list_keys = ("map", keys) if keys else ("set", ())
    child.items = child.items or SchemaNode(preserves=True, sketched=True)
    return child.items if keys else child
