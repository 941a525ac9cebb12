"""Criterion 5: who knows only the documentation can deploy: what is missing is named, all of it, with what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.invariants.clusters import staged
from tests.processes import windlass
from tests.simulation.scenarios import told

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_missing_is_told_at_once_and_nothing_is_tried() -> None:
    ended = windlass("deploy")
    assert (ended.code, ended.stdout) == (3, "")
    for word in ("KUBECONFIG_PATH", "ENVIRONMENT", "environment.yaml"):
        assert word in ended.stderr
    assert "Traceback" not in ended.stderr


def test_help_names_every_action_and_every_exit_code() -> None:
    assert "deploy" in windlass("--help").stdout
    told_codes = windlass("deploy", "--help").stdout
    assert "Exit codes:" in told_codes
    for option in ("--kubeconfig", "--environment", "--scope", "--dry-run", "--timeout", "--dag", "--environment-file"):
        assert option in told_codes


def test_two_variables_and_two_files_are_enough(tmp_path: Path) -> None:
    """And the first line of the report says how it went."""
    with staged(tmp_path, told("b: a")) as stage:
        ended = stage.windlass("deploy", *stage.files)
        assert ended.code == 0, ended.output
        assert ended.stdout.startswith("deploy of platform in development: success\n")
