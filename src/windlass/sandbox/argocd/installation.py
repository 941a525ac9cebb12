"""Installs Argo CD in a sandbox: CRDs, namespace, default project and controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.sandbox.argocd.application_controller import ArgoCD
from windlass.sandbox.argocd.application_sets import ApplicationSets
from windlass.sandbox.argocd.application_specs import NAMESPACE
from windlass.sandbox.argocd.custom_resources import GROUP, definitions

if TYPE_CHECKING:
    from windlass.sandbox.sandbox import Sandbox

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
OPEN_PROJECT = {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}


async def install_argocd(sandbox: Sandbox) -> ArgoCD:
    calls = sandbox.caller()
    for body in definitions():
        await calls.create(DEFINITIONS, body)
    await calls.create("namespaces", {"metadata": {"name": NAMESPACE}})
    head = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"}}
    project = {**head, "spec": {**OPEN_PROJECT, "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}}
    await calls.create(f"appprojects.{GROUP}", project, NAMESPACE)
    argocd = ArgoCD(sandbox)
    ApplicationSets(sandbox, argocd.repositories)
    return argocd
