"""Shell completion, as a shell asks for it: a process with the words so far in its environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.processes import windlass
from windlass.cli.main import COMMANDS

if TYPE_CHECKING:
    from pathlib import Path

PLATFORM = """\
apiVersion: windlass.dev/v1alpha1
kind: Platform
metadata: {name: shop}
spec:
  stacks:
    - name: data
      applications: [{name: orders-db}, {name: users-db}]
"""


def completions(words: str, number: int | None = None) -> list[str]:
    """What bash is offered for the last word, or for the word of this number."""
    last = len(words.split()) - 1 if number is None else number
    environ = {"COMP_WORDS": words, "COMP_CWORD": str(last), "_WINDLASS_COMPLETE": "bash_complete"}
    ended = windlass(environ=environ)
    assert (ended.code, ended.stderr) == (0, "")
    return ended.stdout.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_each_shell(shell: str) -> None:
    ended = windlass(environ={"_WINDLASS_COMPLETE": f"{shell}_source"})
    assert (ended.code, ended.stderr) == (0, "")
    assert f"_WINDLASS_COMPLETE={shell}_complete" in ended.stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("windlass sta", ["plain,status"]),
        ("windlass deploy --env", ["plain,--environment", "plain,--environment-file"]),
        ("windlass deploy --environment s", ["plain,staging"]),
        ("windlass teardown --pv-policy r", ["plain,retain"]),
        ("windlass rbac --for de", ["plain,deploy"]),
        ("windlass status --format j", ["plain,json"]),
        ("windlass lint --dag x", ["file,x"]),
        ("windlass lint --secrets x", ["dir,x"]),
        ("windlass deploy --scope st", ["plain,stack:"]),
        ("windlass deploy --scope app:va", ["plain,app:vault"]),
        ("windlass deploy --dag /nowhere --scope app:va", []),
        ("windlass deploy --timeout 3", []),
    ],
)
def test_what_is_offered(words: str, offered: list[str]) -> None:
    assert completions(words) == offered


def test_scopes_are_those_of_the_platform_file(tmp_path: Path) -> None:
    (tmp_path / "dag.yaml").write_text(PLATFORM)
    words = f"windlass deploy --dag {tmp_path / 'dag.yaml'} --scope"
    assert completions(f"{words} app:") == ["plain,app:orders-db", "plain,app:users-db"]
    assert completions(f"{words} stack:") == ["plain,stack:data"]


def test_every_command_is_offered_with_its_help_in_zsh() -> None:
    ended = windlass(environ={"COMP_WORDS": "windlass st", "COMP_CWORD": "1", "_WINDLASS_COMPLETE": "zsh_complete"})
    assert ended.stdout.splitlines()[:2] == ["plain", "status"]
    assert ended.stdout.splitlines()[2].startswith(COMMANDS["status"][1][:30])  # click shortens it
