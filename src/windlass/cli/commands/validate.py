"""`windlass validate` and `windlass wait`, and the rendering of reports for all commands."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from windlass.argo.health import scripts
from windlass.cli import connections
from windlass.cli.observers import Followed, following, shown
from windlass.cli.options import given
from windlass.core.platform import gates
from windlass.core.platform.events import PhaseBegan, RunPhase
from windlass.core.platform.gates import Failed, Open
from windlass.core.platform.model.applications import ApplicationRef
from windlass.core.platform.reporting import report_documents, report_junit, report_text
from windlass.core.platform.reporting.reports import Action
from windlass.errors import ExitCode, InvalidInput
from windlass.kube.clocks import Clock
from windlass.operations import validate
from windlass.operations import wait as waiting
from windlass.operations.observation import ARGOCD
from windlass.settings.loader import Inputs, load
from windlass.settings.mounts import read_mounts
from windlass.settings.problems import InvalidSettings
from windlass.settings.variables import read_settings
from windlass.telemetry.redaction import Redactions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from windlass.core.platform.reporting.reports import Report
    from windlass.operations.observation import Cluster
    from windlass.settings.variables import Value


def validated(options: Mapping[str, Any], environ: Mapping[str, str]) -> Report:
    """Validate the platform of the platform file, or with option `all_` every Application of the cluster."""
    chosen = {name: value for name, value in options.items() if name not in {"all_", "strict"}}
    if options["all_"]:
        values = _values(chosen, environ)
        for part in (values[name] for name in ("scope", "dag", "environment-file") if not values[name].is_default):
            raise InvalidInput(
                "--all means every Application", where=part.origin, hint=f"leave out {part.origin}, or --all"
            )
        return connections.run(_validated_all(options, environ, values))
    settings = load(Inputs(given(chosen), environ, is_terminal=sys.stderr.isatty()), Action.VALIDATE)
    file = settings.environment.model if settings.environment else None
    wish = validate.Wish(
        environment=file.name if file else str(settings.values["environment"].value),
        platform=settings.assembled.platform,
        scope=settings.scope,
        is_strict=options["strict"],
    )
    argocd = file.argocd_namespace if file else ARGOCD
    run = Followed(Action.VALIDATE, settings.values, settings.mounts)
    checks = scripts.mounted(settings.mounts.health_scripts)
    reading = connections.reading(options, environ, argocd, checks, _limit(run.values))
    return connections.run(_validated(reading, wish, run, environ))


async def _validated_all(options: Mapping[str, Any], environ: Mapping[str, str], values: Mapping[str, Value]) -> Report:
    mounts = read_mounts(values)
    if mounts.mistakes:
        raise InvalidSettings(mounts.mistakes)
    wish = validate.Wish(str(values["environment"].value or ""), is_strict=options["strict"])
    checks = scripts.mounted(mounts.health_scripts)
    reading = connections.reading(options, environ, checks=checks, limit=_limit(values))
    return await _validated(reading, wish, Followed(Action.VALIDATE, values, mounts), environ)


async def _validated(
    reading: AbstractAsyncContextManager[Cluster], wish: validate.Wish, run: Followed, environ: Mapping[str, str]
) -> Report:
    loop = asyncio.get_running_loop()
    until = loop.time() + _limit(run.values).total_seconds()
    async with following(run, environ) as tell:
        tell(PhaseBegan(RunPhase.CONNECT))
        async with reading as cluster:
            tell(PhaseBegan(RunPhase.OBSERVE))
            whole = replace(wish, environment=wish.environment or cluster.reader.server)
            report = shown(await validate.validate_within(until - loop.time(), cluster, whole), run)
        tell.ended(report)
        return report


def rendered(report: Report, form: str) -> str:
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(report_documents.document(report)), indent=2).decode()
    written = report_junit.junit(report) if form == "junit" else report_text.text(report)
    return written.rstrip("\n")


def waited(
    application: str, options: Mapping[str, Any], environ: Mapping[str, str], tell: Callable[[str], None]
) -> tuple[str, ExitCode]:
    """Wait for an Application; return the final message and the exit code."""
    namespace, _, name = application.rpartition("/")
    if not name or "/" in namespace:
        raise InvalidInput(f"{application!r} is no Application", hint="it is NAME or NAMESPACE/NAME")
    values = _values({key: value for key, value in options.items() if key != "revision"}, environ)
    wish = waiting.Wish(ApplicationRef(name, namespace or None), tuple(options["revision"]), _limit(values))
    redact, time = Redactions(), Clock().monotonic

    async def work() -> Open | Failed | waiting.OutOfTime:
        async with AsyncExitStack() as stack:
            began = time()
            async with connections.within(wish.limit):
                cluster = await stack.enter_async_context(connections.reading(options, environ))
            rest = replace(wish, limit=wish.limit - timedelta(seconds=time() - began))
            return await waiting.wait(cluster, rest, lambda detail: tell(f"waiting: {redact(detail)}"))

    match connections.run(work()):
        case Open(evidence):
            drifting = ", drifting" if evidence.is_drifting else ""
            words = f"{evidence.health} at {gates.short(evidence.shown)}{drifting} ({evidence.proof})"
            return f"{application}: {words}", ExitCode.SUCCESS
        case Failed(reason, detail):
            return f"{application}: {reason}: {redact(detail)}", ExitCode.FAILURE
        case waiting.OutOfTime(detail):
            words = report_text.duration_words(wish.limit)
            return f"{application}: out of time after {words}: {redact(detail)}", ExitCode.TIMEOUT


def _values(options: Mapping[str, Any], environ: Mapping[str, str]) -> Mapping[str, Value]:
    """Read options and variables only, for commands that need no files."""
    defaults = {"log-format": "text"} if sys.stderr.isatty() else {}
    values, mistakes = read_settings(given(options), environ, defaults)
    if mistakes:
        raise InvalidSettings(mistakes)
    return values


def _limit(values: Mapping[str, Value]) -> timedelta:
    limit = values["timeout"].value
    assert isinstance(limit, timedelta)
    return limit
