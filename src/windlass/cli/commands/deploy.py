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
    from windlass.operations.run.context import RunContext


def run_deploy(options: Mapping[str, Any], environ: Mapping[str, str], plan: str | None) -> Report:
    """`plan` is the path of a plan file; the deploy is refused if the current plan differs from it."""
    settings = session.load_settings(options, environ, Action.DEPLOY)
    approved_plan = plan_files.read_plan(plan, settings, Action.DEPLOY) if plan else None
    if settings.values["dry-run"].value:
        result = session.plan_action(options, environ, settings, Action.DEPLOY)
        deploy.check_approved_plan(approved_plan, result.plan, result.root)
        return result.report
    request = deploy.DeployRequest(
        session.environment_name(settings),
        settings.definition.platform,
        settings.scope,
        settings.definition.explicit_dependencies,
        session.root_application(settings),
        approved_plan,
    )

    async def operation(context: RunContext) -> Report:
        return await deploy.deploy(context, request)

    return session.run_session(options, environ, settings, Action.DEPLOY, operation)
