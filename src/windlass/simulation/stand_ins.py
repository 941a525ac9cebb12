"""Manifests of a stand-in repository: each application is a Deployment that becomes ready after a set time. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windlass.core.platform.model.applications import ApplicationRef
from windlass.sandbox.argocd.application_specs import FINALIZER
from windlass.sandbox.controllers.behaviours import ANNOTATION_PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.core.platform.model.applications import Platform
    from windlass.sandbox.apiserver.wire.api_status import Body

ROOT_FOLDER = "root"
"""Folder of the chart with the Applications."""
NAMESPACE = "default"
FAILURE_REASON = "ImagePullBackOff"
MAX_NAME_LENGTH = 50  # longer names are shortened, so that names of pods derived from them are valid


@dataclass(frozen=True, slots=True)
class WorkloadProfile:
    """How the stand-in workload of a node behaves."""

    ready_after: float = 0.5
    """Seconds until it is ready."""
    is_failing: bool = False
    progress_deadline: int = 600
    """Seconds without progress after which the rollout of a failing workload fails; see `effective_deadline`."""

    @property
    def effective_deadline(self) -> int:
        """Extended by the time to become ready, so that a workload that will become ready never misses its deadline."""
        return self.progress_deadline + (0 if self.is_failing else int(self.ready_after))

    @property
    def annotations(self) -> dict[str, str]:
        annotations = {f"{ANNOTATION_PREFIX}ready-after": f"{self.ready_after:g}s"}
        return {**annotations, f"{ANNOTATION_PREFIX}fails-with": FAILURE_REASON} if self.is_failing else annotations


def repository_files(platform: Platform, repository: str, profiles: Mapping[str, WorkloadProfile]) -> dict[str, Any]:
    """Files by path: a chart with all Applications of the platform, and a folder of manifests for each of them."""
    files: dict[str, Any] = {
        f"{ROOT_FOLDER}/Chart.yaml": "name: platform\nversion: 1.0.0\n",
        f"{ROOT_FOLDER}/values.yaml": "",
    }
    for name, node in platform.applications.items():
        if isinstance(node.target, ApplicationRef):
            files[f"{ROOT_FOLDER}/templates/{name}.yaml"] = _application_manifest(name, node.target, repository)
            files[f"{name}/all.yaml"] = [workload_manifest("Deployment", name, profiles[name])]
    return files


def _application_manifest(name: str, ref: ApplicationRef, repository: str) -> Body:
    source = {"repoURL": repository, "path": name, "targetRevision": "{{ .Values.targetRevision }}"}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": ref.name,
            **({"namespace": ref.namespace} if ref.namespace else {}),
            "finalizers": [FINALIZER],
        },
        "spec": {
            "project": "default",
            "source": source,
            "destination": {"server": "https://kubernetes.default.svc", "namespace": NAMESPACE},
        },
    }


def workload_manifest(kind: str, name: str, profile: WorkloadProfile) -> Body:
    short_name = (
        name if len(name) <= MAX_NAME_LENGTH else f"{name[:40]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    )
    labels = {"app.kubernetes.io/name": short_name}
    template = {
        "metadata": {"labels": labels, "annotations": profile.annotations},
        "spec": {"containers": [{"name": "main", "image": f"registry.invalid/{short_name}:1"}]},
    }
    spec: Body = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    if kind == "Deployment":
        spec["progressDeadlineSeconds"] = profile.effective_deadline
    if kind == "StatefulSet":
        spec["serviceName"] = short_name
    if kind == "DaemonSet":
        del spec["replicas"]
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": short_name}, "spec": spec}
