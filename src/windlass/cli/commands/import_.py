"""`windlass import`: writes a platform file from a live Argo CD, to a file or to stdout."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windlass import output_files
from windlass.cli.options import setting_options
from windlass.cli.printed_lines import print_text
from windlass.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.kube.client.readers import KubeReader
    from windlass.operations.import_ import ImportResult
    from windlass.settings.settings import ClusterSettings
    from windlass.settings.source import SettingsSource


@click.command("import")
@setting_options("kubeconfig", "context", "in-cluster", "timeout")
@click.option("--out", metavar="FILE", help="File to write to, instead of stdout.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.pass_obj
def import_(source: SettingsSource, /, out: str | None, force: bool, **options: Any) -> None:
    """Write a platform file from a live Argo CD.

    Reads only.

    Stacks come from parents, ApplicationSets and projects, order from sync waves, RollingSync steps and the annotation
    windlass.dev/depends-on. Comments say where each dependency came from: read it before you use it.
    """
    from windlass.cli import session  # noqa: PLC0415 - loads the HTTP library
    from windlass.core.platform.drafting.platform_yaml import render_platform  # noqa: PLC0415

    path = _output_path(out, is_forced=force)
    settings = source.cluster_settings(options)
    reader, result = session.run(_import_cluster(settings), settings.credentials.redactor)
    for notice in (*reader.notices, *result.notices):
        print_text(f"notice: {notice}", err=True)
    text = render_platform(result.draft, _heading(result, reader.server))
    counts = reader.counts
    print_text(f"{_summary(result)}; {counts.total - counts.writes} reads, {counts.writes} writes", err=True)
    if path is None:
        print_text(text.removesuffix("\n"))
        return
    _write_file(path, text, is_forced=force)
    print_text(f"wrote {path}; next: windlass graph --dag {shlex.quote(str(path))}", err=True)


async def _import_cluster(settings: ClusterSettings) -> tuple[KubeReader, ImportResult]:
    from windlass.cli import session  # noqa: PLC0415
    from windlass.operations.import_ import import_platform  # noqa: PLC0415

    async with session.time_limit(settings.timeout), session.open_cluster(settings) as cluster:
        return cluster.reader, await import_platform(cluster)


def _heading(result: ImportResult, server: str) -> Iterator[str]:
    counts = f"{result.application_count} Applications, {result.application_set_count} ApplicationSets"
    yield f"Imported from the Argo CD at {server}: {counts}."
    yield "Comments say where each dependency came from; sync waves order creation, so check whether they mean more."
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
        output_files.write_file(path, text, replace=is_forced)
    except FileExistsError:
        raise _exists_error(path) from None
    except OSError as error:
        raise _unwritable_error(path, error) from None


def _unwritable_error(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(f"{path} cannot be written: {error.strerror}", where="--out")


def _exists_error(path: Path) -> InvalidInput:
    return InvalidInput(f"{path} is there already", where="--out", hint="--force replaces it")
