"""The table: every action, each of its exit codes, and the situations that end in it."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

from tests.scenarios.exit_codes.situations import (
    held,
    locked,
    occupied,
    of_production,
    orphaned,
    planned,
    rejecting,
    shadowed,
    silent,
    standing,
    unreachable,
    with_broken_set,
    without_argo_cd,
)
from windlass import __version__
from windlass.cli.main import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.scenarios.exit_codes.situations import Situation

ACTIONS = sorted(COMMANDS)
CLUSTERED = ("deploy", "teardown", "validate", "plan", "wait", "import", "status", "cluster")
"""Actions that ask a cluster."""
LIMITED = tuple(action for action in CLUSTERED if action != "cluster")
"""Actions that have a time limit."""
PLATFORMS = ("deploy", "teardown", "validate", "plan", "lint", "graph", "rehearse", "config")
"""Actions that read a platform file."""
SET = (*LIMITED, "lint", "graph", "rehearse", "config")
"""Actions that read the table of settings, and with it every variable."""
SIGNALS = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM}
USUALLY = {"wait": "web", "rbac": "--for deploy"}
"""What an action cannot do without, besides a platform."""


@dataclass(frozen=True, slots=True)
class Row:
    action: str
    situation: str
    code: int
    arguments: str = ""
    """`{folder}` and `{port}` are filled in."""
    says: str = ""
    """On stdout or stderr."""
    platform: str = ""
    """Written into the platform file that the action is given, with an environment file if it takes one."""
    given: Situation = unreachable
    environ: Mapping[str, str] = field(default_factory=dict)
    signal: signal.Signals | None = None
    once: str = ""
    """The signal is sent when this is said; without it, when the server that never answers has been asked."""
    is_output_full: bool = False
    writes_nothing: bool = False
    """Also true of whatever ends in 3."""

    def __str__(self) -> str:
        return f"{self.action} {self.code} {self.situation}"


def wrong(action: str, situation: str, arguments: str = "", says: str = "", **environ: str) -> Row:
    """Ends in 3 before anything is asked: the cluster it is shown cannot be reached, which would be 1."""
    whole = f"{USUALLY.get(action, '')} {arguments}"
    return Row(action, situation, 3, whole, says, environ=environ)


KILL = "os.kill(os.getpid(), signal.SIGTERM)"
LATE = "atexit.register(os.kill, os.getpid(), signal.SIGTERM)"
FOR_EVERY_ACTION = (
    *(Row(action, "SIGTERM at the first import", 1, USUALLY.get(action, ""), "interrupted",
          given=shadowed("click", KILL)) for action in ACTIONS),
    *(Row(action, "SIGTERM at an import of its own", 1, says="interrupted", given=shadowed("yaml", KILL))
      for action in ("lint", "demo")),
    Row("graph", "SIGTERM when all is done", 0, says="waves", given=shadowed("sitecustomize", LATE)),
    Row("rbac", "the rights of an action", 0, "--for deploy", "kind: Role"),
    *(wrong(action, "an unknown option", "--no-such", "No such option") for action in ACTIONS),
    *(wrong(action, "an argument too many", "a b", "unexpected extra argument") for action in ACTIONS),
    *(Row(action, "the output cannot be written", 1, says="the output cannot be written: No space left",
          is_output_full=True) for action in ("lint", "graph", "config", "demo", "sandbox")),
    Row("rehearse", "the output cannot be written", 1, says="the output cannot be written: No space left",
        platform="a", is_output_full=True),
)  # fmt: skip
FOR_MANY_ACTIONS = (
    *(wrong(action, "a scope that is none", "--scope web", "'web' is not a scope")
      for action in ("teardown", "validate", "plan", "graph")),
    *(wrong(action, "a platform file that is not there", "--dag /nowhere.yaml", "there is no file /nowhere.yaml")
      for action in ("deploy", "lint", "rehearse", "config")),
    *(wrong(action, "no way to a cluster", "", "no cluster is named: give --kubeconfig FILE", KUBECONFIG_PATH="")
      for action in ("teardown", "plan", "wait", "import", "status", "cluster")),
    *(wrong(action, "no environment", "", "the target environment is missing", ENVIRONMENT="")
      for action in ("deploy", "validate")),
    *(Row(action, "a cluster that cannot be reached", 1, USUALLY.get(action, ""), "connection refused",
          platform="web" if action in PLATFORMS else "") for action in CLUSTERED),
    *(Row(action, "credentials that are rejected", 1, USUALLY.get(action, ""), "credentials were rejected",
          platform="web" if action in PLATFORMS else "", given=rejecting)
      for action in ("deploy", "teardown", "wait", "cluster")),
    *(Row(action, "a cluster without Argo CD", 1, USUALLY.get(action, ""), "Argo CD's Application is not served here",
          platform="web", given=without_argo_cd) for action in ("deploy", "teardown", "plan")),
    Row("status", "a cluster without Argo CD", 1, says="Argo CD's Application is not served here",
        given=without_argo_cd),
    *(Row(action, "a cluster that does not answer in time", 4, f"{USUALLY.get(action, '')} --timeout 1s",
          "no answer from", platform="web" if action in PLATFORMS else "", given=silent) for action in LIMITED),
    *(Row(action, f"{name} while a cluster does not answer", 1, USUALLY.get(action, ""), "interrupted",
          platform="web" if action in PLATFORMS else "", given=silent, signal=number)
      for action, (name, number) in product(CLUSTERED, SIGNALS.items())
      if name == "SIGTERM" or action not in {"deploy", "teardown", "wait"}),
    *(wrong(action, "a variable that is neither true nor false", "", "must be true or false", DRY_RUN="yes")
      for action in SET),
    *(wrong(action, "a directory of secrets that is not there", "--secrets /nowhere", "no directory /nowhere")
      for action in ("lint", "deploy")),
    wrong("validate", "a directory of checks that is not there", "--all --health-checks /nowhere", "no directory"),
    wrong("deploy", "a variable with a scope that is none", "", "'web' is not a scope", TARGET_SCOPE="web"),
    wrong("graph", "a scope with an unknown name", "--scope app:vualt", "did you mean vault?"),
    wrong("import", "a variable with a wrong word", "", "ACTION_TIMEOUT", ACTION_TIMEOUT="soon"),
    *(Row(action, "a platform without applications", 3, says="this platform has no application", platform=" ")
      for action in ("deploy", "lint")),
    wrong("lint", "a credential in plain text", "", "GIT_TOKEN", GIT_TOKEN="x"),
    wrong("validate", "two ways to a cluster", "--in-cluster --kubeconfig x", "only one of --kubeconfig"),
    wrong("cluster", "two ways to a cluster", "--in-cluster --kubeconfig x", "only one of --kubeconfig"),
    wrong("wait", "a kubeconfig that is not there", "--kubeconfig /nowhere", "/nowhere"),
)  # fmt: skip
DEPLOY = (
    Row("deploy", "all is as it should be", 0, says="1 unchanged", platform="web", given=standing),
    Row("deploy", "what was missing is raised", 0, says="1 succeeded", platform="fresh", given=standing),
    Row("deploy", "a dry run", 0, "--dry-run", "dry run", platform="sick", given=standing, writes_nothing=True),
    Row("deploy", "a dry run of a plan that still holds", 0, "--dry-run --plan {folder}/plan.json", "dry run",
        platform="web", given=planned(), writes_nothing=True),
    Row("deploy", "an approved plan that still holds", 0, "--plan {folder}/plan.json", "1 unchanged",
        platform="web", given=planned()),
    Row("deploy", "nothing stands", 1, says="1 failed", platform="sick", given=standing),
    Row("deploy", "something outside the scope is missing", 1, "--scope app:web",
        "web needs gone (outside the scope): it does not exist",
        platform="web: gone", given=standing),
    Row("deploy", "another run has the lock", 1, says="another run holds the lock: run another", platform="slow",
        given=locked),
    Row("deploy", "an approved plan that does not hold any more", 1, "--plan {folder}/plan.json",
        "the plan does not fit the cluster any more", platform="web", given=planned("web")),
    Row("deploy", "a dry run of a plan that does not hold any more", 1, "--dry-run --plan {folder}/plan.json",
        "the plan does not fit the cluster any more", platform="web", given=planned("web"), writes_nothing=True),
    *(Row("deploy", f"{name} before anything stands", 1, says="failure, interrupted", platform="slow", given=standing,
          signal=number, once="run begins") for name, number in SIGNALS.items()),
    Row("deploy", "one component failed, another stands", 2, says="1 failed, 1 unchanged", platform="web; sick",
        given=standing),
    Row("deploy", "what waits for a failed one is skipped", 2, says="1 failed, 1 skipped, 1 unchanged",
        platform="slow: sick; web", given=standing),
    Row("deploy", "SIGTERM while something stands", 2, says="partial, interrupted", platform="web; slow",
        given=standing, signal=signal.SIGTERM, once="run begins"),
    wrong("deploy", "no environment file", "", "/config/environment.yaml is missing"),
    wrong("deploy", "an environment file that is not there", "--environment-file /nowhere", "no file /nowhere"),
    Row("deploy", "the file of another environment", 3, "--environment production", "this is the file of staging",
        platform="web"),
    Row("deploy", "a plan that is not there", 3, "--plan /nowhere", "the plan cannot be read", platform="web"),
    Row("deploy", "a plan that is none", 3, "--plan {folder}/dag.yaml", "dag.yaml: $.kind", platform="web"),
    Row("deploy", "a dry run of a plan of something else", 3, "--dry-run --scope app:web --plan {folder}/plan.json",
        "plan.json: $.scope", platform="web", given=planned()),
    Row("deploy", "a cluster of another environment", 3, says="recorded as environment production", platform="web",
        given=of_production),
    Row("deploy", "the time is over", 4, "--timeout 3s", "timeout", platform="slow", given=standing),
)  # fmt: skip
TEARDOWN = (
    Row("teardown", "all is removed", 0, says="1 succeeded", platform="clean", given=standing),
    Row("teardown", "nothing is there", 0, says="success", platform="gone", given=standing),
    Row("teardown", "a dry run needs no confirmation", 0, "--dry-run", "dry run", platform="web", given=standing,
        environ={"TEARDOWN_CONFIRM": ""}, writes_nothing=True),
    Row("teardown", "something cannot be removed", 1, says="held by the finalizer example.org/held", platform="stuck",
        given=held("stuck")),
    Row("teardown", "something outside the scope depends on it", 1, "--scope app:web",
        "web cannot be removed: slow (outside the scope) still depends on it", platform="slow: web", given=standing,
        writes_nothing=True),
    Row("teardown", "another run has the lock", 1, says="another run holds the lock: run another", platform="web",
        given=locked),
    *(Row("teardown", f"{name} while something is removed", 1, says="failure, interrupted", platform=f"stopped-{end}",
          given=held(f"stopped-{end}"), signal=SIGNALS[name], once="run begins")
      for name, end in (("SIGINT", "int"), ("SIGTERM", "term"))),
    Row("teardown", "all is removed, something is left behind", 2, says="ClusterRole left", platform="left",
        given=orphaned),
    wrong("teardown", "it is not confirmed", "", "is not confirmed", TEARDOWN_CONFIRM=""),
    wrong("teardown", "another environment is confirmed", "--confirm production", "names another environment"),
    wrong("teardown", "an unknown policy for volumes", "--pv-policy burn", "--pv-policy"),
    wrong("teardown", "foreign objects of a node that there is not", "--delete-foreign nosuch", "nosuch"),
    Row("teardown", "snapshots that this cluster cannot make", 3, "--pv-policy snapshot",
        "snapshot.storage.k8s.io is not served", platform="web", given=standing),
    Row("teardown", "a plan of a deploy", 3, "--plan {folder}/plan.json", "this plan is for action 'deploy'",
        platform="web", given=planned()),
    Row("teardown", "a cluster of another environment", 3, says="recorded as environment production", platform="web",
        given=of_production),
    Row("teardown", "the time is over", 4, "--timeout 3s", "timeout", platform="late", given=held("late")),
)  # fmt: skip
VALIDATE = (
    Row("validate", "all is healthy", 0, says="1 Healthy", platform="web*", given=standing),
    Row("validate", "something critical is not healthy", 1, says="1 Degraded", platform="web; sick*", given=standing),
    Row("validate", "nothing is healthy", 1, says="1 Degraded", platform="sick", given=standing),
    Row("validate", "something else is not healthy", 2, says="1 Degraded", platform="web*; sick", given=standing),
    Row("validate", "rules are broken, and that counts", 2, "--strict", "INV-2 web", platform="web", given=standing),
    wrong("validate", "all, and a part", "--all --scope app:web", "--all means every Application"),
    wrong("validate", "all, and a part in a variable", "--all", "where: TARGET_SCOPE", TARGET_SCOPE="app:web"),
    wrong("validate", "all, and a file", "--all --environment-file x", "where: --environment-file"),
    wrong("validate", "all, and a variable with a wrong word", "--all", "ACTION_TIMEOUT", ACTION_TIMEOUT="soon"),
    wrong("validate", "an unknown format", "--format xml", "xml"),
)  # fmt: skip
PLAN = (
    Row("plan", "it could be done", 0, says="dry run", platform="sick", given=standing),
    Row("plan", "a teardown could be done", 0, "--action teardown", "dry run", platform="web", given=standing,
        environ={"TEARDOWN_CONFIRM": ""}),
    Row("plan", "something outside the scope is missing", 1, "--scope app:web",
        "web needs gone (outside the scope): it does not exist",
        platform="web: gone", given=standing),
    Row("plan", "what defines a part of it cannot be rendered", 2, says="ApplicationSet argocd/broken  ParentBroken",
        platform="web; owned", given=with_broken_set, writes_nothing=True),
    Row("plan", "a place that cannot be written", 3, "--out /nowhere/plan.json", "the plan cannot be written",
        platform="web", given=standing),
    wrong("plan", "an unknown action to plan", "--action burn", "burn"),
)  # fmt: skip
WAIT = (
    Row("wait", "it is healthy", 0, "web --timeout 30s", "web: Healthy at", given=standing),
    Row("wait", "it is being deleted", 1, "doomed --timeout 30s", "Deleting: it is being deleted", given=standing),
    *(Row("wait", f"{name} while it waits", 1, "slow", "interrupted", given=standing, signal=number, once="waiting: ")
      for name, number in SIGNALS.items()),
    Row("wait", "no name", 3, says="Missing argument"),
    Row("wait", "a name that is none", 3, "a/b/c", "it is NAME or NAMESPACE/NAME"),
    Row("wait", "half a name", 3, "argocd/", "it is NAME or NAMESPACE/NAME"),
    Row("wait", "it is not healthy in time", 4, "slow --timeout 3s", "out of time after 3 s", given=standing),
)  # fmt: skip
STATUS = (
    Row("status", "something failed", 2, says="failed 1", given=standing),
    *(Row("status", f"{name} while it watches", 0, "--watch", "applications", given=standing, signal=number,
          once="lock ") for name, number in SIGNALS.items()),
    Row("status", "the output cannot be written", 1, says="the output cannot be written: No space left",
        given=standing, is_output_full=True),
)  # fmt: skip
IMPORT = (
    Row("import", "a platform file is written", 0, says="kind: Platform", given=standing),
    wrong("import", "force without a file", "--force", "name it by --out FILE"),
    wrong("import", "a folder as a file", "--out /", "is a folder"),
    wrong("import", "a folder that is not there", "--out /nowhere/dag.yaml", "there is no folder /nowhere"),
    wrong("import", "a name that is too long", f"--out {'x' * 300}", "cannot be written: File name too long"),
    Row("import", "a place that cannot be written", 3, "--out /dev/full --force", "it is not a regular file",
        given=standing),
)  # fmt: skip
OTHERS = (
    Row("windlass", "help", 0, "--help", "3 invalid configuration"),
    Row("windlass", "version", 0, "--version", f"windlass {__version__}"),
    wrong("windlass", "no action", "", "Usage: "),
    wrong("windlass", "an unknown action", "deplyo", "No such command 'deplyo'"),
    wrong("windlass", "an unknown option", "--verison", "No such option"),
    Row("cluster", "the cluster answers", 0, says="0 writes", given=standing),
    Row("cluster", "no pod to be in", 3, "--in-cluster", "KUBERNETES_SERVICE_HOST", environ={"KUBECONFIG_PATH": ""}),
    wrong("cluster", "an unknown context", "--context nobody", "nobody"),
    wrong("cluster", "an option without its value", "--kubeconfig", "requires an argument"),
    Row("lint", "no mistakes", 0, says="no errors", platform="web: gone"),
    Row("lint", "a mistake in the platform file", 3, says="a -> b -> a", platform="a: b; b: a"),
    Row("lint", "the file of another environment", 3, "--environment production", "this is the file of staging",
        platform="web"),
    Row("graph", "it is drawn", 0, says="2 waves", platform="web: gone"),
    wrong("graph", "an unknown format", "--format png", "png"),
    Row("config", "values are shown", 0, says="pv-policy"),
    wrong("config", "something that an action needs is missing", "--for deploy",
          "/config/environment.yaml is missing"),
    wrong("config", "an unknown action", "--for destroy", "destroy"),
    Row("rehearse", "it goes well", 0, says="2 succeeded", platform="a: b"),
    Row("rehearse", "what was to fail fails", 0, "--fail b", "deploy would end with exit code 1", platform="a: b"),
    Row("rehearse", "something does not become healthy in time", 1, "--timeout 1s",
        "deploy would end with exit code 4", platform="a: b"),
    wrong("rehearse", "an unknown name to fail", "--fail vualt", "did you mean vault?"),
    Row("rehearse", "a name to fail that is outside the scope", 3, "--fail b --scope app:a", "b is outside app:a",
        platform="a; b"),
    wrong("rehearse", "a seed that is none", "--seed -1", "--seed"),
    *(Row("sandbox", f"it serves until {name}", 0, "--kubeconfig {folder}/sandbox", "sandbox  ", signal=number,
          once="windlass cluster") for name, number in SIGNALS.items()),
    Row("sandbox", "a port that somebody has", 3, "--port {port} --kubeconfig {folder}/sandbox", "cannot be had",
        given=occupied),
    Row("sandbox", "a kubeconfig of somebody else", 3, "--kubeconfig {folder}/theirs/file", "that no sandbox wrote",
        given=occupied),
    wrong("sandbox", "a port that is none", "--port 65536", "--port"),
    Row("demo", "a folder of somebody else", 3, "--out {folder}/theirs", "not the folder of a demonstration",
        given=occupied),
    Row("demo", "a file as a folder", 3, "--out {folder}/theirs/file", "not the folder of a demonstration",
        given=occupied),
    Row("demo", "a place that is no folder", 3, "--out {folder}/theirs/file/below", "cannot be written",
        given=occupied),
)  # fmt: skip
ROWS = (
    *FOR_EVERY_ACTION, *FOR_MANY_ACTIONS, *DEPLOY, *TEARDOWN, *VALIDATE, *PLAN, *WAIT, *STATUS, *IMPORT, *OTHERS,
)  # fmt: skip
