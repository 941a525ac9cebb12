"""What an Application says, in the core's words: tables, and every state that a real Argo CD was seen in."""

from __future__ import annotations

import copy
import json
from dataclasses import astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.builders import typed_object
from windlass.argo.cd import application_resources
from windlass.argo.cd.applications import MIN_TIME, RUN_ID_KEY, Application
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import (
    ApplicationState,
    Condition,
    Hook,
    Operation,
    OperationPhase,
    ResourceKind,
    SyncStatus,
)
from windlass.printable_text import MAX_MESSAGE_LENGTH

if TYPE_CHECKING:
    from collections.abc import Iterator

SEQUENCES = Path(__file__).parents[2] / "recordings/sequences"
COMMIT = "a" * 40
SOURCE = {"repoURL": "https://git.test/apps.git", "path": "web", "targetRevision": COMMIT}


def parsed(**parts: Any) -> ApplicationState:
    meta = {"name": "web", "namespace": "argocd", **parts.pop("metadata", {})}
    return typed_object({"metadata": meta, **parts}, Application).state


def operated(**state: Any) -> Operation | None:
    return parsed(status={"operationState": state}).operation


def at(second: int) -> datetime:
    return datetime(2026, 11, 15, 21, 0, second, tzinfo=UTC)


def test_a_new_one_says_nothing_and_nothing_is_not_healthy() -> None:
    assert (
        parsed() == parsed(spec=None, status=None, operation=None) == parsed(spec={}, status={}) == ApplicationState()
    )
    assert parsed().health is Health.UNKNOWN


WHOLE = {
    "health": {"status": "Degraded", "message": "no pods"},
    "sync": {"status": "OutOfSync", "revision": COMMIT, "comparedTo": {"source": SOURCE}},
    "reconciledAt": "2026-11-15T21:00:03Z",
    "conditions": [{"type": "SyncError", "message": "refused"}],
    "resources": [{"kind": "ConfigMap"}, {"group": "apps", "kind": "Deployment"}],
    "operationState": {
        "phase": "Succeeded",
        "message": "all done",
        "startedAt": "2026-11-15T21:00:01Z",
        "finishedAt": "2026-11-15T21:00:02Z",
        "operation": {
            "initiatedBy": {"username": "windlass"},
            "info": [{"name": "other", "value": "x"}, {"name": RUN_ID_KEY, "value": "run-7"}],
            "sync": {"revision": "main", "resources": [{"kind": "ConfigMap", "name": "web"}]},
        },
        "syncResult": {
            "revision": COMMIT,
            "resources": [
                {"kind": "ConfigMap", "name": "web", "syncPhase": "PreSync"},
                {"group": "batch", "kind": "Job", "name": "migrate", "hookType": "PreSync"},
            ],
        },
    },
}


def test_a_whole_one() -> None:
    spec = {"source": SOURCE, "destination": {"server": "https://kubernetes.default.svc"}}
    state = parsed(spec=spec, status=WHOLE)
    operation = Operation(
        OperationPhase.SUCCEEDED,
        started_at=at(1),
        finished_at=at(2),
        revisions=(COMMIT,),
        run_id="run-7",
        started_by="windlass",
        is_partial=True,
        message="all done",
        hooks=(Hook("Job", "migrate", "PreSync"),),
    )
    assert state == ApplicationState(
        revisions=(COMMIT,),
        sync=SyncStatus.OUT_OF_SYNC,
        health=Health.DEGRADED,
        health_message="no pods",
        sources=state.sources,
        compared_sources=state.sources,
        operation=operation,
        reconciled_at=at(3),
        stamped_at=at(3),
        conditions=(Condition("SyncError", "refused"),),
        resource_kinds=frozenset({ResourceKind("", "ConfigMap"), ResourceKind("apps", "Deployment")}),
    )
    assert [source.target_revision for source in state.sources] == [COMMIT]


def test_several_sources_have_several_revisions_beside_an_empty_one() -> None:
    chart = {"repoURL": "https://charts.test", "chart": "web", "targetRevision": "1.2.3"}
    compared = {"source": {"repoURL": ""}, "sources": [chart, SOURCE]}
    sync = {"revision": "", "revisions": ["1.2.3", COMMIT], "comparedTo": compared}
    state = parsed(spec={"sources": [chart, SOURCE]}, status={"sync": sync})
    assert state.revisions == ("1.2.3", COMMIT)
    assert state.sources == state.compared_sources
    assert [source.is_chart for source in state.sources] == [True, False]
    assert not state.has_mutable_revision


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"directory": {"recurse": False}}, {}, True),
        ({"directory": {"recurse": True}}, {"directory": {"jsonnet": {}, "recurse": True}}, True),
        ({"helm": {"parameters": []}}, {"helm": None}, True),
        ({"path": "other"}, {}, False),
        ({"helm": {"valuesObject": {"replicas": 0}}}, {"helm": {"valuesObject": {}}}, False),
        ({"directory": {"recurse": True}}, {}, False),
    ],
)
def test_sources_are_the_same_if_only_what_is_empty_differs(one: Any, other: Any, same: bool) -> None:
    sync = {"comparedTo": {"source": {**SOURCE, **other}}}
    state = parsed(spec={"source": {**SOURCE, **one}}, status={"sync": sync})
    assert (state.sources == state.compared_sources) is same


def test_a_source_without_a_revision_means_head() -> None:
    state = parsed(spec={"source": {"repoURL": "x", "path": "."}})
    assert state.sources[0].target_revision == "HEAD"
    assert state.has_mutable_revision


def test_until_an_operation_ends_its_result_is_that_of_the_one_before() -> None:
    result = {"revision": COMMIT, "resources": [{"kind": "Job", "name": "x", "hookType": "PreSync"}]}
    shown = {"message": "of before", "finishedAt": "2026-11-15T21:00:02Z", "syncResult": result}
    for phase in ("Running", "Terminating"):
        found = operated(phase=phase, startedAt="2026-11-15T21:00:01Z", **shown)
        assert found == Operation(OperationPhase(phase), started_at=at(1))


def test_odd_operations() -> None:
    assert operated() is None
    assert operated(phase="") is None
    assert operated(phase="Pondering") == Operation(OperationPhase.RUNNING, started_at=MIN_TIME)
    assert operated(phase="Error", startedAt="yesterday") == Operation(OperationPhase.ERROR, started_at=MIN_TIME)
    automated = operated(phase="Failed", operation={"initiatedBy": {"automated": True}})
    assert automated == Operation(
        OperationPhase.FAILED, started_at=MIN_TIME, started_by="automated sync", is_automated=True
    )


@pytest.mark.parametrize(
    ("spec", "is_automated"),
    [
        ({}, False),
        ({"syncPolicy": None}, False),
        ({"syncPolicy": {"automated": None}}, False),
        ({"syncPolicy": {"automated": {}}}, True),
        ({"syncPolicy": {"automated": {"enabled": True}}}, True),
        ({"syncPolicy": {"automated": {"enabled": False}}}, False),
    ],
)
def test_automated(spec: Any, is_automated: bool) -> None:
    assert parsed(spec=spec).is_automated is is_automated


@pytest.mark.parametrize(
    ("destination", "is_remote"),
    [
        ({"server": "https://kubernetes.default.svc"}, False),
        ({"name": "in-cluster"}, False),
        ({"server": "https://elsewhere.test"}, True),
        ({"name": "elsewhere"}, True),
    ],
)
def test_remote(destination: Any, is_remote: bool) -> None:
    assert parsed(spec={"destination": destination}).is_remote is is_remote


def test_marks_in_the_metadata() -> None:
    assert parsed(metadata={"deletionTimestamp": "2026-11-15T21:00:00Z"}).is_deleting
    assert parsed(metadata={"annotations": {"argocd.argoproj.io/refresh": "normal"}}).refresh_requested
    assert parsed(operation={}).operation_requested
    hook = {"kind": "Job", "name": "x", "hookType": "PostSync"}
    status = {"operationState": {"phase": "Succeeded", "syncResult": {"resources": [hook]}}}
    internal = parsed(metadata={"annotations": {"windlass.dev/hook": "internal"}}, status=status).operation
    assert internal is not None
    assert internal.hooks == (Hook("Job", "x", "PostSync", is_internal=True),)


@pytest.mark.parametrize(
    ("started", "previous"),
    [
        pytest.param("t2", ("one",), id="the last entry is of the operation shown"),
        pytest.param("t3", ("two",), id="the operation shown was a partial one, and left no entry"),
    ],
)
def test_what_was_deployed_before(started: str, previous: tuple[str, ...]) -> None:
    history = [{"revision": "one", "deployStartedAt": "t1"}, {"revision": "two", "deployStartedAt": "t2"}]
    status = {"history": history, "operationState": {"phase": "Succeeded", "startedAt": started}}
    assert parsed(status=status).previous_revisions == previous
    assert parsed(status={**status, "history": None}).previous_revisions == ()


def test_kinds_that_argo_cd_judges() -> None:
    rows = [{"kind": "ConfigMap"}, {"group": "x.test", "kind": "Thing", "health": {"status": "Healthy"}}]
    shows = typed_object({"metadata": {}, "status": {"resources": rows}}, Application)
    hides = typed_object(
        {"metadata": {}, "status": {"resources": rows, "resourceHealthSource": "appTree"}}, Application
    )
    thing = ResourceKind("x.test", "Thing")
    assert application_resources.kinds_with_health(shows) == {thing}
    assert application_resources.kinds_with_health(hides) == {thing, ResourceKind("", "ConfigMap")}


def recorded() -> Iterator[Any]:
    for path in sorted(SEQUENCES.glob("application-*.json")):
        for step in json.loads(path.read_text())["steps"]:
            if step.get("kind") == "Application":
                yield step["object"]


def test_every_recorded_state_is_understood() -> None:
    states = [typed_object(each, Application).state for each in recorded()]
    assert len(states) > 100
    assert {state.health for state in states} >= {Health.HEALTHY, Health.PROGRESSING, Health.DEGRADED, Health.MISSING}
    assert {state.operation.phase for state in states if state.operation} == set(OperationPhase)
    assert any(state.operation_requested for state in states)
    assert any(state.is_deleting for state in states)
    assert any(state.errors for state in states)


def holes(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place below a value, as its holder and key."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in list(pairs):
        if isinstance(value, dict):
            yield value, key
        yield from holes(each)


def test_any_part_may_be_null() -> None:
    """Lists hold no nulls in Kubernetes; everything else may be one."""
    richest = max(recorded(), key=lambda each: len(json.dumps(each)))
    whole = copy.deepcopy({part: richest[part] for part in richest if part != "metadata"})
    for holder, key in holes(whole):
        kept, holder[key] = holder[key], None
        state = typed_object({"metadata": {"name": "web"}, **whole}, Application).state
        assert isinstance(state, ApplicationState)
        holder[key] = kept


def test_the_run_id_of_the_operation_before_is_not_that_of_another_clients_operation() -> None:
    """Argo CD merges: what a client leaves out of its operation is shown as it was in the one before."""
    merged = {"initiatedBy": {"username": "jane"}, "info": [{"name": RUN_ID_KEY, "value": "run-7"}]}
    state = parsed(status={"operationState": {"phase": "Succeeded", "operation": merged}})
    assert state.operation is not None
    assert (state.operation.run_id, state.operation.started_by) == (None, "jane")


@pytest.mark.parametrize(
    "text", ["x\x1b[31m\u202e\ny" * 9_999, "two\nlines", "\ud800"], ids=["long", "lines", "surrogate"]
)
def test_each_message_of_argo_cd_is_short_and_printable(text: str) -> None:
    state = {"phase": "Failed", "message": text}
    initiator = {"operation": {"initiatedBy": {"username": text}}}
    status = {
        "health": {"status": "Degraded", "message": text},
        "conditions": [{"type": text, "message": text}],
        "operationState": {**state, **initiator},
    }
    application = typed_object({"metadata": {}, "status": status}, Application)
    shown = application.state
    assert shown.operation is not None
    [condition] = shown.conditions
    texts = (shown.health_message, shown.operation.message, shown.operation.started_by, *astuple(condition))
    for each in texts:
        assert each.isprintable()
        assert len(each) < MAX_MESSAGE_LENGTH + 4


@pytest.mark.parametrize(
    ("text", "version"), [("12", 12), ("", 0), ("x1", 0), ("9" * 5_000, 0), ("9" * 20, int("9" * 20))]
)
def test_a_version_is_a_number_that_fits(text: str, version: int) -> None:
    assert typed_object({"metadata": {"resourceVersion": text}}, Application).version == version
