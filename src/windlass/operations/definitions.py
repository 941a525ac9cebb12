"""What is known of the definitions of a cluster beside its Applications: ApplicationSets, unanswered requests."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windlass.argo.cd.ownership import APPLICATION_SETS, ApplicationSetManifest, generation_problem, owner_set_name
from windlass.argo.definitions import ArgoObjects, Definitions
from windlass.kube.api_errors import TRANSIENT_ERRORS, KubeError, NotFound

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from windlass.argo.cd.applications import Application, ObjectKey
    from windlass.kube.client.readers import KubeReader

MAX_AGE = 5.0  # seconds for which a list of ApplicationSets is used again: a run observes the cluster every second
MAX_FAILURE = 30.0  # seconds for which errors that may pass do not count; as long as Argo CD may take to compare
RETRY_INTERVAL = 2.0


@dataclass(slots=True)
class DefinitionReader:
    """Reads ApplicationSets, if they define nodes, and remembers what Argo CD did not compare on request."""

    reader: KubeReader
    unanswered: set[ObjectKey] = field(default_factory=set)
    _problems: dict[ObjectKey, str] | None = None
    """`None` until ApplicationSets were read for the first time."""
    _error: KubeError | None = None
    """Why ApplicationSets cannot be read."""
    _tried_at: float | None = None
    _succeeded_at: float | None = None
    """When they were last read; before that, when this was first tried."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def definitions(
        self, applications: Mapping[ObjectKey, Application], nodes: Mapping[ObjectKey, str], argocd_namespace: str
    ) -> Definitions:
        objects = ArgoObjects(applications, unanswered=self.unanswered, argocd_namespace=argocd_namespace, nodes=nodes)
        definitions = Definitions(objects)
        if not any(owner_set_name(application.metadata) for application in applications.values()):
            return definitions
        if namespaces := definitions.set_namespaces(nodes):
            async with self._lock:  # callers that come during a read must not take an unread set for a whole one
                await self._read_sets(namespaces)
            return Definitions(replace(objects, set_problems=self._problems or {}, set_error=self._error))
        return definitions

    async def _read_sets(self, namespaces: Collection[str]) -> None:
        """Read them, unless they are known well enough. An error that may pass counts after `MAX_FAILURE`."""
        clock = self.reader.clock
        now = clock.monotonic()
        if self._tried_at is not None and now - self._tried_at < MAX_AGE:
            return
        if self._succeeded_at is None:
            self._succeeded_at = now
        while (error := await self._try_read(namespaces)) is not None:
            may_pass = isinstance(error, TRANSIENT_ERRORS) and not isinstance(error, NotFound)
            if not may_pass or clock.monotonic() - self._succeeded_at >= MAX_FAILURE:
                break
            if self._problems is not None:
                error = None  # what was read last is still used
                break
            await clock.sleep(RETRY_INTERVAL)
        self._error, self._tried_at = error, clock.monotonic()

    async def _try_read(self, namespaces: Collection[str]) -> KubeError | None:
        only = next(iter(namespaces)) if len(namespaces) == 1 else ""
        ref = APPLICATION_SETS.in_namespace(only) if only else APPLICATION_SETS.everywhere
        try:
            listing = await self.reader.list(ref, ApplicationSetManifest)
        except KubeError as error:
            return error
        self._problems = {
            (each.metadata.namespace, each.metadata.name): generation_problem(each) for each in listing.items
        }
        self._succeeded_at = self.reader.clock.monotonic()
        return None
