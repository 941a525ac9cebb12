"""`plan`, and every dry run: what would be done, in which order and why. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.core.platform import plans, reports
from windlass.core.platform.reports import Action, ApiCalls, Run
from windlass.operations.observing import observe

if TYPE_CHECKING:
    from windlass.core.platform.applications import Platform
    from windlass.core.platform.reports import Report
    from windlass.core.platform.scopes import Scope
    from windlass.operations.observing import Cluster

_PLANNERS = {Action.DEPLOY: plans.for_deploy, Action.TEARDOWN: plans.for_teardown}


@dataclass(frozen=True, slots=True)
class Wish:
    action: Action
    environment: str
    platform: Platform
    scope: Scope


async def plan(cluster: Cluster, wish: Wish) -> Report:
    """By what Argo CD knows now: it is not asked to look again, for that would be a write."""
    started = cluster.now()
    snapshot = (await observe(cluster, wish.platform, wish.platform.graph.names)).snapshot
    found = _PLANNERS[wish.action](wish.platform, snapshot, wish.scope)
    counts = cluster.reader.counts
    run = Run(
        action=wish.action,
        environment=wish.environment,
        scope=str(wish.scope),
        started=started,
        finished=cluster.now(),
        calls=ApiCalls(reads=counts.total - counts.writes, writes=counts.writes),
        is_dry_run=True,
    )
    return reports.of_plan(run, wish.platform, found, snapshot)
