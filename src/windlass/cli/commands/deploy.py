"""`windlass deploy`: loads the settings and deploys the platform, or plans the deploy for a dry run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.cli import session
from windlass.cli.commands import plan as plan_files
from windlass.core.platform.reporting.reports import Action
from windlass.operations import deploy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.core.platform.reporting.reports import Report
    from windlass.operations.run.context import Access


def deployed(options: Mapping[str, Any], environ: Mapping[str, str], plan: str | None) -> Report:
    """`plan` is the path of a plan file; the deploy is refused if the current plan differs from it."""
    settings = session.loaded(options, environ, Action.DEPLOY)
    approved = plan_files.read(plan, settings, Action.DEPLOY) if plan else None
    if settings.values["dry-run"].value:
        found = session.planned(options, environ, settings, Action.DEPLOY)
        deploy.check_approved(approved, found.plan, found.root)
        return found.report
    wish = deploy.Wish(
        session.environment_of(settings),
        settings.assembled.platform,
        settings.scope,
        settings.assembled.stated,
        session.root_of(settings),
        approved,
    )

    async def act(access: Access) -> Report:
        return await deploy.deploy(access, wish)

    return session.acted(options, environ, settings, Action.DEPLOY, act)
