"""`windlass teardown`: loads the settings and tears the platform down, or plans the teardown for a dry run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.cli import session
from windlass.core.platform.reporting.reports import Action
from windlass.operations.teardown import teardown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.core.platform.reporting.reports import Report
    from windlass.operations.run.context import RunContext


def run_teardown(options: Mapping[str, Any], environ: Mapping[str, str]) -> Report:
    settings = session.load_settings(options, environ, Action.TEARDOWN)
    if settings.values["dry-run"].value:
        return session.plan_action(options, environ, settings, Action.TEARDOWN).report
    request = teardown.TeardownRequest(
        session.environment_name(settings),
        settings.definition.platform,
        settings.scope,
        settings.definition.explicit_dependencies,
        session.volume_policy(settings),
    )

    async def operation(context: RunContext) -> Report:
        return await teardown.teardown(context, request)

    return session.run_session(options, environ, settings, Action.TEARDOWN, operation)
