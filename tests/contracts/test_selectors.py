"""Which objects a label or field selector means."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.contracts.kinds import NAMESPACES, SECRETS, pod, secret
from tests.contracts.servers import Raw, Server
from windlass.kube.client.resources import PODS, SERVICE_ACCOUNTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.contracts.definitions import Customs
    from windlass.kube.auth.connections import Connection

LABELS = {
    "a": {"team": "red", "tier": "1"},
    "b": {"team": "blue"},
    "c": {"team": "red", "x.example/y": "z"},
    "d": {},
    "e": {"team": ""},
}


@pytest.fixture(scope="module")
def inhabited(connection: Connection) -> Iterator[str]:
    """A namespace with the objects to choose from; the tests only read them."""
    name = f"contracts-{uuid.uuid4().hex[:10]}"

    async def set_up() -> None:
        server = Server(connection)
        await furnish(server.raw(), name)
        await server.close()

    async def tear_down() -> None:
        server = Server(connection)
        await server.raw().ok("DELETE", NAMESPACES.named(name).path)
        await server.close()

    asyncio.run(set_up())
    yield name
    asyncio.run(tear_down())


async def furnish(raw: Raw, namespace: str) -> None:
    item = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    await raw.ok("POST", NAMESPACES.everywhere.path, item)
    for name, labels in LABELS.items():
        await raw.ok("POST", SECRETS.in_namespace(namespace).path, secret(name, labels=labels))


@pytest.fixture
def path(inhabited: str) -> str:
    return SECRETS.in_namespace(inhabited).path


async def names(raw: Raw, path: str, query: str) -> str:
    found = await raw.ok("GET", f"{path}?{query}")
    return "".join(item["metadata"]["name"] for item in found["items"])


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("", "abcde"),
        ("team=red", "ac"),
        ("team==red", "ac"),
        ("team!=red", "bde"),
        ("team", "abce"),
        ("!team", "d"),
        ("team in (red, blue)", "abc"),
        ("team notin (red)", "bde"),
        ("team in (red),tier", "a"),
        ("team=red,!tier", "c"),
        ("team=", "e"),
        ("x.example/y=z", "c"),
        ("tier>0", "a"),
        ("tier<1", ""),
        ("nobody=here", ""),
    ],
)
async def test_a_label_selector(raw: Raw, path: str, selector: str, expected: str) -> None:
    assert await names(raw, path, f"labelSelector={quote(selector)}") == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=a", "a"),
        ("metadata.name==a", "a"),
        ("metadata.name!=a", "bcde"),
        ("metadata.name=nobody", ""),
        ("metadata.namespace=$NS", "abcde"),
        ("metadata.namespace=other", ""),
        ("metadata.name=a,metadata.namespace=$NS", "a"),
        ("type=Opaque", "abcde"),
    ],
)
async def test_a_field_selector(raw: Raw, path: str, inhabited: str, selector: str, expected: str) -> None:
    assert await names(raw, path, f"fieldSelector={quote(selector.replace('$NS', inhabited))}") == expected


async def test_both_kinds_of_selectors_together(raw: Raw, path: str) -> None:
    assert await names(raw, path, "labelSelector=team%3Dred&fieldSelector=metadata.name%3Dc") == "c"


@pytest.mark.parametrize("selector", ["team in red", "team=(", "=red", "team in (", "a b", "team=a b", "-team"])
async def test_a_label_selector_that_cannot_be_read(raw: Raw, path: str, selector: str) -> None:
    answer = await raw("GET", f"{path}?labelSelector={quote(selector)}")
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_a_field_selector_of_a_custom_kind(raw: Raw, namespace: str, customs: Customs) -> None:
    path = customs.widgets.in_namespace(namespace).path
    for name in "ab":
        await raw.ok("POST", path, customs.widget(name))
    assert await names(raw, path, "fieldSelector=metadata.name%3Db") == "b"
    assert await names(raw, path, f"fieldSelector=metadata.namespace%3D{namespace}") == "ab"


async def test_pods_are_selected_by_phase_and_node(raw: Raw, namespace: str) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "pods"}}
    await raw.ok("POST", SERVICE_ACCOUNTS.in_namespace(namespace).path, account)
    path = PODS.in_namespace(namespace).path
    await raw.ok("POST", path, pod("a", account="pods"))
    assert await names(raw, path, "fieldSelector=status.phase%3DPending") == "a"
    assert await names(raw, path, "fieldSelector=status.phase%3DRunning") == ""
    assert await names(raw, path, "fieldSelector=spec.nodeName%3D") == "a"
    assert await names(raw, path, "fieldSelector=status.phase!%3DSucceeded,status.phase!%3DFailed") == "a"


async def test_selectors_select_what_is_deleted(raw: Raw, namespace: str) -> None:
    path = SECRETS.in_namespace(namespace).path
    for name, labels in LABELS.items():
        await raw.ok("POST", path, secret(name, labels=labels))
    await raw.ok("DELETE", f"{path}?labelSelector=team%3Dred")
    assert await names(raw, path, "") == "bde"
