"""What keeps an action from running, or from ending well: each provoked on the process, with the advice it gives."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest

from tests.processes import windlass
from tests.sandbox.served_sandbox import running_sandbox
from tests.scenarios.test_validate import dag
from windlass.cli.options import command_with_options

if TYPE_CHECKING:
    from pathlib import Path

    from tests.scenarios.clusters import Running


def test_configuration_invalid() -> None:
    ended = windlass("deploy", "--scope", "app:vualt", environ={"ENVIRONMENT": "staging"})
    assert ended.code == 3
    assert "did you mean vault?" in ended.stderr
    assert "next:  Nothing was changed. Correct the options or variables named above" in ended.stderr
    assert "\n       $ windlass config" in ended.stderr


def test_advice_can_be_pasted_before_a_run(tmp_path: Path) -> None:
    """The command leads to the same mistake, wherever the files are."""
    file = tmp_path / "my platform.yaml"
    file.write_text("kind: Nonsense\n")
    named = ["--dag", str(file), "--environment-file", "/nowhere/environment.yaml", "--environment", "staging"]
    ended = windlass("deploy", *named, "--kubeconfig", "x", "--log-format", "text", "--scope", "app:vault")
    *_, advice = ended.stderr.splitlines()
    assert advice == (
        f"       $ windlass lint --environment staging --dag '{file}' --environment-file /nowhere/environment.yaml"
    )
    pasted = windlass(*shlex.split(advice)[2:])
    assert (ended.code, pasted.code) == (3, 3)
    assert f"{file}:1:1" in ended.stderr
    assert f"{file}:1:1" in pasted.stderr


def test_advice_can_be_pasted_after_a_run(cluster: Running, tmp_path: Path) -> None:
    """What came in variables is still there."""
    file = dag(tmp_path, "web", "gone")
    ended = cluster.windlass("validate", "--dag", file, "--scope", "app:gone", environ={"ENVIRONMENT": "staging"})
    command = f"windlass validate --scope app:gone --dag {file}"
    assert f"    $ {command}\n" in ended.stdout
    again = cluster.windlass(*command.split()[1:], environ={"ENVIRONMENT": "staging"})
    assert (ended.code, again.code) == (1, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("windlass deploy", "windlass deploy --kubeconfig k --in-cluster --dag 'a b' --scope app:x"),
        ("windlass deploy --scope app:y", "windlass deploy --scope app:y --kubeconfig k --in-cluster --dag 'a b'"),
        ("windlass lint", "windlass lint --dag 'a b'"),
        ("look: windlass cluster", "look: windlass cluster --kubeconfig k --in-cluster"),
        ("kubectl get pods", "kubectl get pods"),
        ("a windlass is a machine\nfor ropes", "a windlass is a machine\nfor ropes"),
    ],
)  # fmt: skip
def test_what_was_said_is_repeated_where_it_is_taken(text: str, expected: str) -> None:
    said = {"dag": "a b", "scope": "app:x", "kubeconfig": "k", "in-cluster": "true"}
    assert (
        command_with_options(text, {**said, "confirm": "staging", "dry-run": "true", "log-level": "debug"}) == expected
    )


def test_credentials_invalid(cluster: Running, tmp_path: Path) -> None:
    text = cluster.kubeconfig.read_text().replace("token: ", "token: wrong-")
    (tmp_path / "kubeconfig").write_text(text)
    ended = windlass("validate", "--all", "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert ended.code == 1
    assert "next:  The cluster rejected the credentials" in ended.stderr
    assert f"$ windlass cluster --kubeconfig {tmp_path}/kubeconfig\n" in ended.stderr


@pytest.mark.parametrize(
    "arguments",
    [("validate", "--all"), *(pytest.param(words, marks=pytest.mark.slow) for words in (("wait", "web"), ("import",)))],
)
def test_target_not_found(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with running_sandbox() as kubeconfig:
        (tmp_path / "kubeconfig").write_text(kubeconfig)
        ended = windlass(*arguments, "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert ended.code == 1
    assert "error: Argo CD's Application is not served here" in ended.stderr
    assert "next:  The cluster does not have it" in ended.stderr


def test_action_failed(cluster: Running, tmp_path: Path) -> None:
    ended = cluster.windlass(
        "validate", "--dag", dag(tmp_path, "sick*"), "--environment", "staging", "--format", "json"
    )
    assert ended.code == 1
    advice = json.loads(ended.stdout)["recommendations"]
    assert [row["detected"] for row in advice] == ["ValidationFailed", "Degraded"]
    assert advice[0]["command"].startswith("windlass validate")
