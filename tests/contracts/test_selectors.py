"""Which objects a label or field selector means."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.contracts.kinds import SECRETS, pod, secret
from windlass.kube.resources import PODS, SERVICE_ACCOUNTS

if TYPE_CHECKING:
    from tests.contracts.definitions import Customs
    from tests.contracts.servers import Raw

LABELS = {
    "a": {"team": "red", "tier": "1"},
    "b": {"team": "blue"},
    "c": {"team": "red", "x.example/y": "z"},
    "d": {},
    "e": {"team": ""},
}


@pytest.fixture
async def path(raw: Raw, namespace: str) -> str:
    collection = SECRETS.within(namespace).path
    for name, labels in LABELS.items():
        await raw.ok("POST", collection, secret(name, labels=labels))
    return collection


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
async def test_a_field_selector(raw: Raw, path: str, namespace: str, selector: str, expected: str) -> None:
    assert await names(raw, path, f"fieldSelector={quote(selector.replace('$NS', namespace))}") == expected


async def test_both_kinds_of_selectors_together(raw: Raw, path: str) -> None:
    assert await names(raw, path, "labelSelector=team%3Dred&fieldSelector=metadata.name%3Dc") == "c"


@pytest.mark.parametrize("selector", ["team in red", "team=(", "=red", "team in (", "a b", "team=a b", "-team"])
async def test_a_label_selector_that_cannot_be_read(raw: Raw, path: str, selector: str) -> None:
    answer = await raw("GET", f"{path}?labelSelector={quote(selector)}")
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_a_field_selector_of_a_custom_kind(raw: Raw, namespace: str, customs: Customs) -> None:
    path = customs.widgets.within(namespace).path
    for name in "ab":
        await raw.ok("POST", path, customs.widget(name))
    assert await names(raw, path, "fieldSelector=metadata.name%3Db") == "b"
    assert await names(raw, path, f"fieldSelector=metadata.namespace%3D{namespace}") == "ab"


async def test_pods_are_selected_by_phase_and_node(raw: Raw, namespace: str) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "pods"}}
    await raw.ok("POST", SERVICE_ACCOUNTS.within(namespace).path, account)
    path = PODS.within(namespace).path
    await raw.ok("POST", path, pod("a", account="pods"))
    assert await names(raw, path, "fieldSelector=status.phase%3DPending") == "a"
    assert await names(raw, path, "fieldSelector=status.phase%3DRunning") == ""
    assert await names(raw, path, "fieldSelector=spec.nodeName%3D") == "a"
    assert await names(raw, path, "fieldSelector=status.phase!%3DSucceeded,status.phase!%3DFailed") == "a"


async def test_selectors_select_what_is_deleted(raw: Raw, path: str) -> None:
    await raw.ok("DELETE", f"{path}?labelSelector=team%3Dred")
    assert await names(raw, path, "") == "bde"
