"""Health assessment of objects: by a Lua check if their kind has one, otherwise by the built-in rules."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from windlass.argo.health import scripts
from windlass.argo.health.builtin import BUILTIN_RESOURCES, assess_object, is_status_outdated
from windlass.argo.health.scripts import CONFIG_MAP, HealthScripts
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import ResourceKind, ResourceState
from windlass.kube.api_errors import Forbidden, NotFound
from windlass.kube.client.resources import CONFIG_MAPS
from windlass.lua.worker_process import LuaWorker, ScriptResult

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from windlass.argo.health.scripts import HealthScript
    from windlass.kube.client.objects import RawObject
    from windlass.kube.client.readers import KubeReader

CONFIG_MAP_MAX_AGE = 60  # seconds; a deploy may add health checks to the ConfigMap while it runs
MAX_ANSWER_LENGTH = 300  # characters of a text that a check returned
VALID_STATUSES = frozenset(Health) - {Health.FAILED}
"""Statuses that a check may return: those of Argo CD."""


class HealthAssessor(Protocol):
    @property
    def kinds(self) -> frozenset[ResourceKind]:
        """Kinds with a specific check in every cluster; a cluster's own configuration may add more."""

    async def can_assess(self, kind: ResourceKind) -> bool:
        """Whether the kind has a specific check, beyond the conditions in the object's status."""

    async def assess(self, item: RawObject) -> ResourceState: ...


class BuiltInHealthAssessor:
    """Built-in rules only: no subprocess and no reads, so it behaves the same on virtual time."""

    @property
    def kinds(self) -> frozenset[ResourceKind]:
        return frozenset()

    async def can_assess(self, kind: ResourceKind) -> bool:
        return kind in BUILTIN_RESOURCES

    async def assess(self, item: RawObject) -> ResourceState:
        return assess_object(item)


class LuaHealthAssessor:
    """Lua checks: mounted ones take precedence over Argo CD's ConfigMap, and that over the embedded ones."""

    def __init__(self, reader: KubeReader, argocd_namespace: str, mounted: HealthScripts, worker: LuaWorker) -> None:
        self._reader = reader
        self._config_map = CONFIG_MAPS.named(CONFIG_MAP, argocd_namespace)
        self._mounted = mounted
        self._worker = worker
        self._read_lock = asyncio.Lock()
        self._cluster_scripts = HealthScripts()
        self._read_at: float | None = None

    @property
    def kinds(self) -> frozenset[ResourceKind]:
        return frozenset(self._mounted.exact) | frozenset(scripts.embedded_scripts().exact)

    async def can_assess(self, kind: ResourceKind) -> bool:
        return kind in BUILTIN_RESOURCES or await self._find_script(kind) is not None

    async def assess(self, item: RawObject) -> ResourceState:
        script = await self._find_script(resource_kind(item))
        if script is None:
            return assess_object(item)
        result = await self._worker.run(script.text, item)
        answer = ScriptResult(*(self._short(text) for text in (result.status, result.message, result.error)))
        health, message = _interpret_result(item, script, answer)
        return ResourceState(health, message, is_deleting=bool(item["metadata"].get("deletionTimestamp")))

    def _short(self, text: str) -> str:
        return self._reader.redactor.message(text, MAX_ANSWER_LENGTH, 0)

    async def _find_script(self, kind: ResourceKind) -> HealthScript | None:
        found = self._mounted.find(kind)
        return found or (await self._load_cluster_scripts()).find(kind) or scripts.embedded_scripts().find(kind)

    async def _load_cluster_scripts(self) -> HealthScripts:
        async with self._read_lock:
            now = self._reader.clock.monotonic()
            if self._read_at is None or now - self._read_at > CONFIG_MAP_MAX_AGE:
                self._cluster_scripts = await self._read_config_map()
                self._read_at = now
            return self._cluster_scripts

    async def _read_config_map(self) -> HealthScripts:
        """Empty if the ConfigMap does not exist or may not be read; the other checks still apply."""
        try:
            config_map = await self._reader.get(self._config_map)
        except (NotFound, Forbidden):
            return HealthScripts()
        return scripts.parse_config_map(config_map.get("data") or {})


@asynccontextmanager
async def open_lua_assessor(
    reader: KubeReader, argocd_namespace: str, mounted: HealthScripts
) -> AsyncIterator[LuaHealthAssessor]:
    """The Lua process starts with the first object that needs a check and ends with this context."""
    async with LuaWorker() as worker:
        yield LuaHealthAssessor(reader, argocd_namespace, mounted, worker)


def resource_kind(item: RawObject) -> ResourceKind:
    return ResourceKind(str(item.get("apiVersion") or "").rpartition("/")[0], str(item.get("kind") or ""))


def _interpret_result(item: RawObject, script: HealthScript, result: ScriptResult) -> tuple[Health, str]:
    """Health and message from a check's result; Unknown if the check failed or returned an invalid status.

    Healthy counts only once the object's controller has observed its latest generation.
    """
    check = f"the health check of {resource_kind(item)} from {script.origin}"
    if result.error:
        return Health.UNKNOWN, f"{check} failed: {result.error}"
    if not result.status:
        return Health.UNKNOWN, f"{check} tells no status"
    if result.status not in VALID_STATUSES:
        return Health.UNKNOWN, f"{check} says {result.status!r}, which is no health"
    health = Health(result.status)
    if health is Health.HEALTHY and is_status_outdated(item):
        return Health.PROGRESSING, "its controller has not seen the latest change yet"
    return health, result.message
