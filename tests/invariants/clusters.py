"""A cluster on loopback with a platform in its repository; `windlass` is a process there, and a witness watches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.processes import Ended
from tests.sandbox.controllers.objects import URL
from tests.scenarios.clusters import Running, running
from tests.settings.setting_files import spec
from tests.simulation.scenarios import APPLICATIONS
from tests.simulation.witnesses import Witness, run_of
from windlass.sandbox.argocd.application_specs import ControllerDelays

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.simulation.scenarios import Scenario
    from windlass.sandbox.apiserver.journal import JournalEntry

QUICK = ControllerDelays(start=0.01, sync=0.05, finish=0.01, recent=0.02, latest=0.03, refresh=0.05, first=0.02)
ENVIRONMENT = f"name: development\ndomain: example.org\ngitRepository: {URL}\ngitRevision: main\ngitPath: root\n"


@dataclass
class Stage:
    cluster: Running
    scenario: Scenario
    witness: Witness
    folder: Path
    _seen: int = field(default=0)

    def push(self) -> str:
        """The next commit of the scenario."""
        number = len(self.witness.commits)
        self.witness.commits.append(self.cluster.repository.push(self.scenario.files(number)))
        return self.witness.commits[-1]

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def windlass(self, *arguments: str, environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Ended:
        """The process, with nothing of the developer's environment; `entries` tells what it asked of the cluster."""
        self.witness.since = len(self.witness.commits) - 1
        self._seen = len(self.cluster.asked())
        done = subprocess.run(
            [sys.executable, "-m", "windlass", *arguments],
            env={**self.environ, **(environ or {})},
            cwd=cwd or self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "Traceback" not in done.stderr
        return Ended(done.returncode, done.stdout, done.stderr)

    @property
    def environ(self) -> dict[str, str]:
        kept = ("COVERAGE", "PYTHONPATH")
        inherited = {name: value for name, value in os.environ.items() if name.startswith(kept)}  # noqa: TID251
        needed = {"KUBECONFIG_PATH": str(self.cluster.kubeconfig), "ENVIRONMENT": "development"}
        return {"PATH": "/usr/bin:/bin", **needed, **inherited}

    @property
    def files(self) -> tuple[str, ...]:
        """The options that name the platform and the environment."""
        return ("--dag", str(self.folder / "dag.yaml"), "--environment-file", str(self.folder / "environment.yaml"))

    def deploy(self, *arguments: str, environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Told:
        ended = self.windlass("deploy", "--format", "json", *self.files, *arguments, environ=environ, cwd=cwd)
        return Told(ended, json.loads(ended.stdout) if ended.stdout else {}, self.entries)

    @property
    def entries(self) -> list[JournalEntry]:
        """What the last process asked of the cluster."""
        return self.cluster.asked()[self._seen :]

    def operations_of(self, told: Told) -> list[str]:
        """The Applications on which a run wrote an operation, as the cluster saw it."""
        run_id = told.report["summary"]["runId"]
        return [name for writer, name in self.witness.operations if writer == run_id]

    def unhealthy(self, number: int = -1) -> dict[str, str]:
        """What is not truly as a commit says, and why."""
        numbers = [range(len(self.witness.commits))[number]]
        found = {name: self.witness.why_not_ready(name, numbers) for name in self.scenario.platform.graph.names}
        return {name: why for name, why in found.items() if why}


@dataclass(frozen=True, slots=True)
class Told:
    """What a process said, and what the cluster was asked."""

    ended: Ended
    report: dict[str, Any]
    entries: list[JournalEntry]

    @property
    def code(self) -> int:
        return self.ended.code

    @property
    def writes(self) -> list[str]:
        return [f"{entry.verb} {entry.kind} {entry.name}" for entry in self.entries if entry.is_write]

    @property
    def results(self) -> dict[str, str]:
        return {each["name"]: each["result"] for each in self.report["components"]}


def platform_file(scenario: Scenario, patience: str = "") -> str:
    rows = [
        f"- {{name: {name}, dependsOn: [{', '.join(needed)}], retries: {{maxAttempts: 1}}}}"
        for name, needed in scenario.platform.graph.dependencies.items()
    ]
    stacks = "stacks:\n- name: all\n  applications:\n" + "".join(f"  {row}\n" for row in rows)
    return spec(f"profiles: {{simple: {{{patience}}}}}\n{stacks}")


@contextmanager
def staged(folder: Path, scenario: Scenario) -> Iterator[Stage]:
    with running(folder) as cluster:
        cluster.argocd.delays = QUICK
        cluster.argocd.stale_statuses.update(scenario.lies)
        stage = Stage(cluster, scenario, Witness(cluster.sandbox, scenario), folder)
        stage.write("dag.yaml", platform_file(scenario))
        stage.write("environment.yaml", ENVIRONMENT)
        stage.push()
        if not scenario.has_root:
            for part in scenario.commits[0].values():
                body = scenario.application(part, "main")
                cluster.do(cluster.sandbox.client().create(APPLICATIONS, body))
            cluster.rest(0.2)
        yield stage
        assert not stage.witness.problems, stage.witness.problems


__all__ = ["Stage", "Told", "run_of", "staged"]
