"""What a process tells beside its report: a log on stderr that is whole by itself, and metrics in a file."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.invariants.clusters import Stage, staged
from tests.processes import windlass
from tests.simulation.scenarios import told

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.processes import Ended


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path, told("a:")) as found:
        yield found


def log(ended: Ended) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ended.stderr.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("dry_run", ["true", "false"])
def test_m2_a_run_and_a_dry_run_have_a_log_and_metrics_of_their_own(stage: Stage, dry_run: str) -> None:
    file, secrets = stage.folder / "run.prom", stage.folder / "secrets"
    secrets.mkdir()
    (secrets / "unknown").write_text("x")
    environ = {"DRY_RUN": dry_run, "LOG_FORMAT": "json", "METRICS_FILE": str(file)}
    ended = stage.deploy("--secrets", str(secrets), environ=environ).ended
    lines = log(ended)
    assert len(lines) == len(ended.stderr.splitlines()), "nothing else stands on stderr"
    assert all(line.keys() >= {"timestamp", "level", "action", "phase", "component", "message"} for line in lines)
    assert {"connect", "observe", "plan"} <= {line["phase"] for line in lines}
    assert any("unknown" in line["message"] for line in lines if line["level"] == "warn")
    text = file.read_text()
    action = "plan" if dry_run == "true" else "deploy"
    assert f'executor_action_status{{action="{action}",status="success"}} 1' in text
    assert f'executor_action_duration_seconds_count{{action="{action}",status="success"}} 1' in text
    assert {line["action"] for line in lines} == {action}


def test_an_error_that_ends_a_run_is_in_its_log(stage: Stage) -> None:
    closed = re.sub(r"127.0.0.1:\d+", "127.0.0.1:1", stage.cluster.kubeconfig.read_text())
    stage.write("closed", closed)
    ended = stage.deploy(environ={"KUBECONFIG_PATH": str(stage.folder / "closed"), "LOG_FORMAT": "json"}).ended
    *_, last = log(ended)
    assert (ended.code, last["level"]) == (1, "error"), ended.output
    [what] = [line["message"] for line in log(ended) if line["message"].startswith("error: ")]
    assert any(what.removeprefix("error: ") in line["message"] for line in log(ended) if line["message"] != what)


@pytest.mark.parametrize(
    "arguments",
    [["deploy", "--log-format", "json"], ["deploy", "--log-format=json", "--no-such-option"], ["validate", "--all"]],
)
def test_l17_with_json_logs_stderr_has_only_json_lines(arguments: list[str]) -> None:
    ended = windlass(*arguments, environ={"LOG_FORMAT": "json"})
    assert ended.code == 3
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert lines
    assert {line["action"] for line in lines} == {arguments[0]}


@pytest.mark.slow
def test_what_is_right_already_stands_in_the_report_with_its_evidence(stage: Stage) -> None:
    assert stage.deploy().code == 0
    again = stage.deploy()
    assert again.results == {"a": "unchanged"}
    evidence = again.report["components"][0]["evidence"]
    assert (evidence["health"], evidence["sync"]) == ("Healthy", "Synced")
    assert evidence["proof"]
