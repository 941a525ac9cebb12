"""`connect`: a client from one import. The samples of README.md and docs/client.md run on a sandbox."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from windlass.errors import InvalidInput
from windlass.kube import connect
from windlass.kube.client.resources import Resource
from windlass.sandbox.apiserver.access.kubeconfig import render_kubeconfig
from windlass.sandbox.argocd.installation import install_argocd
from windlass.sandbox.http_server import serve_http
from windlass.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ROOT = Path(__file__).parents[2]
SAMPLES = [
    pytest.param(sample, id=f"{page}-{number}")
    for page in ("README.md", "docs/client.md")
    for number, sample in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL), 1)
]
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web"}]},
        },
    },
}


@asynccontextmanager
async def served_sandbox(kubeconfig: Path) -> AsyncIterator[Sandbox]:
    async with Sandbox() as sandbox, serve_http(sandbox) as address:
        write_kubeconfig(kubeconfig, address, sandbox.server.authenticator.admin_token)
        yield sandbox


def write_kubeconfig(path: Path, server: str, token: str) -> None:
    path.write_text(render_kubeconfig(server, token))


@pytest.mark.parametrize("sample", SAMPLES)
async def test_a_sample_runs(sample: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with served_sandbox(tmp_path / "kubeconfig") as sandbox, connect("kubeconfig") as kube:
        await install_argocd(sandbox)
        await kube.create(NAMESPACES.everywhere, {"metadata": {"name": "shop"}})
        await kube.create(DEPLOYMENTS.in_namespace("shop"), WEB)
        code = compile(sample, "sample", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        scope: dict[str, Any] = {"__name__": __name__, "kube": kube, "manifest": WEB}
        result = eval(code, scope)
        if inspect.isawaitable(result):
            await result


async def test_the_client_is_closed_at_the_end(tmp_path: Path) -> None:
    async with served_sandbox(tmp_path / "kubeconfig"):
        async with connect(tmp_path / "kubeconfig") as kube:
            assert await kube.version()
        with pytest.raises(RuntimeError, match="closed"):
            await kube.version()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give either a kubeconfig or in_cluster=True"),
        ({"kubeconfig": "x", "in_cluster": True}, "give either a kubeconfig or in_cluster=True"),
        ({"kubeconfig": "no-such-file"}, "cannot read the kubeconfig"),
        ({"in_cluster": True}, "not inside a cluster"),
        ({"in_cluster": True, "environ": {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}}, "not inside a cluster"),
    ],
)
async def test_a_connection_that_cannot_be_loaded(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        async with connect(**arguments):
            pass


async def test_context_and_variables_are_passed_on(tmp_path: Path) -> None:
    write_kubeconfig(tmp_path / "kubeconfig", "https://kube.test", "t")
    with pytest.raises(InvalidInput, match="there is no context 'other'"):
        async with connect(tmp_path / "kubeconfig", context="other"):
            pass
    with pytest.raises(InvalidInput, match="socks5"):
        async with connect(tmp_path / "kubeconfig", environ={"HTTPS_PROXY": "socks5://p"}):
            pass


def test_the_import_loads_nothing_heavy() -> None:
    program = (
        "import sys, windlass.kube; print([n for n in ('aiohttp', 'asyncio', 'msgspec', 'ssl') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
