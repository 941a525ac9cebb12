"""Other clients than ours on the sandbox, with its kubeconfig, each a script in a process."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.sandbox.served_sandbox import running_sandbox

BENCH = Path(__file__).parents[2] / ".venv-bench/bin/python"  # `make bench` and `make clients` make it
SCRIPTS = {"kubernetes": "with_official.py", "lightkube": "with_lightkube.py"}


def python_with(library: str) -> str:
    if find_spec(library):
        return sys.executable
    if not BENCH.exists():
        pytest.skip(f"{library} is not installed here: `make clients` runs this with it")
    return str(BENCH)


@pytest.mark.parametrize("library", SCRIPTS)
def test_a_client_of_others_finds_what_it_expects(tmp_path: Path, library: str) -> None:
    python = python_with(library)
    with running_sandbox() as kubeconfig:
        (tmp_path / "kubeconfig").write_text(kubeconfig)
        script = Path(__file__).parent / "clients" / SCRIPTS[library]
        command = [python, str(script), str(tmp_path / "kubeconfig")]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr
