"""`windlass teardown` as a process on a cluster on loopback, with the journal as witness."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.sandbox.controllers.objects import config
from tests.scenarios.clusters import Running, running
from tests.settings.setting_files import spec
from windlass.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.processes import Ended

CONFIRMED = {"ENVIRONMENT": "staging", "TEARDOWN_CONFIRM": "staging"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("cluster")) as found:
        files: dict[str, Any] = {f"{name}/all.yaml": [config(name)] for name in ("a1", "a2")}
        found.repository.push(files)
        found.deploy("a1", "a2")
        yield found


def dag(folder: Path) -> str:
    """The second waits for the first."""
    path = folder / "dag.yaml"
    path.write_text(spec("stacks: [{name: all, applications: [{name: a1}, {name: a2, dependsOn: [a1]}]}]"))
    return str(path)


def teardown(cluster: Running, *arguments: str, environ: dict[str, str] | None = None) -> tuple[Ended, list[str]]:
    """And what was written."""
    before = len(cluster.asked())
    ended = cluster.windlass("teardown", *arguments, environ=CONFIRMED if environ is None else environ)
    assert "Traceback" not in ended.stderr
    return ended, [f"{each.verb} {each.name}" for each in cluster.asked()[before:] if each.is_write]


@pytest.mark.slow
def test_in_reverse_order_and_again_without_a_write(cluster: Running, tmp_path: Path) -> None:
    file = dag(tmp_path)
    planned, writes = teardown(cluster, "--dag", file, environ={"ENVIRONMENT": "staging", "DRY_RUN": "true"})
    assert (planned.code, writes) == (0, []), planned.output
    assert "a2 -> a1" in planned.stdout
    ended, writes = teardown(cluster, "--dag", file, "--format", "json")
    assert ended.code == 0, ended.output
    assert [write for write in writes if write.startswith("delete")] == ["delete a2", "delete a1", "delete windlass"]
    report = json.loads(ended.stdout)
    assert report["metrics"]["calls"]["writes"] == len(writes)
    assert {each["evidence"]["proof"] for each in report["components"]} == {"it is not there any more"}
    again, writes = teardown(cluster, "--dag", file)
    assert (again.code, writes) == (0, []), again.output


def test_help_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["teardown", "--help"], {}) == 0
    assert "TEARDOWN_CONFIRM" in capsys.readouterr().out
