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


_CODES = {
    Verdict.SUCCESS: ExitCode.SUCCESS,
    Verdict.FAILURE: ExitCode.FAILURE,
    Verdict.PARTIAL: ExitCode.PARTIAL,
    Verdict.TIMEOUT: ExitCode.TIMEOUT,
}


def exit_code_for(verdict: Verdict) -> ExitCode:
    return _CODES[verdict]


def of_plan(plan: Plan) -> Verdict:
    """Verdict on a dry run, or on a run that is refused because something outside its scope is unmet."""
    return Verdict.SUCCESS if plan.can_run else Verdict.FAILURE


def of_unbegun(*, is_out_of_time: bool) -> Verdict:
    """Verdict on a run that ended before its first step, regardless of what is healthy."""
    return Verdict.TIMEOUT if is_out_of_time else Verdict.FAILURE


def of_deploy(outcomes: Iterable[Outcome], *, is_out_of_time: bool = False) -> Verdict:
    """Partial if only some outcomes are good; the same applies to an interrupted run."""
    good = [outcome.is_good for outcome in outcomes]
    if all(good):
        return Verdict.SUCCESS
    if is_out_of_time:
        return Verdict.TIMEOUT
    return Verdict.PARTIAL if any(good) else Verdict.FAILURE


def of_validate(
    healths: Mapping[str, Health],
    critical: Collection[str],
    *,
    is_out_of_time: bool = False,
    has_strict_findings: bool = False,
) -> Verdict:
    """Failure if a critical node or every node is unhealthy; partial if only other nodes are."""
    sick = {name for name, health in healths.items() if health is not Health.HEALTHY}
    if is_out_of_time:
        return Verdict.TIMEOUT
    if sick and (sick & set(critical) or len(sick) == len(healths)):
        return Verdict.FAILURE
    return Verdict.PARTIAL if sick or has_strict_findings else Verdict.SUCCESS


def of_teardown(outcomes: Iterable[Outcome], *, has_orphans: bool, is_out_of_time: bool = False) -> Verdict:
    """Failure if a node was not removed; partial if all nodes are removed but orphans remain."""
    is_gone = all(outcome.is_good for outcome in outcomes)
    if is_gone and not has_orphans:
        return Verdict.SUCCESS
    if is_out_of_time:
        return Verdict.TIMEOUT
    return Verdict.PARTIAL if is_gone else Verdict.FAILURE
