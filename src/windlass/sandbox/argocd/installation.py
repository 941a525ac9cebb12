"""Installs Argo CD in a sandbox: CRDs, namespace, default project and controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.sandbox.argocd.application_controller import ApplicationController
from windlass.sandbox.argocd.application_sets import ApplicationSetController
from windlass.sandbox.argocd.application_specs import NAMESPACE
from windlass.sandbox.argocd.custom_resources import GROUP, build_crds
from windlass.sandbox.argocd.rendering_api import RenderingApi

if TYPE_CHECKING:
    from windlass.sandbox.sandbox import Sandbox

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
OPEN_PROJECT = {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}]}


async def install_argocd(sandbox: Sandbox) -> ApplicationController:
    client = sandbox.client()
    for body in build_crds():
        await client.create(CRDS, body)
    await client.create("namespaces", {"metadata": {"name": NAMESPACE}})
    head = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"}}
    project = {**head, "spec": {**OPEN_PROJECT, "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}}
    await client.create(f"appprojects.{GROUP}", project, NAMESPACE)
    argocd = ApplicationController(sandbox)
    ApplicationSetController(sandbox, argocd.repositories)
    server = sandbox.server
    server.subresources.services[NAMESPACE, "https:argocd-server:443"] = RenderingApi(
        argocd, server.authenticator.admin_token
    ).answer
    return argocd
