"""`plan --refresh`: have Argo CD compare again what a plan depends on. Refreshes are its only writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.argo.cd.applications import APPLICATIONS
from windlass.core.platform.model import scopes
from windlass.kube import access_reviews
from windlass.kube.access_reviews import Permission
from windlass.operations.run.lifecycle import Run

if TYPE_CHECKING:
    from windlass.operations.planner import RunRequest
    from windlass.operations.run.context import RunContext


async def refresh_applications(context: RunContext, request: RunRequest) -> int:
    """Refresh the nodes in scope and their parents where a revision may have moved; return how many were requested."""
    run = Run(context, request)
    names = scopes.selected_nodes(request.platform, request.scope)
    async with run.watch():
        await run.live.wait_for_initial_list()
        if keys := run.live.keys_to_refresh(names):
            permissions = (Permission("patch", APPLICATIONS, namespace) for namespace in sorted(run.live.namespaces))
            await access_reviews.require_permissions(context.cluster.reader, permissions)
            await run.live.refresh(keys)
    return context.refresher.count
