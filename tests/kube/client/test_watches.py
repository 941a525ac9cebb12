"""One watch connection: lines in any pieces and of any length, bookmarks, the server's errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kube.scripted_server import ask
from windlass.kube.api_errors import BadAnswer, ConnectionLost, Expired, Forbidden, ServerError
from windlass.kube.client.objects import TypedObject
from windlass.kube.client.readers import WatchStart
from windlass.kube.client.resources import PODS
from windlass.kube.client.watches import Bookmark, WatchEvent
from windlass.kube.transport.line_splitter import MAX_LINE_BYTES, LineSplitter
from windlass.kube.transport.transports import Response

if TYPE_CHECKING:
    from windlass.kube.client.clients import KubeClient


@given(st.binary(), st.lists(st.integers(1, 9)))
def test_lines_are_the_same_however_the_bytes_arrive(content: bytes, sizes: list[int]) -> None:
    splitter = LineSplitter()
    lines: list[bytes] = []
    rest = content
    for size in [*sizes, len(content)]:
        lines += splitter.feed(rest[:size])
        rest = rest[size:]
    assert [*lines, splitter.rest] == content.split(b"\n")


@pytest.mark.parametrize("before", [b"", b"x" * 6])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_beyond_the_limit_is_refused(before: bytes, end: bytes) -> None:
    splitter = LineSplitter(limit=10)
    assert splitter.feed(b"x" * 10 + b"\n" + before) == [b"x" * 10]
    with pytest.raises(BadAnswer, match="a line of more than"):
        splitter.feed(b"x" * (11 - len(before)) + end)


def test_an_endless_line_ends_the_watch() -> None:
    assert isinstance(watch(b"x" * (MAX_LINE_BYTES + 1)), BadAnswer)


class Strict(TypedObject, frozen=True):
    spec: dict[str, Any]


def watch(body: bytes, into: Any = dict) -> Any:
    async def collect(kube: KubeClient) -> list[Any]:
        return [event async for event in kube.watch(PODS.everywhere, WatchStart("1"), into)]

    result, server = ask([Response(200, {}, body)], collect)
    assert "resourceVersion=1" in server.requests[0].target
    assert "allowWatchBookmarks=true" in server.requests[0].target
    return result


def line(kind: str, item: object) -> bytes:
    return msgspec.json.encode({"type": kind, "object": item}) + b"\n"


MARK = {"metadata": {"resourceVersion": "5"}}
END = {"metadata": {"resourceVersion": "6", "annotations": {"k8s.io/initial-events-end": "true"}}}


@pytest.mark.parametrize("into", [dict, Strict])
def test_changes_and_bookmarks_whatever_the_type(into: Any) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"x": "y" * 2_000_000}}
    first, *marks = watch(line("ADDED", pod) + line("BOOKMARK", MARK) + b"\n" + line("BOOKMARK", END), into)
    assert isinstance(first, WatchEvent)
    assert first.type == "ADDED"
    spec = first.item.spec if into is Strict else first.item["spec"]
    assert len(spec["x"]) == 2_000_000
    assert marks == [Bookmark("5", False), Bookmark("6", True)]


@pytest.mark.parametrize("into", [dict, Strict])
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"code": 410, "reason": "Expired"}, Expired),
        ({"code": 500, "reason": "InternalError"}, ServerError),
        ({"code": 403, "reason": "Forbidden", "metadata": {"name": "x"}}, Forbidden),
    ],
    ids=["410", "500", "403"],
)
def test_the_servers_errors_are_raised_whatever_the_type(into: Any, status: Any, expected: type[Exception]) -> None:
    assert isinstance(watch(line("ERROR", status), into), expected)


@pytest.mark.parametrize(
    "body",
    [
        b"not json\n",
        b"[]\n",
        line("SURPRISE", MARK),
        line("BOOKMARK", {}),
        line("ADDED", "hunter2"),
        b'{"type":"ADDED"}\n',
        b'{"type":"ADDED","object":' + b'{"a":' * 100_000 + b"\n",
    ],
    ids=["text", "list", "unknown type", "empty bookmark", "no object", "missing object", "an abyss"],
)
def test_what_is_no_event_is_an_error_that_does_not_show_it(body: bytes) -> None:
    result = watch(body)
    assert isinstance(result, BadAnswer)
    assert str(result).count("watch pods at scripted:///api/v1/pods") == 1
    assert "hunter2" not in str(result)


def test_an_object_that_lacks_what_its_type_needs_is_an_error() -> None:
    result = watch(line("ADDED", {"metadata": {"name": "p"}}), Strict)
    assert isinstance(result, BadAnswer)
    assert "of type ADDED: Object missing required field `spec`" in str(result)


def test_nulls_are_fields_left_out() -> None:
    mark = {"metadata": {"resourceVersion": "5", "annotations": None}}
    pod = {"metadata": {"name": "p", "labels": None}, "spec": {}}
    event, bookmark = watch(line("ADDED", pod) + line("BOOKMARK", mark), Strict)
    assert event.item.metadata.labels == {}
    assert bookmark == Bookmark("5", False)
    forgotten = {"code": 410, "reason": "Expired", "details": {"causes": None}}
    assert isinstance(watch(line("ERROR", forgotten)), Expired)


def test_an_event_cut_in_half_is_a_lost_connection() -> None:
    result = watch(line("ADDED", MARK) + b'{"type":"ADDED","obj')
    assert isinstance(result, ConnectionLost)
