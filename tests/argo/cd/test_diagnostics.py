"""Why something is not healthy, as the report tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.operations.clusters import SYNC, after, begin, patch
from tests.sandbox.controllers import clusters
from tests.sandbox.controllers.objects import workload
from windlass.argo.cd.applications import APPLICATIONS, Application
from windlass.argo.cd.diagnostics import MAX_LINE_LENGTH, diagnose_application
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
    assert "more could not be read" in found
    assert all(len(line) <= MAX_LINE_LENGTH for line in found.splitlines())
