"""`plan`, and every dry run: what would be done, in which order and why. Reads only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windlass.argo.cd import root_application
from windlass.argo.cd.applications import APPLICATIONS, Application
from windlass.core.platform.model.annotations import merged
from windlass.core.platform.planning import lint_warnings, plans
from windlass.core.platform.reporting import reports
from windlass.core.platform.reporting.reports import Action, ApiCalls, Run
from windlass.core.platform.teardown.volumes import Policy, foretold
from windlass.kube.api_errors import NotFound
from windlass.operations.observation import check_place, listed, observation_of
from windlass.operations.teardown.cluster_objects import Looking
from windlass.operations.teardown.inventory import scene_of
from windlass.operations.teardown.parents import detached_words, detachment_for, ordered
from windlass.operations.teardown.volumes import check_policy, observed

if TYPE_CHECKING:
    from windlass.argo.cd.root_application import Root
    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.model.scopes import Scope
    from windlass.core.platform.planning.plans import Plan
    from windlass.core.platform.reporting.reports import Report
    from windlass.operations.observation import Cluster
    from windlass.operations.teardown.inventory import Scene

_PLANNERS = {Action.DEPLOY: plans.for_deploy, Action.TEARDOWN: plans.for_teardown}


@dataclass(frozen=True, slots=True)
class Wish:
    """What `plan` was asked to compute."""

    action: Action
    environment: str
    platform: Platform
    scope: Scope
    stated: frozenset[str] = frozenset()
    """Nodes whose dependencies the platform file lists; annotations are ignored for these."""
    root: Root | None = None
    """Root Application to create if it is needed, or to update if Windlass manages it."""
    policy: Policy = Policy.RETAIN


@dataclass(frozen=True, slots=True)
class Planned:
    plan: Plan
    report: Report
    root: str = ""
    """Repository, path and revision of the root Application if it would be written first; empty otherwise."""


async def plan(cluster: Cluster, wish: Wish) -> Planned:
    """Plan by what Argo CD knows now; no refresh is requested, because that would be a write."""
    started, names = cluster.now(), wish.platform.graph.names
    view = await listed(cluster, wish.platform, names)
    if wish.action is Action.DEPLOY:
        await check_place(cluster, view)
    observation = await observation_of(cluster, wish.platform, names, started, view)
    platform, snapshot = merged(wish.platform, observation.annotated, wish.stated), observation.snapshot
    if wish.action is Action.TEARDOWN:
        platform = ordered(view, platform, cluster.argocd)
    found = _PLANNERS[wish.action](platform, snapshot, wish.scope)
    change = await _root_change(cluster, wish, is_needed=plans.has_undefined(found, snapshot))
    notices = [change] if change else []
    if change and wish.root and not wish.root.is_pinned:
        notices.append(
            f"which commit {wish.root.revision} leads to is known once {root_application.NAME} is there: "
            "to approve an exact one, name a commit as gitRevision"
        )
    if wish.action is Action.DEPLOY:
        notices += [words for _, words in lint_warnings.out_of_order(platform, snapshot)]
    else:
        detachment = detachment_for(view, platform, wish.scope, cluster.argocd)
        found = replace(found, unmet=(*found.unmet, *detachment.refused))
        notices += [detached_words(maker) for maker in detachment.first]
        notices += await _data(cluster, wish.policy, scene_of(view, platform, wish.scope, detachment, cluster.argocd))
    counts = cluster.reader.counts
    run = Run(
        action=wish.action,
        environment=wish.environment,
        scope=str(wish.scope),
        started=started,
        finished=cluster.now(),
        calls=ApiCalls(reads=counts.total - counts.writes, writes=counts.writes),
        is_dry_run=True,
        argocd=cluster.argocd,
    )
    report = reports.of_plan(run, platform, found, snapshot)
    return Planned(found, replace(report, notices=tuple(notices)), str(wish.root) if change else "")


async def _data(cluster: Cluster, policy: Policy, scene: Scene) -> list[str]:
    """What would happen to each volume; raises if the volume policy cannot be applied in this cluster."""
    looking = Looking(cluster.reader, await cluster.served.discovery())
    check_policy(policy, looking.discovery)
    seen = scene.seen((await looking.everything()).found)
    return foretold(policy, (await observed(cluster.reader, seen)).volumes)


async def _root_change(cluster: Cluster, wish: Wish, *, is_needed: bool) -> str:
    if wish.root is None or wish.action is not Action.DEPLOY:
        return ""
    try:
        live = await cluster.reader.get(APPLICATIONS.named(root_application.NAME, cluster.argocd), Application)
    except NotFound:
        live = None
    return root_application.change(wish.root, cluster.argocd, live, is_needed=is_needed)[1]
