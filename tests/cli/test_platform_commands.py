"""lint, graph and config as processes: what they print, and how they end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from tests.processes import Ended, windlass
from windlass.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Ended]

PLATFORM = """\
apiVersion: windlass.dev/v1alpha1
kind: Platform
metadata: {name: mine}
spec:
  stacks:
    - name: storage
      applications:
        - {name: ceph, profile: storage-cluster, critical: true}
        - {name: postgres, profile: database, dependsOn: [ceph]}
    - name: security
      applications:
        - {name: vault, profile: vault, dependsOn: [ceph]}
        - {name: keycloak, dependsOn: [postgres, vault, ceph]}
    - name: alone
      applications: [{name: solo, profile: simple}]
"""
ENVIRONMENT = """\
name: staging
domain: example.org
gitRepository: https://git.example.org/platform.git
gitRevision: main
timeouts: {overall: 3h}
"""


@pytest.fixture
def dag(tmp_path: Path) -> str:
    path = tmp_path / "dag.yaml"
    path.write_text(PLATFORM)
    return str(path)


@pytest.fixture
def environment(tmp_path: Path) -> str:
    path = tmp_path / "environment.yaml"
    path.write_text(ENVIRONMENT)
    return str(path)


AS_PROCESS_TOO = pytest.mark.parametrize("run", ["process", "function"], indirect=True)


@pytest.fixture
def run(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Run:
    """The function behind the process or, where marked, the process as well."""

    def call(*arguments: str, environ: dict[str, str] | None = None) -> Ended:
        code = main(arguments, environ or {})
        printed = capsys.readouterr()
        return Ended(code, printed.out, printed.err)

    return windlass if getattr(request, "param", "") == "process" else call


@AS_PROCESS_TOO
def test_lint_of_the_reference_platform(run: Run) -> None:
    ended = run("lint")
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.stdout == (
        "platform reference: 43 applications in 11 stacks, 80 dependencies, 6 waves; no errors, 0 warnings\n"
    )


def test_lint_warns_with_places_and_ends_well(run: Run, dag: str, environment: str) -> None:
    ended = run("lint", "--dag", dag, "--environment-file", environment)
    assert (ended.code, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        "warning: stack alone has no dependency on another stack, and none depends on it",
        f"{dag}:13:12: warning: keycloak has no profile: the timeouts of profile simple apply",
        f"{dag}:13:57: warning: keycloak depends on ceph already, through other dependencies",
        f"environment staging: {environment}",
        "platform mine: 5 applications in 3 stacks, 5 dependencies, 3 waves; no errors, 3 warnings",
    ]


def test_lint_notices_what_it_ignores(run: Run, dag: str, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "password.txt").write_text("hunter2")
    ended = run("lint", "--dag", dag, "--secrets", str(tmp_path / "secrets"))
    assert ended.code == 0
    assert "notice: " in ended.stdout
    assert "password.txt is ignored" in ended.stdout
    assert "hunter2" not in ended.output


@AS_PROCESS_TOO
def test_lint_shows_every_mistake_of_both_files_and_ends_in_3(run: Run, tmp_path: Path) -> None:
    dag, environment = tmp_path / "dag.yaml", tmp_path / "environment.yaml"
    dag.write_text(PLATFORM.replace("dependsOn: [ceph]}", "dependsOn: [cehp]}"))
    environment.write_text("name: staging\ndomian: example.org\n")
    ended = run(
        "lint", "--dag", str(dag), "--environment-file", str(environment), environ={"ENVIRONMENT": "production"}
    )
    assert ended.code == 3
    assert not ended.stdout
    assert ended.stderr.replace(f"{tmp_path}/", "").splitlines() == [
        "error: 6 errors in the configuration",
        "  environment.yaml:1:1: domain is missing",
        "  environment.yaml:1:1: gitRepository is missing",
        "  environment.yaml:1:1: gitRevision is missing",
        "  environment.yaml:2:1: unknown field domian (did you mean domain?)",
        "  dag.yaml:9:59: postgres depends on cehp, which does not exist (did you mean ceph?)",
        "  dag.yaml:12:53: vault depends on cehp, which does not exist (did you mean ceph?)",
    ]


def test_a_single_mistake_reads_like_any_error(run: Run, dag: str) -> None:
    ended = run("graph", "--dag", dag, "--scope", "app:vualt")
    assert ended.code == 3
    assert ended.stderr == "error: there is no application vualt\nwhere: --scope\nhint:  did you mean vault?\n"


@AS_PROCESS_TOO
def test_graph_as_text(run: Run, dag: str) -> None:
    ended = run("graph", "--dag", dag)
    assert ended.code == 0
    assert ended.stdout == (
        """\
platform mine: 5 applications, 5 dependencies, 3 waves

wave 1
  * ceph      storage
    solo      alone

wave 2
    postgres  storage   after ceph
    vault     security  after ceph

wave 3
    keycloak  security  after ceph, postgres, vault

* critical; expected 21 min, 10 at a time
longest path 21 min: ceph -> postgres -> keycloak
"""
    )


def test_graph_of_a_scope_names_what_is_outside(run: Run, dag: str) -> None:
    ended = run("graph", "--dag", dag, environ={"TARGET_SCOPE": "stack:security"})
    assert "platform mine: 2 applications, 1 dependency, 2 waves" in ended.stdout
    assert "outside the scope, checked only\n    ceph  by keycloak, vault\n    postgres  by keycloak" in ended.stdout


def test_graph_of_an_empty_stack(run: Run) -> None:
    ended = run("graph", "--scope", "stack:ml-infra")
    assert (ended.code, ended.stdout) == (0, "platform reference: 0 applications, 0 dependencies, 0 waves\n")
    assert run("graph", "--scope", "stack:ml-infra", "--format", "svg").code == 0


def test_graph_as_mermaid(run: Run, dag: str) -> None:
    ended = run("graph", "--dag", dag, "--format", "mermaid")
    lines = ended.stdout.splitlines()
    assert lines[:4] == ["graph LR", '  subgraph s0["storage"]', '    n0["ceph"]', '    n2["postgres"]']
    assert "  n0 --> n2" in lines
    assert sum("-->" in line for line in lines) == 4, "without what other dependencies imply"
    assert "  class n0 critical" in lines
    part = run("graph", "--dag", dag, "--format", "mermaid", "--scope", "app:solo").stdout
    assert part == 'graph LR\n  subgraph s0["alone"]\n    n0["solo"]\n  end\n'


def test_graph_as_dot(run: Run, dag: str) -> None:
    ended = run("graph", "--dag", dag, "--format", "dot")
    assert ended.stdout.startswith("digraph platform {\n")
    assert '  "ceph" -> "postgres";' in ended.stdout
    assert ended.stdout.count("->") == 4
    assert '"ceph" [penwidth=3];' in ended.stdout
    assert ended.stdout.endswith("}\n")


@AS_PROCESS_TOO
def test_graph_as_svg_shows_every_application_once(run: Run) -> None:
    root = ET.fromstring(run("graph", "--format", "svg").stdout)
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{space}g")) == 43
    assert {text.text for text in root.iter(f"{space}text")} >= {"rook-ceph-cluster", "wave 6", "monitoring"}


@AS_PROCESS_TOO
def test_config_shows_values_and_where_they_come_from(run: Run, dag: str, environment: str) -> None:
    ended = run(
        "config", "--dag", dag, "--environment-file", environment, "--log-level", "debug", "--dry-run",
        environ={"TARGET_SCOPE": "app:vault", "KUBECONFIG_DATA": "aHVudGVyMg=="},
    )  # fmt: skip
    assert (ended.code, ended.stderr) == (0, "")
    rows = {line.split()[0]: line.split()[1:] for line in ended.stdout.splitlines()}
    assert rows["log-level"] == ["debug", "--log-level"]
    assert rows["dry-run"] == ["true", "--dry-run"]
    assert rows["scope"] == ["app:vault", "TARGET_SCOPE"]
    assert rows["timeout"] == ["3h", f"{environment}:5:12"]
    assert rows["pv-policy"] == ["retain", "default"]
    assert rows["kubeconfig"] == ["-", "not", "set"]
    assert rows["kubeconfig-data"] == ["***", "KUBECONFIG_DATA"]
    assert rows["environment.domain"] == ["example.org", f"{environment}:2:1"]
    assert rows["environment.argocdNamespace"] == ["argocd", "default"]
    assert rows["platform.name"] == ["mine", dag]
    assert "hunter2" not in ended.output
    assert "aHVudGVyMg" not in ended.output


def test_config_as_json_masks_too(run: Run, tmp_path: Path) -> None:
    (tmp_path / "git-password").write_text("hunter2")
    (tmp_path / "health").mkdir()
    (tmp_path / "health" / "apps_Deployment.lua").write_text("return {}")
    ended = run(
        "config", "--format", "json", "--secrets", str(tmp_path), "--health-checks", str(tmp_path / "health"),
        environ={"KUBECONFIG_DATA": "aHVudGVyMg=="},
    )  # fmt: skip
    document = json.loads(ended.stdout)
    assert (document["apiVersion"], document["kind"]) == ("windlass.dev/v1alpha1", "Settings")
    rows = {row["name"]: (row["value"], row["origin"]) for row in document["settings"]}
    assert rows["kubeconfig-data"] == ("***", "KUBECONFIG_DATA")
    assert rows["secret.git-password"] == ("***", str(tmp_path / "git-password"))
    assert rows["health-check.apps/Deployment"][0] == "apps_Deployment.lua"
    assert rows["dry-run"] == (False, "default")
    assert rows["platform.applications"] == (43, "reference platform")
    assert "hunter2" not in ended.output


@AS_PROCESS_TOO
def test_config_for_an_action_says_what_is_missing(run: Run) -> None:
    ended = run("config", "--for", "deploy")
    assert ended.code == 3
    assert ended.stderr.splitlines() == [
        "error: 3 errors in the configuration",
        "  no cluster is named: give --kubeconfig FILE, KUBECONFIG_PATH, KUBECONFIG_DATA or --in-cluster",
        "  the target environment is missing (--environment or ENVIRONMENT)",
        "  /config/environment.yaml is missing (mount it, or name it by --environment-file)",
    ]


def test_m13_config_shows_what_is_set_although_something_is_wrong(run: Run) -> None:
    ended = run("config", "--for", "deploy", environ={"LOG_LEVEL": "loud", "ENVIRONMENT": "staging"})
    assert ended.code == 3
    assert any(line.split()[:2] == ["environment", "staging"] for line in ended.stdout.splitlines()), ended.stdout
    assert "LOG_LEVEL: must be" in ended.stderr


def test_m15_a_name_that_was_probably_meant_for_another(run: Run, tmp_path: Path) -> None:
    dag = tmp_path / "dag.yaml"
    stack = "{name: security, applications: [{name: valt, timeouts: {health: 0s}}]}"
    head = "apiVersion: windlass.dev/v1alpha1\nkind: Platform\nmetadata: {name: mine}\nspec:\n  extends: reference\n"
    dag.write_text(f"{head}  stacks: [{stack}]\n")
    ended = run("lint", "--dag", str(dag))
    assert ended.code == 0
    what = "valt is not in the reference platform, so it is added as new; did you mean vault?"
    assert f"{dag}:6:45: warning: {what}\n" in ended.stdout
    assert "valt can never succeed: it must be healthy for longer than its health timeout" in ended.stdout
    assert "valt has no profile" not in ended.stdout


def test_l5_l6_warnings_are_sorted_by_line_and_counted_in_words(run: Run, tmp_path: Path) -> None:
    dag = tmp_path / "dag.yaml"
    nodes = "\n".join(f"        - {{name: node-{number:03}}}" for number in range(100))
    head = "apiVersion: windlass.dev/v1alpha1\nkind: Platform\nmetadata: {name: mine}\nspec:\n  stacks:\n"
    dag.write_text(f"{head}    - name: a\n      applications:\n{nodes}\n")
    lines = run("lint", "--dag", str(dag)).stdout.splitlines()
    numbers = [int(line.split(":")[1]) for line in lines[:-1]]
    assert numbers == sorted(numbers)
    assert lines[-1] == "platform mine: 100 applications in 1 stack, 0 dependencies, 1 wave; no errors, 100 warnings"
