"""lightkube on a sandbox: `python with_lightkube.py KUBECONFIG`. A failure is a traceback."""
# mypy: ignore-errors
# The library is installed where this runs, not where types are checked

from __future__ import annotations

import sys

import pytest
from lightkube import ApiError, Client, KubeConfig, operators
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Namespace, Pod
from lightkube.types import CascadeType, PatchType

NAMESPACE = "light"
LABELS = {"app": "web"}
SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}],
    },
}


def settings(name: str, value: str = "1", **labels: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=NAMESPACE, labels=labels or None), data={"x": value})


def deployment() -> Deployment:
    pod = PodSpec(containers=[Container(name="main", image="web:1")])
    template = PodTemplateSpec(metadata=ObjectMeta(labels=LABELS), spec=pod)
    spec = DeploymentSpec(replicas=2, selector=LabelSelector(matchLabels=LABELS), template=template)
    return Deployment(metadata=ObjectMeta(name="web", namespace=NAMESPACE), spec=spec)


def refused(code: int, call, *arguments, **options) -> None:
    with pytest.raises(ApiError) as found:
        call(*arguments, **options)
    assert found.value.status.code == code


def objects(kube: Client) -> None:
    kube.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    for name, color in (("one", "red"), ("two", "blue")):
        kube.create(settings(name, color=color))
    found = kube.list(ConfigMap, namespace=NAMESPACE, labels={"color": ["red", "green"]})
    assert [item.metadata.name for item in found] == ["one"]
    assert len(list(kube.list(ConfigMap, namespace=NAMESPACE, labels={"color": operators.exists()}, chunk_size=1))) == 2
    changed = kube.patch(ConfigMap, "one", {"data": {"y": "2"}}, namespace=NAMESPACE, patch_type=PatchType.MERGE)
    assert changed.data == {"x": "1", "y": "2"}
    kube.apply(settings("three", "applied"), field_manager="one")
    refused(409, kube.apply, settings("three", "other"), field_manager="two")
    assert kube.apply(settings("three", "other"), field_manager="two", force=True).data == {"x": "other"}


def kinds(kube: Client) -> None:
    kube.create(CustomResourceDefinition.from_dict(DEFINITION))
    kube.wait(CustomResourceDefinition, "widgets.example.com", for_conditions=["Established"])
    widgets = create_namespaced_resource("example.com", "v1", "Widget", "widgets")
    kube.create(widgets(metadata=ObjectMeta(name="w", namespace=NAMESPACE), spec={"size": 1}))
    assert kube.get(widgets, "w", namespace=NAMESPACE).spec == {"size": 1}
    kube.delete(CustomResourceDefinition, "widgets.example.com")


def workloads(kube: Client) -> None:
    kube.create(deployment())
    kube.wait(Deployment, "web", namespace=NAMESPACE, for_conditions=["Available"])
    assert len(list(kube.list(Pod, namespace=NAMESPACE, labels=LABELS))) == 2
    kube.patch(Deployment, "web", {"spec": {"replicas": 1}}, namespace=NAMESPACE)
    for _, item in kube.watch(Deployment, namespace=NAMESPACE, server_timeout=20):
        if item.status.availableReplicas == 1 and item.status.replicas == 1:
            break
    kube.delete(Deployment, "web", namespace=NAMESPACE, cascade=CascadeType.FOREGROUND)
    kube.delete(ConfigMap, "one", namespace=NAMESPACE)
    refused(404, kube.get, ConfigMap, "one", namespace=NAMESPACE)
    kube.delete(Namespace, NAMESPACE)


def main(kubeconfig: str) -> None:
    kube = Client(config=KubeConfig.from_file(kubeconfig), namespace=NAMESPACE)
    objects(kube)
    kinds(kube)
    workloads(kube)
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(sys.argv[1])
