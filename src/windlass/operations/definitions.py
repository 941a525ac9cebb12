"""What is known of the definitions of a cluster beside its Applications: ApplicationSets, unanswered requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windlass.argo.cd.ownership import APPLICATION_SETS, ApplicationSetManifest, generation_problem, owner_set_name
from windlass.argo.definitions import ArgoObjects, Definitions
from windlass.kube.api_errors import KubeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.argo.cd.applications import Application, ObjectKey
    from windlass.kube.client.readers import KubeReader

MAX_AGE = 5.0  # seconds for which a list of ApplicationSets is used again: a run observes the cluster every second


@dataclass(slots=True)
class DefinitionReader:
    """Reads ApplicationSets, if they own nodes, and remembers what Argo CD did not compare on request."""

    reader: KubeReader
    unanswered: set[ObjectKey] = field(default_factory=set)
    read_error: str = ""
    """Why ApplicationSets could not be read; empty if they could, or no node is owned by one."""
    _problems: dict[ObjectKey, str] = field(default_factory=dict)
    _read_at: float | None = None

    async def definitions(
        self, applications: Mapping[ObjectKey, Application], nodes: Mapping[ObjectKey, str], argocd_namespace: str
    ) -> Definitions:
        if any(key in applications and owner_set_name(applications[key].metadata) for key in nodes):
            await self._read_sets()
        return Definitions(ArgoObjects(applications, self._problems, self.unanswered, argocd_namespace, nodes))

    async def _read_sets(self) -> None:
        now = self.reader.clock.monotonic()
        if self._read_at is not None and now - self._read_at < MAX_AGE:
            return
        self._read_at = now
        try:
            listing = await self.reader.list(APPLICATION_SETS.everywhere, ApplicationSetManifest)
        except KubeError as error:
            self.read_error = error.what
            return
        self.read_error = ""
        self._problems = {
            (each.metadata.namespace, each.metadata.name): generation_problem(each) for each in listing.items
        }
