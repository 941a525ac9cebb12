"""`windlass teardown`: loads the settings and tears the platform down, or plans the teardown for a dry run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.cli import session
from windlass.core.platform.reporting.reports import Action
from windlass.operations.teardown import teardown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.core.platform.reporting.reports import Report
    from windlass.operations.run.context import Access


def torn_down(options: Mapping[str, Any], environ: Mapping[str, str]) -> Report:
    settings = session.loaded(options, environ, Action.TEARDOWN)
    if settings.values["dry-run"].value:
        return session.planned(options, environ, settings, Action.TEARDOWN).report
    wish = teardown.Wish(
        session.environment_of(settings),
        settings.assembled.platform,
        settings.scope,
        settings.assembled.stated,
        session.policy_of(settings),
    )

    async def act(access: Access) -> Report:
        return await teardown.teardown(access, wish)

    return session.acted(options, environ, settings, Action.TEARDOWN, act)
