"""The demonstration: its folder, its commits, and that a chapter which does not do what it says is told.

`make demo` plays all of it; here one chapter is enough.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import yaml

from windlass.cli import demo_files
from windlass.cli.demo_steps import DEMO_STEPS, DemoFailed, DemoStep, run_demo
from windlass.errors import InvalidInput
from windlass.settings.source import SettingsSource

if TYPE_CHECKING:
    from pathlib import Path

PLAN = DEMO_STEPS[0]


def contents(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


def test_a_chapter_is_told_with_its_command_and_its_essence(tmp_path: Path) -> None:
    said: list[str] = []
    environ = SettingsSource({"DRY_RUN": "no such word", "KUBECONFIG_DATA": "x"}).environ_without_settings()
    run_demo(tmp_path / "demo", environ, said.append, [PLAN])
    assert "$ windlass plan --dag dag.yaml --environment-file environment.yaml > reports/1-plan.txt" in said
    assert "  plan to deploy platform in development: 43 to sync (43 create their objects), about 9 s" in said
    assert any("critical path" in line for line in said)
    assert len(said) < 40
    assert "43 to sync" in (tmp_path / "demo/reports/1-plan.txt").read_text()
    assert not (tmp_path / "demo/kubeconfig").exists(), "the sandbox has ended"


@pytest.mark.parametrize(
    ("chapter", "message"),
    [
        (replace(PLAN, exit_code=2), "ended with 0, wanted was 2"),
        pytest.param(
            replace(PLAN, expected=("43 to sync", "44 succeeded")),
            "does not say: 44 succeeded",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            replace(PLAN, command="plan --dag nowhere.yaml"), "ended with 3, wanted was 0", marks=pytest.mark.slow
        ),
    ],
    ids=["code", "words", "error"],
)
def test_a_chapter_that_is_not_true_is_a_failure(chapter: DemoStep, message: str, tmp_path: Path) -> None:
    with pytest.raises(DemoFailed, match=message) as raised:
        run_demo(tmp_path / "demo", {}, lambda _: None, [chapter])
    assert raised.value.exit_code == 1
    assert not (tmp_path / "demo/kubeconfig").exists(), "the sandbox has ended"


@pytest.mark.slow
def test_a_json_report_is_asked_by_field(tmp_path: Path) -> None:
    said: list[str] = []
    fields = ("summary.dryRun=True", "metrics.calls.writes=0")
    chapter = replace(PLAN, command=f"{PLAN.command} --format json", report_file="plan.json", expected=fields)
    run_demo(tmp_path / "demo", {}, said.append, [chapter])
    assert "  metrics.calls.writes: 0" in said
    with pytest.raises(DemoFailed, match=r"does not say: metrics\.nothing=0"):
        run_demo(tmp_path / "demo", {}, said.append, [replace(chapter, expected=("metrics.nothing=0",))])


def test_the_folder_of_an_earlier_demonstration_is_replaced(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    out.mkdir()
    demo_files.prepare_folder(out)
    first = contents(out)
    (out / "reports" / "old.txt").touch()
    demo_files.break_application(out)
    demo_files.prepare_folder(out)
    assert contents(out) == first
    with pytest.raises(InvalidInput, match="not the folder of a demonstration"):
        demo_files.prepare_folder(tmp_path)


def test_a_commit_changes_one_file(tmp_path: Path) -> None:
    demo_files.prepare_folder(tmp_path / "demo")
    states = [contents(tmp_path / "demo")]
    for commit in (demo_files.break_application, demo_files.fix_application):
        assert f"repository/{demo_files.FAILING_APPLICATION}/all.yaml" in commit(tmp_path / "demo")
        states.append(contents(tmp_path / "demo"))
    for before, after in pairwise(states):
        changed = [name for name in after if after[name] != before.get(name)]
        assert changed == [f"repository/{demo_files.FAILING_APPLICATION}/all.yaml"]
    marks = [yaml.safe_load(state[changed[0]])["spec"]["template"]["metadata"]["annotations"] for state in states]
    assert ["sandbox.windlass.dev/fails-with" in found for found in marks] == [False, True, False]
