"""What keeps an action from running, or from ending well: each provoked on the process, with the advice it gives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.processes import windlass
from tests.sandbox.running import running_sandbox
from tests.scenarios.test_validate import dag

if TYPE_CHECKING:
    from pathlib import Path

    from tests.scenarios.clusters import Running


def test_configuration_invalid() -> None:
    ended = windlass("deploy", "--scope", "app:vualt", environ={"ENVIRONMENT": "staging"})
    assert ended.code == 3
    assert "did you mean vault?" in ended.stderr
    assert "next:  Fix the mistakes listed above; nothing was changed.\n       $ windlass lint" in ended.stderr


def test_credentials_invalid(cluster: Running, tmp_path: Path) -> None:
    text = cluster.kubeconfig.read_text().replace("token: ", "token: wrong-")
    (tmp_path / "kubeconfig").write_text(text)
    ended = windlass("validate", "--all", "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert ended.code == 1
    assert "next:  The cluster rejected the credentials" in ended.stderr
    assert "$ windlass cluster --kubeconfig FILE" in ended.stderr


@pytest.mark.parametrize("arguments", [("validate", "--all"), ("wait", "web"), ("import",)])
def test_target_not_found(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with running_sandbox() as kubeconfig:
        (tmp_path / "kubeconfig").write_text(kubeconfig)
        ended = windlass(*arguments, "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert ended.code == 1
    assert "error: Argo CD's Application is not served here" in ended.stderr
    assert "next:  What was asked for is not in this cluster" in ended.stderr


def test_action_failed(cluster: Running, tmp_path: Path) -> None:
    ended = cluster.windlass(
        "validate", "--dag", dag(tmp_path, "sick*"), "--environment", "staging", "--format", "json"
    )
    assert ended.code == 1
    advice = json.loads(ended.stdout)["recommendations"]
    assert [row["detected"] for row in advice] == ["ActionFailed", "Degraded"]
    assert advice[0]["command"].startswith("windlass validate")
