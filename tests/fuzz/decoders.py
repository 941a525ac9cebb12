"""Every decoder of bytes that another program or person wrote, and the errors it may raise."""

from __future__ import annotations

import asyncio
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import msgspec

from tests.kube.scripted_server import ScriptedServer
from windlass.argo.argocd_server import ArgoCdServer, NotRendered
from windlass.argo.cd.applications import Application
from windlass.cli.plan_files import parse_plan
from windlass.core.platform.planning.object_changes import RenderedApplication, desired_objects, object_changes
from windlass.errors import InvalidInput, WindlassError
from windlass.kube import yaml_documents
from windlass.kube.api_errors import Conflict, KubeError, error_from_status, parse_status
from windlass.kube.auth import kubeconfigs
from windlass.kube.auth.connections import Connection, ExecPlugin
from windlass.kube.auth.exec_plugins import ExecPluginCredentials
from windlass.kube.client.readers import KubeReader, WatchStart
from windlass.kube.client.resources import PODS, Resource
from windlass.kube.clocks import Clock
from windlass.kube.redactions import Redactor
from windlass.kube.transport.calls import CallSender
from windlass.kube.transport.retries import retry_after
from windlass.kube.transport.transports import Response
from windlass.lua.worker_process import BrokenAnswer, read_answer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

APPLICATIONS = Resource("argoproj.io", "v1alpha1", "applications", "Application")
EXEC_VERSION = "client.authentication.k8s.io/v1"
PLAN_HEADER = {"action": "deploy", "environment": "staging", "scope": "platform"}

Decoder = tuple["Callable[[bytes], Any]", type[WindlassError]]


def _decode_kubeconfig(content: bytes) -> object:
    return kubeconfigs.load(content, where="fuzz").server


def _decode_yaml(content: bytes) -> object:
    value = yaml_documents.load(content, "fuzz")
    msgspec.json.encode(value)  # JSON types only
    return type(value).__name__


def _decode_status(content: bytes) -> object:
    status = parse_status(409, content, Redactor())
    error = error_from_status(status, "fuzz")
    str(error)
    delay = retry_after({}, status)
    assert delay is None or delay > 0
    return len(error.owners) if isinstance(error, Conflict) else type(error).__name__


def _ask(content: bytes, question: Callable[[KubeReader], Awaitable[Any]]) -> Any:
    async def ask() -> Any:
        return await question(KubeReader(CallSender(ScriptedServer([Response(200, {}, content)]))))

    return asyncio.run(ask())


def _decode_watch(content: bytes) -> object:
    async def collect(reader: KubeReader) -> list[str]:
        return [
            type(event).__name__ async for event in reader.watch(APPLICATIONS.everywhere, WatchStart("1"), Application)
        ]

    return _ask(content, collect)


def _decode_watch_of_anything(content: bytes) -> object:
    async def collect(reader: KubeReader) -> list[str]:
        return [type(event).__name__ async for event in reader.watch(PODS.everywhere, WatchStart("1"))]

    return _ask(content, collect)


def _decode_application(content: bytes) -> object:
    async def get(reader: KubeReader) -> object:
        return (await reader.get(APPLICATIONS.named("a", "argocd"), Application)).state.health

    return _ask(content, get)


def _decode_argocd_objects(content: bytes) -> object:
    """With what a plan makes of the answer: each object once in git as it is live, once as it is predicted."""

    async def compare(reader: KubeReader) -> list[str]:
        found = await ArgoCdServer(reader, "argocd", "token").compared_objects(("argocd", "a"))
        manifests = [
            tuple(filter(None, states)) for states in zip(*((o.live, o.predicted) for o in found), strict=True)
        ]
        current, planned = manifests or ((), ())
        rendered = RenderedApplication(current, planned, found, "web")
        return [str(change.effect) for change in object_changes(desired_objects(rendered), Redactor().message)]

    try:
        return _ask(content, compare)
    except RecursionError:  # a plan shows it as a line, too
        return "nested too deeply"


def _decode_exec_credential(content: bytes) -> object:
    plugin = ExecPlugin("login", EXEC_VERSION, "fuzz")
    credentials = ExecPluginCredentials(plugin, Connection("https://k", "fuzz"), Clock())
    return bool(credentials._identity_from(credentials._parse_output(content)).secrets)


def _decode_plan(content: bytes) -> object:
    return type(parse_plan(content, PLAN_HEADER, "fuzz")).__name__


def _decode_lua_answer(content: bytes) -> object:
    async def read() -> object:
        stream = asyncio.StreamReader()
        stream.feed_data(content)
        stream.feed_eof()
        answer = await read_answer(stream)
        return [type(text).__name__ for text in astuple(answer)], answer.status[:9]

    return asyncio.run(read())


DECODERS: dict[str, Decoder] = {
    "kubeconfig": (_decode_kubeconfig, InvalidInput),
    "yaml": (_decode_yaml, InvalidInput),
    "status": (_decode_status, KubeError),
    "watch": (_decode_watch, KubeError),
    "watch-of-anything": (_decode_watch_of_anything, KubeError),
    "application": (_decode_application, KubeError),
    "argocd-objects": (_decode_argocd_objects, NotRendered),
    "exec-credential": (_decode_exec_credential, KubeError),
    "plan": (_decode_plan, InvalidInput),
    "lua-answer": (_decode_lua_answer, BrokenAnswer),
}
