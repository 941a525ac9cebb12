"""Manifests of a stand-in repository: each application is a Deployment that becomes ready after a set time. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windlass.core.platform.model.applications import ApplicationRef
from windlass.sandbox.argocd.application_specs import CASCADE
from windlass.sandbox.controllers.behaviours import PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.core.platform.model.applications import Platform
    from windlass.sandbox.apiserver.wire.api_status import Body

ROOT = "root"
"""Folder of the chart with the Applications."""
NAMESPACE = "default"
BROKEN = "ImagePullBackOff"
LONGEST = 50  # longer names are shortened, so that names of pods derived from them are valid


@dataclass(frozen=True, slots=True)
class Conduct:
    """How the stand-in workload of a node behaves."""

    ready_after: float = 0.5
    """Seconds until it is ready."""
    is_failing: bool = False
    progress_deadline: int = 600
    """Seconds without progress after which the rollout of a failing workload fails; see `effective_deadline`."""

    @property
    def deadline(self) -> int:
        """Extended by the time to become ready, so that a workload that will become ready never misses its deadline."""
        return self.progress_deadline + (0 if self.is_failing else int(self.ready_after))

    @property
    def marks(self) -> dict[str, str]:
        marks = {f"{PREFIX}ready-after": f"{self.ready_after:g}s"}
        return {**marks, f"{PREFIX}fails-with": BROKEN} if self.is_failing else marks


def files(platform: Platform, repository: str, conducts: Mapping[str, Conduct]) -> dict[str, Any]:
    """Files by path: a chart with all Applications of the platform, and a folder of manifests for each of them."""
    found: dict[str, Any] = {f"{ROOT}/Chart.yaml": "name: platform\nversion: 1.0.0\n", f"{ROOT}/values.yaml": ""}
    for name, node in platform.applications.items():
        if isinstance(node.target, ApplicationRef):
            found[f"{ROOT}/templates/{name}.yaml"] = _application(name, node.target, repository)
            found[f"{name}/all.yaml"] = [workload("Deployment", name, conducts[name])]
    return found


def _application(name: str, ref: ApplicationRef, repository: str) -> Body:
    source = {"repoURL": repository, "path": name, "targetRevision": "{{ .Values.targetRevision }}"}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": ref.name,
            **({"namespace": ref.namespace} if ref.namespace else {}),
            "finalizers": [CASCADE],
        },
        "spec": {
            "project": "default",
            "source": source,
            "destination": {"server": "https://kubernetes.default.svc", "namespace": NAMESPACE},
        },
    }


def workload(kind: str, name: str, conduct: Conduct) -> Body:
    short = name if len(name) <= LONGEST else f"{name[:40]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    labels = {"app.kubernetes.io/name": short}
    template = {
        "metadata": {"labels": labels, "annotations": conduct.marks},
        "spec": {"containers": [{"name": "main", "image": f"registry.invalid/{short}:1"}]},
    }
    spec: Body = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    if kind == "Deployment":
        spec["progressDeadlineSeconds"] = conduct.deadline
    if kind == "StatefulSet":
        spec["serviceName"] = short
    if kind == "DaemonSet":
        del spec["replicas"]
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": short}, "spec": spec}
