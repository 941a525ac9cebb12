"""Retries, deadlines, the bucket and the count, in virtual time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.kube.scripted_server import Answer, ask, ok, refusal
from windlass.kube.api_errors import (
    BadAnswer,
    Conflict,
    ConnectionLost,
    DeadlineExceeded,
    Forbidden,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from windlass.kube.client.readers import WatchStart
from windlass.kube.client.resources import PODS, Resource
from windlass.kube.transport.calls import CallLimits
from windlass.kube.transport.transports import Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from windlass.kube.client.clients import KubeClient

POD = PODS.named("p", "n")


async def watch(kube: KubeClient) -> None:
    async for _ in kube.watch(PODS.everywhere, WatchStart("1")):
        pass


REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
LOST = ConnectionLost("reset by peer")
REFUSED = Unreachable("connection refused")
WRONG_CA = Unreachable("not trusted", temporary=False)

VERBS: dict[str, Callable[[KubeClient], Awaitable[Any]]] = {
    "get": lambda kube: kube.get(POD),
    "review": lambda kube: kube.review(REVIEWS, {}),
    "logs": lambda kube: kube.logs(POD),
    "create": lambda kube: kube.create(PODS.in_namespace("n"), {}),
    "replace": lambda kube: kube.replace(POD, {}),
    "merge patch": lambda kube: kube.patch(POD, {"spec": {}}),
    "merge patch of nothing": lambda kube: kube.patch(POD, {"metadata": None}),
    "merge patch at a version": lambda kube: kube.patch(POD, {"metadata": {"resourceVersion": "1"}}),
    "JSON patch": lambda kube: kube.patch(POD, [{"op": "add", "path": "/a/-", "value": 1}]),
    "apply": lambda kube: kube.apply(POD, {}),
    "delete": lambda kube: kube.delete(POD),
    "delete one life": lambda kube: kube.delete(POD, uid="u"),
    "evict": lambda kube: kube.evict(POD),
    "token": lambda kube: kube.request_token("a", "n"),
}
REPEATABLE = {"get", "review", "logs", "merge patch", "merge patch of nothing", "apply", "delete one life"}
DONE = ok({"status": {"token": "t"}})


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_waits_as_long_as_a_busy_server_asks(verb: str) -> None:
    result, server = ask([refusal(429, Retry_After="7"), DONE], VERBS[verb])
    assert not isinstance(result, Exception)
    assert server.times == [0, 7]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_sent_again_when_nothing_was_sent(verb: str) -> None:
    result, server = ask([REFUSED, REFUSED, DONE], VERBS[verb])
    assert not isinstance(result, Exception)
    assert len(server.requests) == 3


@pytest.mark.parametrize("trouble", [LOST, refusal(500), refusal(503)], ids=["lost", "500", "503"])
@pytest.mark.parametrize("verb", VERBS)
def test_only_what_may_be_repeated_is_sent_again_when_it_may_have_been_carried_out(verb: str, trouble: Answer) -> None:
    answers = [trouble, DONE] if verb in REPEATABLE else [trouble]
    result, server = ask(answers, VERBS[verb])
    assert isinstance(result, ConnectionLost | ServerError) == (verb not in REPEATABLE)
    assert len(server.requests) == len(answers)


@pytest.mark.parametrize(
    ("trouble", "attempts", "expected"),
    [
        pytest.param(REFUSED, 5, Unreachable, id="refused"),
        pytest.param(WRONG_CA, 1, Unreachable, id="what does not pass is not tried again"),
        pytest.param(LOST, 5, ConnectionLost, id="lost"),
        pytest.param(refusal(503), 5, ServerError, id="503"),
        pytest.param(refusal(404), 1, NotFound, id="404"),
        pytest.param(refusal(403), 1, Forbidden, id="403"),
        pytest.param(refusal(409, "Conflict"), 1, Conflict, id="409"),
    ],
)
def test_trouble_that_stays_is_shown(trouble: Answer, attempts: int, expected: type[Exception]) -> None:
    result, server = ask([trouble] * attempts, VERBS["get"])
    assert isinstance(result, expected)
    assert len(server.requests) == attempts
    assert "get pods at scripted:///api/v1/namespaces/n/pods/p" in str(result)


def test_waits_double() -> None:
    _, server = ask([REFUSED] * 5, VERBS["get"])
    assert server.times == pytest.approx([0, 0.075, 0.225, 0.525, 1.125])


def test_the_wait_can_stand_in_the_status_and_has_a_default() -> None:
    answers = [refusal(429, details={"retryAfterSeconds": 3}), refusal(429), DONE]
    _, server = ask(answers, VERBS["get"])
    assert server.times == [0, 3, 4]


def test_a_busy_server_that_asks_for_no_wait_is_not_hammered() -> None:
    _, server = ask([refusal(429, Retry_After="0"), refusal(429, Retry_After="-1"), DONE], VERBS["get"])
    assert server.times == [0, 1, 2]


def test_a_busy_server_is_asked_until_the_deadline_which_names_the_last_trouble() -> None:
    result, server = ask([refusal(429, "TooManyRequests", "slow down")] * 10, VERBS["get"], CallLimits(timeout=9.5))
    assert isinstance(result, DeadlineExceeded)
    assert "no answer within 9.5 s" in str(result)
    assert "slow down" in str(result)
    assert isinstance(result.__cause__, TooManyRequests), "with the server's own Status"
    assert server.times == list(range(10))


def test_a_silent_server_meets_the_deadline() -> None:
    result, _ = ask([None], VERBS["create"])
    assert isinstance(result, DeadlineExceeded)
    assert "no answer within 30 s" in str(result)
    assert "create pods at scripted:///api/v1/namespaces/n/pods" in str(result)


def test_opening_a_watch_has_the_deadline_too() -> None:
    result, _ = ask([None], watch)
    assert isinstance(result, DeadlineExceeded)


def test_a_watch_waits_as_long_as_a_busy_server_asks_until_the_deadline() -> None:
    busy = refusal(429, "TooManyRequests", "slow down", Retry_After="7")
    result, server = ask([busy, refusal(429), Response(200, {}, b"")], watch)
    assert result is None
    assert server.times == [0, 7, 8]
    result, server = ask([busy, busy], watch, CallLimits(timeout=8))
    assert isinstance(result, DeadlineExceeded)
    assert "slow down" in str(result)
    result, server = ask([refusal(503)], watch)
    assert isinstance(result, ServerError), "when to come back after other trouble is for its reader to say"


def test_the_bucket_lets_a_burst_through_and_then_keeps_the_rate() -> None:
    async def many(kube: KubeClient) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(6):
                tasks.create_task(kube.get(POD))

    _, server = ask([ok()] * 6, many, CallLimits(calls_per_second=2, burst=3))
    assert server.times == pytest.approx([0, 0, 0, 0.5, 1.0, 1.5])


def test_who_gives_up_while_waiting_for_a_turn_takes_none() -> None:
    async def one(kube: KubeClient, late: list[DeadlineExceeded]) -> None:
        try:
            await kube.get(POD)
        except DeadlineExceeded as error:
            late.append(error)

    async def storm(kube: KubeClient) -> int:
        late: list[DeadlineExceeded] = []
        async with asyncio.TaskGroup() as tasks:
            for _ in range(100):
                tasks.create_task(one(kube, late))
        await kube.get(POD)
        return len(late)

    late, server = ask([ok()] * 4, storm, CallLimits(calls_per_second=1, burst=1, timeout=2.5))
    assert late == 97
    assert server.times == pytest.approx([0, 1, 2, 3])


def test_a_rested_bucket_is_full_again_but_no_fuller() -> None:
    async def many(kube: KubeClient) -> None:
        for _ in range(3):
            await kube.get(POD)
        await kube.clock.sleep(60)
        for _ in range(3):
            await kube.get(POD)

    _, server = ask([ok()] * 6, many, CallLimits(calls_per_second=1, burst=2))
    assert server.times == pytest.approx([0, 0, 1, 61, 61, 62])


def test_every_request_is_counted_by_verb_and_kind_with_its_repetitions() -> None:
    async def several(kube: KubeClient) -> Any:
        await kube.get(POD)
        await kube.logs(POD)
        await kube.review(REVIEWS, {})
        assert kube.counts.writes == 0
        await kube.evict(POD)
        await kube.delete(POD)
        return kube.counts

    counts, _ = ask([REFUSED, DONE, DONE, DONE, DONE, DONE], several)
    assert counts.by_verb_and_kind == {
        ("get", "pods"): 2,
        ("get", "pods/log"): 1,
        ("review", "selfsubjectaccessreviews.authorization.k8s.io"): 1,
        ("create", "pods/eviction"): 1,
        ("delete", "pods"): 1,
    }
    assert (counts.total, counts.writes) == (6, 2)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff\xfe", b'{"password": "hunter2"'], ids=["empty", "cut", "list", "bytes", "secret"]
)
def test_an_answer_that_is_not_what_was_asked_for_is_named_but_not_shown(body: bytes) -> None:
    result, _ = ask([Response(200, {}, body)], VERBS["get"])
    assert isinstance(result, BadAnswer)
    assert "get pods at scripted:///api/v1/namespaces/n/pods/p" in str(result)
    assert "hunter2" not in str(result) + repr(result)
