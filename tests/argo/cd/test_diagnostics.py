"""Why something is not healthy, as the report tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.builders import typed_object
from tests.kube.scripted_server import ask, ok
from tests.operations.clusters import SYNC, after, begin, patch
from tests.sandbox.controllers import clusters
from tests.sandbox.controllers.objects import workload
from windlass.argo.cd.applications import APPLICATIONS, Application
from windlass.argo.cd.diagnostics import MAX_LINE_END, MAX_LINE_START, MAX_LINES, diagnose_application
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.controllers.behaviours import ANNOTATION_PREFIX

if TYPE_CHECKING:
    from tests.sandbox.controllers.clusters import World


async def shown(w: World) -> Application:
    return await w.kube.get(APPLICATIONS.named("web", "argocd"), Application)


def explained(*items: dict[str, Any], fault: Fault | None = None) -> str:
    async def main() -> tuple[str, ...]:
        async with clusters.world() as w:
            await begin(w, {"web/all.yaml": list(items)})
            await patch(w, SYNC)
            await after(60)
            if fault:
                w.sandbox.server.faults.add(fault)
            return await diagnose_application(w.kube, await shown(w))

    return "\n".join(clusters.run(main()))


def test_nothing_is_said_about_what_is_well() -> None:
    assert explained(workload()) == ""


@pytest.mark.parametrize(
    ("kind", "fails_with", "words"),
    [
        ("Deployment", "ImagePullBackOff", ["Deployment default/web: pod web-", "waits, ImagePullBackOff"]),
        ("StatefulSet", "OOMKilled", ["StatefulSet default/web: pod web-0", "OOMKilled, exit code 137"]),
        ("DaemonSet", "CrashLoopBackOff", ["DaemonSet default/web: pod web-", "exit code"]),
    ],
)
def test_the_pods_that_do_not_run_are_named(kind: str, fails_with: str, words: list[str]) -> None:
    found = explained(workload(kind, annotations={f"{ANNOTATION_PREFIX}fails-with": fails_with}))
    for word in words:
        assert word in found, found


def test_what_was_refused_is_named() -> None:
    nowhere = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "lost", "namespace": "nowhere"}}
    assert "ConfigMap lost was not synced" in explained(nowhere)


def test_what_cannot_be_read_is_said_and_lines_stay_short() -> None:
    found = explained(
        workload(annotations={f"{ANNOTATION_PREFIX}fails-with": "ImagePullBackOff"}),
        fault=Fault(kind="deployments.apps", code=403),
    )
    assert "Deployment default/web could not be read" in found
    assert all(len(line) <= MAX_LINE_START + MAX_LINE_END + 3 for line in found.splitlines())


BROKEN = {f"{ANNOTATION_PREFIX}fails-with": "ImagePullBackOff"}


@pytest.mark.parametrize(
    ("fault", "lost"),
    [
        (Fault(verb="get", kind="deployments.apps", name="a", code=500, times=None), "Deployment default/a"),
        (Fault(verb="list", kind="pods", code=403), "Deployment default/a"),
        (Fault(verb="list", kind="events", code=403, times=None), ""),
        (Fault(verb="get", kind="deployments.apps", name="a", latency=9_999.0, times=None), ""),
    ],
    ids=["a workload", "its pods", "all events", "in time"],
)
def test_one_read_that_fails_does_not_lose_the_others(fault: Fault, lost: str) -> None:
    both = [workload(name=name, annotations=BROKEN) for name in ("a", "b")]
    found = explained(*both, fault=fault)
    assert "pod b-" in found or "could not be read within" in found
    assert not lost or f"{lost} could not be read" in found


@pytest.mark.parametrize(
    "answers",
    [
        [{"spec": [1]}],
        [{"spec": {"selector": {"matchLabels": [1]}}}],
        [{"spec": {"selector": {"matchLabels": {"a": "b"}}}}, {"metadata": {}, "items": [{"status": [7]}]}],
        [{"spec": {"selector": {"matchLabels": {"a": "b"}}}}, {"metadata": {}, "items": [{}]}],
        [
            {"spec": {"selector": {"matchLabels": {"a": "b"}}}},
            {
                "metadata": {},
                "items": [{"metadata": {"name": "../x"}, "status": {"containerStatuses": [{"state": 1}]}}],
            },
        ],
    ],
    ids=["spec", "labels", "status", "no name", "state"],
)
def test_an_answer_that_no_server_sends_is_said_and_no_more(answers: list[Any]) -> None:
    rows = [
        {"group": "apps", "kind": "Deployment", "namespace": "n", "name": name, **({} if name else {"namespace": ""})}
        for name in ("a", "")
    ]
    application = typed_object({"metadata": {}, "status": {"resources": rows}}, Application)
    lines, _ = ask([ok(each) for each in answers], lambda kube: diagnose_application(kube, application))
    assert lines[-1].startswith("Deployment n/a could not be understood")


def test_the_lines_about_one_application_are_limited() -> None:
    text = "\x1b[31mx\u202e\n" * 9_999
    conditions = [{"type": "SyncError", "message": f"{number} {text}"} for number in range(5)]
    rows = [{"kind": "Job", "name": f"n{number}", "status": "SyncFailed", "message": text} for number in range(9_999)]
    status = {"conditions": conditions, "operationState": {"phase": "Failed", "syncResult": {"resources": rows}}}
    application = typed_object({"metadata": {}, "status": status}, Application)
    lines, _ = ask([], lambda kube: diagnose_application(kube, application))
    assert len(lines) == MAX_LINES // 2
    assert all(len(line) <= MAX_LINE_START + MAX_LINE_END + 3 and line.isprintable() for line in lines)
