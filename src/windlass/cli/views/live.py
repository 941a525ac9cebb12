"""What is redrawn on a terminal: the live view of a run, and the status of a cluster.

The only module that uses rich; imported only for a terminal. The live view never affects the run: an error here ends
the view, not the run.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ParamSpec

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from windlass.cli.views.live_rows import HEAD_ROWS, MAX_ROWS, render_rows
from windlass.cli.views.live_state import apply_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType
    from typing import Self, TextIO

    from windlass.cli.views.live_rows import Row
    from windlass.cli.views.live_state import LiveState
    from windlass.core.platform.events import Event
    from windlass.core.platform.reporting.reports import Report
    from windlass.kube.clocks import Clock

P = ParamSpec("P")
REDRAW_INTERVAL = 0.25
_ASCII_SYMBOLS = str.maketrans({"█": "#", "▓": "=", "▒": "x", "░": ".", "…": "~"})


class LiveView:
    """Shows the events of a run. Inside `async with` it is redrawn four times a second; at the end its header stays."""

    def __init__(self, stream: TextIO, clock: Clock, state: LiveState, variables: Mapping[str, str]) -> None:
        """`variables` are the environment variables that describe the terminal."""
        self._clock = clock
        self._state = state
        self._encoding = stream.encoding or "ascii"
        console = Console(file=stream, highlight=False, soft_wrap=False, _environ=variables)
        # Other output to stderr appears above the view. stdout is not redirected, because it carries the report.
        self._live = Live(console=console, auto_refresh=False, redirect_stdout=False, vertical_overflow="crop")
        self._tasks = asyncio.TaskGroup()
        self._is_broken = False

    def emit(self, event: Event) -> None:
        self._call_safely(self._apply_event, event)

    def finish(self, report: Report) -> None:
        """Nothing to do: the report itself is printed after the view."""

    def _apply_event(self, event: Event) -> None:
        self._state = apply_event(self._state, event, self._clock.monotonic())

    async def __aenter__(self) -> Self:
        self._call_safely(self._live.start)
        await self._tasks.__aenter__()
        self._draw_task = self._tasks.create_task(self._redraw_periodically())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop drawing. The task group gets no exception, so that it does not wrap what the run raised."""
        self._draw_task.cancel()
        try:
            await self._tasks.__aexit__(None, None, None)
        finally:
            self._call_safely(self._draw, HEAD_ROWS)
            self._call_safely(self._live.stop)  # shows the cursor again

    async def _redraw_periodically(self) -> None:
        while not self._is_broken:
            self._call_safely(self._draw, MAX_ROWS)
            await self._clock.sleep(REDRAW_INTERVAL)

    def _draw(self, max_rows: int) -> None:
        width, height = self._live.console.size
        lines = render_rows(self._state, self._clock.monotonic(), min(max_rows, height - 1), width)
        self._live.update(self._styled_text(lines), refresh=True)

    def _styled_text(self, rows: Iterable[Row]) -> Text:
        return Text("\n", no_wrap=True, overflow="crop").join(_styled_line(row, self._encoding) for row in rows)

    def _call_safely(self, work: Callable[P, object], *args: P.args, **options: P.kwargs) -> None:
        """Call a function and ignore its errors: a lost terminal must not end the run."""
        try:
            work(*args, **options)
        except Exception:  # noqa: BLE001 - see above
            self._is_broken = True


class StatusScreen:
    """Shows rows on a terminal, wrapped beside their first cell; inside `with`, each `show` replaces the last."""

    def __init__(self, stream: TextIO, variables: Mapping[str, str]) -> None:
        """`variables` are the environment variables that describe the terminal."""
        self._encoding = stream.encoding or "ascii"
        self._console = Console(file=stream, highlight=False, _environ=variables)
        self._live = Live(console=self._console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)

    def print(self, rows: Iterable[Row]) -> None:
        self._console.print(self._grid(rows))

    def show(self, rows: Iterable[Row]) -> None:
        self._live.update(self._grid(rows), refresh=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()  # shows the cursor again

    def _grid(self, rows: Iterable[Row]) -> Table:
        grid = Table.grid()
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for label, *rest in rows:
            grid.add_row(_styled_line((label,), self._encoding), _styled_line(tuple(rest), self._encoding))
        return grid


def _styled_line(row: Row, encoding: str) -> Text:
    return Text.assemble(*((_encodable_text(text, encoding), style.value) for text, style in row))


def _encodable_text(text: str, encoding: str) -> str:
    """Replace symbols by ASCII on a terminal that does not use UTF-8."""
    if encoding.lower().replace("-", "") == "utf8":
        return text
    return text.translate(_ASCII_SYMBOLS).encode(encoding, "replace").decode(encoding)
