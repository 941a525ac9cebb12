"""Reports as other programs get them from the process."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from tests.processes import windlass

if TYPE_CHECKING:
    from tests.scenarios.clusters import Running

SCHEMA = Path(__file__).parents[2] / "docs/schemas/report.json"


def test_json_fits_the_published_schema(cluster: Running) -> None:
    ended = cluster.windlass("validate", "--all", "--format", "json")
    assert ended.code == 2
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(json.loads(ended.stdout))


def test_junit_for_pipelines(cluster: Running) -> None:
    ended = cluster.windlass("validate", "--all", "--format", "junit")
    root = ET.fromstring(ended.stdout)
    assert ended.code == 2
    failed = {case.get("name") for case in root.iter("testcase") if case.find("failure") is not None}
    assert {"sick", "slow"} <= failed
    assert root.get("failures") == str(len(failed))


def test_several_reports_in_one_run(cluster: Running, tmp_path: Path) -> None:
    files = {form: tmp_path / f"report.{form}" for form in ("json", "junit", "text")}
    options = [f"--report={form}={file}" for form, file in files.items()]
    ended = cluster.windlass("validate", "--all", *options, "--report", "json=-")
    assert ended.code == 2
    written, printed = json.loads(files["json"].read_text()), json.loads(ended.stdout)
    assert written == printed
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(written)
    assert ET.fromstring(files["junit"].read_text()).get("failures") != "0"
    assert files["text"].read_text().startswith("validate of all Applications in ")
    assert "\ncomponents (* critical)\n" in files["text"].read_text()
    assert sorted(tmp_path.iterdir()) == sorted(files.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--report", "yaml=x"], "'yaml=x' is not a report"),
        (["--report", "json="], "'json=' is not a report"),
        (["--report", "json"], "'json' is not a report"),
        (["--report", ""], "must not be empty"),
        (["--report", "json=x", "--report", "junit=./x"], "./x is named twice"),
        (["--report", "json=-", "--report", "text=-"], "stdout gets one report only"),
        (["--report", "json=-", "--format", "text"], "stdout gets one report only"),
        (["--report", "json=no/such/directory"], "No such file or directory"),
        (["--report", "json=."], "Is a directory"),
    ],
)
def test_wrong_reports_are_refused_before_the_run(options: list[str], message: str) -> None:
    ended = windlass("validate", "--all", "--kubeconfig", "/nowhere", *options)
    assert (ended.code, ended.stdout) == (3, "")
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr


def test_l2_a_report_that_nobody_can_get_is_a_failure(cluster: Running) -> None:
    command = f"{shlex.quote(sys.executable)} -m windlass validate --all --kubeconfig {cluster.kubeconfig} >&-"
    ended = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "error: the output cannot be written: Bad file descriptor" in ended.stderr


def test_l3_characters_that_the_terminal_does_not_have_are_replaced(cluster: Running) -> None:
    ended = cluster.windlass("wait", "wéb", environ={"PYTHONIOENCODING": "ascii", "ACTION_TIMEOUT": "1s"})
    assert ended.code == 4
    assert ended.stdout.startswith("w?b: ")
