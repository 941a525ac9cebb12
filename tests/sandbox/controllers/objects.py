"""Objects for the tests of actors."""

from __future__ import annotations

from typing import Any

Body = dict[str, Any]
URL = "https://git.test/apps.git"
CASCADE = "resources-finalizer.argocd.argoproj.io"


def pod_template(name: str = "web", image: str = "web:1", annotations: Body | None = None, **spec: Any) -> Body:
    meta: Body = {"labels": {"app": name}, **({"annotations": annotations} if annotations else {})}
    return {"metadata": meta, "spec": {"containers": [{"name": "main", "image": image}], **spec}}


def workload(kind: str = "Deployment", name: str = "web", image: str = "web:1", **spec: Any) -> Body:
    template = spec.pop("template", None) or pod_template(name, image, spec.pop("annotations", None))
    body = {"selector": {"matchLabels": {"app": name}}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": body}


def job(image: str = "run:1", annotations: Body | None = None, restart: str = "Never", **spec: Any) -> Body:
    template = pod_template("run", image, annotations, restartPolicy=restart)
    return {"metadata": {"name": "run"}, "spec": {"template": template, **spec}}


def claim(name: str = "data", **spec: Any) -> Body:
    wish = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return {"metadata": {"name": name}, "spec": wish}


def config(name: str = "web", value: str = "1", wave: int = 0) -> Body:
    meta: Body = {"name": name, **({"annotations": {"argocd.argoproj.io/sync-wave": str(wave)}} if wave else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"value": value}}


def application(name: str = "web", path: str = "", namespace: str = "default", **spec: Any) -> Body:
    source = {"repoURL": URL, "path": path or name, "targetRevision": "main"}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd", "finalizers": [CASCADE]},
        "spec": {
            "project": "default",
            "source": source,
            "destination": {"server": "https://kubernetes.default.svc", "namespace": namespace},
            **spec,
        },
    }
