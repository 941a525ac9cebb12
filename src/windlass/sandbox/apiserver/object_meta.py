"""Rules for every object: decoding, preconditions, generation, and what a subresource may change. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from windlass.sandbox.apiserver.objects.patches import APPLY_PATCH
from windlass.sandbox.apiserver.wire import api_status
from windlass.sandbox.apiserver.wire.api_status import FieldError, bad_request, conflict, invalid, invalid_value

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.requests import ApiRequest
    from windlass.sandbox.apiserver.wire.api_status import Body

DEPLOYMENTS = "deployments.apps"
SERVER_SET_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
IGNORED_FIELDS = frozenset({*SERVER_SET_FIELDS, "selfLink"})


def decode_object(request: ApiRequest, body: Any) -> Body:
    """The object in a request. Checks only that kind and apiVersion match the URL and that metadata is an object."""
    kind = request.kind
    if not isinstance(body, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {kind.kind}): no JSON object")
    if kind.is_custom and "kind" not in body:
        raise bad_request("Object 'Kind' is missing")
    version, name = str(body.get("apiVersion", kind.api_version)), body.get("kind", kind.kind)
    meta = body.get("metadata") or {}
    if name != kind.kind and kind.is_custom:
        raise invalid(kind, meta.get("name", ""), [invalid_value("kind", name, f"must be {kind.kind}")])
    if (version, name) != (kind.api_version, kind.kind):
        raise bad_request(f'{name} in version "{version.rpartition("/")[2]}" cannot be handled as a {kind.kind}')
    if not isinstance(meta, dict):
        raise type_error(request, "metadata")
    return {**body, "metadata": {name: value for name, value in meta.items() if value is not None}}


def type_error(request: ApiRequest, detail: str) -> api_status.StatusError:
    """The error for a value of the wrong type: Invalid if a patch produced it, else BadRequest."""
    kind = request.kind
    if request.patch and request.patch != APPLY_PATCH:
        return invalid(kind, "", [invalid_value("patch", detail, f"json: cannot unmarshal into {kind.kind}")])
    return api_status.decoding_error(kind, f"json: cannot unmarshal into Go struct field {detail}")


def require_apply_type(request: ApiRequest) -> None:
    """Require kind and apiVersion in an applied object, and that they are those of the URL."""
    body, kind = request.body, request.kind
    given = (body.get("apiVersion", ""), body.get("kind", "")) if isinstance(body, dict) else ("", "")
    if given != (kind.api_version, kind.kind):
        group, _, version = given[0].rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={given[1]}")


def require_url_match(request: ApiRequest, meta: Body) -> None:
    """Require that name and namespace are absent or those of the URL; an update must have a name."""
    if request.name and request.verb == "update" and not meta.get("name"):
        raise bad_request("name must be provided")
    if request.name and meta.get("name", request.name) != request.name:
        raise bad_request(
            f"the name of the object ({meta['name']}) does not match the name on the URL ({request.name})"
        )
    if meta.get("namespace", request.namespace) != request.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def check_preconditions(request: ApiRequest, before: Body, after: Body) -> None:
    """Require that uid and resourceVersion, if given, are those of the stored object."""
    kind, old, new = request.kind, before["metadata"], after["metadata"]
    name = old["name"]
    require_url_match(request, new)
    if new.get("uid", old["uid"]) != old["uid"]:
        if request.verb == "patch":
            raise invalid(kind, name, [invalid_value("metadata.uid", new["uid"], "field is immutable")])
        why = f"Precondition failed: UID in precondition: {new['uid']}, UID in object meta: {old['uid']}"
        raise conflict(kind, name, why)
    version = new.get("resourceVersion") or ""
    if not version and not kind.allows_unconditional_update and request.verb == "update":
        message = "Invalid value: 0x0: must be specified for an update"
        raise invalid(kind, name, [FieldError("FieldValueInvalid", "metadata.resourceVersion", message)])
    if version and not version.isdecimal():
        raise api_status.internal_error(f'strconv.ParseUint: parsing "{version}": invalid syntax')
    if version and version != old["resourceVersion"]:
        raise conflict(kind, name)


def keep_allowed_changes(request: ApiRequest, before: Body, after: Body) -> Body:
    """The object with only those changes that its subresource (or the main resource) may make."""
    old = before["metadata"]
    if request.subresource == "status":
        meta = {**old, "managedFields": after["metadata"].get("managedFields", old.get("managedFields"))}
        if request.kind.id == DEPLOYMENTS:
            # The Deployment controller writes its revision annotation through the status subresource.
            meta["annotations"] = _annotations(after)
        result = {**before, "metadata": api_status.without_empty(meta)}
        result.pop("status", None)
        return {**result, **({"status": after["status"]} if after.get("status") is not None else {})}
    meta = {name: value for name, value in after["metadata"].items() if name not in IGNORED_FIELDS}
    meta |= {name: old[name] for name in (*SERVER_SET_FIELDS, "name", "namespace", "resourceVersion") if name in old}
    result = {**after, "metadata": api_status.without_empty(meta)}
    if "status" in request.kind.subresources:
        result.pop("status", None)
        result |= {"status": before["status"]} if "status" in before else {}
    return result


def next_generation(request: ApiRequest, before: Body, after: Body) -> int | None:
    """The generation; it grows when anything but metadata changes, or status if that is a subresource."""
    kind, generation = request.kind, before["metadata"].get("generation")
    if not kind.has_generation or request.subresource == "status":
        return cast("int | None", generation)
    if kind.id == DEPLOYMENTS and _annotations(before) != _annotations(after):
        return (generation or 0) + 1  # a Deployment copies its annotations to its ReplicaSets
    ignored = {"metadata", "kind", "apiVersion"} | ({"status"} if "status" in kind.subresources else set())
    for name in before.keys() | after.keys():
        if name not in ignored and _desired_state(kind.id, before.get(name)) != _desired_state(
            kind.id, after.get(name)
        ):
            return (generation or 0) + 1
    return cast("int | None", generation)


def _desired_state(kind_id: str, part: Any) -> Any:
    """The node assignment of a pod is not part of its desired state."""
    return {**part, "nodeName": ""} if kind_id == "pods" and isinstance(part, dict) else part


def _annotations(body: Body) -> Any:
    return body["metadata"].get("annotations")
