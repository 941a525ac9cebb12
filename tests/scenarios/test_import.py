"""`windlass import` as a process on a cluster on loopback, and what its file is good for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.operations import brownfields
from tests.processes import windlass
from tests.scenarios.clusters import running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.processes import Ended
    from tests.scenarios.clusters import Running

NOTICE = "grafana: windlass.dev/depends-on names 'nobody', which is no Application here"


@pytest.fixture(scope="module")
def brownfield(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("cluster")) as found:
        found.repository.push(brownfields.FILES)
        found.do(brownfields.grow(found.sandbox.client()))
        while not found.do(found.sandbox.client().find(brownfields.APPS, "grafana", "argocd")):
            found.rest(0.25)
        yield found


def run(cluster: Running, *arguments: str) -> Ended:
    """Nothing is written to the cluster, and nobody sees a traceback."""
    before = len(cluster.asked())
    ended = cluster.windlass("import", *arguments)
    asked = cluster.asked()[before:]
    assert {entry.verb for entry in asked} <= {"get", "list"}
    assert not [entry for entry in asked if entry.is_write]
    assert "Traceback" not in ended.stderr
    return ended


@pytest.mark.slow
def test_the_first_minute(brownfield: Running, tmp_path: Path) -> None:
    ended = run(brownfield)
    assert ended.code == 0
    assert ended.stderr.splitlines() == [
        f"notice: {NOTICE}",
        "11 applications in 7 stacks, 13 dependencies, 7 waves; 4 reads, 0 writes",
    ]
    assert f"# notice: {NOTICE}\n" in ended.stdout
    assert f"        # left out: {NOTICE.removeprefix('grafana: ')}\n" in ended.stdout
    path = tmp_path / "dag.yaml"
    path.write_text(ended.stdout)
    lint = windlass("lint", "--dag", str(path))
    assert lint.code == 0
    assert "platform imported: 11 applications in 7 stacks, 13 dependencies, 7 waves; no errors" in lint.stdout
    graph = windlass("graph", "--dag", str(path))
    assert graph.code == 0
    assert "wave 7\n    grafana" in graph.stdout
    validate = brownfield.windlass("validate", "--dag", str(path), "--format", "json", "--environment", "staging")
    components = json.loads(validate.stdout)["components"]
    assert {each["name"] for each in components} == brownfields.TARGETS.keys()
    assert all(each["health"] != "Missing" for each in components if each["name"] in {"root", "monitoring"})
    again = run(brownfield)
    assert again.stdout == ended.stdout, "the same cluster, the same file"


def test_a_file_is_not_replaced_unless_told(brownfield: Running, tmp_path: Path) -> None:
    path = tmp_path / "dag.yaml"
    first = run(brownfield, "--out", str(path))
    assert (first.code, first.stdout) == (0, "")
    assert first.stderr.endswith(f"wrote {path}; next: windlass graph --dag {path}\n")
    written = path.read_text()
    assert written.startswith("# Imported from the Argo CD at http://127.0.0.1:")
    path.write_text("mine\n")
    asked = len(brownfield.asked())
    second = run(brownfield, "--out", str(path))
    assert (second.code, second.stdout) == (3, "")
    assert second.stderr == f"error: {path} is there already\nwhere: --out\nhint:  --force replaces it\n"
    assert path.read_text() == "mine\n"
    assert len(brownfield.asked()) == asked, "told before anything is read"
    assert run(brownfield, "--out", str(path), "--force").code == 0
    assert path.read_text() == written
    link = tmp_path / "link.yaml"
    link.symlink_to(path)
    refused = run(brownfield, "--out", str(link), "--force")
    assert (refused.code, path.read_text()) == (3, written)
    assert "cannot be written: it is a symbolic link" in refused.stderr


def test_a_cluster_without_applications_is_1(tmp_path: Path) -> None:
    with running(tmp_path) as empty:
        ended = run(empty, "--out", str(tmp_path / "dag.yaml"))
    assert (ended.code, ended.stdout) == (1, "")
    assert ended.stderr.startswith("error: there are no Applications to import\nwhere: http://127.0.0.1:")
    assert not (tmp_path / "dag.yaml").exists()
