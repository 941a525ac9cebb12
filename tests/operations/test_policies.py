"""What the cluster's own policy engine reports about objects of our Applications is told."""

from __future__ import annotations

from typing import Any

from tests.builders import platform
from tests.operations.clusters import SYNC, after, begin, cluster, patch
from tests.operations.custom_resources import DEFINITIONS, definition
from tests.sandbox.controllers.clusters import run, world
from tests.sandbox.controllers.objects import application, config, workload
from windlass.core.platform.reporting.compliance import Rule
from windlass.core.platform.reporting.verdicts import Verdict
from windlass.operations.validate import ValidateRequest, validate
from windlass.sandbox.apiserver.faults import Fault

GROUP = "wgpolicyk8s.io"


def which(kind: str = "Deployment", name: str = "web") -> dict[str, str]:
    return {
        "apiVersion": "apps/v1" if kind == "Deployment" else "v1",
        "kind": kind,
        "namespace": "default",
        "name": name,
    }


def result(word: str, rule: str = "probes", **more: Any) -> dict[str, Any]:
    return {"policy": "good-pods", "rule": rule, "result": word, "message": "a probe\n is missing", **more}


def report(name: str, **content: Any) -> dict[str, Any]:
    head = {"apiVersion": f"{GROUP}/v1alpha2", "kind": "PolicyReport"}
    return {**head, "metadata": {"name": name, "namespace": "default"}, **content}


REPORTS = [
    report("of-one", scope=which(), results=[result("fail"), result("pass", "names"), result("skip", "skipped")]),
    report("of-many", results=[result("fail", resources=[which("ConfigMap"), which(), which(name="stranger")])]),
    report("of-a-stranger", scope=which(name="stranger"), results=[result("fail", "other")]),
    report("odd", scope=which(), results=[{"result": "error", "policy": "odd"}, {}, {"result": "fail"}]),
    report("empty", results=None),
]


def test_broken_policies_are_findings() -> None:
    async def main() -> None:
        async with world() as w:
            calls = w.sandbox.client()
            await calls.create(DEFINITIONS, definition(GROUP, "v1alpha2", "PolicyReport"))
            await begin(w, {"web/all.yaml": [config(), workload()]}, application("web"))
            await patch(w, SYNC)
            await after(60)
            for each in REPORTS:
                await calls.create(f"policyreports.{GROUP}", each)

            async def told() -> list[tuple[str, str, str]]:
                found = await validate(cluster(w), ValidateRequest("test", platform=platform("web"), is_strict=True))
                assert found.summary.verdict is Verdict.PARTIAL
                rows = [each for each in found.compliance if each.rule is Rule.POLICIES]
                return [(each.application, each.what, each.remedy) for each in rows]

            assert await told() == [
                ("web", "Deployment default/web breaks a policy", "see its PolicyReport"),
                ("web", "ConfigMap default/web and 1 more break good-pods/probes", "a probe is missing"),
                ("web", "Deployment default/web breaks odd", "see its PolicyReport"),
            ]
            w.sandbox.server.faults.add(Fault(verb="list", kind=f"policyreports.{GROUP}", code=403))
            assert await told() == [], "not for our eyes"
            await patch(w, {"spec": {"destination": {"server": "https://elsewhere.test"}}})
            assert await told() == [], "its objects are in another cluster"

    run(main())
