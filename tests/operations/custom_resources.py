"""A kind of our own, about which nobody knows anything."""

from __future__ import annotations

from typing import Any

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(group: str, version: str, kind: str, scope: str = "Namespaced") -> dict[str, Any]:
    one = kind.lower()
    names = {"plural": f"{one}s", "singular": one, "kind": kind, "listKind": f"{kind}List"}
    versions = [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": ANYTHING}}]
    spec = {"group": group, "scope": scope, "names": names, "versions": versions}
    return {"metadata": {"name": f"{one}s.{group}"}, "spec": spec}


THINGS = definition("things.test", "v1", "Thing")


def thing(name: str, **status: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "things.test/v1", "kind": "Thing", "metadata": meta, "status": status}
