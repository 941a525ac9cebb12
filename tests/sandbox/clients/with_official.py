"""The official Python client on a sandbox: `python with_official.py KUBECONFIG`. A failure is a traceback."""
# mypy: ignore-errors
# The library is installed where this runs, not where types are checked

from __future__ import annotations

import sys

import pytest
from kubernetes import client, config, watch
from kubernetes.client.exceptions import ApiException

NAMESPACE = "official"
LABELS = {"app": "web"}


def settings(name: str, **labels: str) -> client.V1ConfigMap:
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels=labels), data={"x": "1"})


def deployment() -> client.V1Deployment:
    container = client.V1Container(name="main", image="web:1")
    meta, spec = client.V1ObjectMeta(labels=LABELS), client.V1PodSpec(containers=[container])
    template = client.V1PodTemplateSpec(metadata=meta, spec=spec)
    spec = client.V1DeploymentSpec(replicas=2, selector=client.V1LabelSelector(match_labels=LABELS), template=template)
    return client.V1Deployment(metadata=client.V1ObjectMeta(name="web"), spec=spec)


def refused(code: int, call, *arguments, **options) -> None:
    with pytest.raises(ApiException) as found:
        call(*arguments, **options)
    assert found.value.status == code


def objects(core: client.CoreV1Api) -> None:
    core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))
    for name, color in (("one", "red"), ("two", "blue")):
        core.create_namespaced_config_map(NAMESPACE, settings(name, color=color))
    refused(409, core.create_namespaced_config_map, NAMESPACE, settings("one"))
    found = core.list_namespaced_config_map(NAMESPACE, label_selector="color in (red, green)")
    assert [item.metadata.name for item in found.items] == ["one"]
    first = core.list_namespaced_config_map(NAMESPACE, limit=1)
    assert len(first.items) == 1
    assert first.metadata._continue
    changed = core.patch_namespaced_config_map("one", NAMESPACE, {"data": {"y": "2"}})
    assert changed.data == {"x": "1", "y": "2"}
    changed.data = {"x": "3"}
    core.replace_namespaced_config_map("one", NAMESPACE, changed)
    refused(409, core.replace_namespaced_config_map, "one", NAMESPACE, changed)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}, "data": {"x": "applied"}}
    form = {"field_manager": "other", "_content_type": "application/apply-patch+yaml"}
    refused(409, core.patch_namespaced_config_map, "two", NAMESPACE, body, **form)
    assert core.patch_namespaced_config_map("two", NAMESPACE, body, force=True, **form).data == {"x": "applied"}


def workloads(core: client.CoreV1Api, apps: client.AppsV1Api) -> None:
    apps.create_namespaced_deployment(NAMESPACE, deployment())
    stream = watch.Watch().stream(apps.list_namespaced_deployment, NAMESPACE, timeout_seconds=20)
    assert any(event["object"].status.available_replicas == 2 for event in stream)
    pods = core.list_namespaced_pod(NAMESPACE, label_selector="app=web", field_selector="status.phase=Running")
    assert len(pods.items) == 2
    apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 0}})
    assert apps.read_namespaced_deployment_scale("web", NAMESPACE).spec.replicas in {0, None}
    apps.delete_namespaced_deployment("web", NAMESPACE, propagation_policy="Foreground")
    core.delete_namespaced_config_map("one", NAMESPACE)
    refused(404, core.read_namespaced_config_map, "one", NAMESPACE)
    version = core.list_namespace().metadata.resource_version
    core.delete_namespace(NAMESPACE)
    stream = watch.Watch().stream(core.list_namespace, resource_version=version, timeout_seconds=20)
    assert any((event["type"], event["object"].metadata.name) == ("DELETED", NAMESPACE) for event in stream)


def main(kubeconfig: str) -> None:
    config.load_kube_config(kubeconfig)
    core = client.CoreV1Api()
    objects(core)
    workloads(core, client.AppsV1Api())
    sys.stdout.write("done\n")


if __name__ == "__main__":
    main(sys.argv[1])
