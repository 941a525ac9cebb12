"""Parts of objects that several controllers write: conditions, owner references, hashes, pods, CRDs."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from windlass.sandbox.clock import SUFFIX_LETTERS

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.controllers.controller import SandboxController

CONTROLLER_REVISIONS = "controllerrevisions.apps"
OPEN_SCHEMA: Body = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def find_condition(status: Body, condition_type: str) -> Body:
    return next((row for row in status.get("conditions") or () if row["type"] == condition_type), {})


def with_condition(conditions: list[Body], condition: Body, now: str) -> list[Body]:
    """The conditions with one added or replaced; `lastTransitionTime` changes only with `status`."""
    old = next((other for other in conditions if other["type"] == condition["type"]), {})
    since = old.get("lastTransitionTime", now) if old.get("status") == condition["status"] else now
    new = {**condition, "lastTransitionTime": since}
    return [new if other is old else other for other in conditions] if old else [*conditions, new]


def owner_reference(owner: Body) -> Body:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def short_hash(value: Any) -> str:
    """Hash of a value in ten letters, as in the names of ReplicaSets."""
    digest = hashlib.sha256(msgspec.json.encode(value, order="sorted")).digest()
    return "".join(SUFFIX_LETTERS[byte % len(SUFFIX_LETTERS)] for byte in digest[:10])


def pod_from_template(template: Body, owner: Body, meta: Body) -> Body:
    """A pod from a template, with an owner reference."""
    template_meta = template.get("metadata", {})
    labels = {**template_meta.get("labels", {}), **meta.get("labels", {})}
    pod_meta = {**meta, "labels": labels, "ownerReferences": [owner_reference(owner)]}
    if template_meta.get("annotations"):
        pod_meta["annotations"] = template_meta["annotations"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": pod_meta, "spec": template["spec"]}


def is_ready(pod: Body) -> bool:
    return find_condition(pod.get("status", {}), "Ready").get("status") == "True"


def is_active(pod: Body) -> bool:
    """Whether the pod has neither ended nor is being deleted."""
    ended = pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}
    return not ended and not pod["metadata"].get("deletionTimestamp")


async def ensure_revision(controller: SandboxController, owner: Body, name: str) -> None:
    """Create the ControllerRevision for the current template of a StatefulSet or DaemonSet if it is missing."""
    revisions = controller.list_owned(CONTROLLER_REVISIONS, owner)
    if any(row["metadata"]["name"] == name for row in revisions):
        return
    number = max((row["revision"] for row in revisions), default=0) + 1
    meta = {"name": name, "labels": owner["spec"]["selector"].get("matchLabels", {})}
    body = {"metadata": {**meta, "ownerReferences": [owner_reference(owner)]}, "revision": number}
    data = {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}
    await controller.create(CONTROLLER_REVISIONS, {**body, "data": data}, owner["metadata"]["namespace"])


def build_crd(api_version: str, names: Body, fields: Body, *, scope: str = "Namespaced", status: bool = False) -> Body:
    """A CustomResourceDefinition from the schemas of its fields; `spec` is required if there is one."""
    group, _, version = api_version.partition("/")
    properties: Body = {"metadata": {"type": "object"}, **fields}
    required = [name for name in ("metadata", "spec") if name in properties]
    schema = {"type": "object", "required": required, "properties": properties}
    crd_version: Body = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if status:
        crd_version["subresources"] = {"status": {}}
    singular = names["kind"].lower()
    names = {"singular": singular, "plural": f"{singular}{'es' if singular.endswith('s') else 's'}", **names}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": [crd_version]},
    }
