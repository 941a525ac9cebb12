"""The sandbox on its port, with our own client: what breaks on a network, and what is left behind."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import pytest

from windlass.kube.api_errors import ConnectionLost, Forbidden, Unauthorized
from windlass.kube.auth import kubeconfigs
from windlass.kube.client.clients import KubeClient
from windlass.kube.client.readers import WatchStart
from windlass.kube.client.resources import Resource
from windlass.kube.clocks import Clock
from windlass.kube.transport.calls import CallSender
from windlass.kube.transport.http import HttpTransport
from windlass.kube.transport.transports import Request
from windlass.sandbox import clock
from windlass.sandbox.apiserver.access import kubeconfig as written
from windlass.sandbox.apiserver.faults import Fault
from windlass.sandbox.apiserver.requests import UserInfo
from windlass.sandbox.http_server import serve_http
from windlass.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
HERE = CONFIG_MAPS.in_namespace("default")


@asynccontextmanager
async def client(
    *, user: UserInfo | None = None, token: str = "", enforce_rbac: bool = False
) -> AsyncIterator[tuple[Sandbox, KubeClient]]:
    async with Sandbox(enforce_rbac=enforce_rbac) as sandbox, serve_http(sandbox) as address:
        identities = sandbox.server.authenticator
        known = token or (identities.issue_token(user) if user else identities.admin_token)
        connection = kubeconfigs.load(written.render_kubeconfig(address, known).encode(), where="a test")
        kube = KubeClient(CallSender(HttpTransport(connection)))
        try:
            yield sandbox, kube
        finally:
            await kube.close()


async def test_a_severed_connection_is_a_lost_one() -> None:
    async with client() as (sandbox, kube):
        sandbox.server.faults.add(Fault(verb="create", sever="after"))
        with pytest.raises(ConnectionLost):
            await kube.create(HERE, {"metadata": {"name": "a"}})
        assert await kube.get(CONFIG_MAPS.named("a", "default"))
        [entry] = [e for e in sandbox.server.journal.entries if e.verb == "create" and e.name == "a"]
        assert entry.code == 0, "no answer was given"


async def test_a_watch_that_is_cut_is_lost_and_one_whose_reader_goes_is_forgotten() -> None:
    async with client() as (sandbox, kube):
        async with aclosing(kube.watch(HERE, WatchStart())) as events:
            await anext(events)
            assert len(sandbox.server.watches) == 1
            sandbox.server.disrupt_watches("cut", Fault())
            with pytest.raises(ConnectionLost):
                async for _ in events:
                    pass
        async with aclosing(kube.watch(HERE, WatchStart())) as events:
            await anext(events)
        await kube.close()
        async with asyncio.timeout(5):
            while sandbox.server.watches:
                await Clock().sleep(0.01)


async def test_rights_are_enforced_where_asked() -> None:
    async with client(user=UserInfo("jane"), enforce_rbac=True) as (_, kube):
        with pytest.raises(Forbidden, match="user jane may not list configmaps in namespace default"):
            await kube.list(HERE)
    async with client(user=UserInfo("jane")) as (_, kube):
        assert (await kube.list(HERE)).items
    async with client(token="nonsense") as (_, kube):
        with pytest.raises(Unauthorized):
            await kube.list(HERE)


async def test_time_can_run_faster() -> None:
    fast = clock.real_clock(speed=1000)
    began = fast.now()
    await fast.sleep(50)
    assert (fast.now() - began).total_seconds() >= 50


async def test_answers_are_dated_by_the_sandboxs_own_clock() -> None:
    fast = clock.real_clock(speed=100_000)
    async with Sandbox(fast) as sandbox, serve_http(sandbox) as address:
        content = written.render_kubeconfig(address, sandbox.server.authenticator.admin_token)
        connection = kubeconfigs.load(content.encode(), where="a test")
        transport = HttpTransport(connection)
        await fast.sleep(3600)
        before = fast.now().replace(microsecond=0)
        answer = await transport.exchange(Request("GET", "/version"))
        date = parsedate_to_datetime(answer.headers["Date"])
        assert before <= date <= fast.now()
        async with transport.stream(Request("GET", f"{HERE.path}?watch=true")) as stream:
            assert parsedate_to_datetime(stream.headers["Date"]) >= date
        await transport.close()
