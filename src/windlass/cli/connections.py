"""Connections to a cluster from options and environment variables, and the event loop that commands run in."""

from __future__ import annotations

import asyncio
import base64
import signal
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from windlass.argo.health import assessment
from windlass.argo.health.scripts import HealthScripts
from windlass.core.platform.reporting.report_text import format_duration
from windlass.errors import InvalidInput, OutOfTime
from windlass.kube.auth import kubeconfigs
from windlass.kube.client.readers import JSON_HEADERS, KubeReader
from windlass.kube.transport.calls import Call, CallSender
from windlass.kube.transport.http import HttpTransport
from windlass.kube.transport.transports import Request
from windlass.operations.observation import DEFAULT_ARGOCD_NAMESPACE, ObservedCluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
    from datetime import datetime, timedelta

    from windlass.kube.auth.connections import Connection

R = TypeVar("R")
NO_HEALTH_SCRIPTS = HealthScripts()
KUBECONFIG_VARIABLES = ("KUBECONFIG_PATH", "KUBECONFIG_DATA")


@dataclass(frozen=True, slots=True)
class KubeconfigSource:
    """Where the credentials of a cluster come from, as given by options."""

    kubeconfig: str | None = None
    context: str | None = None
    in_cluster: bool = False


def connection(source: KubeconfigSource, environ: Mapping[str, str]) -> Connection:
    """Load the one source of credentials that was given. There is no default location."""
    path = source.kubeconfig or environ.get("KUBECONFIG_PATH")
    data = None if source.kubeconfig else environ.get("KUBECONFIG_DATA")
    if sum(map(bool, (path, data, source.in_cluster))) != 1:
        raise InvalidInput(
            "give exactly one of --kubeconfig (KUBECONFIG_PATH), KUBECONFIG_DATA and --in-cluster",
            hint="--kubeconfig FILE wins over the variables",
        )
    if source.in_cluster:
        return kubeconfigs.in_cluster(environ)
    if path:
        return kubeconfigs.load_file(Path(path), context=source.context)
    try:
        content = base64.b64decode("".join((data or "").split()), validate=True)
    except ValueError:  # also raised for text that is not ASCII
        raise InvalidInput("not base64", where="KUBECONFIG_DATA", hint="base64 -w0 < kubeconfig") from None
    return kubeconfigs.load(content, where="KUBECONFIG_DATA", context=source.context)


def run(work: Coroutine[Any, Any, R]) -> R:
    """Run the coroutine to its end. SIGTERM has the same effect as Ctrl-C: KeyboardInterrupt."""
    previous_handler = signal.getsignal(signal.SIGTERM)
    try:
        return asyncio.run(_cancel_on_sigterm(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(
            signal.SIGTERM, previous_handler
        )  # asyncio would restore the default action, which kills the process


async def _cancel_on_sigterm(work: Coroutine[Any, Any, R]) -> R:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work


@asynccontextmanager
async def open_cluster(
    options: Mapping[str, Any],
    environ: Mapping[str, str],
    argocd_namespace: str = DEFAULT_ARGOCD_NAMESPACE,
    health_scripts: HealthScripts = NO_HEALTH_SCRIPTS,
    clock_timeout: timedelta | None = None,
) -> AsyncIterator[ObservedCluster]:
    """Open a read-only connection to a cluster.

    `health_scripts` are the mounted health checks. If the server does not answer within `clock_timeout`, the local
    clock is used, so that the caller can still make a report.
    """
    calls = cluster_calls(options, environ)
    reader = KubeReader(calls)
    try:
        async with assessment.open_lua_assessor(reader, argocd_namespace, health_scripts) as assessor:
            now = calls.clock.now
            with suppress(TimeoutError):
                async with asyncio.timeout(None if clock_timeout is None else clock_timeout.total_seconds()):
                    now = await server_clock(calls)
            yield ObservedCluster(reader, now, argocd_namespace, assessor)
    finally:
        await reader.close()


@asynccontextmanager
async def time_limit(timeout: timedelta) -> AsyncIterator[None]:
    """Raise OutOfTime if the body takes longer. For reads only: whatever is unfinished is abandoned."""
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            yield
    except TimeoutError:
        raise OutOfTime(f"not done within {format_duration(timeout)}", hint="see --timeout") from None


def cluster_calls(options: Mapping[str, Any], environ: Mapping[str, str]) -> CallSender:
    """Create the API calls layer. Reads the options kubeconfig, context and in_cluster; they override variables."""
    source = KubeconfigSource(options["kubeconfig"], options["context"], options["in_cluster"])
    variables = {
        name: value for name, value in environ.items() if not (source.in_cluster and name in KUBECONFIG_VARIABLES)
    }
    return CallSender(HttpTransport(connection(source, variables), environ=environ))


async def server_clock(calls: CallSender) -> Callable[[], datetime]:
    """The local clock, corrected by the `Date` header of the server.

    The header is truncated to seconds, so the result may lag behind the server's time but is never ahead of it.
    """
    clock = calls.clock
    response = await calls.send(Call("get", "version", Request("GET", "/version", JSON_HEADERS, idempotent=True)))
    try:
        offset = clock.now() - parsedate_to_datetime(response.headers.get("Date", ""))
    except (TypeError, ValueError):
        return clock.now  # no valid Date header
    return lambda: clock.now() - offset
