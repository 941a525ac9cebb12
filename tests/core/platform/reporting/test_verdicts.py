"""Every way a run can end, and its exit code."""

from __future__ import annotations

import pytest

from tests.builders import platform, snapshot
from windlass.core.platform.gate_values import Failed, Reason
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.scopes import parse_scope
from windlass.core.platform.outcomes import Outcome, Result
from windlass.core.platform.planning import plans
from windlass.core.platform.reporting import verdicts
from windlass.core.platform.reporting.verdicts import Verdict
from windlass.errors import ExitCode


def outcomes(text: str) -> list[Outcome]:
    return [Outcome(f"n{number}", Result(word.replace("-", " "))) for number, word in enumerate(text.split())]


@pytest.mark.parametrize(
    ("words", "code", "code_out_of_time"),
    [
        ("", 0, 0),
        ("unchanged", 0, 0),
        ("unchanged succeeded", 0, 0),
        ("succeeded failed", 2, 4),
        ("unchanged failed skipped", 2, 4),
        ("failed", 1, 4),
        ("failed skipped skipped", 1, 4),
        ("succeeded not-started", 2, 4),
        ("interrupted not-started", 1, 4),
        ("succeeded interrupted", 2, 4),
    ],
)
def test_deploy(words: str, code: int, code_out_of_time: int) -> None:
    assert verdicts.exit_code_for(verdicts.deploy_verdict(outcomes(words))) == code
    assert verdicts.exit_code_for(verdicts.deploy_verdict(outcomes(words), is_out_of_time=True)) == code_out_of_time


@pytest.mark.parametrize(
    ("words", "code", "strict"),
    [
        ("", 0, 2),
        ("a=healthy b=healthy", 0, 2),
        ("a=healthy b=degraded", 2, 2),
        ("a=healthy b=suspended", 2, 2),
        ("critical=degraded b=healthy", 1, 1),
        ("critical=progressing b=healthy", 1, 1),
        ("critical=healthy b=missing", 2, 2),
        ("a=degraded b=missing", 1, 1),
        ("a=unknown", 1, 1),
    ],
)
def test_validate(words: str, code: int, strict: int) -> None:
    healths = {name: Health(word.capitalize()) for name, word in (each.split("=") for each in words.split())}
    assert verdicts.exit_code_for(verdicts.validate_verdict(healths, ["critical"])) == code
    found = verdicts.validate_verdict(healths, ["critical"], has_strict_findings=True)
    assert verdicts.exit_code_for(found) == strict
    assert verdicts.validate_verdict(healths, ["critical"], is_out_of_time=True) is Verdict.TIMEOUT


@pytest.mark.parametrize(
    ("words", "has_orphans", "out_of_time", "code"),
    [
        ("", False, False, 0),
        ("succeeded unchanged", False, False, 0),
        ("succeeded", True, False, 2),
        ("", True, True, 4),
        ("succeeded failed", False, False, 1),
        ("succeeded failed", True, False, 1),
        ("succeeded interrupted", True, True, 4),
    ],
)
def test_teardown(words: str, has_orphans: bool, out_of_time: bool, code: int) -> None:
    found = verdicts.teardown_verdict(outcomes(words), has_orphans=has_orphans, is_out_of_time=out_of_time)
    assert verdicts.exit_code_for(found) == code


@pytest.mark.parametrize(("reason", "code"), [(Reason.FOREIGN_OBJECTS, 2), (Reason.PRESENT, 1)])
def test_a_teardown_that_only_spared_foreign_objects_is_partial(reason: Reason, code: int) -> None:
    found = verdicts.teardown_verdict(
        [
            Outcome("base", Result.FAILED, Failed(reason, "why")),
            Outcome("below", Result.SKIPPED, causes=("base",)),
            Outcome("web", Result.SUCCEEDED),
        ],
        has_orphans=False,
    )
    assert verdicts.exit_code_for(found) == code


@pytest.mark.parametrize(("cluster", "code"), [("a=healthy", 0), ("a=degraded", 1), ("", 1)])
def test_a_plan_that_cannot_run_is_a_failure(cluster: str, code: int) -> None:
    plan = plans.plan_deploy(platform("b: a"), snapshot(cluster), parse_scope("app:b"))
    assert verdicts.exit_code_for(verdicts.plan_verdict(plan)) == code


@pytest.mark.parametrize(("is_out_of_time", "code"), [(True, 4), (False, 1)])
def test_what_never_began_is_no_success_whatever_stands(is_out_of_time: bool, code: int) -> None:
    assert verdicts.exit_code_for(verdicts.not_started_verdict(is_out_of_time=is_out_of_time)) == code


def test_every_verdict_has_a_code_of_its_own() -> None:
    assert len({verdicts.exit_code_for(verdict) for verdict in Verdict}) == len(Verdict) == len(ExitCode) - 1
