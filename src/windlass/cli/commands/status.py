"""`windlass status`: shows what a cluster does now."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from windlass.cli.options import CONNECTION_SETTINGS, output_format_option, setting_options
from windlass.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from windlass.cli.views.live import StatusScreen
    from windlass.core.platform.cluster_status import ClusterStatus
    from windlass.operations.observation import ObservedCluster
    from windlass.settings.settings import ClusterSettings
    from windlass.settings.source import SettingsSource


@click.command()
@setting_options(*CONNECTION_SETTINGS, "timeout")
@click.option("--watch", is_flag=True, help="Show every change until interrupted.")
@output_format_option
@click.pass_obj
def status(source: SettingsSource, /, watch: bool, form: str, **options: Any) -> int:
    """Show health, changes, failures and who holds the lock.

    Reads only.

    No platform file is needed. Exit codes: 0 nothing failed, 1 everything did, 2 something did, 4 out of time; with
    --watch 0 when interrupted.
    """
    from windlass.cli import session  # noqa: PLC0415 - loads the HTTP library

    settings = source.cluster_settings(options)
    redact = settings.credentials.redactor
    if not watch:
        return session.run(_print_status(settings, form), redact)
    shown: list[ClusterStatus] = []
    try:
        session.run(_watch_status(settings, form, shown), redact)
    except KeyboardInterrupt:
        if not shown:
            raise
    return ExitCode.SUCCESS


async def _print_status(settings: ClusterSettings, form: str) -> int:
    """Print the status once and return its exit code."""
    from windlass.cli import session  # noqa: PLC0415
    from windlass.operations.status import read_status  # noqa: PLC0415

    async with session.time_limit(settings.timeout), session.open_cluster(settings) as cluster:
        status = _complete_status(cluster, await read_status(cluster))
        _status_printer(settings, form)(status, cluster.now())
        return status.exit_code


async def _watch_status(settings: ClusterSettings, form: str, shown: list[ClusterStatus]) -> None:
    """Show the status and its changes until cancelled; `shown` gets what was shown last."""
    from contextlib import AsyncExitStack  # noqa: PLC0415

    from windlass.cli import session  # noqa: PLC0415
    from windlass.cli.views.status import status_rows  # noqa: PLC0415
    from windlass.operations.status import watch_status  # noqa: PLC0415

    async with AsyncExitStack() as stack:
        async with session.time_limit(settings.timeout):
            cluster = await stack.enter_async_context(session.open_cluster(settings))
        screen = stack.enter_context(_screen(settings)) if _uses_screen(settings, form) else None
        print_status = _status_printer(settings, form, is_repeated=True)

        def show(status: ClusterStatus) -> None:
            complete = _complete_status(cluster, status)
            if screen is not None:
                screen.show(status_rows(complete, cluster.now()))
            elif [complete] != shown:
                print_status(complete, cluster.now())
            shown[:] = [complete]

        await watch_status(cluster, show)


def _complete_status(cluster: ObservedCluster, status: ClusterStatus) -> ClusterStatus:
    """Add the notices of the connection, and redact secrets."""
    from dataclasses import replace  # noqa: PLC0415

    from windlass.core.platform.reporting.redactable_text import redact_status  # noqa: PLC0415

    notices = (*cluster.reader.notices, *status.notices)
    return redact_status(replace(status, notices=notices), cluster.reader.redactor.one_line)


def _status_printer(
    settings: ClusterSettings, form: str, *, is_repeated: bool = False
) -> Callable[[ClusterStatus, datetime], None]:
    """Prints a status; one that `is_repeated` is a line of JSON, or a block that begins with the time."""
    import msgspec  # noqa: PLC0415

    from windlass.cli.printed_lines import print_text  # noqa: PLC0415
    from windlass.cli.views.status import status_document, status_rows, status_text  # noqa: PLC0415

    def print_json(status: ClusterStatus, now: datetime) -> None:
        document = msgspec.json.encode(status_document(status, now))
        print_text((document if is_repeated else msgspec.json.format(document, indent=2)).decode())

    def print_lines(status: ClusterStatus, now: datetime) -> None:
        text = status_text(status, now)
        print_text(f"time          {now:%Y-%m-%dT%H:%M:%SZ}\n{text}\n" if is_repeated else text)

    if form == "json":
        return print_json
    if _uses_screen(settings, form):
        return lambda status, now: _screen(settings).print(status_rows(status, now))
    return print_lines


def _uses_screen(settings: ClusterSettings, form: str) -> bool:
    return form == "text" and sys.stdout.isatty() and not settings.terminal.is_dumb


def _screen(settings: ClusterSettings) -> StatusScreen:
    from windlass.cli.views.live import StatusScreen  # noqa: PLC0415 - loads rich

    return StatusScreen(sys.stdout, settings.terminal.variables)
