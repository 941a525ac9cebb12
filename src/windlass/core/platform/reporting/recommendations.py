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
    NOT_VERIFIED = "NotVerified"


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
    RunProblem.NOT_VERIFIED: (
        "Objects of {name} may be left: have an administrator grant the right to list the kinds above, then rerun.",
        _RIGHTS,
    ),
    Reason.ABSENT: (
        "{name} does not exist: it was not created, or another client deleted it; check its parent Application.",
        _GET,
    ),
    Reason.DELETING: (
        "{name} is being deleted: check which finalizer blocks the deletion and whether its controller runs.",
        _GET,
    ),
    Reason.DEPENDENCY_UNHEALTHY: (
        "{name} was not healthy when its dependents were ready to start: fix it, then rerun.",
        _DESCRIBE,
    ),
    Reason.OPERATION_REQUESTED: ("An operation on {name} did not start: check the application controller.", _DESCRIBE),
    Reason.OPERATION_NOT_SEEN: (
        "Argo CD did not start the sync of {name}: check the application controller.",
        _DESCRIBE,
    ),
    Reason.OPERATION_RUNNING: ("An operation on {name} did not end: check which object or hook it waits for.", _GET),
    Reason.OPERATION_FAILED: ("The sync of {name} failed: fix the object that the message names.", _GET),
    Reason.OVERTAKEN: ("Another client changed {name} during the run: find that client, then rerun.", _GET),
    Reason.WRONG_REVISION: (
        "{name} was synced to another revision than requested: check whether its branch moved.",
        _GET,
    ),
    Reason.NOT_APPROVED: (
        "{name} differs from the approved plan and was not synced: review a new plan.",
        "windlass plan",
    ),
    Reason.NOT_COMPARED: (
        "Argo CD did not compare {name} with the desired revision: check that it can read the source.",
        _DESCRIBE,
    ),
    Reason.NOT_FRESH: (
        "The status of {name} is older than its sync: check the load of the application controller.",
        _DESCRIBE,
    ),
    Reason.ERROR_CONDITION: ("Argo CD reports an error on {name}: check its repository, manifests and project.", _GET),
    Reason.PROGRESSING: (
        "{name} is still Progressing: check its pods; if it is only slow, increase its health timeout.",
        _DESCRIBE,
    ),
    Reason.DEGRADED: ("{name} is Degraded: check the pods and events of its resources.", _DESCRIBE),
    Reason.SUSPENDED: ("A part of {name} is suspended: resume it.", _DESCRIBE),
    Reason.MISSING: ("Objects of {name} are missing after the sync: find the client that deletes them.", _DESCRIBE),
    Reason.UNKNOWN: ("The health of {name} is unknown: check the health check of its kind.", _DESCRIBE),
    Reason.FAILED: ("{name} failed: check its last operation.", _GET),
    Reason.NOT_STABLE: ("{name} does not stay healthy long enough: check its pods for restarts.", _DESCRIBE),
    Reason.NO_ACTIVITY: ("{name} has not changed for minutes: it is stuck, not slow; check its events.", _DESCRIBE),
    Reason.OUT_OF_TIME: (
        "{name} was still changing at its timeout: if it is only slow, increase the timeout, then rerun.",
        _RERUN,
    ),
    Reason.INTERRUPTED: ("{name} was in progress when the run ended: rerun to continue.", _RERUN),
    Reason.UNREADABLE: ("Objects of {name} cannot be read: grant get and list on them, then rerun.", _RERUN),
    Reason.RIGHT_MISSING: (
        "A right on objects of {name} is missing: have an administrator grant the named right, then rerun.",
        _RIGHTS,
    ),
    Reason.FOREIGN_OBJECTS: (
        "{name} was not deleted to keep foreign objects: move them, or accept their loss with --delete-foreign.",
        _RERUN,
    ),
    Reason.PRESENT: ("{name} still exists: check why it was not deleted.", _GET),
    ContainerProblem.CRASHES: (
        "A container of {name} crashes repeatedly: check its last log lines; more time does not help.",
        _DESCRIBE,
    ),
    ContainerProblem.IMAGE_MISSING: (
        "An image of {name} cannot be pulled: check its name, its tag and the pull secret; more time does not help.",
        _DESCRIBE,
    ),
    Reason.PARENT_BROKEN: ("Argo CD cannot render {name}: fix its repository, revision or manifests.", _GET),
    Reason.NOT_ANSWERING: (
        "Argo CD does not compare {name} on request: check the application controller and the repo server.",
        _DESCRIBE,
    ),
    Reason.NOT_DEFINED: ("Git does not define {name}: add its definition, or remove it from the platform file.", _GET),
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
