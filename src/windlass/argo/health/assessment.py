"""Health assessment of objects: by a Lua check if their kind has one, otherwise by the built-in rules."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from windlass.argo.health import scripts
from windlass.argo.health.builtin import WORKLOADS, is_unseen, judged_object
from windlass.argo.health.scripts import CONFIG_MAP, HealthScripts
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import ResourceKind, ResourceState
from windlass.kube.api_errors import Forbidden, NotFound
from windlass.kube.client.resources import Resource
from windlass.lua.worker_process import LuaWorker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from windlass.argo.health.scripts import HealthScript
    from windlass.kube.client.objects import Plain
    from windlass.kube.client.readers import KubeReader
    from windlass.lua.worker_process import Said

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
READ_AGAIN_AFTER = 60  # seconds; a deploy may add health checks to the ConfigMap while it runs
LONGEST_MESSAGE = 300  # characters
WORDS = frozenset(Health) - {Health.FAILED}
"""Statuses that a check may return: those of Argo CD."""


class Judge(Protocol):
    @property
    def kinds(self) -> frozenset[ResourceKind]:
        """Kinds with a specific check in every cluster; a cluster's own configuration may add more."""

    async def can_judge(self, kind: ResourceKind) -> bool:
        """Whether the kind has a specific check, beyond the conditions in the object's status."""

    async def judge(self, item: Plain) -> ResourceState: ...


class BuiltInJudge:
    """Built-in rules only: no subprocess and no reads, so it behaves the same on virtual time."""

    @property
    def kinds(self) -> frozenset[ResourceKind]:
        return frozenset()

    async def can_judge(self, kind: ResourceKind) -> bool:
        return kind in WORKLOADS

    async def judge(self, item: Plain) -> ResourceState:
        return judged_object(item)


class ScriptedJudge:
    """Lua checks: mounted ones take precedence over Argo CD's ConfigMap, and that over the embedded ones."""

    def __init__(self, reader: KubeReader, argocd: str, mounted: HealthScripts, worker: LuaWorker) -> None:
        self._reader = reader
        self._config_map = CONFIG_MAPS.named(CONFIG_MAP, argocd)
        self._mounted = mounted
        self._worker = worker
        self._reading = asyncio.Lock()
        self._configured = HealthScripts()
        self._read_at: float | None = None

    @property
    def kinds(self) -> frozenset[ResourceKind]:
        return frozenset(self._mounted.exact) | frozenset(scripts.embedded().exact)

    async def can_judge(self, kind: ResourceKind) -> bool:
        return kind in WORKLOADS or await self._script(kind) is not None

    async def judge(self, item: Plain) -> ResourceState:
        script = await self._script(kind_of(item))
        if script is None:
            return judged_object(item)
        health, message = _judged(item, script, await self._worker.run(script.text, item))
        return ResourceState(health, message, is_deleting=bool(item["metadata"].get("deletionTimestamp")))

    async def _script(self, kind: ResourceKind) -> HealthScript | None:
        found = self._mounted.find(kind)
        return found or (await self._of_cluster()).find(kind) or scripts.embedded().find(kind)

    async def _of_cluster(self) -> HealthScripts:
        async with self._reading:
            now = self._reader.clock.monotonic()
            if self._read_at is None or now - self._read_at > READ_AGAIN_AFTER:
                self._configured = await self._read()
                self._read_at = now
            return self._configured

    async def _read(self) -> HealthScripts:
        """Empty if the ConfigMap does not exist or may not be read; the other checks still apply."""
        try:
            found = await self._reader.get(self._config_map)
        except (NotFound, Forbidden):
            return HealthScripts()
        return scripts.of_config_map(found.get("data") or {})


@asynccontextmanager
async def scripted(reader: KubeReader, argocd: str, mounted: HealthScripts) -> AsyncIterator[ScriptedJudge]:
    """The Lua process starts with the first object that needs a check and ends with this context."""
    async with LuaWorker() as worker:
        yield ScriptedJudge(reader, argocd, mounted, worker)


def kind_of(item: Plain) -> ResourceKind:
    return ResourceKind(str(item.get("apiVersion") or "").rpartition("/")[0], str(item.get("kind") or ""))


def _judged(item: Plain, script: HealthScript, said: Said) -> tuple[Health, str]:
    """Health and message from a check's result; Unknown if the check failed or returned an invalid status.

    Healthy counts only once the object's controller has observed its latest generation.
    """
    check = f"the health check of {kind_of(item)} from {script.origin}"
    if said.error:
        return Health.UNKNOWN, f"{check} failed: {_short(said.error)}"
    if not said.status:
        return Health.UNKNOWN, f"{check} tells no status"
    if said.status not in WORDS:
        return Health.UNKNOWN, f"{check} says {_short(said.status)!r}, which is no health"
    health = Health(said.status)
    if health is Health.HEALTHY and is_unseen(item):
        return Health.PROGRESSING, "its controller has not seen the latest change yet"
    return health, _short(said.message)


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= LONGEST_MESSAGE else words[: LONGEST_MESSAGE - 1] + "…"
