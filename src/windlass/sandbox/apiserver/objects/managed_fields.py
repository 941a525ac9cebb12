"""Managed fields: field ownership after updates, and server-side apply with conflicts. Pure."""

from __future__ import annotations

from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from windlass.sandbox.apiserver.objects import field_sets
from windlass.sandbox.apiserver.wire.api_status import StatusError, bad_request, format_value

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.objects.field_sets import FieldSet
    from windlass.sandbox.apiserver.objects.schemas import SchemaNode
    from windlass.sandbox.apiserver.wire.api_status import Body

# Set by the server or part of the URL: no manager owns these fields.
UNOWNED_META = frozenset({
    "name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields", "resourceVersion",
})  # fmt: skip
UNOWNED = frozenset({"f:apiVersion", "f:kind", "f:metadata"})


class FieldManager(msgspec.Struct, frozen=True):
    """An entry of managedFields: who writes, how, and through which subresource."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""
    time: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """Identity of the manager; for Apply the apiVersion is not part of it."""
        version = "" if self.operation == "Apply" else self.api_version
        return (self.manager, self.operation, version, self.subresource)

    @property
    def description(self) -> str:
        name = format_value(self.manager) + (f' with subresource "{self.subresource}"' if self.subresource else "")
        return f"{name} using {self.api_version}" if self.operation == "Update" else name


SORT_KEY = attrgetter("operation", "time", "manager", "api_version", "subresource")
Managers = dict[tuple[str, ...], tuple[FieldManager, "FieldSet"]]


def parse_managers(body: Body) -> Managers:
    managers: Managers = {}
    for entry in body.get("metadata", {}).get("managedFields") or ():
        if not entry:
            continue
        manager = FieldManager(
            entry.get("manager", ""),
            entry.get("operation", "Update"),
            entry.get("apiVersion", ""),
            entry.get("subresource", ""),
            entry.get("time", ""),
        )
        managers[manager.key] = (manager, entry.get("fieldsV1") or {})
    return managers


def with_managers(body: Body, managers: Managers) -> Body:
    entries = []
    for manager, fields in sorted(managers.values(), key=lambda entry: SORT_KEY(entry[0])):
        if not fields:
            continue
        entry: Body = {"manager": manager.manager, "operation": manager.operation, "apiVersion": manager.api_version}
        entry |= {"time": manager.time, "fieldsType": "FieldsV1", "fieldsV1": fields}
        entries.append(entry | ({"subresource": manager.subresource} if manager.subresource else {}))
    meta = {name: value for name, value in body["metadata"].items() if name != "managedFields"}
    return {**body, "metadata": {**meta, **({"managedFields": entries} if entries else {})}}


def after_update(old: Body, new: Body, node: SchemaNode, manager: FieldManager) -> Body:
    """The new state, in which `manager` owns the fields that changed and all other managers have lost them."""
    written, removed = (_ownable_fields(fields) for fields in field_sets.compare(old, new, node))
    client_entries = new["metadata"].get("managedFields")
    managers = parse_managers(old if client_entries is None else new)
    if client_entries is not None and not any(client_entries):
        return with_managers(new, {})  # with an empty list or entry a client clears managedFields
    if not written and not removed:
        return with_managers(new, managers)
    lost = field_sets.union(written, removed)
    managers = {key: (owner, field_sets.difference(fields, lost)) for key, (owner, fields) in managers.items()}
    own_fields = managers.get(manager.key, (manager, {}))[1]
    managers[manager.key] = (manager, field_sets.union(own_fields, written))
    return with_managers(new, managers)


def server_side_apply(live: Body | None, config: Body, node: SchemaNode, manager: FieldManager, *, force: bool) -> Body:
    """The object after server-side apply. Raises a conflict that lists every conflicting manager and field."""
    base = live or {"metadata": {}}
    if config["metadata"].get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    managers = parse_managers(base)
    applied_fields = _ownable_fields(field_sets.applied_fields(config, node))
    merged = _merge(base, config, node)
    last_applied = managers.get(manager.key, (manager, {}))[1]
    managers[manager.key] = (manager, applied_fields)
    owned_fields: FieldSet = {}
    for _, fields in managers.values():
        owned_fields = field_sets.union(owned_fields, fields)
    _remove_unowned(merged, node, last_applied, owned_fields)
    written, removed = (_ownable_fields(fields) for fields in field_sets.compare(base, merged, node))
    others = {key: entry for key, entry in managers.items() if key != manager.key}
    conflicts = [(who, field_sets.intersection(fields, written)) for who, fields in others.values()]
    if not force and any(fields for _, fields in conflicts):
        raise _conflict_error(conflicts)
    lost = field_sets.union(written, removed)
    for key, (who, fields) in others.items():
        managers[key] = (who, field_sets.difference(fields, lost))
    if live is not None and applied_fields == last_applied and not written and not removed:
        managers[manager.key] = (replace(manager, time=parse_managers(base)[manager.key][0].time), applied_fields)
    return with_managers(merged, managers)


def _conflict_error(overlaps: list[tuple[FieldManager, FieldSet]]) -> StatusError:
    conflicts = [(manager.description, path) for manager, fields in overlaps for path in field_sets.paths(fields)]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": path} for who, path in conflicts
    ]
    if len(conflicts) == 1:
        text = "1 conflict: conflict with {}: {}".format(*conflicts[0])
    else:
        lines = []
        for who in sorted({who for who, _ in conflicts}):
            lines += [f"conflicts with {who}:", *(f"- {path}" for owner, path in conflicts if owner == who)]
        text = f"{len(conflicts)} conflicts: " + "\n".join(lines)
    return StatusError(409, "Conflict", f"Apply failed with {text}", {"causes": causes})


def _ownable_fields(field_set: FieldSet) -> FieldSet:
    """The field set without the fields that no manager can own."""
    if not field_set:
        return field_set
    fields = field_sets.to_fields_v1(field_set)
    if UNOWNED.isdisjoint(fields):
        return fields
    meta = fields.get("f:metadata", {})
    kept = {step: child for step, child in meta.items() if step != "." and step[2:] not in UNOWNED_META}
    rest = {step: child for step, child in fields.items() if step not in UNOWNED}
    return {**rest, "f:metadata": kept} if kept else rest


def _merge(base: Any, config: Any, node: SchemaNode) -> Any:
    if field_sets.is_granular_map(base, node) and isinstance(config, dict):
        merged = dict(base)
        for name, value in config.items():
            merged[name] = _merge(base[name], value, node.field_schema(name)) if name in base else value
        return merged
    if field_sets.is_granular_list(base, node) and isinstance(config, list):
        return _merge_lists(base, config, node)
    return config


def _merge_lists(base: list[Any], config: list[Any], node: SchemaNode) -> list[Any]:
    """Merge in the order of `config`. Items only in `base` come before the next item in both, else before the rest."""
    before, after = field_sets.items_by_step(base, node), field_sets.items_by_step(config, node)
    left, right = deque(before), deque(after)
    shared = deque(step for step in after if step in before)
    merged = []
    while left or right:
        if left and left[0] not in after:
            merged.append(before[left.popleft()])
        elif left and (not shared or left[0] != shared[0]):
            left.popleft()  # already merged, or merged later in the applied order
        else:
            step = right.popleft()
            merged.append(_merge(before[step], after[step], node.item_schema) if step in before else after[step])
            if shared and shared[0] == step:
                shared.popleft()
    return merged


def _remove_unowned(value: Any, node: SchemaNode, last_applied: FieldSet, owned_fields: FieldSet) -> None:
    """Remove in place what the manager applied last time and no manager owns now."""
    if isinstance(value, dict):
        for step, child_fields in last_applied.items():
            name = step[2:]
            if step[0] != "f" or name not in value:
                continue
            if step not in owned_fields and (not child_fields or "." in child_fields):
                del value[name]
                continue
            value[name] = child = _shallow_copy(value[name])
            was_filled = bool(child)
            _remove_unowned(child, node.field_schema(name), child_fields, owned_fields.get(step, {}))
            if was_filled and step not in owned_fields and child in ({}, []):
                del value[name]
    elif field_sets.is_granular_list(value, node):
        kept = []
        for step, original in field_sets.items_by_step(value, node).items():
            if step in last_applied and step not in owned_fields:
                continue
            item = _shallow_copy(original)
            _remove_unowned(item, node.item_schema, last_applied.get(step, {}), owned_fields.get(step, {}))
            kept.append(item)
        value[:] = kept


def _shallow_copy(value: Any) -> Any:
    return value.copy() if isinstance(value, dict | list) else value
