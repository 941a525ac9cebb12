"""The reflector's promise: whatever breaks, its view ends up equal to the server's, and its changes tell all."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kube.client.model_server import LOST, REFUSED, ModelServer
from tests.kube.scripted_server import ok
from windlass.kube.api_errors import BadAnswer, ConnectionLost, Forbidden, ServerError, Unreachable
from windlass.kube.client.objects import RawObject, TypedObject
from windlass.kube.client.readers import KubeReader
from windlass.kube.client.reflectors import Reflector
from windlass.kube.client.resources import Resource
from windlass.kube.transport.calls import CallSender
from windlass.simulation.virtual_time import run, virtual_clock

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from windlass.kube.api_errors import KubeError
    from windlass.kube.client.reflectors import ObjectChange

THINGS = Resource("example.org", "v1", "things", "Thing").in_namespace("n")


class Thing(TypedObject, frozen=True):
    value: int = -1


def reflector_on(server: ModelServer) -> Reflector[RawObject]:
    return Reflector(KubeReader(CallSender(server, clock=virtual_clock())), THINGS, RawObject)


class Story:
    """Follows the changes and keeps what they tell, apart from the view."""

    def __init__(self, server: ModelServer, at_a_time: int = 1 << 30) -> None:
        self.reflector = reflector_on(server)
        self.at_a_time = at_a_time
        self.told: dict[tuple[str, str], dict[str, Any]] = {}
        self.appeared: list[str] = []
        self.gone: list[str] = []
        self.completions = 0

    async def follow(self) -> None:
        """A taker that stops after so many changes, and comes back for more."""
        while True:
            left = self.at_a_time
            async with aclosing(self.reflector.changes()) as changes:
                async for change in changes:
                    self.take(change)
                    assert self.told == dict(self.reflector.view)
                    left -= 1
                    if not left:
                        break

    def take(self, change: ObjectChange[RawObject]) -> None:
        if change.completes_view:
            self.completions += 1
            return
        assert change.old != change.new, "what did not change is not told"
        item = change.new or change.old
        assert item is not None
        key = (item["metadata"]["namespace"], item["metadata"]["name"])
        uid = item["metadata"]["uid"]
        assert self.told.get(key) == change.old, "a change begins where the one before it ended"
        if change.new is None:
            self.gone.append(uid)
            del self.told[key]
            return
        if change.old is None:
            self.appeared.append(uid)
        self.told[key] = change.new


def trouble_of(story: Story) -> KubeError | None:
    return story.reflector.current_error


def names(reflector: Reflector[RawObject]) -> set[str]:
    return {name for _, name in reflector.view}


async def following(server: ModelServer, steps: Coroutine[Any, Any, None], at_a_time: int = 1 << 30) -> Story:
    """Runs the steps beside a reflector, then gives it an hour without disturbance."""
    story = Story(server, at_a_time)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(story.follow())
        await steps
        await pause(3600)
        task.cancel()
    return story


async def pause(seconds: float) -> None:
    await asyncio.sleep(seconds)  # noqa: TID251 - virtual time


STEP = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("abcde"), st.integers(0, 9)),
    st.tuples(st.just("delete"), st.sampled_from("abcde")),
    st.tuples(st.just("forget")),
    st.tuples(st.just("bookmark")),
    st.tuples(st.just("expire")),
    st.tuples(st.just("disturb"), st.sampled_from(["cut", "silent", "ended"])),
    st.tuples(st.just("fault"), st.sampled_from([429, 500, 503, 410, LOST, REFUSED])),
    st.tuples(st.just("pause"), st.sampled_from([0.0, 0.01, 1.0, 60.0, 400.0])),
)


@settings(max_examples=200, deadline=None)
@given(
    steps=st.lists(STEP, max_size=40),
    streams=st.booleans(),
    chunk=st.sampled_from([7, 64, 1 << 16]),
    at_a_time=st.sampled_from([1, 3, 1 << 30]),
)
def test_the_view_ends_up_equal_to_the_servers_whatever_breaks(
    steps: list[tuple[Any, ...]], streams: bool, chunk: int, at_a_time: int
) -> None:
    server = ModelServer(streams_state=streams, chunk_size=chunk)
    for name in "abc":
        server.put(name)

    async def disturb() -> None:
        await pause(1)  # the first view must come about: trouble before it is raised, not waited out
        for step, *arguments in steps:
            if step == "pause":
                await pause(*arguments)
            elif step == "fault":
                server.faults.append(*arguments)
            else:
                value = {"value": arguments.pop()} if step == "put" else {}
                getattr(server, step)(*arguments, **value)

    story = run(following(server, disturb(), at_a_time))
    assert len(server.requests) < 100 + 20 * len(steps), "it hammered"
    assert {key[1]: item for key, item in story.told.items()} == server.items
    for item in story.told.values():
        assert item in server.everything, "invented"
    alive = {item["metadata"]["uid"] for item in server.items.values()}
    assert len(set(story.appeared)) == len(story.appeared), "one life appears once"
    assert set(story.appeared) - alive == set(story.gone), "every life that was told and ended was told as gone"


def test_what_vanished_while_the_server_forgot_is_told_as_gone() -> None:
    server = ModelServer()
    server.put("stays")
    server.put("goes")

    async def steps() -> None:
        await pause(1)
        server.disturb("cut")
        server.delete("goes")
        server.forget()

    story = run(following(server, steps()))
    assert story.told.keys() == {("n", "stays")}
    assert len(story.gone) == 1
    assert story.completions == 2


@pytest.mark.parametrize("streams", [True, False])
def test_who_stops_in_the_middle_of_a_list_and_comes_back_misses_nothing(streams: bool) -> None:
    server = ModelServer(streams_state=streams)
    for name in "abcde":
        server.put(name)
    story = run(following(server, pause(1), at_a_time=2))
    assert names(story.reflector) == set("abcde")
    assert len(story.appeared) == 5


def test_a_list_that_says_not_where_to_go_on_is_an_error_and_not_repeated() -> None:
    server = ModelServer(streams_state=False)
    server.answer = lambda _: ok({"metadata": {}, "items": [{"metadata": {"name": "a"}}]})

    async def main() -> None:
        async for _ in reflector_on(server).changes():
            pass

    with pytest.raises(BadAnswer, match="without a resourceVersion"):
        run(main())


def test_a_name_used_again_while_the_server_forgot_is_two_lives() -> None:
    server = ModelServer()
    server.put("x")

    async def steps() -> None:
        await pause(1)
        server.disturb("cut")
        server.delete("x")
        server.put("x")
        server.forget()

    story = run(following(server, steps()))
    assert len(story.appeared) == 2
    assert len(story.gone) == 1


def test_a_cut_watch_is_resumed_where_it_was_without_a_list() -> None:
    server = ModelServer()
    server.put("a")

    async def steps() -> None:
        await pause(1)
        before = len(server.requests)
        server.disturb("cut")
        server.put("b")
        await pause(5)
        assert [f"resourceVersion={2}" in request.target for request in server.requests[before:]] == [True]

    story = run(following(server, steps()))
    assert names(story.reflector) == {"a", "b"}


def test_a_silent_connection_is_noticed_and_resumed() -> None:
    server = ModelServer()

    async def steps() -> None:
        await pause(1)
        server.disturb("silent")
        server.put("a")
        await pause(80)

    story = run(following(server, steps()))
    assert names(story.reflector) == {"a"}


def test_a_server_that_cannot_stream_its_state_is_listed_in_pages() -> None:
    server = ModelServer(streams_state=False)
    for name in "abcde":
        server.put(name)
    story = run(following(server, pause(1)))
    assert names(story.reflector) == set("abcde")
    lists = [request.target for request in server.requests if "watch=1" not in request.target]
    assert len(lists) == 3
    assert all("limit=500" in target for target in lists)


def test_a_server_that_ignores_the_wish_to_stream_is_found_out() -> None:
    server = ModelServer()
    server.marks_end_of_state = False
    server.put("a")
    story = run(following(server, pause(1)))
    assert names(story.reflector) == {"a"}
    assert any("watch=1" not in request.target for request in server.requests)


def test_what_is_deleted_while_the_state_is_streamed_is_not_part_of_it() -> None:
    server = ModelServer()
    server.put("a")
    server.put("b")
    server.deleted_while_streaming = "a"
    story = run(following(server, pause(1)))
    assert names(story.reflector) == {"b"}
    assert story.completions == 1


def test_a_quiet_watch_lasts_longer_than_a_call() -> None:
    server = ModelServer()

    async def steps() -> None:
        for _ in range(4):
            await pause(60)
            server.bookmark()
        assert len(server.requests) == 1

    run(following(server, steps()))


def test_a_watch_that_ends_at_once_again_and_again_is_not_hammered() -> None:
    server = ModelServer()

    async def steps() -> None:
        await pause(1)
        before = len(server.requests)
        for _ in range(6000):
            server.disturb("ended")
            await pause(0.01)
        assert len(server.requests) - before < 40

    run(following(server, steps()))


@pytest.mark.parametrize(
    ("fault", "expected"),
    [(REFUSED, Unreachable), (LOST, ConnectionLost), (500, ServerError), (403, Forbidden)],
    ids=["refused", "lost", "500", "403"],
)
def test_trouble_before_the_first_view_is_raised(fault: int | Exception, expected: type[Exception]) -> None:
    server = ModelServer()
    server.faults = [fault] * 99

    async def main() -> None:
        async for _ in reflector_on(server).changes():
            pass

    with pytest.raises(expected):
        run(main())


def test_a_line_that_is_no_event_is_an_error_that_names_the_place_and_not_the_content() -> None:
    server = ModelServer()

    async def main() -> None:
        async for change in reflector_on(server).changes():
            if change.completes_view:
                server.watchers[0]._lines.append(b'{"type":"ADDED","object":"hunter2"}\n')
                server.wake()

    with pytest.raises(BadAnswer) as caught:
        run(main())
    assert "watch things.example.org at model://" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_trouble_shows_while_it_lasts() -> None:
    server = ModelServer()

    async def main() -> None:
        story = Story(server)
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(story.follow())
            await pause(1)
            server.faults = [503] * 3
            server.disturb("cut")
            await pause(0.5)
            assert isinstance(trouble_of(story), ServerError)
            await pause(60)
            server.put("a")
            await pause(1)
            task.cancel()
        assert trouble_of(story) is None

    run(main())


def test_a_bookmark_ends_the_trouble_and_the_next_one_begins_anew() -> None:
    server = ModelServer()

    async def steps() -> None:
        await pause(1)
        for _ in range(20):
            server.disturb("cut")
            await pause(60)
            server.bookmark()
            await pause(1)
        before = len(server.requests)
        server.disturb("cut")
        await pause(0.3)
        assert len(server.requests) == before + 1, "the first wait is short again"

    run(following(server, steps()))


def test_objects_without_metadata_do_no_harm() -> None:
    server = ModelServer()
    server.put("a")

    async def main() -> set[str]:
        reflector = reflector_on(server)
        async for change in reflector.changes():
            if change.completes_view:
                server.watchers[0].send({"type": "MODIFIED", "object": {"metadata": None}})
                server.watchers[0].send({"type": "DELETED", "object": {}})
                server.wake()
            elif change.new is None:
                break
        return names(reflector)

    assert run(main()) == {"a"}


def test_typed_objects_carry_only_what_was_asked_for() -> None:
    server = ModelServer()
    server.put("a", value=7)

    async def main() -> Thing:
        reader = KubeReader(CallSender(server, clock=virtual_clock()))
        async for change in Reflector(reader, THINGS, Thing).changes():
            if change.new:
                return change.new
        pytest.fail("it ended")

    thing = run(main())
    assert (thing.metadata.name, thing.value) == ("a", 7)
