"""The kinds that the contract tests touch, and the smallest objects of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.kube.client.resources import Resource

if TYPE_CHECKING:
    from windlass.kube.client.objects import RawObject

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
SERVICES = Resource("", "v1", "services", "Service")
EVENTS = Resource("", "v1", "events", "Event")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
JOBS = Resource("batch", "v1", "jobs", "Job")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)

NOBODY = "contracts-nobody"
"""A scheduler that does not exist: its pods stay Pending wherever the tests run."""


def config_map(name: str, data: dict[str, str] | None = None, **metadata: Any) -> RawObject:
    item: RawObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}
    return item if data is None else {**item, "data": data}


def secret(name: str, data: dict[str, str] | None = None, **metadata: Any) -> RawObject:
    """Unlike ConfigMaps, no controller puts Secrets into a namespace. Values are base64, as the server keeps them."""
    item: RawObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, **metadata}}
    return item if data is None else {**item, "data": data}


def pod_spec(*containers: str) -> RawObject:
    return {
        "schedulerName": NOBODY,
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": name, "image": "registry.invalid/none:1"} for name in containers or ("main",)],
    }


def pod(name: str, labels: dict[str, str] | None = None, *, account: str = "default") -> RawObject:
    """Its account must be there first; that of the name `default` comes a moment after the namespace."""
    metadata = {"name": name, "labels": labels or {"app": name}}
    spec = {**pod_spec(), "serviceAccountName": account}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def deployment(name: str, replicas: int = 0, *containers: str) -> RawObject:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec(*containers)},
        },
    }


def service(name: str, *ports: tuple[str, int]) -> RawObject:
    listed = [{"name": port_name, "port": port, "protocol": "TCP"} for port_name, port in ports]
    spec = {"selector": {"app": name}, "ports": listed}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def owner(item: RawObject, **more: Any) -> RawObject:
    """A reference to an object as the owner of another."""
    meta = item["metadata"]
    return {"apiVersion": item["apiVersion"], "kind": item["kind"], "name": meta["name"], "uid": meta["uid"], **more}


LIST_KINDS = [
    ("/api/v1/pods", "PodList"),
    ("/api/v1/namespaces", "NamespaceList"),
    ("/api/v1/namespaces/default/configmaps", "ConfigMapList"),
    ("/apis/apps/v1/deployments", "DeploymentList"),
    ("/apis/batch/v1/jobs", "JobList"),
    ("/apis/coordination.k8s.io/v1/leases", "LeaseList"),
    ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "CustomResourceDefinitionList"),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles", "ClusterRoleList"),
]
