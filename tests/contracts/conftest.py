"""Contract tests run on any server that a kubeconfig names; what they assert is what the real API server does."""

from __future__ import annotations

import asyncio
import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.contracts.definitions import Customs, install
from tests.contracts.kinds import CRDS, NAMESPACES
from tests.contracts.servers import Raw, Server
from tests.sandbox.differences import skip_differences
from tests.sandbox.served_sandbox import running_sandbox
from windlass.kube.auth import kubeconfigs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from windlass.kube.auth.connections import Connection
    from windlass.kube.client.clients import KubeClient
    from windlass.kube.client.objects import RawObject
    from windlass.kube.client.readers import KubeReader

VARIABLE = "WINDLASS_CONTRACT_KUBECONFIG"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "controllers: needs controllers that act by themselves (GC, namespaces, workloads)"
    )
    config.addinivalue_line("markers", "kubelet: needs a node that runs pods")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not os.environ.get(VARIABLE):  # noqa: TID251 - the suite's own entrance
        skip_differences(items)


@pytest.fixture(scope="session")
def connection() -> Iterator[Connection]:
    """The server under test: the one that the variable names, else a sandbox."""
    if named := os.environ.get(VARIABLE):  # noqa: TID251 - the suite's own entrance
        yield kubeconfigs.load_file(Path(named))
        return
    with running_sandbox(enforce_rbac=True) as kubeconfig:
        yield kubeconfigs.load(kubeconfig.encode(), where="the sandbox")


@pytest.fixture(scope="session")
def customs(connection: Connection) -> Iterator[Customs]:
    """Custom kinds of this session's own, so that sessions side by side do not meet."""
    kinds = Customs(f"c{uuid.uuid4().hex[:8]}.contracts.windlass.dev")

    async def set_up() -> None:
        server = Server(connection)
        await install(server.client(), *kinds.definitions)
        await server.close()

    async def tear_down() -> None:
        server = Server(connection)
        for item in kinds.definitions:
            await server.client().delete(CRDS.named(item["metadata"]["name"]))
        await server.close()

    asyncio.run(set_up())
    yield kinds
    asyncio.run(tear_down())


@pytest.fixture(scope="session")
def shared_namespace(connection: Connection) -> Iterator[str]:
    """One for all tests that need only a name of their own, not an empty namespace: making and ending one is slow."""
    name = f"contracts-{uuid.uuid4().hex[:10]}"

    async def send(method: str, path: str, body: RawObject | None = None) -> None:
        server = Server(connection)
        await server.raw().ok(method, path, body)
        await server.close()

    item = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    asyncio.run(send("POST", NAMESPACES.everywhere.path, item))
    yield name
    asyncio.run(send("DELETE", NAMESPACES.named(name).path))


@pytest.fixture
def name() -> str:
    """For an object in a namespace shared with others."""
    return f"n{uuid.uuid4().hex[:8]}"


@pytest.fixture
async def server(connection: Connection) -> AsyncIterator[Server]:
    opened = Server(connection)
    yield opened
    await opened.close()


@pytest.fixture
def kube(server: Server) -> KubeClient:
    return server.client()


@pytest.fixture
def reader(kube: KubeClient) -> KubeReader:
    return kube


@pytest.fixture
def raw(server: Server) -> Raw:
    return server.raw()


@pytest.fixture
async def namespace(kube: KubeClient) -> AsyncIterator[str]:
    """A fresh one, deleted afterwards without waiting."""
    name = f"contracts-{uuid.uuid4().hex[:10]}"
    await kube.create(NAMESPACES.everywhere, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    await kube.delete(NAMESPACES.named(name))
