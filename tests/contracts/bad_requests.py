"""Requests that an API server refuses, and how: the code, the reason, and what a client may rely on in the message.

`$NS` and `$GROUP` stand for the namespace and the custom group of the run. In that namespace there are: `here`, one each
of ConfigMap (with data k=1, written by the manager `owner`), Deployment, Job, Pod, RoleBinding, ServiceAccount, Widget
and Gadget; and `fixed`, an immutable ConfigMap.
"""

# ruff: noqa: E501 - one case, one line: the table is read by columns

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.contracts.definitions import definition
from tests.contracts.kinds import config_map, deployment, service
from tests.contracts.servers import APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC

CORE = "/api/v1/namespaces/$NS"
MAPS = f"{CORE}/configmaps"
HERE = f"{MAPS}/here"
APPLIED = f"{HERE}?fieldManager=m"
PODS = f"{CORE}/pods"
SERVICES = f"{CORE}/services"
TOKENS = f"{CORE}/serviceaccounts"
DEPLOYMENTS = "/apis/apps/v1/namespaces/$NS/deployments"
BINDING = "/apis/rbac.authorization.k8s.io/v1/namespaces/$NS/rolebindings/here"
CUSTOM = "/apis/$GROUP/v1/namespaces/$NS"
WIDGETS = f"{CUSTOM}/widgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

OTHER_UID = "00000000-0000-4000-8000-000000000000"
OPTIONS = {"apiVersion": "v1", "kind": "DeleteOptions"}
NOT_THERE = "the server could not find the requested resource"
NOT_ALLOWED = "the server does not allow this method on the requested resource"
OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"
LONG = 1 << 20  # bytes; what one ConfigMap may hold


@dataclass(frozen=True, slots=True)
class Case:
    what: str
    method: str
    target: str
    body: Any
    status: int
    reason: str
    says: str = ""
    """Part of the message."""
    field: str = ""
    """One of the fields that the causes name."""
    content: str = JSON
    accept: str = JSON

    def __str__(self) -> str:
        return self.what


def widget(**spec: Any) -> dict[str, Any]:
    body = {"size": "small", **spec}
    return {"apiVersion": "$GROUP/v1", "kind": "Widget", "metadata": {"name": "new"}, "spec": body}


def deploying(**spec: Any) -> dict[str, Any]:
    item = deployment("new")
    return {**item, "spec": {**item["spec"], **spec}}


def pod_with(*names: str) -> dict[str, Any]:
    containers = [{"name": name, "image": "registry.invalid/none:1"} for name in names]
    spec = {"serviceAccountName": "here", "containers": containers}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new"}, "spec": spec}


def eviction(name: str) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "$NS"}}


def token(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}


def thing(name: str = "", **more: Any) -> dict[str, Any]:
    item = definition("x.windlass.dev", "Thing", **more)
    return {**item, "metadata": {"name": name}} if name else item


NEW = config_map("new")
NEW_BUT_NO_KIND = {"metadata": {"name": "new"}}

ADDRESSES = [
    Case("read what is not there", "GET", f"{MAPS}/gone", None, 404, "NotFound", 'configmaps "gone" not found'),
    Case("read a custom object that is not there", "GET", f"{WIDGETS}/gone", None, 404, "NotFound", 'widgets.$GROUP "gone" not found'),
    Case("replace what is not there", "PUT", f"{MAPS}/gone", config_map("gone"), 404, "NotFound", 'configmaps "gone" not found'),
    Case("patch what is not there", "PATCH", f"{MAPS}/gone", {"data": {}}, 404, "NotFound", 'configmaps "gone" not found', content=MERGE),
    Case("delete what is not there", "DELETE", f"{MAPS}/gone", None, 404, "NotFound", 'configmaps "gone" not found'),
    Case("an unknown resource", "GET", f"{CORE}/nonsense", None, 404, "NotFound", NOT_THERE),
    Case("an unknown resource of a known group", "GET", "/apis/apps/v1/namespaces/$NS/nonsense", None, 404, "NotFound", NOT_THERE),
    Case("an unknown version of a known group", "GET", "/apis/apps/v9/deployments", None, 404, "NotFound", NOT_THERE),
    Case("an unknown subresource", "GET", f"{HERE}/nonsense", None, 404, "NotFound", NOT_THERE),
    Case("a status that a kind does not have", "GET", f"{HERE}/status", None, 404, "NotFound", NOT_THERE),
    Case("a status that a custom kind does not have", "GET", f"{CUSTOM}/gadgets/here/status", None, 404, "NotFound", 'gadgets.$GROUP "here" not found'),
    Case("a scale that a custom kind does not have", "GET", f"{CUSTOM}/gadgets/here/scale", None, 404, "NotFound", 'gadgets.$GROUP "here" not found'),
    Case("the status of what is not there", "GET", f"{WIDGETS}/gone/status", None, 404, "NotFound", 'widgets.$GROUP "gone" not found'),
    Case("the scale of what is not there", "GET", f"{DEPLOYMENTS}/gone/scale", None, 404, "NotFound", 'deployments.apps "gone" not found'),
    Case("the logs of what is not there", "GET", f"{PODS}/gone/log", None, 404, "NotFound", 'pods "gone" not found'),
    Case("evict what is not there", "POST", f"{PODS}/gone/eviction", eviction("gone"), 404, "NotFound", 'pods "gone" not found'),
    Case("a token of no account", "POST", f"{TOKENS}/gone/token", token(), 404, "NotFound", 'serviceaccounts "gone" not found'),
    Case("create in no namespace", "POST", "/api/v1/namespaces/no-such/configmaps", NEW, 404, "NotFound", 'namespaces "no-such" not found'),
    Case("post to an object", "POST", HERE, config_map("here"), 405, "MethodNotAllowed", NOT_ALLOWED),
    Case("replace a collection", "PUT", MAPS, NEW, 405, "MethodNotAllowed", NOT_ALLOWED),
    Case("patch a collection", "PATCH", MAPS, {}, 405, "MethodNotAllowed", NOT_ALLOWED, content=MERGE),
    Case("create without a namespace in the path", "POST", "/api/v1/configmaps", NEW, 405, "MethodNotAllowed", NOT_ALLOWED),
    Case("replace a custom collection", "PUT", WIDGETS, widget(), 400, "BadRequest", "name must be provided"),
    Case("an answer in a form that nobody writes", "GET", MAPS, None, 406, "NotAcceptable", "application/json", accept="application/xml"),
    Case("a body in a form that nobody reads", "POST", MAPS, b"a: 1", 415, "UnsupportedMediaType", "accepted media types include: application/json", content="text/plain"),
    Case("a patch of an unknown kind", "PATCH", HERE, {}, 415, "UnsupportedMediaType"),
    Case("a strategic merge patch of a custom object", "PATCH", f"{WIDGETS}/here", {}, 415, "UnsupportedMediaType", "application/merge-patch+json", content=STRATEGIC),
]  # fmt: skip

BODIES = [
    Case("JSON cut short", "POST", MAPS, b'{"apiVersion": "v1", "kind"', 400, "BadRequest", "the object provided is unrecognized (must be of type ConfigMap)"),
    Case("JSON that is no object", "POST", MAPS, b"[1, 2]", 400, "BadRequest", "the object provided is unrecognized (must be of type ConfigMap)"),
    Case("an empty body", "POST", MAPS, b"", 400, "BadRequest", "the object provided is unrecognized (must be of type ConfigMap)"),
    Case("another kind than the path's", "POST", MAPS, {"apiVersion": "v1", "kind": "Secret", **NEW_BUT_NO_KIND}, 400, "BadRequest", 'Secret in version "v1" cannot be handled as a ConfigMap'),
    Case("another version than the path's", "POST", MAPS, {"apiVersion": "v2", "kind": "ConfigMap", **NEW_BUT_NO_KIND}, 400, "BadRequest", 'ConfigMap in version "v2" cannot be handled as a ConfigMap'),
    Case("an unknown kind", "POST", MAPS, {"apiVersion": "v1", "kind": "Nonsense", **NEW_BUT_NO_KIND}, 400, "BadRequest", 'Nonsense in version "v1" cannot be handled as a ConfigMap'),
    Case("another custom kind than the path's", "POST", WIDGETS, {**widget(), "kind": "Gadget"}, 422, "Invalid", "must be Widget", "kind"),
    Case("a number where text belongs", "POST", MAPS, {**NEW, "data": {"x": 1}}, 400, "BadRequest", 'ConfigMap in version "v1" cannot be handled as a ConfigMap'),
    Case("text where a number belongs", "POST", DEPLOYMENTS, deploying(replicas="three"), 400, "BadRequest", 'Deployment in version "v1" cannot be handled as a Deployment'),
    Case("a list where a mapping belongs", "POST", MAPS, {**NEW, "data": ["x"]}, 400, "BadRequest", 'ConfigMap in version "v1" cannot be handled as a ConfigMap'),
    Case("neither name nor generateName", "POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}, 422, "Invalid", "name or generateName is required", "metadata.name"),
    Case("no metadata", "POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap"}, 422, "Invalid", "name or generateName is required", "metadata.name"),
    Case("a name that differs from the path's", "PUT", HERE, config_map("other"), 400, "BadRequest", "the name of the object (other) does not match the name on the URL (here)"),
    Case("no name in a replacement", "PUT", HERE, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}, 400, "BadRequest", "name must be provided"),
    Case("another namespace than the path's", "POST", MAPS, config_map("new", namespace="default"), 400, "BadRequest", OTHER_NAMESPACE),
    Case("another namespace in a replacement", "PUT", HERE, config_map("here", namespace="default"), 400, "BadRequest", OTHER_NAMESPACE),
    Case("a version in what is to be created", "POST", MAPS, config_map("new", resourceVersion="1"), 500, "", "resourceVersion should not be set on objects to be created"),
    Case("a version that is no number in a replacement", "PUT", HERE, config_map("here", resourceVersion="x"), 500, ""),
    Case("the uid of another object in a replacement", "PUT", HERE, config_map("here", uid=OTHER_UID), 409, "Conflict", f"UID in precondition: {OTHER_UID}"),
    Case("an old version in a replacement", "PUT", HERE, config_map("here", resourceVersion="1"), 409, "Conflict", "the object has been modified"),
    Case("create what is there", "POST", MAPS, config_map("here"), 409, "AlreadyExists", 'configmaps "here" already exists'),
    Case("more than three megabytes", "POST", MAPS, config_map("new", {"x": "x" * 3 * LONG}), 413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728"),
    Case("more data than a ConfigMap holds", "POST", MAPS, config_map("new", {"x": "x" * (LONG + 1)}), 422, "Invalid", "may not be more than 1048576 bytes"),
    Case("an unknown field, strictly", "POST", f"{MAPS}?fieldValidation=Strict", {**NEW, "nonsense": 1}, 400, "BadRequest", 'strict decoding error: unknown field "nonsense"'),
    Case("an unknown custom field, strictly", "POST", f"{WIDGETS}?fieldValidation=Strict", widget(nonsense=1), 400, "BadRequest", 'strict decoding error: unknown field "spec.nonsense"'),
    Case("a field twice, strictly", "POST", f"{MAPS}?fieldValidation=Strict", b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new"},"data":{"x":"1","x":"2"}}', 400, "BadRequest", 'strict decoding error: duplicate field "data.x"'),
]  # fmt: skip

PARAMETERS = [
    Case("a limit that is no number", "GET", f"{MAPS}?limit=many", None, 400, "BadRequest"),
    Case("a continue token of nobody's", "GET", f"{MAPS}?continue=nonsense", None, 400, "BadRequest", "continue key is not valid"),
    Case("a list of a version that is no number", "GET", f"{MAPS}?resourceVersion=x", None, 400, "BadRequest", "invalid resource version"),
    Case("a list of a negative version", "GET", f"{MAPS}?resourceVersion=-1", None, 400, "BadRequest", "invalid resource version"),
    Case("a watch from a version that is no number", "GET", f"{MAPS}?watch=1&resourceVersion=x", None, 500, "", 'resourceVersion: Invalid value: "x"'),
    Case("a version of a match without a version", "GET", f"{MAPS}?resourceVersionMatch=Exact", None, 422, "Invalid", "is forbidden unless resourceVersion is provided", "resourceVersionMatch"),
    Case("a timeout that is no number", "GET", f"{MAPS}?timeoutSeconds=x", None, 400, "BadRequest"),
    Case("a label selector that cannot be read", "GET", f"{MAPS}?labelSelector=a%20b", None, 400, "BadRequest", "unable to parse requirement"),
    Case("a field selector that cannot be read", "GET", f"{MAPS}?fieldSelector=nonsense", None, 400, "BadRequest", "invalid selector: 'nonsense'"),
    Case("a field that cannot be selected", "GET", f"{MAPS}?fieldSelector=data.x%3D1", None, 400, "BadRequest", '"data.x" is not a known field selector'),
    Case("a custom field that cannot be selected", "GET", f"{WIDGETS}?fieldSelector=spec.size%3Dsmall", None, 400, "BadRequest", "field label not supported: spec.size"),
    Case("an unknown field validation", "POST", f"{MAPS}?fieldValidation=Rarely", NEW, 422, "Invalid", 'supported values: "", "Ignore", "Strict", "Warn"', "fieldValidation"),
    Case("an unknown dry run", "POST", f"{MAPS}?dryRun=Some", NEW, 422, "Invalid", 'supported values: "All"', "dryRun"),
    Case("an unknown dry run of a deletion", "DELETE", HERE, {**OPTIONS, "dryRun": ["Some"]}, 422, "Invalid", 'supported values: "All"', "dryRun"),
    Case("a manager's name too long", "POST", f"{MAPS}?fieldManager={'m' * 129}", NEW, 422, "Invalid", "may not be more than 128 bytes", "fieldManager"),
    Case("a manager's name that cannot be printed", "POST", f"{MAPS}?fieldManager=%07", NEW, 422, "Invalid", "invalid character U+0007", "fieldManager"),
    Case("force without apply", "PATCH", f"{HERE}?force=true", {}, 422, "Invalid", "may not be specified for non-apply patch", "force", content=MERGE),
    Case("an unknown propagation", "DELETE", f"{HERE}?propagationPolicy=Sideways", None, 422, "Invalid", 'supported values: "Foreground", "Background", "Orphan"', "propagationPolicy"),
    Case("an unknown propagation in the options", "DELETE", HERE, {**OPTIONS, "propagationPolicy": "Sideways"}, 422, "Invalid", 'Unsupported value: "Sideways"', "propagationPolicy"),
    Case("delete another uid", "DELETE", HERE, {**OPTIONS, "preconditions": {"uid": OTHER_UID}}, 409, "Conflict", "The object might have been deleted and then recreated"),
    Case("delete another version", "DELETE", HERE, {**OPTIONS, "preconditions": {"resourceVersion": "1"}}, 409, "Conflict", "The object might have been modified"),
    Case("evict another than the path's", "POST", f"{PODS}/here/eviction", eviction("other"), 400, "BadRequest", "name in URL does not match name in Eviction object"),
    Case("a token for too short a time", "POST", f"{TOKENS}/here/token", token(expirationSeconds=60), 422, "Invalid", "may not specify a duration less than 10 minutes", "spec.expirationSeconds"),
    Case("an access review of nothing", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}}, 422, "Invalid", "exactly one of nonResourceAttributes or resourceAttributes must be specified", "spec.resourceAttributes"),
]  # fmt: skip

PATCHES = [
    Case("a merge patch that is no JSON", "PATCH", HERE, b'{"data":', 400, "BadRequest", "error decoding patch", content=MERGE),
    Case("a merge patch that is a list", "PATCH", HERE, [], 400, "BadRequest", "error decoding patch", content=MERGE),
    Case("a merge patch to the wrong type", "PATCH", HERE, {"data": {"x": 1}}, 422, "Invalid", "", "patch", content=MERGE),
    Case("a merge patch that renames", "PATCH", HERE, {"metadata": {"name": "other"}}, 400, "BadRequest", "the name of the object (other) does not match the name on the URL (here)", content=MERGE),
    Case("a merge patch of the uid", "PATCH", HERE, {"metadata": {"uid": OTHER_UID}}, 422, "Invalid", "field is immutable", "metadata.uid", content=MERGE),
    Case("a merge patch of an old version", "PATCH", HERE, {"metadata": {"resourceVersion": "1"}}, 409, "Conflict", "the object has been modified", content=MERGE),
    Case("a JSON patch that is no list", "PATCH", HERE, {"op": "add"}, 400, "BadRequest", "error decoding patch", content=JSON_PATCH),
    Case("a JSON patch with an unknown operation", "PATCH", HERE, [{"op": "jump", "path": "/data"}], 422, "Invalid", content=JSON_PATCH),
    Case("a JSON patch whose test fails", "PATCH", HERE, [{"op": "test", "path": "/data/k", "value": "2"}], 422, "Invalid", "the server rejected our request due to an error in our request", content=JSON_PATCH),
    Case("a JSON patch below what is not there", "PATCH", HERE, [{"op": "add", "path": "/spec/x/y", "value": 1}], 422, "Invalid", content=JSON_PATCH),
    Case("a JSON patch that removes what is not there", "PATCH", HERE, [{"op": "remove", "path": "/data/gone"}], 422, "Invalid", content=JSON_PATCH),
    Case("an apply without a manager", "PATCH", HERE, config_map("here"), 422, "Invalid", "is required for apply patch", "fieldManager", content=APPLY),
    Case("an apply without apiVersion", "PATCH", APPLIED, {"kind": "ConfigMap"}, 400, "BadRequest", "invalid object type: /, Kind=ConfigMap", content=APPLY),
    Case("an apply without kind", "PATCH", APPLIED, {"apiVersion": "v1"}, 400, "BadRequest", "invalid object type: /v1, Kind=", content=APPLY),
    Case("an apply of another kind", "PATCH", APPLIED, {"apiVersion": "v1", "kind": "Secret"}, 400, "BadRequest", "invalid object type: /v1, Kind=Secret", content=APPLY),
    Case("an apply of another name", "PATCH", APPLIED, config_map("other"), 400, "BadRequest", "the name of the object (other) does not match the name on the URL (here)", content=APPLY),
    Case("an apply of another namespace", "PATCH", APPLIED, config_map("here", namespace="default"), 400, "BadRequest", OTHER_NAMESPACE, content=APPLY),
    Case("an apply that is no YAML", "PATCH", APPLIED, b'{"a": [', 400, "BadRequest", "error decoding YAML", content=APPLY),
    Case("an apply with managed fields", "PATCH", APPLIED, config_map("here", managedFields=[{"manager": "x"}]), 400, "BadRequest", "metadata.managedFields must be nil", content=APPLY),
    Case("an apply of a field that the schema does not have", "PATCH", APPLIED, {**config_map("here"), "nonsense": 1}, 500, "", ".nonsense: field not declared in schema", content=APPLY),
    Case("an apply with a key twice", "PATCH", f"{WIDGETS}/here?fieldManager=m", {**widget(parts=[{"name": "x"}, {"name": "x"}]), "metadata": {"name": "here"}}, 500, "", '.spec.parts: duplicate entries for key [name="x"]', content=APPLY),
    Case("an apply against another manager", "PATCH", APPLIED, config_map("here", {"k": "2"}), 409, "Conflict", 'Apply failed with 1 conflict: conflict with "owner" using v1', ".data.k", content=APPLY),
]  # fmt: skip

VALUES = [
    Case("a name with capitals", "POST", MAPS, config_map("Upper"), 422, "Invalid", "a lowercase RFC 1123 subdomain must consist of", "metadata.name"),
    Case("a custom name with capitals", "POST", WIDGETS, {**widget(), "metadata": {"name": "Upper"}}, 422, "Invalid", "a lowercase RFC 1123 subdomain must consist of", "metadata.name"),
    Case("a name too long", "POST", MAPS, config_map("n" * 254), 422, "Invalid", "", "metadata.name"),
    Case("a namespace with a dot", "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}}, 422, "Invalid", "must not contain dots", "metadata.name"),
    Case("a label value with a blank", "POST", MAPS, config_map("new", labels={"team": "a b"}), 422, "Invalid", "a valid label must be", "metadata.labels"),
    Case("a label key with a blank", "POST", MAPS, config_map("new", labels={"a b": "x"}), 422, "Invalid", "name part must consist of", "metadata.labels"),
    Case("an annotation key with a blank", "POST", MAPS, config_map("new", annotations={"a b": "x"}), 422, "Invalid", "name part must consist of", "metadata.annotations"),
    Case("annotations too large", "POST", MAPS, config_map("new", annotations={"x": "x" * (257 << 10)}), 422, "Invalid", "may not be more than 262144 bytes", "metadata.annotations"),
    Case("a key of data with a blank", "POST", MAPS, config_map("new", {"a b": "x"}), 422, "Invalid", "a valid config key must consist of", "data[a b]"),
    Case("a finalizer without a domain", "POST", MAPS, config_map("new", finalizers=["hold"]), 422, "Invalid", "name is neither a standard finalizer name nor is it fully qualified", "metadata.finalizers[0]"),
    Case("data of an immutable ConfigMap", "PATCH", f"{MAPS}/fixed", {"data": {"x": "2"}}, 422, "Invalid", "field is immutable when `immutable` is set", "data", content=MERGE),
    Case("a Deployment without selector and template", "POST", DEPLOYMENTS, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "new"}, "spec": {}}, 422, "Invalid", "Required value", "spec.selector"),
    Case("a selector that does not match its template", "POST", DEPLOYMENTS, deploying(selector={"matchLabels": {"app": "other"}}), 422, "Invalid", "`selector` does not match template `labels`", "spec.template.metadata.labels"),
    Case("a selector that changes", "PATCH", f"{DEPLOYMENTS}/here", {"spec": {"selector": {"matchLabels": {"app": "other"}}}}, 422, "Invalid", "field is immutable", "spec.selector", content=MERGE),
    Case("a negative number of replicas", "PATCH", f"{DEPLOYMENTS}/here", {"spec": {"replicas": -1}}, 422, "Invalid", "must be greater than or equal to 0", "spec.replicas", content=MERGE),
    Case("a negative scale", "PATCH", f"{DEPLOYMENTS}/here/scale", {"spec": {"replicas": -1}}, 422, "Invalid", "must be greater than or equal to 0", "spec.replicas", content=MERGE),
    Case("a Job whose containers change", "PATCH", "/apis/batch/v1/namespaces/$NS/jobs/here", {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "other"}]}}}}, 422, "Invalid", "field is immutable", "spec.template", content=MERGE),
    Case("two containers of one name", "POST", PODS, pod_with("a", "a"), 422, "Invalid", "Duplicate value", "spec.containers[1].name"),
    Case("a pod without containers", "POST", PODS, pod_with(), 422, "Invalid", "Required value", "spec.containers"),
    Case("a pod whose command changes", "PATCH", f"{PODS}/here", {"spec": {"hostname": "other"}}, 422, "Invalid", "pod updates may not change fields other than", "spec", content=MERGE),
    Case("two ports of one name", "POST", SERVICES, service("new", ("http", 80), ("http", 81)), 422, "Invalid", "Duplicate value", "spec.ports[1].name"),
    Case("two ports without names", "POST", SERVICES, service("new", ("", 80), ("", 81)), 422, "Invalid", "Required value", "spec.ports[0].name"),
    Case("a port out of range", "POST", SERVICES, service("new", ("http", 70000)), 422, "Invalid", "must be between 1 and 65535, inclusive", "spec.ports[0].port"),
    Case("a binding that gets another role", "PATCH", BINDING, {"roleRef": {"name": "other"}}, 422, "Invalid", "cannot change roleRef", "roleRef", content=MERGE),
]  # fmt: skip

CUSTOM_VALUES = [
    Case("no spec", "POST", WIDGETS, {"apiVersion": "$GROUP/v1", "kind": "Widget", "metadata": {"name": "new"}}, 422, "Invalid", "Required value", "spec"),
    Case("a required field left out", "POST", WIDGETS, {**widget(), "spec": {}}, 422, "Invalid", "spec.size: Required value", "spec.size"),
    Case("a value that is not in the enum", "POST", WIDGETS, widget(size="huge"), 422, "Invalid", 'spec.size: Unsupported value: "huge": supported values: "small", "medium", "large"', "spec.size"),
    Case("text for an integer", "POST", WIDGETS, widget(limits={"memory": "x"}), 422, "Invalid", 'Invalid value: "string": spec.limits.memory in body must be of type integer: "string"', "spec.limits.memory"),
    Case("a fraction for an integer", "POST", WIDGETS, widget(limits={"memory": 1.5}), 422, "Invalid", 'Invalid value: "number": spec.limits.memory in body must be of type integer: "number"', "spec.limits.memory"),
    Case("text for a boolean", "POST", WIDGETS, widget(paused="yes"), 422, "Invalid", 'spec.paused in body must be of type boolean: "string"', "spec.paused"),
    Case("a list for an object", "POST", WIDGETS, widget(free=[]), 422, "Invalid", 'spec.free in body must be of type object: "array"', "spec.free"),
    Case("a number for text in a mapping", "POST", WIDGETS, widget(labels={"a": 1}), 422, "Invalid", 'spec.labels.a in body must be of type string: "integer"', "spec.labels.a"),
    Case("a number above the maximum", "POST", WIDGETS, widget(replicas=11), 422, "Invalid", "spec.replicas in body should be less than or equal to 10", "spec.replicas"),
    Case("a number below the minimum", "POST", WIDGETS, widget(replicas=-1), 422, "Invalid", "spec.replicas in body should be greater than or equal to 0", "spec.replicas"),
    Case("text that does not match", "POST", WIDGETS, widget(title="A B"), 422, "Invalid", "spec.title in body should match '^[a-z]+$'", "spec.title"),
    Case("text too short", "POST", WIDGETS, widget(title="a"), 422, "Invalid", "spec.title in body should be at least 2 chars long", "spec.title"),
    Case("text too long", "POST", WIDGETS, widget(title="abcdefghi"), 422, "Invalid", "may not be more than 8 bytes", "spec.title"),
    Case("too many items", "POST", WIDGETS, widget(steps=["a", "b", "c", "d"]), 422, "Invalid", "must have at most 3 items", "spec.steps"),
    Case("a key twice in a keyed list", "POST", WIDGETS, widget(parts=[{"name": "x"}, {"name": "x"}]), 422, "Invalid", 'Duplicate value: {"name":"x"}', "spec.parts[1]"),
    Case("an item without its key", "POST", WIDGETS, widget(parts=[{"count": 1}]), 422, "Invalid", "Required value", "spec.parts[0].name"),
    Case("an item twice in a set", "POST", WIDGETS, widget(tags=["x", "x"]), 422, "Invalid", 'Duplicate value: "x"', "spec.tags[1]"),
    Case("null for what is required", "POST", WIDGETS, widget(size=None), 422, "Invalid", "Required value", "spec.size"),
    Case("a bad value by merge patch", "PATCH", f"{WIDGETS}/here", {"spec": {"size": "huge"}}, 422, "Invalid", "Unsupported value", "spec.size", content=MERGE),
    Case("a bad value by JSON patch", "PATCH", f"{WIDGETS}/here", [{"op": "remove", "path": "/spec/size"}], 422, "Invalid", "Required value", "spec.size", content=JSON_PATCH),
    Case("a bad status", "PATCH", f"{WIDGETS}/here/status", {"status": {"phase": "Odd"}}, 422, "Invalid", "Unsupported value", "status.phase", content=MERGE),
    Case("a definition whose name does not fit", "POST", DEFINITIONS, thing("other.x.windlass.dev"), 422, "Invalid", 'must be spec.names.plural+"."+spec.group', "metadata.name"),
    Case("a definition whose schema has no type", "POST", DEFINITIONS, thing(schema={}), 422, "Invalid", "must not be empty at the root", "spec.validation.openAPIV3Schema.type"),
    Case("a definition with an unknown scope", "POST", DEFINITIONS, thing(scope="Global"), 422, "Invalid", 'Unsupported value: "Global"', "spec.scope"),
]  # fmt: skip

CASES = [*ADDRESSES, *BODIES, *PARAMETERS, *PATCHES, *VALUES, *CUSTOM_VALUES]
