"""`windlass import`: writes a platform file from a live Argo CD, to a file or to stdout."""

from __future__ import annotations

import shlex
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windlass.cli import connections
from windlass.cli.options import option_values
from windlass.core.platform.drafting.platform_yaml import render_platform
from windlass.errors import InvalidInput
from windlass.operations.import_ import import_platform
from windlass.settings.problems import InvalidSettings
from windlass.settings.variables import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from windlass.kube.client.readers import KubeReader
    from windlass.operations.import_ import ImportResult


def run_import(options: Mapping[str, Any], environ: Mapping[str, str], print_line: Callable[[str], None]) -> str:
    """Return the platform file as text, or an empty text if it was written to `--out`."""
    out = _output_path(options["out"], is_forced=options["force"])
    reader, result = connections.run(_import_cluster(options, environ, _timeout(options, environ)))
    for notice in result.notices:
        print_line(f"notice: {notice}")
    text = render_platform(result.draft, _heading(result, reader.server))
    counts = reader.counts
    print_line(f"{_summary(result)}; {counts.total - counts.writes} reads, {counts.writes} writes")
    if out is None:
        return text
    _write_file(out, text, is_forced=options["force"])
    print_line(f"wrote {out}; next: windlass graph --dag {shlex.quote(str(out))}")
    return ""


async def _import_cluster(
    options: Mapping[str, Any], environ: Mapping[str, str], timeout: timedelta
) -> tuple[KubeReader, ImportResult]:
    async with connections.time_limit(timeout), connections.open_cluster(options, environ) as cluster:
        return cluster.reader, await import_platform(cluster)


def _timeout(options: Mapping[str, Any], environ: Mapping[str, str]) -> timedelta:
    setting_options = {name: value for name, value in options.items() if name not in {"out", "force"}}
    values, problems = read_settings(option_values(setting_options), environ, {})
    if problems:
        raise InvalidSettings(problems)
    timeout = values["timeout"].value
    assert isinstance(timeout, timedelta)
    return timeout


def _heading(result: ImportResult, server: str) -> Iterator[str]:
    counts = f"{result.application_count} Applications, {result.application_set_count} ApplicationSets"
    yield f"Imported from the Argo CD at {server}: {counts}."
    yield "Comments say where each dependency came from; sync waves order creation, so look whether they mean more."
    yield from (f"notice: {notice}" for notice in result.notices)


def _summary(result: ImportResult) -> str:
    stacks, graph = result.draft.stacks, result.draft.graph
    edges = sum(map(len, graph.dependencies.values()))
    applications = f"{result.application_count} applications in {len(stacks)} stacks"
    return f"{applications}, {edges} dependencies, {len(graph.waves)} waves"


def _output_path(out: str | None, *, is_forced: bool) -> Path | None:
    """Check `--out` and `--force` before the cluster is read, so that a wrong path fails at once."""
    if out is None:
        if is_forced:
            raise InvalidInput("--force is for a file", hint="name it by --out FILE")
        return None
    path = Path(out)
    try:
        if path.is_dir():
            raise InvalidInput(f"{out} is a folder", where="--out", hint="name a file in it")
        if path.exists() and not is_forced:
            raise _exists_error(path)
        if not path.parent.is_dir():
            raise InvalidInput(f"there is no folder {path.parent}", where="--out")
    except OSError as error:
        raise _unwritable_error(path, error) from None
    return path


def _write_file(path: Path, text: str, *, is_forced: bool) -> None:
    try:
        with path.open("w" if is_forced else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise _exists_error(path) from None
    except OSError as error:
        raise _unwritable_error(path, error) from None


def _unwritable_error(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(f"{path} cannot be written: {error.strerror}", where="--out")


def _exists_error(path: Path) -> InvalidInput:
    return InvalidInput(f"{path} is there already", where="--out", hint="--force replaces it")
