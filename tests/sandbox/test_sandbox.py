"""The sandbox from inside the process: callers, faults, the journal, lagging readers; on virtual time."""

from __future__ import annotations

import asyncio
import copy
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from windlass.sandbox.apiserver.faults import ConnectionSevered, Fault
from windlass.sandbox.apiserver.requests import ADMIN, RequestOptions, UserInfo
from windlass.sandbox.apiserver.wire.api_status import StatusError
from windlass.sandbox.controllers.object_builders import build_crd
from windlass.sandbox.sandbox import Sandbox
from windlass.simulation.virtual_time import run, virtual_sandbox_clock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from windlass.sandbox.in_process_client import InProcessClient

JANE = UserInfo("jane")
NAMESPACE = "default"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "data": data}


async def watched(sandbox: Sandbox, user: UserInfo = ADMIN, labels: str = "") -> AsyncIterator[tuple[str, Any]]:
    """What a watch of ConfigMaps tells: type and object."""
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps?watch=1&labelSelector={labels}"
    answer = await sandbox.handle("GET", path, {}, user=user)
    assert answer.stream is not None
    async with aclosing(answer.stream) as chunks:
        async for chunk in chunks:
            for event in map(msgspec.json.decode, chunk.splitlines()):
                yield event["type"], event["object"]


def in_sandbox(test: Callable[[Sandbox], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Sandbox(virtual_sandbox_clock()) as sandbox:
            await test(sandbox)

    run(main())


def test_a_caller_reads_what_it_wrote_and_sees_it_in_its_watch() -> None:
    async def test(sandbox: Sandbox) -> None:
        caller = sandbox.client()
        seen: list[str] = []

        async def follow() -> None:
            async for kind, item in watched(sandbox, labels="team%3Dred"):
                seen.append(f"{kind} {item['metadata']['name']} {item['data']}")

        sandbox.start(follow(), name="follower")
        await caller.create("configmaps", {**config_map("a", x="1")})
        await caller.patch("configmaps", "a", {"metadata": {"labels": {"team": "red"}}}, NAMESPACE)
        await caller.patch("configmaps", "a", [{"op": "replace", "path": "/data/x", "value": "2"}], NAMESPACE)
        found = await caller.get("configmaps", "a", NAMESPACE)
        await caller.update("configmaps", {**found, "data": {"x": "3"}})
        await caller.apply("configmaps", config_map("a", y="4"))
        await caller.delete("configmaps", "a", NAMESPACE)
        assert await caller.find("configmaps", "a", NAMESPACE) is None
        await sandbox.clock.sleep(1)
        assert [line.partition(" ")[0] for line in seen] == ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]

    in_sandbox(test)


THING: dict[str, Any] = {
    "apiVersion": "test.dev/v1",
    "kind": "Thing",
    "metadata": {"name": "a", "namespace": NAMESPACE},
}
WRITES: dict[str, Callable[[InProcessClient, Any], Awaitable[Any]]] = {
    "create": lambda caller, body: caller.create("things.test.dev", body),
    "patch": lambda caller, body: caller.patch("things.test.dev", "there", {"spec": body["spec"]}, NAMESPACE),
    "apply": lambda caller, body: caller.apply("things.test.dev", body),
}


@pytest.mark.parametrize("verb", WRITES)
def test_what_is_sent_stays_as_it_is_and_what_comes_back_is_the_callers_own(verb: str) -> None:
    """Here the server fills in a field and drops another, of the object that it keeps."""
    filled = {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}}
    definition = build_crd(
        "test.dev/v1", {"kind": "Thing"}, {"spec": {"type": "object", "properties": {"box": filled}}}
    )

    async def test(sandbox: Sandbox) -> None:
        caller = sandbox.client()
        await caller.create("customresourcedefinitions.apiextensions.k8s.io", definition)
        await caller.create(
            "things.test.dev", {**THING, "metadata": {**THING["metadata"], "name": "there"}, "spec": {}}
        )
        sent = {**THING, "spec": {"box": {}}} if verb == "apply" else {**THING, "spec": {"box": {"unknown": 1}}}
        before = copy.deepcopy(sent)
        back = await WRITES[verb](caller, sent)
        assert back["spec"] == {"box": {"size": 3}}
        assert sent == before
        back["spec"]["box"]["size"] = sent["spec"]["box"]["size"] = 4
        found = await caller.get("things.test.dev", back["metadata"]["name"], NAMESPACE)
        assert found["spec"] == {"box": {"size": 3}}

    in_sandbox(test)


def test_the_journal_says_who_did_what_and_how_it_ended() -> None:
    async def test(sandbox: Sandbox) -> None:
        caller = sandbox.client(JANE, agent="script/1.0")
        await caller.create(
            "configmaps", {**config_map(""), "metadata": {"generateName": "a-", "namespace": NAMESPACE}}
        )
        with pytest.raises(StatusError):
            await caller.get("configmaps", "gone", NAMESPACE)
        await caller.apply("configmaps", config_map("b"))
        for target in ("/version", "/api/v1/nonsense", "/api/v1/configmaps?limit=many"):
            await sandbox.handle("GET", target, {}, user=UserInfo("john"))
        others = [(e.verb, e.kind, e.code) for e in sandbox.server.journal.entries if e.user == "john"]
        assert others == [
            ("get", "/version", 200),
            ("get", "/api/v1/nonsense", 404),
            ("get", "/api/v1/configmaps", 400),
        ]
        mine = [entry for entry in sandbox.server.journal.entries if entry.user == "jane"]
        assert [(e.verb, e.kind, e.code, e.agent) for e in mine] == [
            ("create", "configmaps", 201, "script/1.0"),
            ("get", "configmaps", 404, "script/1.0"),
            ("apply", "configmaps", 201, "script/1.0"),
        ]
        assert mine[0].name.startswith("a-")
        assert [entry.verb for entry in sandbox.server.journal.writes("jane")] == ["create", "apply"]
        lines = [msgspec.json.decode(line) for line in sandbox.server.journal.json_lines()]
        assert len(lines) == len(sandbox.server.journal.entries)

    in_sandbox(test)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault(code=409), 409),
        (Fault(code=429, retry_after=3), 429),
        (Fault(code=503), 503),
        (Fault(verb="get", name="a*", code=500), 500),
        (Fault(verb="delete", code=500), 404),
        (Fault(user="john", code=500), 404),
        (Fault(skip=1, code=500), 404),
    ],
    ids=str,
)
def test_a_fault_hits_what_it_selects(fault: Fault, code: int) -> None:
    async def test(sandbox: Sandbox) -> None:
        sandbox.server.faults.add(fault)
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/a"
        answer = await sandbox.handle("GET", path, {}, user=JANE)
        assert answer.code == code
        if code == 429:
            assert ("Retry-After", "3") in answer.headers
        assert sandbox.server.journal.entries[-1].code == code
        again = await sandbox.handle("GET", path, {}, user=JANE)
        assert again.code == (500 if fault.skip == 0 and code == 404 and fault.hits else 404)

    in_sandbox(test)


def test_latency_takes_the_sandboxs_time_and_a_severed_answer_was_carried_out() -> None:
    async def test(sandbox: Sandbox) -> None:
        caller = sandbox.client(JANE)
        sandbox.server.faults.add(Fault(verb="create", latency=5, sever="after"))
        before = sandbox.clock.now()
        with pytest.raises(ConnectionSevered) as severed:
            await caller.create("configmaps", config_map("a"))
        assert severed.value.sent
        assert (sandbox.clock.now() - before).total_seconds() == 5
        assert await caller.get("configmaps", "a", NAMESPACE)
        sandbox.server.faults.add(Fault(verb="create", sever="before"))
        with pytest.raises(ConnectionSevered):
            await caller.create("configmaps", config_map("b"))
        assert await caller.find("configmaps", "b", NAMESPACE) is None

    in_sandbox(test)


def test_a_lagging_reader_learns_late_and_reads_the_past_from_its_cache() -> None:
    async def test(sandbox: Sandbox) -> None:
        sandbox.server.faults.add(Fault(user="jane", lag=10, times=None))
        seen = []

        async def follow() -> None:
            async for _, item in watched(sandbox, JANE):
                seen.append((item["metadata"]["name"], sandbox.clock.now()))

        sandbox.start(follow(), name="follower")
        await sandbox.clock.sleep(60)
        began = sandbox.clock.now()
        await sandbox.client().create("configmaps", config_map("a"))
        await sandbox.clock.sleep(5)
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
        cached = await sandbox.handle("GET", f"{path}?resourceVersion=0", {}, user=JANE)
        assert b'"a"' not in cached.body
        assert (await sandbox.handle("GET", f"{path}/a", {}, user=JANE)).code == 200
        await sandbox.clock.sleep(60)
        [told] = [when for name, when in seen if name == "a"]
        assert (told - began).total_seconds() == 10

    in_sandbox(test)


@pytest.mark.parametrize("how", ["cut", "silent", "expired"])
def test_open_watches_can_be_disturbed(how: str) -> None:
    async def test(sandbox: Sandbox) -> None:
        answer = await sandbox.handle("GET", "/api/v1/configmaps?watch=1&timeoutSeconds=60", {}, user=JANE)
        assert answer.stream is not None
        await anext(answer.stream)
        assert sandbox.server.disrupt_watches(how, Fault(user="jane", kind="configmaps")) == 1
        if how == "cut":
            with pytest.raises(ConnectionSevered):
                await anext(answer.stream)
        elif how == "silent":
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(600):
                    await anext(answer.stream)
        else:
            line = msgspec.json.decode(await anext(answer.stream))
            assert (line["type"], line["object"]["code"]) == ("ERROR", 410)
            assert await anext(answer.stream, None) is None
        await answer.stream.aclose()
        assert sandbox.server.watches == {}

    in_sandbox(test)


def test_history_can_be_forgotten() -> None:
    async def test(sandbox: Sandbox) -> None:
        for name in ("a", "c"):
            await sandbox.client().create("configmaps", config_map(name))
        page = await sandbox.handle("GET", "/api/v1/configmaps?limit=1", {}, user=ADMIN)
        meta = msgspec.json.decode(page.body)["metadata"]
        await sandbox.client().create("configmaps", config_map("b"))
        sandbox.server.store.compact()
        rest = await sandbox.handle("GET", f"/api/v1/configmaps?limit=1&continue={meta['continue']}", {}, user=ADMIN)
        assert rest.code == 410
        since = f"/api/v1/configmaps?watch=1&resourceVersion={meta['resourceVersion']}"
        watch = await sandbox.handle("GET", since, {}, user=ADMIN)
        assert watch.stream is not None
        assert b"too old resource version" in await anext(watch.stream)
        await watch.stream.aclose()

    in_sandbox(test)


def test_logs_are_what_actors_wrote() -> None:
    async def test(sandbox: Sandbox) -> None:
        caller = sandbox.client()
        containers = [{"name": "main", "image": "x"}]
        meta = {"name": "p", "namespace": NAMESPACE}
        await caller.create("pods", {"metadata": meta, "spec": {"containers": containers}})
        caller.write_log(NAMESPACE, "p", "main", "one\n")
        caller.write_log(NAMESPACE, "p", "main", "two\n")
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/p/log"
        assert (await sandbox.handle("GET", path, {}, user=ADMIN)).body == b"one\ntwo\n"
        assert (await sandbox.handle("GET", f"{path}?tailLines=1", {}, user=ADMIN)).body == b"two\n"
        assert (await sandbox.handle("GET", f"{path}?container=other", {}, user=ADMIN)).code == 400

    in_sandbox(test)


def test_a_pod_that_runs_is_given_its_time() -> None:
    async def test(sandbox: Sandbox) -> None:
        caller = sandbox.client()
        meta = {"name": "p", "namespace": NAMESPACE}
        spec = {"nodeName": "n", "containers": [{"name": "main", "image": "x"}], "terminationGracePeriodSeconds": 7}
        await caller.create("pods", {"metadata": meta, "spec": spec})
        await caller.delete("pods", "p", NAMESPACE)
        left = await caller.get("pods", "p", NAMESPACE)
        assert left["metadata"]["deletionGracePeriodSeconds"] == 7
        await caller.delete("pods", "p", NAMESPACE, options=RequestOptions(grace=0))
        assert await caller.find("pods", "p", NAMESPACE) is None

    in_sandbox(test)


def test_what_goes_with_its_last_finalizer_is_seen_as_it_was_stored() -> None:
    async def test(sandbox: Sandbox) -> None:
        caller = sandbox.client()
        seen: list[tuple[str, Any]] = []
        kept = {**config_map("a"), "metadata": {"name": "a", "namespace": NAMESPACE, "finalizers": ["example.com/x"]}}
        await caller.create("configmaps", kept)

        async def follow() -> None:
            async for kind, item in watched(sandbox):
                if item["metadata"]["name"] == "a":
                    seen.append((kind, item["metadata"].get("finalizers")))

        sandbox.start(follow(), name="follower")
        await sandbox.clock.sleep(1)
        await caller.delete("configmaps", "a", NAMESPACE)
        answer = await caller.patch("configmaps", "a", {"metadata": {"finalizers": None}}, NAMESPACE)
        assert "finalizers" not in answer["metadata"]
        await sandbox.clock.sleep(1)
        assert seen[-2:] == [("MODIFIED", ["example.com/x"]), ("DELETED", ["example.com/x"])]

    in_sandbox(test)


def test_a_pods_generation_grows_with_its_spec_but_not_with_its_node() -> None:
    async def test(sandbox: Sandbox) -> None:
        caller = sandbox.client()
        spec = {"containers": [{"name": "main", "image": "nginx:1"}]}
        pod = await caller.create("pods", {"metadata": {"name": "p", "namespace": NAMESPACE}, "spec": spec})
        assert pod["metadata"]["generation"] == 1
        bound = await caller.patch("pods", "p", {"spec": {"nodeName": "here"}}, NAMESPACE)
        assert (bound["spec"]["nodeName"], bound["metadata"]["generation"]) == ("here", 1)
        changed = await caller.patch("pods", "p", {"spec": {"activeDeadlineSeconds": 5}}, NAMESPACE)
        assert changed["metadata"]["generation"] == 2

    in_sandbox(test)
