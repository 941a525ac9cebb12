"""An eviction is a deletion that asks the pod's disruption budget first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.contracts.kinds import BUDGETS, pod
from tests.contracts.servers import MERGE, until
from tests.contracts.transports import Passing
from windlass.kube.client.resources import PODS, SERVICE_ACCOUNTS

if TYPE_CHECKING:
    from tests.contracts.servers import Answer, Raw, Server
    from windlass.kube.client.objects import RawObject

OTHER_UID = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
async def ready(raw: Raw, namespace: str) -> RawObject:
    """A pod that says it is running and ready, whether or not there is a node."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "pods"}}
    await raw.ok("POST", SERVICE_ACCOUNTS.in_namespace(namespace).path, account)
    path = PODS.in_namespace(namespace).path
    await raw.ok("POST", path, pod("a", account="pods"))
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    changed: RawObject = await raw.ok("PATCH", f"{path}/a/status", {"status": status}, MERGE)
    assert changed["status"]["phase"] == "Running"
    return changed


async def evict(raw: Raw, namespace: str, query: str = "", **options: object) -> Answer:
    body: RawObject = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a", "namespace": namespace}}
    if options:
        body["deleteOptions"] = options
    return await raw("POST", f"{PODS.named('a', namespace).path}/eviction{query}", body)


async def with_budget(raw: Raw, namespace: str, needed: int) -> None:
    """A budget, with the status that its controller will give it, too."""
    path = BUDGETS.in_namespace(namespace).path
    spec = {"minAvailable": needed, "selector": {"matchLabels": {"app": "a"}}}
    await raw.ok(
        "POST",
        path,
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec},
    )
    status = {
        "observedGeneration": 1, "disruptionsAllowed": 1 - needed,
        "currentHealthy": 1, "desiredHealthy": needed, "expectedPods": 1,
    }  # fmt: skip
    await raw.ok("PATCH", f"{path}/b/status", {"status": status}, MERGE)


async def is_gone(raw: Raw, namespace: str) -> bool:
    return (await raw("GET", PODS.named("a", namespace).path)).status == 404


async def test_a_pod_without_a_budget_is_evicted(raw: Raw, namespace: str, ready: RawObject) -> None:
    assert ready
    answer = await evict(raw, namespace)
    assert answer.status == 201
    assert (answer.json["kind"], answer.json["status"]) == ("Status", "Success")
    assert await is_gone(raw, namespace)


async def test_a_budget_that_is_used_up_says_wait(raw: Raw, namespace: str, ready: RawObject) -> None:
    assert ready
    await with_budget(raw, namespace, needed=1)
    answer = await evict(raw, namespace)
    assert (answer.status, answer.reason) == (429, "TooManyRequests")
    assert answer.message == "Cannot evict pod as it would violate the pod's disruption budget."
    [cause] = answer.causes
    assert cause["reason"] == "DisruptionBudget"
    assert "The disruption budget b needs 1 healthy pods" in cause["message"]
    assert not await is_gone(raw, namespace)


async def test_our_client_waits_for_the_budget(server: Server, raw: Raw, namespace: str, ready: RawObject) -> None:
    assert ready
    await with_budget(raw, namespace, needed=1)
    transport = Passing(server.transport)
    async with asyncio.TaskGroup() as tasks:
        evicting = tasks.create_task(server.client(transport=transport).evict(PODS.named("a", namespace)))

        async def has_asked() -> bool:
            return bool(transport.asked)

        await until(has_asked, "the first attempt")
        await raw.ok("DELETE", BUDGETS.named("b", namespace).path)
        assert (await evicting)["status"] == "Success"
    assert await is_gone(raw, namespace)


async def test_a_budget_that_is_not_used_up_lets_go(raw: Raw, namespace: str, ready: RawObject) -> None:
    assert ready
    await with_budget(raw, namespace, needed=0)

    async def is_evicted() -> bool:
        return (await evict(raw, namespace)).status == 201

    await until(is_evicted, "the eviction")
    assert await is_gone(raw, namespace)


async def test_a_budget_does_not_hold_a_pod_that_never_ran(raw: Raw, namespace: str, ready: RawObject) -> None:
    assert ready
    await raw.ok("PATCH", f"{PODS.named('a', namespace).path}/status", {"status": {"phase": "Pending"}}, MERGE)
    await with_budget(raw, namespace, needed=1)
    assert (await evict(raw, namespace)).status == 201


@pytest.mark.parametrize("where", ["query", "body"])
async def test_a_dry_eviction_leaves_the_pod(raw: Raw, namespace: str, ready: RawObject, where: str) -> None:
    assert ready
    answer = await (evict(raw, namespace, "?dryRun=All") if where == "query" else evict(raw, namespace, dryRun=["All"]))
    assert answer.status == 201
    assert not await is_gone(raw, namespace)


async def test_an_eviction_checks_its_preconditions(raw: Raw, namespace: str, ready: RawObject) -> None:
    answer = await evict(raw, namespace, preconditions={"uid": OTHER_UID})
    assert (answer.status, answer.reason) == (409, "Conflict")
    answer = await evict(raw, namespace, preconditions={"uid": ready["metadata"]["uid"]})
    assert answer.status == 201
