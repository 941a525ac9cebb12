"""The catalogue of recommendations: for each detected problem, what it means and which command to run next."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from windlass.core.platform.gate_values import Reason
from windlass.core.platform.model.applications import ApplicationRef, ResourceRef
from windlass.core.platform.model.scopes import ScopeKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class ContainerProblem(StrEnum):
    """Problems of a container, found in the diagnostics of an application: more time does not solve them."""

    CRASHES = "CrashLoopBackOff"
    IMAGE_MISSING = "ImagePullBackOff"


class RunProblem(StrEnum):
    """Problems of a run as a whole, as opposed to the `Reason` of a single application."""

    CONFIGURATION_INVALID = "ConfigurationInvalid"
    SETTINGS_INVALID = "SettingsInvalid"
    CREDENTIALS_INVALID = "CredentialsInvalid"
    RIGHTS_MISSING = "RightsMissing"
    TARGET_NOT_FOUND = "TargetNotFound"
    ACTION_FAILED = "ActionFailed"
    RUN_REFUSED = "RunRefused"
    PLAN_FAILED = "PlanFailed"
    VALIDATION_FAILED = "ValidationFailed"
    RULES_BROKEN = "RulesBroken"
    TIMED_OUT = "TimedOut"
    RUN_STOPPED = "RunStopped"
    ORPHANS_LEFT = "OrphansLeft"
    OUT_OF_SCOPE = "OutOfScope"


@dataclass(frozen=True, slots=True)
class Recommendation:
    detected: str
    application: str
    sentence: str
    command: str


_GET = "kubectl -n {namespace} get {object} -o yaml"
_DESCRIBE = "kubectl -n {namespace} describe {object}"
_RERUN = "{again}"
_RIGHTS = "windlass rbac --for {action}"

NO_WORDS: Mapping[str, str] = MappingProxyType({})
DetectedProblem = RunProblem | Reason | ContainerProblem

CATALOGUE: Mapping[DetectedProblem, tuple[str, str]] = {
    RunProblem.CONFIGURATION_INVALID: ("Nothing was changed. Correct the files named above.", "windlass lint"),
    RunProblem.SETTINGS_INVALID: (
        "Nothing was changed. Correct the options or variables named above; this shows the values that are set.",
        "windlass config",
    ),
    RunProblem.CREDENTIALS_INVALID: (
        "The cluster rejected the credentials: renew them, and mount or pass the new kubeconfig.",
        "windlass cluster",
    ),
    RunProblem.RIGHTS_MISSING: (
        "The credentials are valid, but lack rights: have an administrator apply those that this action needs.",
        _RIGHTS,
    ),
    RunProblem.TARGET_NOT_FOUND: (
        "The cluster does not have it: check which cluster the kubeconfig names.",
        "windlass cluster",
    ),
    RunProblem.ACTION_FAILED: ("Fix {names}, then rerun; {finished} applications are skipped.", _RERUN),
    RunProblem.RUN_REFUSED: ("Nothing was changed. Fix {names}, then rerun.", _RERUN),
    RunProblem.PLAN_FAILED: ("Fix {names}, then plan again.", _RERUN),
    RunProblem.VALIDATION_FAILED: ("Fix {names}, then validate again.", _RERUN),
    RunProblem.RULES_BROKEN: ("Resolve the compliance findings, then validate again.", _RERUN),
    RunProblem.TIMED_OUT: (
        "{running} after {duration}: rerun with a longer --timeout{estimate}; {finished} applications are skipped.",
        _RERUN,
    ),
    RunProblem.RUN_STOPPED: ("Stopped: {stopped}. Rerun to continue; {finished} applications are skipped.", _RERUN),
    RunProblem.ORPHANS_LEFT: (
        "The applications are removed; the orphans listed here belonged to them: check each before you delete it.",
        _RERUN,
    ),
    RunProblem.OUT_OF_SCOPE: (
        "{name} is outside the scope: widen the scope to include it, or run {name} first.",
        _RERUN,
    ),
    Reason.ABSENT: ("{name} was not created: look at the Application that should create it.", _GET),
    Reason.DELETING: ("{name} is being deleted: see which finalizer holds it, and whether its owner lives.", _GET),
    Reason.DEPENDENCY_UNHEALTHY: (
        "{name} was not healthy when its dependents were to start: find out what changed, then run again.",
        _DESCRIBE,
    ),
    Reason.OPERATION_REQUESTED: ("An operation on {name} never began: is the application controller alive?", _DESCRIBE),
    Reason.OPERATION_NOT_SEEN: ("Argo CD never took up the sync of {name}: is its controller alive?", _DESCRIBE),
    Reason.OPERATION_RUNNING: ("An operation on {name} does not end: see what it waits for.", _GET),
    Reason.OPERATION_FAILED: ("The sync of {name} failed: its message says which object was refused and why.", _GET),
    Reason.OVERTAKEN: ("Another client changed {name} during the run: find out which one, then run again.", _GET),
    Reason.WRONG_REVISION: ("{name} was synced to another revision than asked: did its branch move?", _GET),
    Reason.NOT_APPROVED: (
        "{name} would get something else than was approved, so it was not synced: look at a new plan.",
        "windlass plan",
    ),
    Reason.NOT_COMPARED: (
        "Argo CD did not compare {name} with the wanted revision: can it read the source?",
        _DESCRIBE,
    ),
    Reason.NOT_FRESH: ("Argo CD's verdict on {name} is older than the sync: is its controller keeping up?", _DESCRIBE),
    Reason.ERROR_CONDITION: ("Argo CD reports an error on {name}: repository, manifests or project.", _GET),
    Reason.PROGRESSING: (
        "{name} is still Progressing: look at its pods; increase its health timeout only if it is merely slow.",
        _DESCRIBE,
    ),
    Reason.DEGRADED: ("{name} is Degraded: look at the pods and events of its resources.", _DESCRIBE),
    Reason.SUSPENDED: ("Something in {name} is suspended: resume it; a paused part is never healthy.", _DESCRIBE),
    Reason.MISSING: ("Objects of {name} are missing although they were synced: who deletes them?", _DESCRIBE),
    Reason.UNKNOWN: ("The health of {name} cannot be told: does its kind have a health check?", _DESCRIBE),
    Reason.FAILED: ("{name} failed: its last operation says why.", _GET),
    Reason.NOT_STABLE: ("{name} does not stay healthy long enough: look for restarts.", _DESCRIBE),
    Reason.NO_ACTIVITY: ("Nothing has changed on {name} for minutes: it is stuck, not slow.", _DESCRIBE),
    Reason.OUT_OF_TIME: (
        "{name} was still changing at its timeout: if it is merely slow, increase the timeout and run again.",
        _RERUN,
    ),
    Reason.INTERRUPTED: ("{name} was under way when the run ended: run again, it goes on from where it was.", _RERUN),
    Reason.UNREADABLE: (
        "Whether objects of {name} are left cannot be read: grant this identity get and list on them, then run again.",
        _RERUN,
    ),
    Reason.RIGHT_MISSING: (
        "A right on objects of {name} is missing: have an administrator grant the one that is named, then run again.",
        _RIGHTS,
    ),
    Reason.FOREIGN_OBJECTS: (
        "{name} was left alone to spare foreign objects: move them away, or accept their loss by --delete-foreign.",
        _RERUN,
    ),
    Reason.PRESENT: ("{name} is still there: nobody has begun to delete it.", _GET),
    ContainerProblem.CRASHES: (
        "A container of {name} ends and is started again: its last log lines say why; more time does not help.",
        _DESCRIBE,
    ),
    ContainerProblem.IMAGE_MISSING: (
        "An image of {name} cannot be pulled: check its name, its tag and the pull secret; more time does not help.",
        _DESCRIBE,
    ),
    Reason.PARENT_BROKEN: (
        "Argo CD cannot tell what {name} defines: fix its repository, revision or manifests.",
        _GET,
    ),
    Reason.NOT_ANSWERING: (
        "Argo CD does not compare {name} on request: check the application controller and the repo server.",
        _DESCRIBE,
    ),
    Reason.NOT_DEFINED: (
        "Git does not define {name}: add its definition, or remove it from the platform file.",
        _GET,
    ),
}

_HEALTH_REASONS = frozenset({
    Reason.PROGRESSING, Reason.DEGRADED, Reason.NOT_STABLE, Reason.NO_ACTIVITY, Reason.OUT_OF_TIME, Reason.INTERRUPTED,
})  # fmt: skip
"""Reasons that a container can cause."""
_IMAGE_WAIT = re.compile(r"  container \S+ waits, (ImagePullBackOff|ErrImagePull|ErrImageNeverPull|InvalidImageName)\b")
_CRASH = re.compile(r"  container \S+ (waits, CrashLoopBackOff\b|.*it last ended with |ended, .* exit code [1-9])")


def detected_problem(reason: Reason, diagnostics: Iterable[str]) -> Reason | ContainerProblem:
    """What to advise on: the container that the diagnostics name, if it can be the cause; otherwise the reason."""
    if reason in _HEALTH_REASONS:
        for line in diagnostics:
            if _IMAGE_WAIT.match(line):
                return ContainerProblem.IMAGE_MISSING
            if _CRASH.match(line):
                return ContainerProblem.CRASHES
    return reason


def parent_ref(text: str) -> ApplicationRef | ResourceRef:
    """The object that `ParentApplication` writes as this text: `NAMESPACE/NAME`, or `KIND NAMESPACE/NAME`."""
    kind, _, key = text.rpartition(" ")
    namespace, _, name = key.partition("/")
    return ResourceRef("argoproj.io/v1alpha1", kind, name, namespace) if kind else ApplicationRef(name, namespace)


def recommendation_for(
    detected: DetectedProblem,
    target: ApplicationRef | ResourceRef | None = None,
    rerun_command: str = "windlass deploy",
    name: str = "",
    words: Mapping[str, str] = NO_WORDS,
) -> Recommendation:
    """The catalogue entry filled in for `target`; `rerun_command` is the command that repeats the run.

    `name` is what the report calls the target, if that is not the name of its object. `words` fill in the sentence of a
    `RunProblem`.
    """
    sentence, command = CATALOGUE[detected]
    commands = {"again": rerun_command, "action": _action_with_rights(rerun_command)}
    if target is None:
        return Recommendation(str(detected), "", sentence.format_map(words), command.format(**commands))
    kind = target.kind if isinstance(target, ResourceRef) else "application"
    namespace = target.namespace or ("argocd" if isinstance(target, ApplicationRef) else "default")
    command = command.format(object=f"{kind.lower()} {target.name}", namespace=namespace, **commands)
    name = name or target.name
    return Recommendation(str(detected), name, sentence.format(name=name), command)


def _action_with_rights(command: str) -> str:
    """The action whose rights a command needs: the plan of a teardown reads everything."""
    return "teardown" if "--action teardown" in command else command.split()[1]


def with_namespace(target: ApplicationRef | ResourceRef, argocd_namespace: str) -> ApplicationRef | ResourceRef:
    lacks_namespace = isinstance(target, ApplicationRef) and target.namespace is None
    return replace(target, namespace=argocd_namespace) if lacks_namespace else target


def scope_option(scope: str) -> str:
    """The command line option for a scope: none for the whole platform, `--all` if no platform file was used."""
    if scope == ScopeKind.PLATFORM:
        return ""
    return f" --scope {scope}" if ":" in scope else " --all"
