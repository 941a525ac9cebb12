"""`windlass import`: writes a platform file from a live Argo CD, to a file or to stdout."""

from __future__ import annotations

import shlex
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windlass.cli import connections
from windlass.cli.options import given
from windlass.core.platform.drafting.platform_yaml import platform_text
from windlass.errors import InvalidInput
from windlass.operations.import_ import import_platform
from windlass.settings.problems import InvalidSettings
from windlass.settings.variables import read_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from windlass.kube.client.readers import KubeReader
    from windlass.operations.import_ import Imported


def imported(options: Mapping[str, Any], environ: Mapping[str, str], tell: Callable[[str], None]) -> str:
    """Return the platform file as text, or an empty text if it was written to `--out`."""
    out = _writable(options["out"], is_forced=options["force"])
    reader, found = connections.run(_imported(options, environ, _limit(options, environ)))
    for notice in found.notices:
        tell(f"notice: {notice}")
    text = platform_text(found.draft, _heading(found, reader.server))
    counts = reader.counts
    tell(f"{_summary(found)}; {counts.total - counts.writes} reads, {counts.writes} writes")
    if out is None:
        return text
    _write(out, text, is_forced=options["force"])
    tell(f"wrote {out}; next: windlass graph --dag {shlex.quote(str(out))}")
    return ""


async def _imported(
    options: Mapping[str, Any], environ: Mapping[str, str], limit: timedelta
) -> tuple[KubeReader, Imported]:
    async with connections.within(limit), connections.reading(options, environ) as cluster:
        return cluster.reader, await import_platform(cluster)


def _limit(options: Mapping[str, Any], environ: Mapping[str, str]) -> timedelta:
    chosen = {name: value for name, value in options.items() if name not in {"out", "force"}}
    values, mistakes = read_settings(given(chosen), environ, {})
    if mistakes:
        raise InvalidSettings(mistakes)
    limit = values["timeout"].value
    assert isinstance(limit, timedelta)
    return limit


def _heading(found: Imported, server: str) -> Iterator[str]:
    yield f"Imported from the Argo CD at {server}: {found.applications} Applications, {found.sets} ApplicationSets."
    yield "Comments say where each dependency came from; sync waves order creation, so look whether they mean more."
    yield from (f"notice: {notice}" for notice in found.notices)


def _summary(found: Imported) -> str:
    stacks, graph = found.draft.stacks, found.draft.graph
    edges = sum(map(len, graph.needs.values()))
    return f"{found.applications} applications in {len(stacks)} stacks, {edges} dependencies, {len(graph.waves)} waves"


def _writable(out: str | None, *, is_forced: bool) -> Path | None:
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
            raise _exists(path)
        if not path.parent.is_dir():
            raise InvalidInput(f"there is no folder {path.parent}", where="--out")
    except OSError as error:
        raise _unwritable(path, error) from None
    return path


def _write(path: Path, text: str, *, is_forced: bool) -> None:
    try:
        with path.open("w" if is_forced else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(f"{path} cannot be written: {error.strerror}", where="--out")


def _exists(path: Path) -> InvalidInput:
    return InvalidInput(f"{path} is there already", where="--out", hint="--force replaces it")
