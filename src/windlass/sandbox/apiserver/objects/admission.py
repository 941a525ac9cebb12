"""Defaults and validation of individual built-in kinds."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

from windlass.sandbox.apiserver.objects.selectors import value_at_path
from windlass.sandbox.apiserver.wire.api_status import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    required_error,
    too_long,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.sandbox.apiserver.wire.api_status import Body

IMMUTABLE_MESSAGE = "field is immutable"
POD_UPDATE_MESSAGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
MUTABLE_POD_FIELDS = frozenset({"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "nodeName"})
MUTABLE_CONTAINER_FIELDS = frozenset({"image", "imagePullPolicy"})
CONFIG_KEY = r"[-._a-zA-Z0-9]+"
CONFIG_KEY_MESSAGE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    f"'key-name', regex used for validation is '{CONFIG_KEY}')"
)
MAX_DATA_BYTES = 1 << 20  # bytes in one ConfigMap or Secret


def _default_namespace(body: Body) -> None:
    body.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])


def _encode_string_data(body: Body) -> None:
    plain = body.pop("stringData", None) or {}
    if plain:
        encoded = {name: base64.b64encode(value.encode()).decode() for name, value in plain.items()}
        body["data"] = {**body.get("data", {}), **encoded}


def _default_job(body: Body) -> None:
    meta, spec = body["metadata"], body.setdefault("spec", {})
    if spec.get("manualSelector"):
        return
    uid, name = meta["uid"], meta["name"]
    labels = {"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name}
    labels |= {"controller-uid": uid, "job-name": name}
    template = spec.setdefault("template", {})
    template_meta = template.setdefault("metadata", {})
    template_meta["labels"] = {**template_meta.get("labels", {}), **labels}
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}


def _default_pod(body: Body) -> None:
    spec = body.setdefault("spec", {})
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = account


def _default_pull_policies(pod_spec: Any) -> None:
    for container in (*pod_spec.get("initContainers", ()), *pod_spec.get("containers", ())):
        image = container.get("image", "").rpartition("/")[2]
        is_latest = ":" not in image or image.endswith(":latest")
        container.setdefault("imagePullPolicy", "Always" if is_latest and "@" not in image else "IfNotPresent")


def _default_service(body: Body, before: Body | None) -> None:
    """Default the ports and the cluster IP, which is derived from the uid: the same in every run with one seed."""
    spec = body.setdefault("spec", {})
    for port in spec.get("ports", ()):
        port.setdefault("targetPort", port.get("port"))
    assigned = (before or {}).get("spec", {}).get("clusterIP")
    number = int(body["metadata"]["uid"][:8], 16)
    spec.setdefault("clusterIP", assigned or f"10.{96 + number % 16}.{number >> 8 & 255}.{number >> 16 & 255}")
    spec.setdefault("clusterIPs", [spec["clusterIP"]])


def apply_defaults(kind_id: str, body: Body, before: Body | None = None) -> None:
    """Set defaults in place, after those of the schema."""
    if before is None and kind_id in CREATE_DEFAULTS:
        CREATE_DEFAULTS[kind_id](body)
    if kind_id == "services":
        _default_service(body, before)
    if kind_id == "secrets":
        _encode_string_data(body)
    if kind_id == "namespaces":
        meta = body["metadata"]
        meta["labels"] = {**meta.get("labels", {}), "kubernetes.io/metadata.name": meta["name"]}
    if kind_id == "pods":
        _default_pull_policies(body.get("spec", {}))
    elif kind_id in POD_TEMPLATE_KINDS:
        _default_pull_policies(body.get("spec", {}).get("template", {}).get("spec", {}))


CREATE_DEFAULTS: dict[str, Callable[[Body], None]] = {
    "namespaces": _default_namespace,
    "pods": _default_pod,
    "jobs.batch": _default_job,
}
POD_TEMPLATE_KINDS = frozenset(
    {"deployments.apps", "statefulsets.apps", "daemonsets.apps", "replicasets.apps", "jobs.batch"}
)


def errors(kind_id: str, before: Body | None, after: Body) -> list[FieldError]:
    """Validation errors of a built-in object, including changes of immutable fields."""
    problems: list[FieldError] = []
    spec = after.get("spec", {})
    if kind_id in POD_TEMPLATE_KINDS:
        problems += _selector_errors(spec)
        problems += _container_errors(spec.get("template", {}).get("spec", {}), "spec.template.spec")
    if kind_id in VALIDATORS:
        problems += VALIDATORS[kind_id](after)
    if isinstance(spec.get("replicas"), int) and spec["replicas"] < 0:
        problems.append(invalid_value("spec.replicas", spec["replicas"], "must be greater than or equal to 0"))
    if before is not None:
        problems += _immutable_errors(kind_id, before, after)
    return problems


def _data_errors(body: Body) -> list[FieldError]:
    data = {**body.get("data", {}), **body.get("binaryData", {})}
    problems = [
        invalid_value(f"data[{key}]", key, CONFIG_KEY_MESSAGE) for key in data if not re.fullmatch(CONFIG_KEY, key)
    ]
    too_large = sum(len(value) for value in data.values()) > MAX_DATA_BYTES
    return [*problems, *([too_long("", MAX_DATA_BYTES)] if too_large else [])]


def _service_errors(body: Body) -> list[FieldError]:
    ports, problems, seen = body.get("spec", {}).get("ports", []), [], set()
    for index, port in enumerate(ports):
        where, name = f"spec.ports[{index}]", port.get("name", "")
        if len(ports) > 1 and not name:
            problems.append(required_error(f"{where}.name"))
        elif name in seen:
            problems.append(duplicate(f"{where}.name", name))
        seen.add(name)
        if not 1 <= port.get("port", 0) <= 65535:
            problems.append(
                invalid_value(f"{where}.port", port.get("port", 0), "must be between 1 and 65535, inclusive")
            )
    return problems


def _lease_errors(body: Body) -> list[FieldError]:
    spec = body.get("spec", {})
    rows = (("leaseDurationSeconds", 1, "than 0"), ("leaseTransitions", 0, "than or equal to 0"))
    invalid = [(f"spec.{name}", spec[name], why) for name, least, why in rows if spec.get(name, least) < least]
    return [invalid_value(path, value, f"must be greater {why}") for path, value, why in invalid]


def _event_errors(body: Body) -> list[FieldError]:
    namespace = body.get("involvedObject", {}).get("namespace", "")
    fits = namespace == body["metadata"].get("namespace") or (
        not namespace and body["metadata"].get("namespace") == "default"
    )
    return [] if fits else [invalid_value("involvedObject.namespace", namespace, "does not match event.namespace")]


VALIDATORS: dict[str, Callable[[Body], list[FieldError]]] = {
    "configmaps": _data_errors,
    "secrets": _data_errors,
    "services": _service_errors,
    "leases.coordination.k8s.io": _lease_errors,
    "events": _event_errors,
    "pods": lambda body: _container_errors(body.get("spec", {}), "spec"),
}


def _selector_errors(spec: Body) -> list[FieldError]:
    if "selector" not in spec:
        return [required_error("spec.selector")]
    labels = spec.get("template", {}).get("metadata", {}).get("labels", {})
    match_labels = spec["selector"].get("matchLabels", {})
    if any(labels.get(name) != value for name, value in match_labels.items()):
        labels_text = "{" + ",".join(f'"{name}":"{value}"' for name, value in sorted(labels.items())) + "}"
        message = f"Invalid value: {labels_text}: `selector` does not match template `labels`"
        return [FieldError("FieldValueInvalid", "spec.template.metadata.labels", message)]
    return []


def _container_errors(pod_spec: Body, path: str) -> list[FieldError]:
    containers = pod_spec.get("containers")
    if not containers:
        return [required_error(f"{path}.containers")]
    problems, seen = [], set()
    for index, container in enumerate(containers):
        where, name = f"{path}.containers[{index}]", container.get("name")
        problems += [required_error(f"{where}.{field}") for field in ("name", "image") if not container.get(field)]
        if name in seen:
            problems.append(duplicate(f"{where}.name", name))
        seen.add(name)
    return problems


def _immutable_errors(kind_id: str, before: Body, after: Body) -> list[FieldError]:
    problems = []
    if before.get("immutable") and any(before.get(n) != after.get(n) for n in ("data", "binaryData", "immutable")):
        changed = next(n for n in ("immutable", "data", "binaryData") if before.get(n) != after.get(n))
        problems.append(forbidden_field(changed, "field is immutable when `immutable` is set"))
    for path in IMMUTABLE_FIELDS.get(kind_id, ()):
        old, new = (value_at_path(body, path) for body in (before, after))
        if old != new:
            problems.append(
                invalid_value(path, new, "cannot change roleRef" if path == "roleRef" else IMMUTABLE_MESSAGE)
            )
    if kind_id == "pods" and _immutable_pod_spec(before) != _immutable_pod_spec(after):
        problems.append(forbidden_field("spec", POD_UPDATE_MESSAGE))
    return problems


def _immutable_pod_spec(pod: Body) -> Body:
    """The part of a pod's spec that cannot be updated.

    `nodeName` counts as mutable: a real cluster assigns the node once, with a binding, the sandbox with an update.
    """
    spec = {name: value for name, value in pod.get("spec", {}).items() if name not in MUTABLE_POD_FIELDS}
    for group in ("containers", "initContainers"):
        if group in spec:
            spec[group] = [{n: v for n, v in item.items() if n not in MUTABLE_CONTAINER_FIELDS} for item in spec[group]]
    return spec


IMMUTABLE_FIELDS = {
    "deployments.apps": ("spec.selector",),
    "replicasets.apps": ("spec.selector",),
    "daemonsets.apps": ("spec.selector",),
    "jobs.batch": ("spec.completions", "spec.selector", "spec.template"),
    "rolebindings.rbac.authorization.k8s.io": ("roleRef",),
    "clusterrolebindings.rbac.authorization.k8s.io": ("roleRef",),
    "secrets": ("type",),
}
