"""Parts of objects that several controllers write: conditions, owner references, hashes, pods, CRDs."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from windlass.sandbox.clock import SUFFIX_LETTERS

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.controllers.controller import Actor

REVISIONS = "controllerrevisions.apps"
OPEN: Body = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def moment_of(text: str) -> datetime:
    return datetime.fromisoformat(text)


def condition_in(status: Body, kind: str) -> Body:
    return next((row for row in status.get("conditions") or () if row["type"] == kind), {})


def with_condition(rows: list[Body], row: Body, now: str) -> list[Body]:
    """The conditions with one added or replaced; `lastTransitionTime` changes only with `status`."""
    old = next((other for other in rows if other["type"] == row["type"]), {})
    since = old.get("lastTransitionTime", now) if old.get("status") == row["status"] else now
    new = {**row, "lastTransitionTime": since}
    return [new if other is old else other for other in rows] if old else [*rows, new]


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


def pod_from(template: Body, owner: Body, meta: Body) -> Body:
    """A pod from a template, with an owner reference."""
    given = template.get("metadata", {})
    labels = {**given.get("labels", {}), **meta.get("labels", {})}
    own = {**meta, "labels": labels, "ownerReferences": [owner_reference(owner)]}
    if given.get("annotations"):
        own["annotations"] = given["annotations"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": own, "spec": template["spec"]}


def is_ready(pod: Body) -> bool:
    return condition_in(pod.get("status", {}), "Ready").get("status") == "True"


def is_active(pod: Body) -> bool:
    """Whether the pod has neither ended nor is being deleted."""
    ended = pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}
    return not ended and not pod["metadata"].get("deletionTimestamp")


async def keep_revision(actor: Actor, owner: Body, name: str) -> None:
    """Create the ControllerRevision for the current template of a StatefulSet or DaemonSet if it is missing."""
    known = actor.owned(REVISIONS, owner)
    if any(row["metadata"]["name"] == name for row in known):
        return
    number = max((row["revision"] for row in known), default=0) + 1
    meta = {"name": name, "labels": owner["spec"]["selector"].get("matchLabels", {})}
    body = {"metadata": {**meta, "ownerReferences": [owner_reference(owner)]}, "revision": number}
    data = {"spec": {"template": {**owner["spec"]["template"], "$patch": "replace"}}}
    await actor.create(REVISIONS, {**body, "data": data}, owner["metadata"]["namespace"])


def open_definition(
    api_version: str, names: Body, fields: Body, *, scope: str = "Namespaced", status: bool = False
) -> Body:
    """A CustomResourceDefinition from the schemas of its fields; `spec` is required if there is one."""
    group, _, version = api_version.partition("/")
    properties: Body = {"metadata": {"type": "object"}, **fields}
    required = [name for name in ("metadata", "spec") if name in properties]
    schema = {"type": "object", "required": required, "properties": properties}
    served: Body = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if status:
        served["subresources"] = {"status": {}}
    one = names["kind"].lower()
    names = {"singular": one, "plural": f"{one}{'es' if one.endswith('s') else 's'}", **names}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": [served]},
    }
