"""States of nodes by the assessment of gates and of `validate`: Argo CD's verdict, and the objects where they count."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windlass.core.platform.model.applications import ResourceRef
from windlass.core.platform.model.health import Health
from windlass.operations.object_health import ObjectCheck, check_objects, node_keys

if TYPE_CHECKING:
    from collections.abc import Collection

    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.snapshots import ApplicationState, NodeState
    from windlass.operations.observation import ObservedCluster
    from windlass.operations.run.live_applications import LiveApplications

MAX_AGE = 1.0  # seconds; dependents that start together share one read of the objects of their dependencies


@dataclass(slots=True)
class AssessedStates:
    """Reads the states of nodes as of now, for several callers at once."""

    cluster: ObservedCluster
    live: LiveApplications
    platform: Platform
    _assessed: dict[str, tuple[float, ApplicationState]] = field(default_factory=dict)
    """By node: the monotonic time before its objects were read last, and its state with the health of its objects."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self, names: Collection[str]) -> dict[str, NodeState | None]:
        """The states of these nodes, no healthier than the objects of each Application that Argo CD shows as Healthy.

        `check_objects` decides whose objects are read; for the others this makes no request.
        """
        oldest = self.cluster.reader.clock.monotonic() - MAX_AGE
        targets = {name: self.platform.applications[name].target for name in names}
        resources = {name: ref for name, ref in targets.items() if isinstance(ref, ResourceRef)}
        states: dict[str, NodeState | None] = {
            name: await self.live.read_resource(ref) for name, ref in resources.items()
        }
        async with self._lock:
            while checks := self._unread(names, oldest):
                read_at = self.cluster.reader.clock.monotonic()
                exclude = node_keys(self.platform, self.cluster.argocd_namespace)
                for name, findings in (await check_objects(self.cluster, checks, exclude)).items():
                    self._assessed[name] = (read_at, findings.state)
            return states | {name: self._application_state(name) for name in names if name not in states}

    def _unread(self, names: Collection[str], oldest: float) -> dict[str, ObjectCheck]:
        """The Applications that are shown as Healthy and whose objects were last read before `oldest`, or never."""
        checks = {}
        for name in names:
            application = self.live.find_application(name)
            is_read = name in self._assessed and self._assessed[name][0] >= oldest
            if application is not None and application.state.health is Health.HEALTHY and not is_read:
                checks[name] = ObjectCheck(application, application.state, self.platform.applications[name].critical)
        return checks

    def _application_state(self, name: str) -> ApplicationState | None:
        application = self.live.find_application(name)
        if application is None:
            return None
        if application.state.health is not Health.HEALTHY:
            return application.state
        _, assessed = self._assessed[name]
        return replace(
            application.state,
            health=assessed.health,
            health_message=assessed.health_message,
            missing_right=assessed.missing_right,
            objects_read=assessed.objects_read,
        )
