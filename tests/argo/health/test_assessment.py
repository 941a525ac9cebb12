"""Who judges what, and what a check's words are worth."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from windlass.argo.health.assessment import (
    CONFIG_MAP_MAX_AGE,
    BuiltInHealthAssessor,
    LuaHealthAssessor,
    open_lua_assessor,
)
from windlass.argo.health.scripts import HealthScripts, mounted_scripts
from windlass.core.platform.model.health import Health
from windlass.core.platform.model.snapshots import ResourceKind, ResourceState
from windlass.kube.client.readers import KubeReader
from windlass.kube.client.resources import CONFIG_MAPS
from windlass.kube.clocks import Clock
from windlass.kube.transport.calls import CallSender
from windlass.lua.worker_process import LuaWorker
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.apiserver.requests import ADMIN
from windlass.sandbox.sandbox import Sandbox
from windlass.simulation.in_process_transport import InProcessTransport

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

THING = ResourceKind("a.io", "Thing")
DEPLOYMENT = ResourceKind("apps", "Deployment")
KEY = "resource.customizations.health.a.io_Thing"


def thing(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "a.io/v1", "kind": "Thing", "metadata": {"name": "x", **more.pop("metadata", {})}, **more}


def check(words: str) -> HealthScripts:
    return mounted_scripts({("a.io", "Thing"): words})


class World:
    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.seconds = 0.0
        clock = Clock(monotonic=lambda: self.seconds)
        self.reader = KubeReader(CallSender(InProcessTransport(sandbox, ADMIN), clock=clock))

    async def configure(self, data: Mapping[str, str]) -> None:
        body = {"metadata": {"name": "argocd-cm", "namespace": "argocd"}, "data": dict(data)}
        await self.sandbox.client().create("configmaps", body)

    @property
    def reads(self) -> int:
        return self.reader.counts.total


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    async with Sandbox() as sandbox:
        await sandbox.client().create("namespaces", {"metadata": {"name": "argocd"}})
        yield World(sandbox)


@pytest.mark.parametrize(
    ("words", "item", "health", "message"),
    [
        ("return {status = 'Healthy'}", {}, Health.HEALTHY, ""),
        ("return {status = 'Suspended', message = 'a\\n b'}", {}, Health.SUSPENDED, "a b"),
        ("return {status = obj.status.phase}", {"status": {"phase": "Degraded"}}, Health.DEGRADED, ""),
        ("return {status = 'Missing'}", {}, Health.MISSING, ""),
        ("return {status = 'Great'}", {}, Health.UNKNOWN, "{} says 'Great', which is no health"),
        ("return {status = 'healthy'}", {}, Health.UNKNOWN, "{} says 'healthy', which is no health"),
        ("return {status = 'Failed'}", {}, Health.UNKNOWN, "{} says 'Failed', which is no health"),
        ("return {message = 'Healthy'}", {}, Health.UNKNOWN, "{} tells no status"),
        ("return nil", {}, Health.UNKNOWN, "{} tells no status"),
        ("return {status = 'Healthy'", {}, Health.UNKNOWN, "{} failed: line 1: '}}' expected near <eof>"),
        ("error('no')", {}, Health.UNKNOWN, "{} failed: line 1: no"),
        (
            "return {status = 'Healthy'}",
            {"metadata": {"generation": 2}, "status": {"observedGeneration": 1}},
            Health.PROGRESSING,
            "its controller has not seen the latest change yet",
        ),
        ("return {status = 'Degraded', message = ('x'):rep(999)}", {}, Health.DEGRADED, "x" * 300 + "…"),
    ],
)
async def test_what_a_check_says(words: str, item: dict[str, Any], health: Health, message: str) -> None:
    async with world() as w, open_lua_assessor(w.reader, "argocd", check(words)) as judge:
        expected = message.format("the health check of a.io/Thing from a mounted file")
        assert await judge.assess(thing(**item)) == ResourceState(health, expected)
        assert w.reads == 0, "a mounted check wins, whatever the cluster has"


async def test_a_mounted_check_wins_over_the_clusters_and_that_over_ours() -> None:
    async with world() as w:
        await w.configure(
            {
                KEY: "return {status = 'Progressing'}",
                "resource.customizations.health.ceph.rook.io_CephCluster": "return {status = 'Suspended'}",
            }
        )
        item = {**thing(), "apiVersion": "ceph.rook.io/v1", "kind": "CephCluster"}
        async with open_lua_assessor(w.reader, "argocd", HealthScripts()) as judge:
            assert (await judge.assess(thing())).health is Health.PROGRESSING
            assert (await judge.assess(item)).health is Health.SUSPENDED
            assert w.reads == 1, "it is read once"
        async with open_lua_assessor(w.reader, "argocd", check("return {status = 'Degraded'}")) as judge:
            assert (await judge.assess(thing())).health is Health.DEGRADED
        async with open_lua_assessor(w.reader, "elsewhere", HealthScripts()) as judge:
            assert (await judge.assess(item)).health_message == "its phase is not told, Ceph says nothing"


async def test_what_has_no_check_says_it_itself_and_needs_no_process() -> None:
    async with world() as w, LuaWorker() as worker:
        judge = LuaHealthAssessor(w.reader, "argocd", HealthScripts(), worker)
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        assert (await judge.assess(thing(status=ready))).health is Health.HEALTHY
        assert (await judge.assess(thing(metadata={"deletionTimestamp": "now"}))).is_deleting
        assert not await judge.can_assess(THING)
        assert await judge.can_assess(DEPLOYMENT)
        assert await judge.can_assess(ResourceKind("argoproj.io", "Application"))
        assert worker.pid is None


async def test_the_config_map_is_read_again_after_a_while() -> None:
    async with world() as w, open_lua_assessor(w.reader, "argocd", HealthScripts()) as judge:
        assert not await judge.can_assess(THING)
        await w.configure({KEY: "return {status = 'Healthy'}"})
        assert not await judge.can_assess(THING)
        w.seconds += CONFIG_MAP_MAX_AGE + 1
        assert await judge.can_assess(THING)
        assert w.reads == 2


async def test_a_config_map_that_is_not_for_our_eyes() -> None:
    async with world() as w, open_lua_assessor(w.reader, "argocd", HealthScripts()) as judge:
        await w.configure({KEY: "return {status = 'Healthy'}"})
        w.sandbox.server.faults.add(Fault(verb="get", kind="configmaps", code=403, times=None))
        assert not await judge.can_assess(THING)
        assert await judge.can_assess(ResourceKind("ceph.rook.io", "CephCluster"))


async def test_kinds_that_have_a_check() -> None:
    async with world() as w, open_lua_assessor(w.reader, "argocd", check("return {}")) as judge:
        assert {THING, ResourceKind("ceph.rook.io", "CephCluster")} <= judge.kinds
        assert DEPLOYMENT not in judge.kinds
        assert w.reads == 0


async def test_without_lua() -> None:
    judge = BuiltInHealthAssessor()
    assert not judge.kinds
    assert await judge.can_assess(DEPLOYMENT)
    assert not await judge.can_assess(THING)
    assert await judge.assess(thing()) == ResourceState(Health.UNKNOWN, "it has no condition that tells its health")


def test_config_maps_are_known_by_heart() -> None:
    assert CONFIG_MAPS.named("a", "b").path == "/api/v1/namespaces/b/configmaps/a"
