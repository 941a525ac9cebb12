"""The code and the reason of every kind of refusal, as Status; and those that are no Status at all."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import TYPE_CHECKING

import pytest

from tests.contracts.bad_requests import CASES, Case
from tests.contracts.kinds import NAMESPACES, config_map, deployment, pod, pod_spec
from tests.contracts.servers import Raw, Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.contracts.definitions import Customs
    from windlass.kube.auth.connections import Connection


@pytest.fixture(scope="module")
def inhabited(connection: Connection, customs: Customs) -> Iterator[str]:
    """A namespace with one of everything that the bad requests are about. They change nothing, so they share it."""
    name = f"contracts-{uuid.uuid4().hex[:10]}"

    async def set_up() -> None:
        server = Server(connection)
        await _furnish(server.raw(), name, customs)
        await server.close()

    async def tear_down() -> None:
        server = Server(connection)
        await server.raw()("DELETE", NAMESPACES.named(name).path)
        await server.close()

    asyncio.run(set_up())
    yield name
    asyncio.run(tear_down())


async def _furnish(raw: Raw, name: str, customs: Customs) -> None:
    item = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    await raw.ok("POST", NAMESPACES.everywhere.path, item)
    core, rbac = f"/api/v1/namespaces/{name}", "rbac.authorization.k8s.io"
    here = {"metadata": {"name": "here"}}
    template = {"spec": {**pod_spec(), "restartPolicy": "Never"}}
    role = {"apiGroup": rbac, "kind": "Role", "name": "some"}
    for path, body in (
        (f"{core}/configmaps?fieldManager=owner", config_map("here", {"k": "1"})),
        (f"{core}/configmaps", {**config_map("fixed", {"x": "1"}), "immutable": True}),
        (f"{core}/serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", **here}),
        (f"{core}/pods", pod("here", account="here")),
        (f"/apis/apps/v1/namespaces/{name}/deployments", deployment("here")),
        (
            f"/apis/batch/v1/namespaces/{name}/jobs",
            {"apiVersion": "batch/v1", "kind": "Job", **here, "spec": {"suspend": True, "template": template}},
        ),
        (
            f"/apis/{rbac}/v1/namespaces/{name}/rolebindings",
            {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", **here, "roleRef": role},
        ),
        (customs.widgets.in_namespace(name).path, customs.widget("here")),
        (customs.gadgets.in_namespace(name).path, customs.gadget("here")),
    ):
        await raw.ok("POST", path, body)


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_a_bad_request_is_refused_with_its_own_code_and_reason(
    raw: Raw, inhabited: str, customs: Customs, case: Case
) -> None:
    def filled(text: str) -> str:
        return text.replace("$NS", inhabited).replace("$GROUP", customs.group)

    body = case.body
    if body is not None and not isinstance(body, bytes):
        body = filled(json.dumps(body)).encode()
    answer = await raw(case.method, filled(case.target), body, case.content, (("Accept", case.accept),))
    status = answer.json
    assert (status["apiVersion"], status["kind"], status["status"]) == ("v1", "Status", "Failure")
    assert (answer.status, status["code"], status.get("reason", "")) == (case.status, case.status, case.reason)
    assert filled(case.says) in status["message"]
    if case.field:
        assert case.field in [cause["field"] for cause in answer.causes]
        assert all(cause["reason"] and cause["message"] for cause in answer.causes)


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("/apis/nonsense.example/v1/things", id="a group that nobody serves"),
        pytest.param("/apis/nonsense.example/v1", id="discovery of a group that nobody serves"),
        pytest.param("/apis/$GROUP/v1/nonsense", id="a custom resource that no definition names"),
        pytest.param("/apis/$GROUP/v2/widgets", id="a version that a custom kind does not serve"),
        pytest.param("/nonsense", id="a path that means nothing"),
    ],
)
async def test_what_nobody_serves_is_not_found_in_plain_text(raw: Raw, customs: Customs, target: str) -> None:
    answer = await raw("GET", target.replace("$GROUP", customs.group))
    assert (answer.status, answer.body) == (404, b"404 page not found\n")
    assert answer.headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        pytest.param("POST", "configmaps", {"metadata": {"name": "$NAME"}}, id="neither kind nor apiVersion"),
        pytest.param("POST", "configmaps", {"apiVersion": "v1", "metadata": {"name": "$NAME"}}, id="no kind"),
        pytest.param("GET", "configmaps?limit=-1", None, id="a negative limit"),
        pytest.param("GET", "configmaps?nonsense=1", None, id="an unknown parameter"),
        pytest.param("GET", "configmaps?dryRun=Some", None, id="a dry run of a read"),
        pytest.param("DELETE", "configmaps?limit=0&labelSelector=nobody", None, id="a deletion of no objects"),
    ],
)
async def test_what_looks_wrong_and_is_not(raw: Raw, namespace: str, method: str, target: str, body: object) -> None:
    sent = None if body is None else json.dumps(body).replace("$NAME", "new").encode()
    answer = await raw(method, f"/api/v1/namespaces/{namespace}/{target}", sent)
    assert answer.status in {200, 201}
