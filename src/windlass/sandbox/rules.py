"""What holds for every object: names, versions, generations, finalizers, what a door may change. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from windlass.sandbox import statuses
from windlass.sandbox.statuses import FieldError, bad_request, conflict, invalid, invalid_value, required

if TYPE_CHECKING:
    from windlass.sandbox.asks import Ask
    from windlass.sandbox.kinds import Kind
    from windlass.sandbox.statuses import Body

LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
LABEL_VALUE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
SUBDOMAIN_MESSAGE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')"
)
LABEL_MESSAGE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
)
LABEL_VALUE_MESSAGE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{LABEL_VALUE}')"
)
SET_BY_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
# Kinds whose names are labels; of rbac.authorization.k8s.io any path segment is a name.
SHORT_NAMES = frozenset({"namespaces", "services"})


def decoded(ask: Ask, body: Any) -> Body:
    """The object in a request, with what must fit the address checked and nothing else."""
    kind = ask.kind
    if not isinstance(body, dict):
        raise bad_request(f"the request body is no {kind.kind}")
    if kind.custom and "kind" not in body:
        raise bad_request("Object 'Kind' is missing")
    given = (body.get("apiVersion", kind.api_version), body.get("kind", kind.kind))
    if given[1] != kind.kind or given[0] != kind.api_version:
        group, _, version = str(given[0]).rpartition("/")
        found = f'{given[1]} in version "{version}" cannot be handled as a {kind.kind}'
        expected = (
            f"the API version in the data ({given[0]}) does not match the expected API version ({kind.api_version})"
        )
        raise bad_request(found if given[1] != kind.kind and group == kind.group else expected)
    meta = body.get("metadata")
    if meta is not None and not isinstance(meta, dict):
        raise bad_request(f"{kind.kind}: metadata must be an object")
    return {**body, "metadata": {name: value for name, value in (meta or {}).items() if value is not None}}


def without_nulls(value: Any) -> Any:
    """Built-in kinds know no null: it is the same as leaving out."""
    if isinstance(value, dict):
        return {name: without_nulls(child) for name, child in value.items() if child is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def require_address(ask: Ask, meta: Body) -> None:
    """Name and namespace of the object must be those of the request, or be left out."""
    if ask.name and meta.get("name", ask.name) != ask.name:
        raise bad_request(f"the name of the object ({meta['name']}) does not match the name on the URL ({ask.name})")
    if meta.get("namespace", ask.namespace) != ask.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def metadata_errors(kind: Kind, meta: Body) -> list[FieldError]:
    name = meta.get("name", "")
    found: list[FieldError] = []
    if not name:
        found.append(required("metadata.name", "name or generateName is required"))
    elif kind.group == "rbac.authorization.k8s.io":
        pass
    elif kind.plural in SHORT_NAMES:
        if not re.fullmatch(LABEL, name):
            found.append(invalid_value("metadata.name", name, LABEL_MESSAGE))
    elif not re.fullmatch(SUBDOMAIN, name):
        found.append(invalid_value("metadata.name", name, SUBDOMAIN_MESSAGE))
    if len(name) > (63 if kind.plural in SHORT_NAMES else 253):
        found.append(invalid_value("metadata.name", name, "must be no more than 253 bytes"))
    return found + [
        invalid_value("metadata.labels", value, LABEL_VALUE_MESSAGE)
        for value in (meta.get("labels") or {}).values()
        if len(value) > 63 or not re.fullmatch(LABEL_VALUE, value)
    ]


def require_unchanged(ask: Ask, before: Body, after: Body) -> None:
    """A writer that names a version or uid means that one."""
    kind, old, new = ask.kind, before["metadata"], after["metadata"]
    name = old["name"]
    require_address(ask, new)
    if new.get("uid", old["uid"]) != old["uid"]:
        why = f"Precondition failed: UID in precondition: {new['uid']}, UID in object meta: {old['uid']}"
        raise conflict(kind, name, why)
    version = new.get("resourceVersion") or ""
    if not version and not kind.unconditional and ask.verb == "update":
        message = "Invalid value: 0x0: must be specified for an update"
        raise invalid(kind, name, [FieldError("FieldValueInvalid", "metadata.resourceVersion", message)])
    if version and version != old["resourceVersion"]:
        raise conflict(kind, name)


def carried_over(ask: Ask, before: Body, after: Body) -> Body:
    """What of a change its door lets through; the rest stays as it was."""
    old = before["metadata"]
    if ask.subresource == "status":
        meta = {**old, "managedFields": after["metadata"].get("managedFields", old.get("managedFields"))}
        result = {**before, "metadata": statuses.present(meta)}
        result.pop("status", None)
        return {**result, **({"status": after["status"]} if after.get("status") is not None else {})}
    meta = {name: value for name, value in after["metadata"].items() if name not in (*SET_BY_SERVER, "selfLink")}
    meta |= {name: old[name] for name in (*SET_BY_SERVER, "name", "namespace", "resourceVersion") if name in old}
    result = {**after, "metadata": statuses.present(meta)}
    if "status" in ask.kind.subresources:
        result.pop("status", None)
        result |= {"status": before["status"]} if "status" in before else {}
    return result


def next_generation(kind: Kind, before: Body, after: Body) -> int | None:
    """It grows with what is wanted: everything but metadata, and status where that has its own door."""
    generation: int | None = before["metadata"].get("generation")
    if not kind.has_generation:
        return generation
    outside = {"metadata", "kind", "apiVersion"} | ({"status"} if "status" in kind.subresources else set())
    for name in before.keys() | after.keys():
        if name not in outside and before.get(name) != after.get(name):
            return (generation or 0) + 1
    return generation


def finalizer_errors(before: Body, after: Body) -> list[FieldError]:
    old, new = (body["metadata"].get("finalizers") or [] for body in (before, after))
    added = [name for name in new if name not in old]
    if not before["metadata"].get("deletionTimestamp") or not added:
        return []
    shown = "[]string{" + ", ".join(f'"{name}"' for name in added) + "}"
    why = f"no new finalizers can be added if the object is being deleted, found new finalizers {shown}"
    return [statuses.forbidden_field("metadata.finalizers", why)]
