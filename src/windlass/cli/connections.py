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
from windlass.core.platform.reporting.report_text import duration_words
from windlass.errors import InvalidInput, OutOfTime
from windlass.kube.auth import kubeconfigs
from windlass.kube.client.readers import JSON, KubeReader
from windlass.kube.transport.calls import Call, Calls
from windlass.kube.transport.http import HttpTransport
from windlass.kube.transport.transports import Request
from windlass.operations.observation import ARGOCD, Cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
    from datetime import datetime, timedelta

    from windlass.kube.auth.connections import Connection

R = TypeVar("R")
NO_CHECKS = HealthScripts()
VARIABLES = ("KUBECONFIG_PATH", "KUBECONFIG_DATA")


@dataclass(frozen=True, slots=True)
class Access:
    """Where the credentials of a cluster come from, as given by options."""

    kubeconfig: str | None = None
    context: str | None = None
    in_cluster: bool = False


def connection(access: Access, environ: Mapping[str, str]) -> Connection:
    """Load the one source of credentials that was given. There is no default location."""
    path = access.kubeconfig or environ.get("KUBECONFIG_PATH")
    data = None if access.kubeconfig else environ.get("KUBECONFIG_DATA")
    if sum(map(bool, (path, data, access.in_cluster))) != 1:
        raise InvalidInput(
            "give exactly one of --kubeconfig (KUBECONFIG_PATH), KUBECONFIG_DATA and --in-cluster",
            hint="--kubeconfig FILE wins over the variables",
        )
    if access.in_cluster:
        return kubeconfigs.in_cluster(environ)
    if path:
        return kubeconfigs.load_file(Path(path), context=access.context)
    try:
        content = base64.b64decode("".join((data or "").split()), validate=True)
    except ValueError:  # also raised for text that is not ASCII
        raise InvalidInput("not base64", where="KUBECONFIG_DATA", hint="base64 -w0 < kubeconfig") from None
    return kubeconfigs.load(content, where="KUBECONFIG_DATA", context=access.context)


def run(work: Coroutine[Any, Any, R]) -> R:
    """Run the coroutine to its end. SIGTERM has the same effect as Ctrl-C: KeyboardInterrupt."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        return asyncio.run(_stoppable(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGTERM, before)  # asyncio would restore the default action, which kills the process


async def _stoppable(work: Coroutine[Any, Any, R]) -> R:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work


@asynccontextmanager
async def reading(
    options: Mapping[str, Any],
    environ: Mapping[str, str],
    argocd: str = ARGOCD,
    checks: HealthScripts = NO_CHECKS,
    limit: timedelta | None = None,
) -> AsyncIterator[Cluster]:
    """Open a read-only connection to a cluster.

    `health_scripts` are the mounted health checks. If the server does not answer within `clock_timeout`, the local
    clock is used, so that the caller can still make a report.
    """
    calls = calls_to(options, environ)
    reader = KubeReader(calls)
    try:
        async with assessment.scripted(reader, argocd, checks) as judge:
            now = calls.clock.now
            with suppress(TimeoutError):
                async with asyncio.timeout(None if limit is None else limit.total_seconds()):
                    now = await server_clock(calls)
            yield Cluster(reader, now, argocd, judge)
    finally:
        await reader.close()


@asynccontextmanager
async def within(limit: timedelta) -> AsyncIterator[None]:
    """Raise OutOfTime if the body takes longer. For reads only: whatever is unfinished is abandoned."""
    try:
        async with asyncio.timeout(limit.total_seconds()):
            yield
    except TimeoutError:
        raise OutOfTime(f"not done within {duration_words(limit)}", hint="see --timeout") from None


def calls_to(options: Mapping[str, Any], environ: Mapping[str, str]) -> Calls:
    """Create the API calls layer. Reads the options kubeconfig, context and in_cluster; they override variables."""
    access = Access(options["kubeconfig"], options["context"], options["in_cluster"])
    given = {name: value for name, value in environ.items() if not (access.in_cluster and name in VARIABLES)}
    return Calls(HttpTransport(connection(access, given), environ=environ))


async def server_clock(calls: Calls) -> Callable[[], datetime]:
    """The local clock, corrected by the `Date` header of the server.

    The header is truncated to seconds, so the result may lag behind the server's time but is never ahead of it.
    """
    clock = calls.clock
    answer = await calls.send(Call("get", "version", Request("GET", "/version", JSON, repeatable=True)))
    try:
        ahead = clock.now() - parsedate_to_datetime(answer.headers.get("Date", ""))
    except (TypeError, ValueError):
        return clock.now  # no valid Date header
    return lambda: clock.now() - ahead
