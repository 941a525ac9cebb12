"""What every command that connects to a cluster shares: the event loop, a read-only connection, clock and time limit.

Nothing here can change a cluster; `run_session` can.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import asynccontextmanager
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

from windlass.argo.cd.root_application import RootApplication
from windlass.argo.health import assessment, scripts
from windlass.cli.printed_lines import print_text
from windlass.core.platform.identity import EMBEDDED_PLATFORM
from windlass.core.platform.model.scopes import known_nodes
from windlass.core.platform.reporting.text_layout import format_duration
from windlass.errors import OutOfTime
from windlass.kube.client.readers import JSON_HEADERS, KubeReader
from windlass.kube.clocks import Clock
from windlass.kube.transport.calls import Call, CallSender
from windlass.kube.transport.http import HttpTransport
from windlass.kube.transport.transports import Request
from windlass.operations.observation import DEFAULT_ARGOCD_NAMESPACE, ObservedCluster
from windlass.operations.planner import RunRequest
from windlass.telemetry.library_logs import forward_library_logs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
    from datetime import datetime, timedelta

    from windlass.core.platform.planning.approvals import ApprovedPlan
    from windlass.core.platform.reporting.reports import Action
    from windlass.kube.redactions import Redactor
    from windlass.settings.settings import ClusterSettings, Settings

R = TypeVar("R")
FIRST_ANSWER_MARGIN = 0.1  # seconds by which `first_answer`, whose error says more, times out before `time_limit`


def run(work: Coroutine[Any, Any, R], redact: Redactor) -> R:
    """Run the coroutine to its end. SIGTERM has the same effect as Ctrl-C: KeyboardInterrupt.

    Warnings of libraries are printed, redacted; a run with a log writes them there instead.
    """
    previous_handler = signal.getsignal(signal.SIGTERM)
    try:
        with forward_library_logs(
            lambda line: print_text(redact.printable(f"warning: {line.message}"), err=True), Clock().monotonic
        ):
            return asyncio.run(_cancel_on_sigterm(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(
            signal.SIGTERM, previous_handler
        )  # asyncio would restore the default action, which kills the process


def run_to_report(work: Callable[[Callable[[R], None]], Coroutine[Any, Any, None]], redact: Redactor) -> R:
    """Run the coroutine of `work`, which calls its argument with the report as soon as that is complete.

    What fails after that, such as the end of a connection or of a metrics sink, does not lose the report.
    """
    reports: list[R] = []
    try:
        run(work(reports.append), redact)
    except (Exception, KeyboardInterrupt) as error:
        if not reports:
            raise
        print_text(f"warning: after the report was complete: {type(error).__name__}", err=True)
    return reports[0]


async def _cancel_on_sigterm(work: Coroutine[Any, Any, R]) -> R:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work


@asynccontextmanager
async def open_cluster(
    settings: ClusterSettings, argocd_namespace: str = DEFAULT_ARGOCD_NAMESPACE
) -> AsyncIterator[ObservedCluster]:
    """Open a read-only connection to a cluster; raises OutOfTime if it does not answer."""
    calls = open_calls(settings)
    reader = KubeReader(calls)
    health_scripts = scripts.mounted_scripts(settings.mounts.health_scripts)
    try:
        async with assessment.open_lua_assessor(reader, argocd_namespace, health_scripts) as assessor:
            now = await first_answer(calls, settings.timeout)
            yield ObservedCluster(reader, now, argocd_namespace, assessor)
    finally:
        await reader.close()


def open_calls(settings: ClusterSettings) -> CallSender:
    """Parse the kubeconfig and set up the transport. No request is sent."""
    connection = settings.credentials.load_connection()
    return CallSender(HttpTransport(connection), notices=connection.notices)


@asynccontextmanager
async def time_limit(timeout: timedelta) -> AsyncIterator[None]:
    """Raise OutOfTime if the body takes longer. For reads only: whatever is unfinished is abandoned."""
    try:
        async with asyncio.timeout(timeout.total_seconds() + FIRST_ANSWER_MARGIN):
            yield
    except TimeoutError:
        raise OutOfTime(f"not done within {format_duration(timeout)}", hint="see --timeout") from None


async def first_answer(calls: CallSender, timeout: timedelta) -> Callable[[], datetime]:
    """Send the first request and return the clock of the server; raises OutOfTime if there is no answer."""
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            return await server_clock(calls)
    except TimeoutError:
        raise OutOfTime(
            f"no answer from {KubeReader(calls).server} in {format_duration(timeout)}; nothing was started",
            hint="see what the kubeconfig leads to: windlass cluster",
        ) from None


async def server_clock(calls: CallSender) -> Callable[[], datetime]:
    """The time of the server's `Date` header, or the local time if there is none, continued by the monotonic clock.

    The header is truncated to seconds, so the result may lag behind the server's time but is never ahead of it.
    """
    clock = calls.clock
    response = await calls.send(Call("get", "version", Request("GET", "/version", JSON_HEADERS, idempotent=True)))
    try:
        date = parsedate_to_datetime(response.headers.get("Date", ""))
    except (TypeError, ValueError):
        date = clock.now()  # no valid Date header
    return clock.steady_time(date if date.tzinfo else date.replace(tzinfo=UTC))


def run_request(
    settings: Settings,
    action: Action,
    approved_plan: ApprovedPlan | None = None,
    *,
    takes_over: bool = False,
    delete_foreign: Iterable[str] = (),
) -> RunRequest:
    root = settings.root
    return RunRequest(
        action=action,
        environment=settings.environment_name,
        platform=settings.platform,
        scope=settings.scope,
        explicit_dependencies=settings.explicit_dependencies,
        root=RootApplication(root.repository, root.revision, root.path, root.parameters) if root else None,
        approved_plan=approved_plan,
        volume_policy=settings.volume_policy,
        platform_file=settings.platform_path or EMBEDDED_PLATFORM,
        takes_over=takes_over,
        delete_foreign=known_nodes(settings.platform, delete_foreign),
    )
