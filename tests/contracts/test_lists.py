"""A list is one snapshot, in whatever pieces it comes."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests.contracts.kinds import LIST_KINDS, NAMESPACES, SECRETS, secret

if TYPE_CHECKING:
    from tests.contracts.definitions import Customs
    from tests.contracts.servers import Raw
    from windlass.kube.client.objects import RawObject


@pytest.fixture
def path(namespace: str) -> str:
    return SECRETS.in_namespace(namespace).path


@pytest.fixture
async def five(raw: Raw, path: str) -> list[str]:
    names = ["a", "b", "c", "d", "e"]
    for name in reversed(names):
        await raw.ok("POST", path, secret(name, labels={"half": "first" if name < "c" else "second"}))
    return names


def names(listing: RawObject) -> list[str]:
    return [item["metadata"]["name"] for item in listing["items"]]


async def all_pages(raw: Raw, path: str, query: str) -> list[RawObject]:
    pages = [await raw.ok("GET", f"{path}?{query}")]
    while token := pages[-1]["metadata"].get("continue"):
        pages.append(await raw.ok("GET", f"{path}?{query}&continue={quote(token)}"))
    return pages


async def test_an_empty_list_has_items_and_a_version(raw: Raw, path: str) -> None:
    found = await raw.ok("GET", path)
    assert found["items"] == []
    assert (found["apiVersion"], found["kind"]) == ("v1", "SecretList")
    assert int(found["metadata"]["resourceVersion"]) > 0
    assert not found["metadata"].get("continue")


async def test_a_list_in_a_namespace_that_is_not_there_is_empty(raw: Raw) -> None:
    assert (await raw.ok("GET", SECRETS.in_namespace("no-such-namespace").path))["items"] == []


@pytest.mark.parametrize(("path", "kind"), LIST_KINDS)
async def test_a_list_has_its_own_kind(raw: Raw, path: str, kind: str) -> None:
    assert (await raw.ok("GET", f"{path}?limit=1"))["kind"] == kind


async def test_items_of_a_built_in_kind_do_not_repeat_it_but_those_of_a_custom_kind_do(
    raw: Raw, path: str, five: list[str], customs: Customs, namespace: str
) -> None:
    assert five
    assert "kind" not in (await raw.ok("GET", path))["items"][0]
    custom = customs.widgets.in_namespace(namespace).path
    await raw.ok("POST", custom, customs.widget("a"))
    found = await raw.ok("GET", custom)
    assert (found["kind"], found["items"][0]["kind"]) == ("WidgetList", "Widget")
    assert found["items"][0]["apiVersion"] == found["apiVersion"] == f"{customs.group}/v1"


async def test_items_are_ordered_by_name(raw: Raw, path: str, five: list[str]) -> None:
    assert names(await raw.ok("GET", path)) == five


async def test_items_of_all_namespaces_are_ordered_by_namespace_and_name(raw: Raw) -> None:
    found = await raw.ok("GET", SECRETS.everywhere.path)
    keys = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in found["items"]]
    assert keys == sorted(keys)


async def test_pages_are_parts_of_one_snapshot(raw: Raw, path: str, five: list[str]) -> None:
    first = await raw.ok("GET", f"{path}?limit=2")
    assert names(first) == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 3
    await raw.ok("DELETE", f"{path}/d")
    await raw.ok("POST", path, secret("bb"))
    token = quote(first["metadata"]["continue"])
    second = await raw.ok("GET", f"{path}?limit=2&continue={token}")
    assert names(second) == ["c", "d"]
    assert second["metadata"]["remainingItemCount"] == 1
    last = await raw.ok("GET", f"{path}?limit=2&continue={quote(second['metadata']['continue'])}")
    assert names(last) == ["e"]
    assert not last["metadata"].get("continue")
    assert "remainingItemCount" not in last["metadata"]
    versions = {page["metadata"]["resourceVersion"] for page in (first, second, last)}
    assert len(versions) == 1
    assert names(await raw.ok("GET", path)) == ["a", "b", "bb", "c", "e"], "a new list is a new snapshot"
    assert five


async def test_the_limit_may_change_between_pages(raw: Raw, path: str, five: list[str]) -> None:
    first = await raw.ok("GET", f"{path}?limit=1")
    rest = await raw.ok("GET", f"{path}?continue={quote(first['metadata']['continue'])}")
    assert names(first) + names(rest) == five


async def test_a_limit_as_large_as_the_list_needs_no_second_page(raw: Raw, path: str, five: list[str]) -> None:
    found = await raw.ok("GET", f"{path}?limit={len(five)}")
    assert not found["metadata"].get("continue")


async def test_pages_with_a_selector_have_no_count_of_what_remains(raw: Raw, path: str, five: list[str]) -> None:
    assert five
    pages = await all_pages(raw, path, "limit=2&labelSelector=half%3Dsecond")
    assert [name for page in pages for name in names(page)] == ["c", "d", "e"]
    assert len(pages) == 2
    assert "remainingItemCount" not in pages[0]["metadata"]


async def test_pages_of_a_custom_kind(raw: Raw, namespace: str, customs: Customs) -> None:
    path = customs.widgets.in_namespace(namespace).path
    for name in "abc":
        await raw.ok("POST", path, customs.widget(name))
    pages = await all_pages(raw, path, "limit=2")
    assert [names(page) for page in pages] == [["a", "b"], ["c"]]


async def test_pages_across_namespaces(raw: Raw, five: list[str], namespace: str) -> None:
    pages = await all_pages(raw, SECRETS.everywhere.path, "limit=3")
    keys = [(i["metadata"]["namespace"], i["metadata"]["name"]) for page in pages for i in page["items"]]
    assert keys == sorted(set(keys))
    assert [name for where, name in keys if where == namespace and name in five] == five


async def test_a_continue_token_of_another_making_is_refused(raw: Raw, path: str) -> None:
    answer = await raw("GET", f"{path}?limit=1&continue=nonsense")
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.message.startswith("invalid continue token: continue key is not valid: ")


async def test_a_continue_token_and_a_version_do_not_go_together(raw: Raw, path: str, five: list[str]) -> None:
    assert five
    token = quote((await raw.ok("GET", f"{path}?limit=1"))["metadata"]["continue"])
    answer = await raw("GET", f"{path}?limit=1&continue={token}&resourceVersion=1")
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.message == "specifying resource version is not allowed when using continue"


async def test_an_expired_continue_token_is_gone_and_says_how_to_go_on(raw: Raw, path: str, five: list[str]) -> None:
    assert five
    first = await raw.ok("GET", f"{path}?limit=1")
    answer = await raw("GET", f"{path}?limit=1&continue={quote(aged(first['metadata']['continue']))}")
    if answer.status == 200:
        pytest.skip("this server has not compacted its history yet: it remembers version 1")
    assert (answer.status, answer.reason) == (410, "Expired")
    assert answer.message.startswith("The provided continue parameter is too old")
    rest = await raw.ok("GET", f"{path}?continue={quote(answer.json['metadata']['continue'])}")
    assert names(rest) == ["b", "c", "d", "e"], "from the same place, in the newest snapshot"


async def test_an_exact_version_that_is_forgotten_is_gone(raw: Raw, path: str) -> None:
    answer = await raw("GET", f"{path}?resourceVersion=1&resourceVersionMatch=Exact")
    if answer.status == 200:
        pytest.skip("this server has not compacted its history yet: it remembers version 1")
    assert (answer.status, answer.reason) == (410, "Expired")
    assert answer.message.startswith("The resourceVersion for the provided list is too old.")


def aged(token: str) -> str:
    """The same token, as if it had been given out at the beginning of time."""
    content: Any = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    content["rv"] = 1
    return base64.urlsafe_b64encode(json.dumps(content, separators=(",", ":")).encode()).decode().rstrip("=")


async def test_an_exact_version_lists_the_past(raw: Raw, path: str, five: list[str]) -> None:
    before = (await raw.ok("GET", path))["metadata"]["resourceVersion"]
    await raw.ok("DELETE", f"{path}/a")
    found = await raw.ok("GET", f"{path}?resourceVersion={before}&resourceVersionMatch=Exact")
    assert names(found) == five
    assert found["metadata"]["resourceVersion"] == before


async def test_not_older_than_a_version_may_be_newer(raw: Raw, path: str, five: list[str]) -> None:
    before = (await raw.ok("GET", path))["metadata"]["resourceVersion"]
    deleted = await raw.ok("DELETE", f"{path}/a")
    assert deleted["status"] == "Success"
    await raw.ok("GET", path)
    found = await raw.ok("GET", f"{path}?resourceVersion={before}&resourceVersionMatch=NotOlderThan")
    assert names(found) == five[1:]
    assert int(found["metadata"]["resourceVersion"]) > int(before)


async def test_version_zero_is_any_state_the_server_has_at_hand(raw: Raw, path: str, five: list[str]) -> None:
    await raw.ok("GET", path)  # the server's cache is not older than this read
    assert names(await raw.ok("GET", f"{path}?resourceVersion=0")) == five


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("resourceVersionMatch=Exact", "resourceVersionMatch is forbidden unless resourceVersion is provided"),
        (
            "resourceVersion=0&resourceVersionMatch=Exact",
            'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        ),
        ("resourceVersion=1&resourceVersionMatch=Rough", "supported values"),
    ],
)
async def test_versions_and_their_match_go_together(raw: Raw, path: str, query: str, message: str) -> None:
    answer = await raw("GET", f"{path}?{query}")
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert message.lower() in answer.message.lower()


async def test_a_single_object_is_read_in_its_newest_state(raw: Raw, path: str, five: list[str]) -> None:
    found = await raw.ok("GET", f"{path}/{five[0]}")
    assert (found["apiVersion"], found["kind"], found["metadata"]["name"]) == ("v1", "Secret", "a")


async def test_a_collection_can_be_deleted_by_selector(raw: Raw, path: str, five: list[str]) -> None:
    answer = await raw.ok("DELETE", f"{path}?labelSelector=half%3Dsecond")
    assert answer["kind"] == "SecretList"
    assert names(answer) == five[2:]
    assert names(await raw.ok("GET", path)) == five[:2]


async def test_namespaces_can_be_listed_by_name(raw: Raw, namespace: str) -> None:
    found = await raw.ok("GET", f"{NAMESPACES.everywhere.path}?fieldSelector=metadata.name%3D{namespace}")
    assert names(found) == [namespace]
