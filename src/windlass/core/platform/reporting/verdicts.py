"""The verdict on a run and its exit code."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from windlass.core.platform.model.health import Health
from windlass.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from windlass.core.platform.outcomes import Outcome
    from windlass.core.platform.planning.plans import Plan


class Verdict(StrEnum):
    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"
    TIMEOUT = "timeout"


_EXIT_CODES = {
    Verdict.SUCCESS: ExitCode.SUCCESS,
    Verdict.FAILURE: ExitCode.FAILURE,
    Verdict.PARTIAL: ExitCode.PARTIAL,
    Verdict.TIMEOUT: ExitCode.TIMEOUT,
}


def exit_code_for(verdict: Verdict) -> ExitCode:
    return _EXIT_CODES[verdict]


def plan_verdict(plan: Plan) -> Verdict:
    """Verdict on a dry run, or on a run that is refused because something outside its scope is unmet."""
    if not plan.can_run:
        return Verdict.FAILURE
    if plan.failures:
        return Verdict.FAILURE if plan.is_empty and not plan.unchanged else Verdict.PARTIAL
    return Verdict.SUCCESS


def not_started_verdict(*, is_out_of_time: bool) -> Verdict:
    """Verdict on a run that ended before its first step, regardless of what is healthy."""
    return Verdict.TIMEOUT if is_out_of_time else Verdict.FAILURE


def deploy_verdict(outcomes: Iterable[Outcome], *, is_out_of_time: bool = False) -> Verdict:
    """Partial if only some outcomes are good; the same applies to an interrupted run."""
    good = [outcome.is_successful for outcome in outcomes]
    if all(good):
        return Verdict.SUCCESS
    if is_out_of_time:
        return Verdict.TIMEOUT
    return Verdict.PARTIAL if any(good) else Verdict.FAILURE


def validate_verdict(
    healths: Mapping[str, Health],
    critical: Collection[str],
    *,
    is_out_of_time: bool = False,
    has_strict_findings: bool = False,
) -> Verdict:
    """Failure if a critical node or every node is unhealthy; partial if only other nodes are."""
    unhealthy = {name for name, health in healths.items() if health is not Health.HEALTHY}
    if is_out_of_time:
        return Verdict.TIMEOUT
    if unhealthy and (unhealthy & set(critical) or len(unhealthy) == len(healths)):
        return Verdict.FAILURE
    return Verdict.PARTIAL if unhealthy or has_strict_findings else Verdict.SUCCESS


def teardown_verdict(outcomes: Collection[Outcome], *, has_orphans: bool, is_out_of_time: bool = False) -> Verdict:
    """Failure if the removal of a node failed.

    Partial if orphans remain, or if nodes were only refused in order to spare foreign objects, or skipped because of
    that.
    """
    is_removed = all(outcome.is_successful for outcome in outcomes)
    if is_removed and not has_orphans:
        return Verdict.SUCCESS
    if is_out_of_time:
        return Verdict.TIMEOUT
    refused = {outcome.name for outcome in outcomes if outcome.is_refused}
    is_spared = all(outcome.is_successful or {outcome.name, *outcome.causes} & refused for outcome in outcomes)
    return Verdict.PARTIAL if is_spared else Verdict.FAILURE
