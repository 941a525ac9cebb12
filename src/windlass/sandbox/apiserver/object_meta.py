"""Rules for every object: decoding, preconditions, generation, and what a subresource may change. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from windlass.sandbox.apiserver.objects.patches import APPLY
from windlass.sandbox.apiserver.wire import api_status
from windlass.sandbox.apiserver.wire.api_status import FieldError, bad_request, conflict, invalid, invalid_value

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.requests import Ask
    from windlass.sandbox.apiserver.wire.api_status import Body

DEPLOYMENTS = "deployments.apps"
SET_BY_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
NOT_TAKEN = frozenset({*SET_BY_SERVER, "selfLink"})


def decoded(ask: Ask, body: Any) -> Body:
    """The object in a request. Checks only that kind and apiVersion match the URL and that metadata is an object."""
    kind = ask.kind
    if not isinstance(body, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {kind.kind}): no JSON object")
    if kind.custom and "kind" not in body:
        raise bad_request("Object 'Kind' is missing")
    version, name = str(body.get("apiVersion", kind.api_version)), body.get("kind", kind.kind)
    meta = body.get("metadata") or {}
    if name != kind.kind and kind.custom:
        raise invalid(kind, meta.get("name", ""), [invalid_value("kind", name, f"must be {kind.kind}")])
    if (version, name) != (kind.api_version, kind.kind):
        raise bad_request(f'{name} in version "{version.rpartition("/")[2]}" cannot be handled as a {kind.kind}')
    if not isinstance(meta, dict):
        raise mistyped(ask, "metadata")
    return {**body, "metadata": {name: value for name, value in meta.items() if value is not None}}


def mistyped(ask: Ask, what: str) -> api_status.Refusal:
    """The error for a value of the wrong type: Invalid if a patch produced it, else BadRequest."""
    kind = ask.kind
    if ask.patch and ask.patch != APPLY:
        return invalid(kind, "", [invalid_value("patch", what, f"json: cannot unmarshal into {kind.kind}")])
    return api_status.not_handled(kind, f"json: cannot unmarshal into Go struct field {what}")


def require_applicable(ask: Ask) -> None:
    """Require kind and apiVersion in an applied object, and that they are those of the URL."""
    body, kind = ask.body, ask.kind
    given = (body.get("apiVersion", ""), body.get("kind", "")) if isinstance(body, dict) else ("", "")
    if given != (kind.api_version, kind.kind):
        group, _, version = given[0].rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={given[1]}")


def require_address(ask: Ask, meta: Body) -> None:
    """Require that name and namespace are absent or those of the URL; an update must have a name."""
    if ask.name and ask.verb == "update" and not meta.get("name"):
        raise bad_request("name must be provided")
    if ask.name and meta.get("name", ask.name) != ask.name:
        raise bad_request(f"the name of the object ({meta['name']}) does not match the name on the URL ({ask.name})")
    if meta.get("namespace", ask.namespace) != ask.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def require_unchanged(ask: Ask, before: Body, after: Body) -> None:
    """Require that uid and resourceVersion, if given, are those of the stored object."""
    kind, old, new = ask.kind, before["metadata"], after["metadata"]
    name = old["name"]
    require_address(ask, new)
    if new.get("uid", old["uid"]) != old["uid"]:
        if ask.verb == "patch":
            raise invalid(kind, name, [invalid_value("metadata.uid", new["uid"], "field is immutable")])
        why = f"Precondition failed: UID in precondition: {new['uid']}, UID in object meta: {old['uid']}"
        raise conflict(kind, name, why)
    version = new.get("resourceVersion") or ""
    if not version and not kind.unconditional and ask.verb == "update":
        message = "Invalid value: 0x0: must be specified for an update"
        raise invalid(kind, name, [FieldError("FieldValueInvalid", "metadata.resourceVersion", message)])
    if version and not version.isdecimal():
        raise api_status.broken(f'strconv.ParseUint: parsing "{version}": invalid syntax')
    if version and version != old["resourceVersion"]:
        raise conflict(kind, name)


def carried_over(ask: Ask, before: Body, after: Body) -> Body:
    """The object with only those changes that its subresource (or the main resource) may make."""
    old = before["metadata"]
    if ask.subresource == "status":
        meta = {**old, "managedFields": after["metadata"].get("managedFields", old.get("managedFields"))}
        if ask.kind.id == DEPLOYMENTS:
            # The Deployment controller writes its revision annotation through the status subresource.
            meta["annotations"] = _annotations(after)
        result = {**before, "metadata": api_status.present(meta)}
        result.pop("status", None)
        return {**result, **({"status": after["status"]} if after.get("status") is not None else {})}
    meta = {name: value for name, value in after["metadata"].items() if name not in NOT_TAKEN}
    meta |= {name: old[name] for name in (*SET_BY_SERVER, "name", "namespace", "resourceVersion") if name in old}
    result = {**after, "metadata": api_status.present(meta)}
    if "status" in ask.kind.subresources:
        result.pop("status", None)
        result |= {"status": before["status"]} if "status" in before else {}
    return result


def next_generation(ask: Ask, before: Body, after: Body) -> int | None:
    """The generation; it grows when anything but metadata changes, or status if that is a subresource."""
    kind, generation = ask.kind, before["metadata"].get("generation")
    if not kind.has_generation or ask.subresource == "status":
        return cast("int | None", generation)
    if kind.id == DEPLOYMENTS and _annotations(before) != _annotations(after):
        return (generation or 0) + 1  # a Deployment copies its annotations to its ReplicaSets
    outside = {"metadata", "kind", "apiVersion"} | ({"status"} if "status" in kind.subresources else set())
    for name in before.keys() | after.keys():
        if name not in outside and _wanted(kind.id, before.get(name)) != _wanted(kind.id, after.get(name)):
            return (generation or 0) + 1
    return cast("int | None", generation)


def _wanted(kind_id: str, part: Any) -> Any:
    """The node assignment of a pod is not part of its desired state."""
    return {**part, "nodeName": ""} if kind_id == "pods" and isinstance(part, dict) else part


def _annotations(body: Body) -> Any:
    return body["metadata"].get("annotations")
