"""INV-3: only arguments, mounted files and the cluster count. Nothing is left on disk, and nothing of it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.invariants.clusters import Stage, Told, staged
from tests.simulation.scenarios import told

if TYPE_CHECKING:
    from pathlib import Path

JUNK = {
    "KUBECONFIG": "/nowhere/config",
    "ARGOCD_SERVER": "argocd.example.org",
    "ARGOCD_APP_REVISION": "0" * 40,
    "TARGETREVISION": "other",
    "WINDLASS_SCOPE": "app:a",
    "DOMAIN": "example.net",
    "LANG": "tr_TR.UTF-8",
    "TZ": "Pacific/Kiritimati",
    "PYTHONHASHSEED": "7",
    "XDG_CACHE_HOME": "/nowhere",
}


def plain(found: Told) -> Any:
    """The report without times and ids."""
    names = ("name", "result", "health", "sync", "revisions", "causes", "attempts")
    rows = [{name: each.get(name) for name in names} for each in found.report["components"]]
    summary = {name: found.report["summary"][name] for name in ("action", "environment", "scope", "verdict", "counts")}
    return rows, summary, [step["name"] for step in found.report["steps"]], sorted(set(found.writes))


def deployed(folder: Path, name: str, environ: dict[str, str]) -> tuple[list[Any], list[Path]]:
    """Three runs on a cluster of their own, from a home and a directory of their own; and what they left there."""
    home, here = folder / name / "home", folder / name / "here"
    for each in (home, here):
        each.mkdir(parents=True)
    (here / "dag.yaml").write_text("a file that nobody named")
    (here / "kubeconfig").write_text("another")
    (folder / name / "files").mkdir()
    with staged(folder / name / "files", told("c: b; b: a")) as stage:
        before = sorted(path for path in (folder / name).rglob("*"))
        runs = [_run(stage, {"HOME": str(home), **environ}, here) for _ in range(3)]
        return runs, sorted(path for path in (folder / name).rglob("*") if path not in before)


def _run(stage: Stage, environ: dict[str, str], here: Path) -> Any:
    found = stage.deploy(environ=environ, cwd=here)
    assert found.code == 0, found.ended.output
    return plain(found)


@pytest.mark.slow
def test_where_and_by_whom_it_is_started_makes_no_difference(tmp_path: Path) -> None:
    first, left = deployed(tmp_path, "one", {})
    assert not left, "nothing is written to disk"
    second, left = deployed(tmp_path, "two", JUNK)
    assert not left
    assert first == second
    assert first[1] == first[2], "what an earlier run knew changes nothing"
