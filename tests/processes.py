"""Runs `windlass` as a process, the way a person or a pipeline does."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


def inherited() -> dict[str, str]:
    """Nothing of the developer's environment but coverage's variables, and where the tested code is."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(("COVERAGE", "PYTHONPATH"))}  # noqa: TID251
    return {"PATH": "/usr/bin:/bin", **kept}


def windlass(*arguments: str, environ: Mapping[str, str] | None = None, timeout: float = 50) -> Ended:
    """With no environment but what is given."""
    done = subprocess.run(
        [sys.executable, "-m", "windlass", *arguments],
        env={**inherited(), **(environ or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@contextmanager
def serving(path: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """`windlass sandbox` with its kubeconfig at `path`; gives the process and the lines that it prints."""
    command = [sys.executable, "-m", "windlass", "sandbox", "--kubeconfig", str(path), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, [process.stdout.readline() for _ in range(3)]
        finally:
            process.kill()
