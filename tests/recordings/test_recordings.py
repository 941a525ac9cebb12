"""The recordings in the repository: they can be read, hold what they promise, and nothing of where they are from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.recordings import sequence_files
from tests.recordings.scripts import SCRIPTS
from tests.recordings.sequence_files import SEQUENCES, Done, Seen

if TYPE_CHECKING:
    from tests.recordings.sequence_files import Recording

NAMES = [script.name for script in SCRIPTS]
FOREIGN = [
    pytest.param(r"\d{4}-\d\d-\d\dT\d\d:\d\d", id="a time"),
    pytest.param(r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b", id="an address"),
    pytest.param(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-", id="a uid"),
    pytest.param(r"\b[0-9a-f]{40,}\b", id="a digest"),
    pytest.param(r"resourceVersion|managedFields|containerd://", id="a field of no interest"),
    pytest.param(r"/(roo[t]|hom[e]|wor[k]|tm[p])/", id="a path"),
]


def test_there_is_a_file_for_every_script_and_no_other() -> None:
    assert sequence_files.names() == sorted(NAMES)


@pytest.mark.parametrize("pattern", FOREIGN)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_the_machine_is_in_it(name: str, pattern: str) -> None:
    assert not re.search(pattern, (SEQUENCES / f"{name}.json").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_begins_with_an_action_and_tells_each_object_from_its_beginning(name: str) -> None:
    found = sequence_files.load(name)
    assert isinstance(found.steps[0], Done)
    begun: set[tuple[str, str]] = set()
    for step in found.steps:
        if isinstance(step, Seen):
            key = (step.kind, step.name)
            assert step.type in {"ADDED", "MODIFIED", "DELETED"}
            assert (step.type == "ADDED") == (key not in begun)
            begun.add(key)
            if step.type == "DELETED":
                begun.remove(key)
    assert not {key for key in begun if key[0] not in {"PersistentVolume"}}, "all of it is gone at the end"


def phases(found: Recording, kind: str, *path: str | int) -> list[Any]:
    """The values that a field goes through, without repetition."""
    values: list[Any] = []
    for seen in found.of(kind):
        value = seen.at(*path)
        if not values or values[-1] != value:
            values.append(value)
    return values


def conditions(found: Recording, kind: str) -> set[tuple[str, str, str]]:
    return {
        (condition["type"], condition["status"], condition.get("reason", ""))
        for seen in found.of(kind)
        for condition in seen.at("status", "conditions") or []
    }


def waits(found: Recording) -> set[str]:
    statuses = [s for seen in found.of("Pod") for s in seen.at("status", "containerStatuses") or []]
    return {s["state"]["waiting"]["reason"] for s in statuses if "waiting" in s["state"]}


def exits(found: Recording) -> set[tuple[int, str]]:
    statuses = [s for seen in found.of("Pod") for s in seen.at("status", "containerStatuses") or []]
    return {
        (s["state"]["terminated"]["exitCode"], s["state"]["terminated"]["reason"])
        for s in statuses
        if "terminated" in s["state"]
    }


CONDITIONS = [
    ("deployment", "Deployment", ("Available", "True", "MinimumReplicasAvailable")),
    ("deployment", "Deployment", ("Available", "False", "MinimumReplicasUnavailable")),
    ("deployment", "Deployment", ("Progressing", "True", "NewReplicaSetCreated")),
    ("deployment", "Deployment", ("Progressing", "True", "NewReplicaSetAvailable")),
    ("deployment-without-image", "Deployment", ("Progressing", "False", "ProgressDeadlineExceeded")),
    ("deployment-crashing", "Deployment", ("Progressing", "False", "ProgressDeadlineExceeded")),
    ("job-complete", "Job", ("SuccessCriteriaMet", "True", "CompletionsReached")),
    ("job-complete", "Job", ("Complete", "True", "CompletionsReached")),
    ("job-parallel", "Job", ("Complete", "True", "CompletionsReached")),
    ("job-failed", "Job", ("FailureTarget", "True", "BackoffLimitExceeded")),
    ("job-failed", "Job", ("Failed", "True", "BackoffLimitExceeded")),
    ("job-failed-without-retry", "Job", ("Failed", "True", "BackoffLimitExceeded")),
    ("job-deadline", "Job", ("Failed", "True", "DeadlineExceeded")),
    ("job-out-of-memory", "Job", ("Failed", "True", "BackoffLimitExceeded")),
    ("job-suspended", "Job", ("Suspended", "True", "JobSuspended")),
    ("job-suspended", "Job", ("Suspended", "False", "JobResumed")),
]


@pytest.mark.parametrize(("name", "kind", "condition"), CONDITIONS)
def test_a_condition_is_in_its_recording(name: str, kind: str, condition: tuple[str, str, str]) -> None:
    assert condition in conditions(sequence_files.load(name), kind)


@pytest.mark.parametrize(
    ("name", "reasons"),
    [
        ("deployment-without-image", {"ErrImagePull", "ImagePullBackOff"}),
        ("deployment-crashing", {"CrashLoopBackOff"}),
        ("job-without-image", {"ErrImagePull", "ImagePullBackOff"}),
    ],
)
def test_what_containers_wait_for(name: str, reasons: set[str]) -> None:
    assert reasons <= waits(sequence_files.load(name))


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("job-complete", {(0, "Completed")}),
        ("job-failed", {(3, "Error")}),
        ("job-failed-without-retry", {(3, "Error")}),
        ("job-out-of-memory", {(137, "OOMKilled")}),
    ],
)
def test_how_containers_end(name: str, ends: set[tuple[int, str]]) -> None:
    assert exits(sequence_files.load(name)) == ends


def test_pods_of_a_stateful_set_come_one_after_the_other_and_change_in_reverse() -> None:
    found = sequence_files.load("statefulset")
    added = [seen.name for seen in found.of("Pod") if seen.type == "ADDED"]
    assert added == ["db-0", "db-1", "db-1", "db-0"]


def test_a_claim_is_bound_and_its_volume_released() -> None:
    found = sequence_files.load("claim")
    assert phases(found, "PersistentVolumeClaim", "status", "phase") == ["Pending", "Bound"]
    assert [phase for phase in phases(found, "PersistentVolume", "status", "phase") if phase] == [
        "Pending", "Available", "Bound", "Released",
    ]  # fmt: skip


OPERATIONS = [
    ("application-first-sync", [None, "Running", "Succeeded"]),
    ("application-update", [None, "Running", "Succeeded", "Running", "Succeeded", "Running", "Succeeded"]),
    ("application-failed-sync", [None, "Running", "Failed", "Running", "Failed"]),
    ("application-degraded", [None, *["Running", "Succeeded"] * 3]),
    ("application-automated", [None, "Running", "Succeeded"] * 2),
    ("application-self-heal", [None, "Running", "Succeeded"] * 2),
    ("application-terminated", [None, "Running", "Terminating", "Failed"]),
    ("application-second-operation", [None, "Running", "Succeeded"]),
]


@pytest.mark.parametrize(("name", "expected"), OPERATIONS)
def test_the_phases_of_operations(name: str, expected: list[str | None]) -> None:
    assert phases(sequence_files.load(name), "Application", "status", "operationState", "phase") == expected


HEALTHS = [
    ("application-first-sync", ["Missing", "Progressing", "Healthy"]),
    ("application-degraded", ["Healthy", "Progressing", "Degraded", "Progressing", "Healthy"]),
]


@pytest.mark.parametrize(("name", "expected"), HEALTHS)
def test_health_goes_through_its_states(name: str, expected: list[str]) -> None:
    found = [
        health for health in phases(sequence_files.load(name), "Application", "status", "health", "status") if health
    ]
    rest = iter(found)
    assert all(health in rest for health in expected), found


def test_a_root_is_healthy_while_its_children_are_missing() -> None:
    roots = sequence_files.load("application-of-applications").of("Application", "root")
    assert any(
        (s.at("status", "sync", "status"), s.at("status", "health", "status")) == ("OutOfSync", "Healthy")
        for s in roots
    )
    children = sequence_files.load("application-of-applications").of("Application")
    assert {seen.name for seen in children} == {"root", "one"}


def test_a_refresh_takes_its_annotation_away() -> None:
    found = sequence_files.load("application-refresh")
    marks = phases(found, "Application", "metadata", "annotations", "argocd.argoproj.io/refresh")
    assert marks == [None, "normal", None, "hard", None, "normal", None]
