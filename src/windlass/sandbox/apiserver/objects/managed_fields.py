"""Managed fields: field ownership after updates, and server-side apply with conflicts. Pure."""

from __future__ import annotations

from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from windlass.sandbox.apiserver.objects import field_sets
from windlass.sandbox.apiserver.wire.api_status import Refusal, bad_request, shown

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.objects.field_sets import FieldSet
    from windlass.sandbox.apiserver.objects.schemas import Node
    from windlass.sandbox.apiserver.wire.api_status import Body

# Set by the server or part of the URL: no manager owns these fields.
UNOWNED_META = frozenset({
    "name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields", "resourceVersion",
})  # fmt: skip
UNOWNED = frozenset({"f:apiVersion", "f:kind", "f:metadata"})


class Writer(msgspec.Struct, frozen=True):
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
    def shown(self) -> str:
        name = shown(self.manager) + (f' with subresource "{self.subresource}"' if self.subresource else "")
        return f"{name} using {self.api_version}" if self.operation == "Update" else name


ORDER = attrgetter("operation", "time", "manager", "api_version", "subresource")
Managers = dict[tuple[str, ...], tuple[Writer, "FieldSet"]]


def managers_of(body: Body) -> Managers:
    found: Managers = {}
    for entry in body.get("metadata", {}).get("managedFields") or ():
        if not entry:
            continue
        writer = Writer(
            entry.get("manager", ""),
            entry.get("operation", "Update"),
            entry.get("apiVersion", ""),
            entry.get("subresource", ""),
            entry.get("time", ""),
        )
        found[writer.key] = (writer, entry.get("fieldsV1") or {})
    return found


def with_managers(body: Body, managers: Managers) -> Body:
    entries = []
    for writer, fields in sorted(managers.values(), key=lambda entry: ORDER(entry[0])):
        if not fields:
            continue
        entry: Body = {"manager": writer.manager, "operation": writer.operation, "apiVersion": writer.api_version}
        entry |= {"time": writer.time, "fieldsType": "FieldsV1", "fieldsV1": fields}
        entries.append(entry | ({"subresource": writer.subresource} if writer.subresource else {}))
    meta = {name: value for name, value in body["metadata"].items() if name != "managedFields"}
    return {**body, "metadata": {**meta, **({"managedFields": entries} if entries else {})}}


def after_update(old: Body, new: Body, node: Node, writer: Writer) -> Body:
    """The new state, in which `manager` owns the fields that changed and all other managers have lost them."""
    written, removed = (_owned(fields) for fields in field_sets.compared(old, new, node))
    given = new["metadata"].get("managedFields")
    managers = managers_of(old if given is None else new)
    if given is not None and not any(given):
        return with_managers(new, {})  # with an empty list or entry a client clears managedFields
    if not written and not removed:
        return with_managers(new, managers)
    lost = field_sets.union(written, removed)
    managers = {key: (who, field_sets.difference(fields, lost)) for key, (who, fields) in managers.items()}
    mine = managers.get(writer.key, (writer, {}))[1]
    managers[writer.key] = (writer, field_sets.union(mine, written))
    return with_managers(new, managers)


def applied(live: Body | None, config: Body, node: Node, writer: Writer, *, force: bool) -> Body:
    """The object after server-side apply. Raises a conflict that lists every conflicting manager and field."""
    base = live or {"metadata": {}}
    if config["metadata"].get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    managers = managers_of(base)
    claim = _owned(field_sets.claimed(config, node))
    merged = _merged(base, config, node)
    last = managers.get(writer.key, (writer, {}))[1]
    managers[writer.key] = (writer, claim)
    owned: FieldSet = {}
    for _, fields in managers.values():
        owned = field_sets.union(owned, fields)
    _drop(merged, node, last, owned)
    written, removed = (_owned(fields) for fields in field_sets.compared(base, merged, node))
    others = {key: entry for key, entry in managers.items() if key != writer.key}
    conflicts = [(who, field_sets.intersection(fields, written)) for who, fields in others.values()]
    if not force and any(fields for _, fields in conflicts):
        raise _conflict(conflicts)
    lost = field_sets.union(written, removed)
    for key, (who, fields) in others.items():
        managers[key] = (who, field_sets.difference(fields, lost))
    if live is not None and claim == last and not written and not removed:
        managers[writer.key] = (replace(writer, time=managers_of(base)[writer.key][0].time), claim)
    return with_managers(merged, managers)


def _conflict(found: list[tuple[Writer, FieldSet]]) -> Refusal:
    conflicts = [(writer.shown, path) for writer, fields in found for path in field_sets.paths(fields)]
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
    return Refusal(409, "Conflict", f"Apply failed with {text}", {"causes": causes})


def _owned(found: FieldSet) -> FieldSet:
    """The field set without the fields that no manager can own."""
    if not found:
        return found
    fields = field_sets.render(found)
    if UNOWNED.isdisjoint(fields):
        return fields
    meta = fields.get("f:metadata", {})
    kept = {step: child for step, child in meta.items() if step != "." and step[2:] not in UNOWNED_META}
    rest = {step: child for step, child in fields.items() if step not in UNOWNED}
    return {**rest, "f:metadata": kept} if kept else rest


def _merged(base: Any, config: Any, node: Node) -> Any:
    if field_sets.is_granular_map(base, node) and isinstance(config, dict):
        merged = dict(base)
        for name, value in config.items():
            merged[name] = _merged(base[name], value, node.at(name)) if name in base else value
        return merged
    if field_sets.is_granular_list(base, node) and isinstance(config, list):
        return _merged_list(base, config, node)
    return config


def _merged_list(base: list[Any], config: list[Any], node: Node) -> list[Any]:
    """Merge in the order of `config`. Items only in `base` come before the next item in both, else before the rest."""
    before, after = field_sets.keyed(base, node), field_sets.keyed(config, node)
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
            merged.append(_merged(before[step], after[step], node.item) if step in before else after[step])
            if shared and shared[0] == step:
                shared.popleft()
    return merged


def _drop(value: Any, node: Node, last: FieldSet, owned: FieldSet) -> None:
    """Remove in place what the manager applied last time and no manager owns now."""
    if isinstance(value, dict):
        for step, below in last.items():
            name = step[2:]
            if step[0] != "f" or name not in value:
                continue
            if step not in owned and (not below or "." in below):
                del value[name]
                continue
            value[name] = child = _copied(value[name])
            was_filled = bool(child)
            _drop(child, node.at(name), below, owned.get(step, {}))
            if was_filled and step not in owned and child in ({}, []):
                del value[name]
    elif field_sets.is_granular_list(value, node):
        kept = []
        for step, found in field_sets.keyed(value, node).items():
            if step in last and step not in owned:
                continue
            item = _copied(found)
            _drop(item, node.item, last.get(step, {}), owned.get(step, {}))
            kept.append(item)
        value[:] = kept


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, dict | list) else value
