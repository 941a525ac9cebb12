"""A simulated cluster in virtual time that a platform can be deployed to: stand-in workloads and random faults."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windlass.core.platform.model.applications import ResourceRef
from windlass.errors import InvalidInput
from windlass.kube.client.clients import KubeClient
from windlass.kube.transport.calls import CallSender
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.apiserver.requests import AUTHENTICATED, MASTERS, UserInfo
from windlass.sandbox.argocd import application_specs
from windlass.sandbox.argocd.application_specs import NAMESPACE as ARGOCD
from windlass.sandbox.argocd.installation import CRDS, install_argocd
from windlass.sandbox.argocd.repositories import MemoryRepository
from windlass.sandbox.controllers.installation import install_workloads
from windlass.sandbox.sandbox import Sandbox
from windlass.simulation import stand_ins, virtual_time
from windlass.simulation.in_process_transport import InProcessTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from windlass.core.platform.model.applications import ApplicationRef, Platform
    from windlass.sandbox.apiserver.wire.api_status import Body
    from windlass.sandbox.argocd.application_controller import ApplicationController
    from windlass.simulation.random_faults import FaultSchedule
    from windlass.simulation.stand_ins import WorkloadProfile

REPOSITORY_URL = "https://stand-in.invalid/platform.git"
CLIENT_USER = UserInfo("windlass", (MASTERS, AUTHENTICATED))
PROJECT_RESOURCE = "appprojects.argoproj.io"
WORKLOAD_KINDS = ("Deployment", "StatefulSet", "DaemonSet")
ANY_OBJECT_SCHEMA: Body = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@dataclass(frozen=True, slots=True)
class SimulatedCluster:
    sandbox: Sandbox
    argocd: ApplicationController
    client: KubeClient
    platform: Platform
    profiles: Mapping[str, WorkloadProfile]

    def start_node(self, name: str) -> None:
        """Called when a node starts. If the node is a resource, create it; it becomes ready after its time."""
        ref = self.platform.applications[name].target
        if isinstance(ref, ResourceRef):
            self.sandbox.start(self._create_object(name, ref), name=f"stand-in of {name}")

    async def _create_object(self, name: str, ref: ResourceRef) -> None:
        client, profile = self.sandbox.client(), self.profiles[name]
        kind = self.sandbox.server.catalogue.by_type(ref.api_version, ref.kind)
        assert kind is not None
        namespace = (ref.namespace or stand_ins.NAMESPACE) if kind.namespaced else ""
        if await client.find(kind.id, ref.name, namespace):
            return
        if ref.kind in WORKLOAD_KINDS and not kind.is_custom:
            body = {**stand_ins.workload_manifest(ref.kind, ref.name, profile), "metadata": {"name": ref.name}}
            await client.create(kind.id, body, namespace)
            return
        body = {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": {"name": ref.name}, "spec": {}}
        await client.create(kind.id, {**body, "status": _ready_status(is_ready=False)}, namespace)
        await self.sandbox.clock.sleep(profile.ready_after)
        status = _ready_status(is_ready=not profile.is_failing, is_failing=profile.is_failing)
        await client.patch(kind.id, ref.name, {"status": status}, namespace)

    def inject_faults(self, schedule: FaultSchedule) -> None:
        """Inject the faults from now on."""
        for _, fault in schedule.faults:
            self.sandbox.server.faults.add(fault)
        for name, stale_status in schedule.stale_statuses.items():
            ref = self.platform.applications[name].target
            self.argocd.stale_statuses[
                application_specs.instance_name({"name": ref.name, "namespace": ref.namespace or ARGOCD})
            ] = stale_status
        self.sandbox.start(self._cut_watches(schedule), name="cuts")

    async def _cut_watches(self, schedule: FaultSchedule) -> None:
        now = 0.0
        for cut_time in schedule.watch_cut_times:
            await self.sandbox.clock.sleep(cut_time - now)
            now = cut_time
            schedule.watches_cut.append(self.sandbox.server.disrupt_watches("cut", Fault(user=CLIENT_USER.name)))


@asynccontextmanager
async def start_cluster(
    platform: Platform, profiles: Mapping[str, WorkloadProfile], seed: int
) -> AsyncIterator[SimulatedCluster]:
    """Start a cluster with Argo CD and a repository of the platform's stand-ins, of which nothing is deployed yet."""
    async with Sandbox(virtual_time.virtual_sandbox_clock(seed)) as sandbox:
        await install_workloads(sandbox)
        argocd = await install_argocd(sandbox)
        argocd.application_namespaces = ("*",)
        await sandbox.client().patch(PROJECT_RESOURCE, "default", {"spec": {"sourceNamespaces": ["*"]}}, ARGOCD)
        await _prepare_cluster(sandbox, [node.target for node in platform.applications.values()])
        argocd.repositories[REPOSITORY_URL] = MemoryRepository(
            stand_ins.repository_files(platform, REPOSITORY_URL, profiles)
        )
        calls = CallSender(InProcessTransport(sandbox, CLIENT_USER), clock=virtual_time.virtual_clock())
        yield SimulatedCluster(sandbox, argocd, KubeClient(calls), platform, profiles)


async def _prepare_cluster(sandbox: Sandbox, targets: Iterable[ApplicationRef | ResourceRef]) -> None:
    """Create the namespaces, and the CustomResourceDefinitions of kinds that the sandbox does not serve."""
    client, catalogue = sandbox.client(), sandbox.server.catalogue
    targets = list(targets)
    for namespace in sorted({ref.namespace for ref in targets if ref.namespace} - {ARGOCD}):
        if await client.find("namespaces", namespace) is None:
            await client.create("namespaces", {"metadata": {"name": namespace}})
    unserved: dict[tuple[str, str], list[ResourceRef]] = {}
    for ref in targets:
        if isinstance(ref, ResourceRef):
            group = ref.api_version.rpartition("/")[0]
            kind = catalogue.by_type(ref.api_version, ref.kind)
            if kind is None and group and not catalogue.is_builtin_group(group):
                unserved.setdefault((group, ref.kind), []).append(ref)
            elif kind is None or not (kind.is_custom or ref.kind in WORKLOAD_KINDS):
                message = f"there is no stand-in for {ref}"
                raise InvalidInput(message, hint=f"of built-in kinds only {', '.join(WORKLOAD_KINDS)} can be rehearsed")
    for (group, kind_name), refs in sorted(unserved.items()):
        await client.create(CRDS, _custom_resource_definition(group, kind_name, refs))


def _custom_resource_definition(group: str, kind: str, refs: list[ResourceRef]) -> Body:
    plural, versions = f"{kind.lower()}s", sorted({ref.api_version.rpartition("/")[2] for ref in refs})
    scope = "Namespaced" if any(ref.namespace for ref in refs) else "Cluster"
    version_specs: list[Any] = [
        {"name": version, "served": True, "storage": not number, "schema": {"openAPIV3Schema": ANY_OBJECT_SCHEMA}}
        for number, version in enumerate(versions)
    ]
    names = {"plural": plural, "singular": kind.lower(), "kind": kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": version_specs},
    }


def _ready_status(*, is_ready: bool, is_failing: bool = False) -> Body:
    conditions = [{"type": "Ready", "status": str(is_ready)}]
    return {
        "conditions": [*conditions, {"type": "Failed", "status": "True", "reason": "Rehearsed"}]
        if is_failing
        else conditions
    }
