"""`windlass deploy`: settings in, a report out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.argo.roots import Root
from windlass.cli import acting
from windlass.core.platform.reports import Action
from windlass.operations import deploy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.core.platform.reports import Report
    from windlass.operations.runs import Access
    from windlass.settings.loading import Settings


def deployed(options: Mapping[str, Any], environ: Mapping[str, str]) -> Report:
    settings = acting.loaded(options, environ, Action.DEPLOY)
    if settings.values["dry-run"].value:
        return acting.planned(options, environ, settings, Action.DEPLOY)
    platform, scope = settings.assembled.platform, settings.scope
    wish = deploy.Wish(acting.environment_of(settings), platform, scope, root_of(settings))

    async def act(access: Access) -> Report:
        return await deploy.deploy(access, wish)

    return acting.acted(options, environ, settings, act)


def root_of(settings: Settings) -> Root | None:
    if settings.environment is None:
        return None
    file = settings.environment.model
    parameters = {"environment": file.name, "domain": file.domain}
    if file.cluster_name:
        parameters["clusterName"] = file.cluster_name
    return Root(file.git_repository, file.git_revision, file.git_path or ".", parameters)
