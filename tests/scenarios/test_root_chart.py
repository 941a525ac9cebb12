"""The example of docs/root-application.md is deployed to a sandbox, and the root is as documented."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.scenarios.clusters import running
from windlass.argo.cd.root_application import RootApplication, root_manifest
from windlass.sandbox.argocd.repositories import MemoryRepository

PAGE = (Path(__file__).parents[2] / "docs/root-application.md").read_text()
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
FILES = {name: text for text in BLOCKS for name in re.findall(r"\A# (\S+)\n", text)}
ENVIRONMENT = yaml.safe_load(FILES["environment.yaml"])


def test_the_page_shows_the_root_that_is_written() -> None:
    shown = yaml.safe_load(next(text for text in BLOCKS if "name: platform-root" in text))
    parameters = {"environment": ENVIRONMENT["name"], "domain": ENVIRONMENT["domain"], "clusterName": "eu-1"}
    root = RootApplication(ENVIRONMENT["gitRepository"], ENVIRONMENT["gitRevision"], ENVIRONMENT["gitPath"], parameters)
    assert shown == root_manifest(root, "argocd")


@pytest.mark.slow
def test_the_example_is_deployed_and_its_applications_are_pinned_to_the_commit(tmp_path: Path) -> None:
    for name in ("dag.yaml", "environment.yaml"):
        (tmp_path / name).write_text(FILES[name])
    with running(tmp_path) as cluster:
        repository = MemoryRepository()
        commit = repository.push({name: text for name, text in FILES.items() if "/" in name})
        cluster.argocd.repositories[ENVIRONMENT["gitRepository"]] = repository
        files = ("--dag", str(tmp_path / "dag.yaml"), "--environment-file", str(tmp_path / "environment.yaml"))
        ended = cluster.windlass("deploy", *files, "--environment", "staging", "--format", "json")
        assert ended.code == 0, ended.stderr
        assert json.loads(ended.stdout)["summary"]["counts"]["succeeded"] == 2
        for name in ("database", "web"):
            application = cluster.shown(name)
            assert application["spec"]["source"]["targetRevision"] == commit
            assert application["status"]["sync"]["revision"] == commit
