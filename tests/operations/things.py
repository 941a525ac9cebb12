"""A kind of our own, about which nobody knows anything."""

from __future__ import annotations

from typing import Any

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
THINGS: dict[str, Any] = {
    "metadata": {"name": "things.things.test"},
    "spec": {
        "group": "things.test",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": ANYTHING}}],
    },
}


def thing(name: str, **status: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "things.test/v1", "kind": "Thing", "metadata": meta, "status": status}
