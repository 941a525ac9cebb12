"""`windlass teardown`: settings in, a report out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windlass.cli import acting
from windlass.core.platform.reports import Action
from windlass.operations import teardown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.core.platform.reports import Report
    from windlass.operations.runs import Access


def torn_down(options: Mapping[str, Any], environ: Mapping[str, str]) -> Report:
    settings = acting.loaded(options, environ, Action.TEARDOWN)
    if settings.values["dry-run"].value:
        return acting.planned(options, environ, settings, Action.TEARDOWN).report
    wish = teardown.Wish(
        acting.environment_of(settings),
        settings.assembled.platform,
        settings.scope,
        settings.assembled.stated,
        acting.policy_of(settings),
    )

    async def act(access: Access) -> Report:
        return await teardown.teardown(access, wish)

    return acting.acted(options, environ, settings, Action.TEARDOWN, act)
