"""A cluster with Argo CD on virtual time, looked at through our own client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tests.sandbox.controllers.objects import URL, application
from windlass.operations.observation import ObservedCluster
from windlass.sandbox.argocd.repositories import MemoryRepository
from windlass.sandbox.controllers.behaviours import ANNOTATION_PREFIX

if TYPE_CHECKING:
    from tests.sandbox.controllers.clusters import World

APPS = "applications.argoproj.io"
SYNC = {"operation": {"initiatedBy": {"username": "jane"}, "sync": {"revision": "main"}}}
SLOW = {f"{ANNOTATION_PREFIX}ready-after": "4s"}
BROKEN = {f"{ANNOTATION_PREFIX}fails-with": "ImagePullBackOff"}


async def after(seconds: float) -> None:
    await asyncio.sleep(seconds)  # noqa: TID251 - of the loop that jumps


async def begin(w: World, files: dict[str, Any], *apps: dict[str, Any]) -> MemoryRepository:
    repository = w.argocd.repositories[URL] = MemoryRepository(files)
    for app in apps or (application(),):
        await w.sandbox.client().create(APPS, app)
    await after(1)
    return repository


async def patch(w: World, change: dict[str, Any], name: str = "web") -> None:
    await w.sandbox.client().patch(APPS, name, change, "argocd")


async def truth(w: World, name: str = "web") -> bool:
    """Whether every pod of a Deployment is of its latest template and ready."""
    found = await w.sandbox.client().find("deployments.apps", name, "default")
    if found is None:
        return False
    status, wanted = found.get("status", {}), found["spec"].get("replicas", 1)
    is_seen = status.get("observedGeneration") == found["metadata"]["generation"]
    counts = (status.get(count, 0) for count in ("updatedReplicas", "availableReplicas", "replicas"))
    return is_seen and all(count == wanted for count in counts)


def cluster(w: World) -> ObservedCluster:
    return ObservedCluster(w.kube, w.kube.clock.now)
