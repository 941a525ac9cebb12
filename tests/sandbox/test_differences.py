"""docs/sandbox.md tells the truth: it names every contract that is not kept and what is left out; its example runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox import differences
from windlass.sandbox.apiserver.objects.custom_resources import CRD_KIND_ID
from windlass.sandbox.apiserver.requests import ADMIN
from windlass.sandbox.apiserver.wire.api_status import StatusError
from windlass.sandbox.controllers.object_builders import build_crd
from windlass.sandbox.sandbox import Sandbox
from windlass.simulation.virtual_time import run, virtual_sandbox_clock

JSON = {"Content-Type": "application/json"}
TEXT = (Path(__file__).parents[2] / "docs/sandbox.md").read_text()


def test_each_contract_that_the_sandbox_does_not_keep_is_documented() -> None:
    for reason in (*differences.DIFFERENCES.values(), differences.NO_PROCESSES):
        assert f"\n- {reason}" in TEXT


def test_the_example_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(compile(example, "docs/sandbox.md", "exec"), scope)
    lines = scope["run"](scope["main"]()).splitlines()
    assert any(b'"configmaps"' in line for line in lines)


async def short_lists_pass(sandbox: Sandbox) -> None:
    items = {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2, "uniqueItems": True}
    spec = {"type": "object", "properties": {"items": items}}
    calls = sandbox.client()
    await calls.create(CRD_KIND_ID, build_crd("test.dev/v1", {"kind": "Thing"}, {"spec": spec}))
    thing = {"apiVersion": "test.dev/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"items": ["x"]}}
    await calls.create("things.test.dev", thing, "default")
    with pytest.raises(StatusError, match="must have at most 2 items"):
        await calls.create("things.test.dev", {**thing, "spec": {"items": ["x", "x", "x"]}}, "default")


async def nobody_is_asked_locally(sandbox: Sandbox) -> None:
    path = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews"
    assert (await sandbox.handle("POST", path, JSON, b"{}", ADMIN)).code == 404
    question = b'{"spec": {"user": "jane", "resourceAttributes": {"namespace": "default", "verb": "get"}}}'
    answer = await sandbox.handle("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", JSON, question, ADMIN)
    assert answer.code == 201


async def no_role_is_there(sandbox: Sandbox) -> None:
    assert await sandbox.client().list("clusterroles.rbac.authorization.k8s.io") == []


LEFT_OUT = {
    "`minItems`": short_lists_pass,
    "LocalSubjectAccessReview": nobody_is_asked_locally,
    "no predefined roles": no_role_is_there,
}


@pytest.mark.parametrize("words", LEFT_OUT)
def test_what_the_page_says_is_left_out_is_left_out(words: str) -> None:
    assert words in TEXT.partition("\nLeft out, ")[2]

    async def main() -> None:
        async with Sandbox(virtual_sandbox_clock()) as sandbox:
            await LEFT_OUT[words](sandbox)

    run(main())
