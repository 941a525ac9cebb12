"""A watch tells every change once and in order, from where it is told to begin, until it has to be begun again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contracts.kinds import SECRETS, secret
from tests.contracts.servers import MERGE

if TYPE_CHECKING:
    from tests.contracts.definitions import Customs
    from tests.contracts.servers import Raw
    from windlass.kube.client.objects import RawObject

END = "k8s.io/initial-events-end"
STREAM = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"


@pytest.fixture
def path(namespace: str) -> str:
    return SECRETS.in_namespace(namespace).path


async def version_of(raw: Raw, path: str) -> str:
    found: str = (await raw.ok("GET", path))["metadata"]["resourceVersion"]
    return found


async def labelled(raw: Raw, path: str, name: str, value: str | None) -> RawObject:
    found: RawObject = await raw.ok("PATCH", f"{path}/{name}", {"metadata": {"labels": {"team": value}}}, MERGE)
    return found


def version(item: RawObject) -> int:
    return int(item["metadata"]["resourceVersion"])


async def test_changes_come_once_each_in_the_order_of_their_versions(raw: Raw, path: str) -> None:
    async with raw.watch(f"{path}?resourceVersion={await version_of(raw, path)}") as watching:
        for name in "ab":
            await raw.ok("POST", path, secret(name))
        await labelled(raw, path, "a", "red")
        await raw.ok("DELETE", f"{path}/b")
        await labelled(raw, path, "a", "blue")
        events = [await watching.event() for _ in range(5)]
    told = [(event["type"], event["object"]["metadata"]["name"]) for event in events]
    assert told == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b"), ("MODIFIED", "a")]
    versions = [version(event["object"]) for event in events]
    assert versions == sorted(set(versions))


async def test_events_carry_whole_objects_with_their_kind(raw: Raw, path: str) -> None:
    async with raw.watch(f"{path}?resourceVersion={await version_of(raw, path)}") as watching:
        created = await raw.ok("POST", path, secret("a", {"x": "MQ=="}))
        event = await watching.event()
    assert event == {"type": "ADDED", "object": created}
    assert (event["object"]["apiVersion"], event["object"]["kind"]) == ("v1", "Secret")


async def test_a_deletion_carries_the_last_state_and_a_new_version(raw: Raw, path: str) -> None:
    created = await raw.ok("POST", path, secret("a", {"x": "MQ=="}))
    async with raw.watch(f"{path}?resourceVersion={version(created)}") as watching:
        await raw.ok("DELETE", f"{path}/a")
        event = await watching.event()
    assert (event["type"], event["object"]["data"]) == ("DELETED", {"x": "MQ=="})
    assert event["object"]["metadata"]["uid"] == created["metadata"]["uid"]
    assert version(event["object"]) > version(created)


async def test_a_watch_resumes_after_the_version_it_is_given(raw: Raw, path: str) -> None:
    first = await raw.ok("POST", path, secret("a"))
    await raw.ok("POST", path, secret("b"))
    await raw.ok("DELETE", f"{path}/a")
    async with raw.watch(f"{path}?resourceVersion={version(first)}") as watching:
        assert await watching.take(2) == [("ADDED", "b"), ("DELETED", "a")]


async def test_a_watch_resumes_after_a_deletion(raw: Raw, path: str) -> None:
    created = await raw.ok("POST", path, secret("a"))
    await raw.ok("DELETE", f"{path}/a")
    async with raw.watch(f"{path}?resourceVersion={version(created)}") as watching:
        gone = (await watching.event())["object"]
    await raw.ok("POST", path, secret("b"))
    async with raw.watch(f"{path}?resourceVersion={version(gone)}") as watching:
        assert await watching.take(1) == [("ADDED", "b")]


async def test_a_version_of_a_list_begins_after_the_list(raw: Raw, path: str) -> None:
    await raw.ok("POST", path, secret("a"))
    seen = await version_of(raw, path)
    await raw.ok("POST", path, secret("b"))
    async with raw.watch(f"{path}?resourceVersion={seen}") as watching:
        assert await watching.take(1) == [("ADDED", "b")]


@pytest.mark.parametrize("query", ["", "?resourceVersion=0"])
async def test_a_watch_without_a_version_begins_with_what_is_there(raw: Raw, path: str, query: str) -> None:
    for name in "ab":
        await raw.ok("POST", path, secret(name))
    await raw.ok("GET", path)  # a read of the latest state, after which no cache may lag behind it
    async with raw.watch(path + query) as watching:
        assert sorted(await watching.take(2)) == [("ADDED", "a"), ("ADDED", "b")]
        await labelled(raw, path, "a", "red")
        assert await watching.take(1) == [("MODIFIED", "a")]


async def test_initial_events_end_with_a_marked_bookmark(raw: Raw, path: str) -> None:
    for name in "ba":
        created = await raw.ok("POST", path, secret(name))
    async with raw.watch(f"{path}?{STREAM}") as watching:
        assert await watching.take(2) == [("ADDED", "a"), ("ADDED", "b")], "by name"
        mark = await watching.next()
        assert mark is not None
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["metadata"]["annotations"] == {END: "true"}
        assert version(mark["object"]) >= version(created)
        assert (mark["object"]["apiVersion"], mark["object"]["kind"]) == ("v1", "Secret")
        assert not mark["object"]["metadata"].get("name")
        await raw.ok("DELETE", f"{path}/a")
        assert await watching.take(1) == [("DELETED", "a")]


async def test_initial_events_of_nothing_are_only_the_mark(raw: Raw, path: str) -> None:
    async with raw.watch(f"{path}?{STREAM}") as watching:
        mark = await watching.next()
    assert mark is not None
    assert (mark["type"], mark["object"]["metadata"]["annotations"]) == ("BOOKMARK", {END: "true"})


async def test_initial_events_of_a_custom_kind_are_marked_too(raw: Raw, namespace: str, customs: Customs) -> None:
    path = customs.widgets.in_namespace(namespace).path
    await raw.ok("POST", path, customs.widget("a"))
    async with raw.watch(f"{path}?{STREAM}") as watching:
        assert await watching.take(1) == [("ADDED", "a")]
        mark = await watching.next()
    assert mark is not None
    assert (mark["type"], mark["object"]["metadata"]["annotations"]) == ("BOOKMARK", {END: "true"})
    assert mark["object"]["kind"] == "Widget"


async def test_initial_events_respect_selectors(raw: Raw, path: str) -> None:
    await raw.ok("POST", path, secret("a", labels={"team": "red"}))
    await raw.ok("POST", path, secret("b"))
    async with raw.watch(f"{path}?{STREAM}&labelSelector=team%3Dred") as watching:
        assert await watching.take(1) == [("ADDED", "a")]
        mark = await watching.next()
    assert mark is not None
    assert mark["type"] == "BOOKMARK"


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("sendInitialEvents=true&allowWatchBookmarks=true", "resourceVersionMatch"),
        ("sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=Exact", "resourceVersionMatch"),
        ("resourceVersion=1&resourceVersionMatch=NotOlderThan", "resourceVersionMatch"),
    ],
)
async def test_initial_events_and_version_match_go_together(raw: Raw, path: str, query: str, problem: str) -> None:
    answer = await raw("GET", f"{path}?watch=1&{query}")
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert problem in [cause["field"] for cause in answer.causes]


async def test_a_watch_that_times_out_ends_in_good_order_with_a_bookmark(raw: Raw, path: str) -> None:
    """Once it had the mark that ends initial events, though none were asked for; so that is left open."""
    created = await raw.ok("POST", path, secret("a"))
    async with raw.watch(f"{path}?timeoutSeconds=3&allowWatchBookmarks=true&resourceVersion=0") as watching:
        events = await watching.rest()
    assert [event["type"] for event in events if event["type"] != "BOOKMARK"] == ["ADDED"]
    assert events[-1]["type"] == "BOOKMARK", "a bookmark comes about two seconds before the end"
    assert version(events[-1]["object"]) >= version(created)


async def test_no_bookmarks_come_unasked(raw: Raw, path: str) -> None:
    async with raw.watch(f"{path}?timeoutSeconds=3&resourceVersion=0") as watching:
        assert await watching.rest() == []


async def test_a_forgotten_version_is_told_as_an_error_event(raw: Raw, namespace: str, customs: Customs) -> None:
    """The history of a kind begins with its cache: what came before the kind is older than anything known of it."""
    path = customs.widgets.in_namespace(namespace).path
    await raw.ok("POST", path, customs.widget("a"))
    async with raw.watch(f"{path}?resourceVersion=1") as watching:
        assert watching.status == 200
        error = await watching.next()
        assert error is not None
        assert error["type"] == "ERROR"
        assert await watching.next() is None
    status = error["object"]
    assert (status["kind"], status["status"], status["code"], status["reason"]) == ("Status", "Failure", 410, "Expired")
    assert status["message"].startswith("too old resource version: 1 (")


async def test_a_label_selector_turns_changes_into_comings_and_goings(raw: Raw, path: str) -> None:
    start = await version_of(raw, path)
    async with raw.watch(f"{path}?resourceVersion={start}&labelSelector=team%3Dred") as watching:
        await raw.ok("POST", path, secret("a"))
        await labelled(raw, path, "a", "red")
        await raw.ok("PATCH", f"{path}/a", {"data": {"x": "MQ=="}}, MERGE)
        left = await labelled(raw, path, "a", "blue")
        await raw.ok("PATCH", f"{path}/a", {"data": {"x": "Mg=="}}, MERGE)
        await labelled(raw, path, "a", "red")
        await raw.ok("DELETE", f"{path}/a")
        events = [await watching.event() for _ in range(5)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
    gone = events[2]["object"]
    assert gone["metadata"]["labels"] == {"team": "red"}, "as it was while it matched"
    assert version(gone) == version(left), "with the version of the change that ended that"


@pytest.mark.parametrize("selector", ["metadata.name%3Db", "metadata.name%3Db,metadata.namespace%3D{namespace}"])
async def test_a_field_selector_watches_one_object(raw: Raw, path: str, namespace: str, selector: str) -> None:
    query = f"fieldSelector={selector.format(namespace=namespace)}"
    async with raw.watch(f"{path}?resourceVersion={await version_of(raw, path)}&{query}") as watching:
        for name in "abc":
            await raw.ok("POST", path, secret(name))
        await raw.ok("DELETE", f"{path}/b")
        assert await watching.take(2) == [("ADDED", "b"), ("DELETED", "b")]


async def test_a_watch_of_all_namespaces_sees_all_and_one_of_a_namespace_only_its_own(
    raw: Raw, path: str, namespace: str
) -> None:
    start = await version_of(raw, path)
    everywhere = f"{SECRETS.everywhere.path}?resourceVersion={start}&labelSelector=run%3D{namespace}"
    async with raw.watch(everywhere) as all_of_them, raw.watch(f"{path}?resourceVersion={start}") as own:
        elsewhere = await raw.ok(
            "POST", SECRETS.in_namespace("default").path, secret(f"x-{namespace}", labels={"run": namespace})
        )
        await raw.ok("DELETE", f"{SECRETS.in_namespace('default').path}/{elsewhere['metadata']['name']}")
        await raw.ok("POST", path, secret("a", labels={"run": namespace}))
        assert await all_of_them.take(3) == [("ADDED", f"x-{namespace}"), ("DELETED", f"x-{namespace}"), ("ADDED", "a")]
        assert await own.take(1) == [("ADDED", "a")]


async def test_a_change_that_is_no_change_is_not_told(raw: Raw, path: str) -> None:
    created = await raw.ok("POST", path, secret("a", {"x": "MQ=="}))
    async with raw.watch(f"{path}?resourceVersion={version(created)}") as watching:
        await raw.ok("PATCH", f"{path}/a", {"data": {"x": "MQ=="}}, MERGE)
        await raw.ok("POST", path, secret("b"))
        assert await watching.take(1) == [("ADDED", "b")]


async def test_a_list_not_older_than_the_future_times_out(raw: Raw, path: str) -> None:
    future = int(await version_of(raw, path)) + 1_000_000
    answer = await raw("GET", f"{path}?resourceVersion={future}&resourceVersionMatch=NotOlderThan")
    assert (answer.status, answer.reason) == (504, "Timeout")
    assert answer.message.startswith("Timeout: Too large resource version: ")
    assert answer.causes == [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    assert answer.json["details"]["retryAfterSeconds"] == 1


async def test_an_object_is_watched_by_field_selector_not_by_its_path(raw: Raw, path: str) -> None:
    created = await raw.ok("POST", path, secret("a"))
    answer = await raw.ok("GET", f"{path}/a?watch=1&resourceVersion={version(created)}")
    assert answer == created, "the wish to watch is ignored"
