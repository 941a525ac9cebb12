"""Custom kinds for the contract tests: Widget with everything our own kinds use, Gadget without subresources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.contracts.kinds import CRDS
from tests.contracts.servers import until
from windlass.kube.client.resources import Resource

if TYPE_CHECKING:
    from windlass.kube.client.clients import KubeClient
    from windlass.kube.client.objects import RawObject

CONDITION = {
    "type": "object",
    "required": ["type", "status"],
    "properties": {
        "type": {"type": "string"},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "reason": {"type": "string"},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
    },
}
PART = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "count": {"type": "integer", "default": 1}},
}
SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "string", "enum": ["small", "medium", "large"]},
        "replicas": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 10, "default": 1},
        "title": {"type": "string", "minLength": 2, "maxLength": 8, "pattern": "^[a-z]+$"},
        "port": {"x-kubernetes-int-or-string": True},
        "note": {"type": "string", "nullable": True},
        "level": {"type": "string", "nullable": True, "default": "normal"},
        "paused": {"type": "boolean"},
        "ratio": {"type": "number"},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "parts": {
            "type": "array", "items": PART,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        },
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "steps": {"type": "array", "maxItems": 3, "items": {"type": "string"}},
        "limits": {
            "type": "object",
            "properties": {"cpu": {"type": "integer", "default": 2}, "memory": {"type": "integer"}},
        },
    },
}  # fmt: skip
STATUS = {
    "type": "object",
    "properties": {
        "phase": {"type": "string", "enum": ["Ready", "Waiting"]},
        "replicas": {"type": "integer"},
        "selector": {"type": "string"},
        "conditions": {
            "type": "array", "items": CONDITION,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        },
    },
}  # fmt: skip
SCHEMA = {"type": "object", "required": ["spec"], "properties": {"spec": SPEC, "status": STATUS}}
SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


def definition(
    group: str,
    kind: str,
    *,
    schema: RawObject | None = None,
    subresources: RawObject | None = None,
    scope: str = "Namespaced",
) -> RawObject:
    """A CustomResourceDefinition with one version, v1."""
    singular = kind.lower()
    version: RawObject = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMA if schema is None else schema},
    }
    if subresources:
        version["subresources"] = subresources
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{singular}s.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {
                "kind": kind, "listKind": f"{kind}List", "plural": f"{singular}s", "singular": singular,
                "shortNames": [singular[:3]], "categories": ["contracts"],
            },
            "versions": [version],
        },
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Customs:
    """The custom kinds of this run."""

    group: str

    @property
    def widgets(self) -> Resource:
        """With status and scale subresources."""
        return Resource(self.group, "v1", "widgets", "Widget")

    @property
    def gadgets(self) -> Resource:
        """The same schema without subresources, as Argo CD's Application is."""
        return Resource(self.group, "v1", "gadgets", "Gadget")

    def widget(self, name: str, **spec: Any) -> RawObject:
        return self._item("Widget", name, spec)

    def gadget(self, name: str, **spec: Any) -> RawObject:
        return self._item("Gadget", name, spec)

    def _item(self, kind: str, name: str, spec: RawObject) -> RawObject:
        whole = {"size": "small", **spec}
        return {"apiVersion": f"{self.group}/v1", "kind": kind, "metadata": {"name": name}, "spec": whole}

    @property
    def definitions(self) -> list[RawObject]:
        subresources = {"status": {}, "scale": SCALE}
        return [definition(self.group, "Widget", subresources=subresources), definition(self.group, "Gadget")]


async def install(kube: KubeClient, *wanted: RawObject) -> None:
    """Creates definitions and waits until their kinds are served."""
    for item in wanted:
        await kube.create(CRDS.everywhere, item)
    for item in wanted:
        name = item["metadata"]["name"]
        await until(lambda name=name: _is_established(kube, name), f"{name} established")  # type: ignore[misc]
        # Established comes a moment before every path of the kind answers.
        spec = item["spec"]
        resource = Resource(spec["group"], "v1", spec["names"]["plural"], spec["names"]["kind"])
        await until(lambda resource=resource: _is_served(kube, resource), f"{name} served")  # type: ignore[misc]


async def _is_established(kube: KubeClient, name: str) -> bool:
    found = await kube.get(CRDS.named(name))
    conditions = found.get("status", {}).get("conditions") or []  # null in the first moments
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


async def _is_served(kube: KubeClient, resource: Resource) -> bool:
    found = await kube.discover()
    return found.find(resource.kind, resource.group) is not None
