"""The recommendations of one run: about the run as a whole, then about each failure and each unmet dependency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windlass.core.platform.gate_values import Reason
from windlass.core.platform.reporting.failures import root_causes
from windlass.core.platform.reporting.recommendations import (
    Recommendation,
    RunProblem,
    detected_problem,
    parent_ref,
    recommendation_for,
    scope_option,
    with_namespace,
)
from windlass.core.platform.reporting.text_layout import format_duration, join_names, pluralize
from windlass.core.platform.reporting.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from windlass.core.platform.model.applications import Platform
    from windlass.core.platform.planning.plans import Unmet
    from windlass.core.platform.reporting.failures import Failure

MAX_NAMES = 3


@dataclass(frozen=True, slots=True)
class RunEnding:
    """What was asked for, and how the run ended, as far as the recommendations depend on it."""

    action: str
    scope: str
    is_dry_run: bool
    is_strict: bool
    is_out_of_time: bool
    was_interrupted: bool
    stop_reason: str
    duration: timedelta
    argocd_namespace: str


def run_recommendations(
    run: RunEnding,
    platform: Platform,
    verdict: Verdict,
    failures: Sequence[Failure] = (),
    unmet: Sequence[Unmet] = (),
    estimated: timedelta | None = None,
) -> tuple[Recommendation, ...]:
    """Empty after a success. Advice on a dry run is never a command that writes."""
    rerun = rerun_command(run)
    recommendations = []
    if verdict is not Verdict.SUCCESS:
        words = _words(run, failures, unmet, estimated)
        problem = _run_problem(run, verdict, failures, unmet)
        recommendations.append(recommendation_for(problem, rerun_command=rerun, words=words))
    targets = {name: with_namespace(node.target, run.argocd_namespace) for name, node in platform.applications.items()}
    for each in failures:
        detected = detected_problem(Reason(each.reason), each.diagnostics)
        target = targets.get(each.name) or parent_ref(each.name)
        recommendations.append(recommendation_for(detected, target, rerun, each.name))
    for needed in (each for each in unmet if each.name in targets):  # a parent that is not a node can also be unmet
        command = f"{_command(run)} --scope app:{needed.name}"
        problem = RunProblem.OUT_OF_SCOPE if needed.is_known else RunProblem.NOT_VERIFIED
        recommendations.append(recommendation_for(problem, targets[needed.name], command, needed.name))
    return tuple(recommendations)


def rerun_command(run: RunEnding) -> str:
    """The command that repeats the run; for a dry run `windlass plan`, which writes nothing."""
    return f"{_command(run)}{scope_option(run.scope)}{' --strict' if run.is_strict else ''}"


def _command(run: RunEnding) -> str:
    if not run.is_dry_run:
        return f"windlass {run.action}"
    return "windlass plan" if run.action == "deploy" else f"windlass plan --action {run.action}"


def _run_problem(run: RunEnding, verdict: Verdict, failures: Sequence[Failure], unmet: Sequence[Unmet]) -> RunProblem:
    if run.is_out_of_time:
        return RunProblem.TIMED_OUT
    if run.was_interrupted:
        return RunProblem.RUN_STOPPED
    if run.is_dry_run:
        return RunProblem.PLAN_FAILED
    if run.action == "validate":
        return RunProblem.VALIDATION_FAILED if failures else RunProblem.RULES_BROKEN
    if run.action == "teardown" and verdict is Verdict.PARTIAL and not failures:
        return RunProblem.ORPHANS_LEFT
    return RunProblem.ACTION_FAILED if failures or not unmet else RunProblem.RUN_REFUSED


def _words(
    run: RunEnding, failures: Sequence[Failure], unmet: Sequence[Unmet], estimated: timedelta | None
) -> Mapping[str, str]:
    interrupted = [each.name for each in failures if each.reason == Reason.INTERRUPTED]
    roots = [each.name for each in root_causes(each for each in failures if each.name not in interrupted)]
    names = roots or [each.name for each in unmet]
    is_longer = estimated is not None and estimated > run.duration
    return {
        "names": join_names(names, MAX_NAMES) if len(names) <= MAX_NAMES + 1 else f"the {len(names)} root causes above",
        "running": f"{pluralize(len(interrupted), 'application')} {'was' if len(interrupted) == 1 else 'were'} running"
        if interrupted
        else "The run was not finished",
        "duration": format_duration(run.duration),
        "estimate": f", above {format_duration(estimated)} (the estimate)" if estimated and is_longer else "",
        "stopped": run.stop_reason or "the run was stopped",
        "finished": "removed" if run.action == "teardown" else "finished",
    }
