"""An Argo CD as somebody else left it: parents with sync waves, an ApplicationSet, other namespaces, a project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.sandbox.controllers.objects import URL, application, config

if TYPE_CHECKING:
    from windlass.sandbox.in_process_client import InProcessClient

APPS, SETS, PROJECTS = "applications.argoproj.io", "applicationsets.argoproj.io", "appprojects.argoproj.io"
WAVE = "argocd.argoproj.io/sync-wave"
AUTOMATED = {"automated": {"selfHeal": True}}
STEPS = [
    {"matchExpressions": [{"key": "env", "operator": "In", "values": [name]}]} for name in ("development", "production")
]


def child(name: str, wave: int | None = None, **annotations: str) -> dict[str, Any]:
    """An Application as a manifest in git, at a sync wave; the rest of its annotations by short name."""
    body = application(name, syncPolicy=AUTOMATED)
    marks = {f"windlass.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    body["metadata"]["annotations"] = {**marks, **({WAVE: str(wave)} if wave is not None else {})}
    return body


FILES: dict[str, list[dict[str, Any]]] = {
    "root/apps.yaml": [
        child("postgres", -1),
        child("keycloak", depends_on="vault"),
        child("vault"),
        child("monitoring", 1),
    ],
    "monitoring/apps.yaml": [child("prometheus"), child("grafana", depends_on="prometheus,nobody")],
    **{
        f"{name}/all.yaml": [config(name)]
        for name in (
            "postgres",
            "keycloak",
            "vault",
            "prometheus",
            "grafana",
            "tenant-a",
            "tenant-b",
            "base",
            "overlay",
        )
    },
}


async def grow(calls: InProcessClient) -> None:
    """Creates what the repository with FILES does not bring by itself."""
    await calls.create("namespaces", {"metadata": {"name": "team"}})
    head = {"apiVersion": "argoproj.io/v1alpha1"}
    project = {**head, "kind": "AppProject", "metadata": {"name": "team"}, "spec": {"sourceRepos": [URL]}}
    await calls.create(PROJECTS, project, "argocd")
    rolling: dict[str, Any] = {"strategy": {"type": "RollingSync", "rollingSync": {"steps": STEPS}}}
    elements = [{"name": "tenant-a", "env": "production"}, {"name": "tenant-b", "env": "development"}]
    tenant = application("{{name}}")
    template = {"metadata": {"name": "{{name}}", "labels": {"env": "{{env}}"}}, "spec": tenant["spec"]}
    rolling |= {"generators": [{"list": {"elements": elements}}], "template": template}
    await calls.create(
        SETS, {**head, "kind": "ApplicationSet", "metadata": {"name": "tenants"}, "spec": rolling}, "argocd"
    )
    several = application("several", project="team")
    del several["spec"]["source"]
    several["spec"]["sources"] = [
        {"repoURL": URL, "path": path, "targetRevision": "main"} for path in ("base", "overlay")
    ]
    await calls.create(APPS, several)
    elsewhere = application("vault", project="team")
    elsewhere["metadata"]["namespace"] = "team"
    await calls.create(APPS, elsewhere)
    await calls.create(APPS, application("root", syncPolicy=AUTOMATED))


TARGETS = {
    **{name: name for name in ("root", "postgres", "keycloak", "vault", "monitoring", "prometheus", "grafana")},
    **{name: name for name in ("tenant-a", "tenant-b", "several")},
    "team-vault": "team/vault",
}
NEEDS = {
    "root": (),
    "postgres": ("root",),
    "vault": ("postgres",),
    "keycloak": ("postgres", "vault"),
    "monitoring": ("keycloak", "vault"),
    "prometheus": ("keycloak", "monitoring", "vault"),
    "grafana": ("keycloak", "prometheus", "vault"),
    "tenant-a": ("tenant-b",),
    "tenant-b": (),
    "several": (),
    "team-vault": (),
}
STACKS = {
    "root": {"root"},
    "root-wave-minus-1": {"postgres"},
    "root-wave-0": {"keycloak", "vault"},
    "monitoring": {"monitoring", "prometheus", "grafana"},
    "tenants-step-1": {"tenant-b"},
    "tenants-step-2": {"tenant-a"},
    "team": {"several", "team-vault"},
}
