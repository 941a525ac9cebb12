"""`windlass wait`: waits for one Application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windlass.cli.options import setting_options
from windlass.cli.printed_lines import print_text
from windlass.errors import ExitCode, InvalidInput

if TYPE_CHECKING:
    from windlass.core.platform.gate_values import Failed, Open
    from windlass.core.platform.model.applications import ApplicationRef
    from windlass.operations.wait import WaitRequest, WaitTimeout
    from windlass.settings.settings import ClusterSettings
    from windlass.settings.source import SettingsSource


@click.command()
@click.argument("application", metavar="[NAMESPACE/]APP")
@setting_options("kubeconfig", "context", "in-cluster", "timeout")
@click.option(
    "--revision",
    multiple=True,
    metavar="REVISION",
    help="Commit or chart version that it must have. With several sources: that of one of them, or one for each.",
)
@click.pass_obj
def wait(source: SettingsSource, /, application: str, revision: tuple[str, ...], **options: Any) -> int:
    """Wait until an Application is in sync and healthy.

    Reads only; no platform file is needed.

    Exit codes: 0 healthy, 1 failed, 4 timeout.
    """
    from windlass.cli import session  # noqa: PLC0415 - loads the HTTP library
    from windlass.core.platform.gate_values import Failed, Open, abbreviate  # noqa: PLC0415
    from windlass.core.platform.reporting.text_layout import format_duration  # noqa: PLC0415
    from windlass.operations.wait import WaitRequest, WaitTimeout  # noqa: PLC0415

    ref, settings = _application_ref(application), source.cluster_settings(options)
    request, redact = WaitRequest(ref, revision, settings.timeout), settings.credentials.redactor
    match session.run(_connect_and_wait(settings, request), redact):
        case Open(evidence):
            drifting = ", drifting" if evidence.is_drifting else ""
            message = f"{evidence.health} at {abbreviate(evidence.shown)}{drifting} ({evidence.proof})"
            code = ExitCode.SUCCESS
        case Failed(reason, detail):
            message, code = f"{reason}: {detail}", ExitCode.FAILURE
        case WaitTimeout(detail):
            message = f"out of time after {format_duration(request.timeout)}: {detail}"
            code = ExitCode.TIMEOUT
    print_text(f"{application}: {redact.one_line(message)}")
    return code


def _application_ref(text: str) -> ApplicationRef:
    from windlass.core.platform.model.applications import ApplicationRef  # noqa: PLC0415

    namespace, _, name = text.rpartition("/")
    if not name or "/" in namespace:
        raise InvalidInput(f"{text!r} is no Application", hint="it is NAME or NAMESPACE/NAME")
    return ApplicationRef(name, namespace or None)


async def _connect_and_wait(settings: ClusterSettings, request: WaitRequest) -> Open | Failed | WaitTimeout:
    """Wait for the Application. The timeout includes the time to connect."""
    from contextlib import AsyncExitStack  # noqa: PLC0415
    from dataclasses import replace  # noqa: PLC0415
    from datetime import timedelta  # noqa: PLC0415

    from windlass.cli import session  # noqa: PLC0415
    from windlass.kube.clocks import Clock  # noqa: PLC0415
    from windlass.operations import wait as wait_operation  # noqa: PLC0415

    monotonic = Clock().monotonic
    async with AsyncExitStack() as stack:
        started = monotonic()
        async with session.time_limit(request.timeout):
            cluster = await stack.enter_async_context(session.open_cluster(settings))
        remaining_request = replace(request, timeout=request.timeout - timedelta(seconds=monotonic() - started))
        for notice in cluster.reader.notices:
            print_text(f"warning: {notice}", err=True)
        return await wait_operation.wait(
            cluster,
            remaining_request,
            lambda detail: print_text(f"waiting: {cluster.reader.redactor.one_line(detail)}", err=True),
        )
