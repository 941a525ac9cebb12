"""A simulated cluster in virtual time that a platform can be deployed to: stand-in workloads and random faults."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windlass.core.platform.model.applications import ResourceRef
from windlass.errors import InvalidInput
from windlass.kube.client.clients import KubeClient
from windlass.kube.transport.calls import Calls
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.apiserver.requests import AUTHENTICATED, MASTERS, User
from windlass.sandbox.argocd import application_specs
from windlass.sandbox.argocd.application_specs import NAMESPACE as ARGOCD
from windlass.sandbox.argocd.installation import DEFINITIONS, install_argocd
from windlass.sandbox.argocd.repositories import MemoryRepository
from windlass.sandbox.controllers.installation import install_workloads
from windlass.sandbox.sandbox import Sandbox
from windlass.simulation import stand_ins, virtual_time
from windlass.simulation.in_process_transport import InProcessTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from windlass.core.platform.model.applications import ApplicationRef, Platform
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.argocd.application_controller import ArgoCD
    from windlass.simulation.random_faults import Disturbance
    from windlass.simulation.stand_ins import Conduct

REPOSITORY = "https://stand-in.invalid/platform.git"
US = User("windlass", (MASTERS, AUTHENTICATED))
PROJECTS = "appprojects.argoproj.io"
WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet")
OPEN: Body = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@dataclass(frozen=True, slots=True)
class Cluster:
    sandbox: Sandbox
    argocd: ArgoCD
    client: KubeClient
    platform: Platform
    conducts: Mapping[str, Conduct]

    def begin(self, name: str) -> None:
        """Called when a node starts. If the node is a resource, create it; it becomes ready after its time."""
        ref = self.platform.applications[name].target
        if isinstance(ref, ResourceRef):
            self.sandbox.start(self._appear(name, ref), name=f"stand-in of {name}")

    async def _appear(self, name: str, ref: ResourceRef) -> None:
        calls, conduct = self.sandbox.caller(), self.conducts[name]
        kind = self.sandbox.server.catalogue.named(ref.api_version, ref.kind)
        assert kind is not None
        namespace = (ref.namespace or stand_ins.NAMESPACE) if kind.namespaced else ""
        if await calls.find(kind.id, ref.name, namespace):
            return
        if ref.kind in WORKLOADS and not kind.custom:
            body = {**stand_ins.workload(ref.kind, ref.name, conduct), "metadata": {"name": ref.name}}
            await calls.create(kind.id, body, namespace)
            return
        body = {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": {"name": ref.name}, "spec": {}}
        await calls.create(kind.id, {**body, "status": _status(is_ready=False)}, namespace)
        await self.sandbox.sources.sleep(conduct.ready_after)
        status = _status(is_ready=not conduct.is_failing, is_failing=conduct.is_failing)
        await calls.patch(kind.id, ref.name, {"status": status}, namespace)

    def disturb(self, disturbance: Disturbance) -> None:
        """Inject the faults from now on."""
        for _, fault in disturbance.faults:
            self.sandbox.server.faults.add(fault)
        for name, lie in disturbance.lies.items():
            ref = self.platform.applications[name].target
            self.argocd.stale[
                application_specs.instance_name({"name": ref.name, "namespace": ref.namespace or ARGOCD})
            ] = lie
        self.sandbox.start(self._cut(disturbance), name="cuts")

    async def _cut(self, disturbance: Disturbance) -> None:
        now = 0.0
        for moment in disturbance.cuts:
            await self.sandbox.sources.sleep(moment - now)
            now = moment
            disturbance.cut.append(self.sandbox.server.disturb("cut", Fault(user=US.name)))


@asynccontextmanager
async def raised(platform: Platform, conducts: Mapping[str, Conduct], seed: int) -> AsyncIterator[Cluster]:
    """Start a cluster with Argo CD and a repository of the platform's stand-ins, of which nothing is deployed yet."""
    async with Sandbox(virtual_time.virtual_sources(seed)) as sandbox:
        await install_workloads(sandbox)
        argocd = await install_argocd(sandbox)
        argocd.application_namespaces = ("*",)
        await sandbox.caller().patch(PROJECTS, "default", {"spec": {"sourceNamespaces": ["*"]}}, ARGOCD)
        await _prepare(sandbox, [node.target for node in platform.applications.values()])
        argocd.repositories[REPOSITORY] = MemoryRepository(stand_ins.files(platform, REPOSITORY, conducts))
        calls = Calls(InProcessTransport(sandbox, US), clock=virtual_time.virtual_clock())
        yield Cluster(sandbox, argocd, KubeClient(calls), platform, conducts)


async def _prepare(sandbox: Sandbox, targets: Iterable[ApplicationRef | ResourceRef]) -> None:
    """Create the namespaces, and the CustomResourceDefinitions of kinds that the sandbox does not serve."""
    calls, catalogue = sandbox.caller(), sandbox.server.catalogue
    targets = list(targets)
    for namespace in sorted({ref.namespace for ref in targets if ref.namespace} - {ARGOCD}):
        if await calls.find("namespaces", namespace) is None:
            await calls.create("namespaces", {"metadata": {"name": namespace}})
    unserved: dict[tuple[str, str], list[ResourceRef]] = {}
    for ref in targets:
        if isinstance(ref, ResourceRef):
            group = ref.api_version.rpartition("/")[0]
            kind = catalogue.named(ref.api_version, ref.kind)
            if kind is None and group and not catalogue.is_built_in(group):
                unserved.setdefault((group, ref.kind), []).append(ref)
            elif kind is None or not (kind.custom or ref.kind in WORKLOADS):
                words = f"there is no stand-in for {ref}"
                raise InvalidInput(words, hint=f"of built-in kinds only {', '.join(WORKLOADS)} can be rehearsed")
    for (group, kind_name), refs in sorted(unserved.items()):
        await calls.create(DEFINITIONS, _definition(group, kind_name, refs))


def _definition(group: str, kind: str, refs: list[ResourceRef]) -> Body:
    plural, versions = f"{kind.lower()}s", sorted({ref.api_version.rpartition("/")[2] for ref in refs})
    scope = "Namespaced" if any(ref.namespace for ref in refs) else "Cluster"
    rows: list[Any] = [
        {"name": version, "served": True, "storage": not number, "schema": {"openAPIV3Schema": OPEN}}
        for number, version in enumerate(versions)
    ]
    names = {"plural": plural, "singular": kind.lower(), "kind": kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": rows},
    }


def _status(*, is_ready: bool, is_failing: bool = False) -> Body:
    rows = [{"type": "Ready", "status": str(is_ready)}]
    return {"conditions": [*rows, {"type": "Failed", "status": "True", "reason": "Rehearsed"}] if is_failing else rows}
