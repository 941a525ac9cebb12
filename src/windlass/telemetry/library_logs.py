"""Log records of libraries as log lines; otherwise they reach stderr unredacted."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from windlass.core.log_lines import Level, LogLine, WriteLine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUIET_SECONDS = 60.0  # a library may complain about each of thousands of requests
Cause = tuple[str, int, str]


@contextmanager
def forward_library_logs(write_line: WriteLine, monotonic: Callable[[], float]) -> Iterator[None]:
    """Write records from WARNING up as log lines, one per cause and minute. Of nested blocks the inner one writes."""
    root = logging.getLogger()
    outer = [handler for handler in root.handlers if isinstance(handler, _LibraryHandler)]
    handler = _LibraryHandler(write_line, monotonic)
    _replace_handlers(root, outer, [handler])
    try:
        yield
    finally:
        _replace_handlers(root, [handler], outer)


def _replace_handlers(logger: logging.Logger, old: list[_LibraryHandler], new: list[_LibraryHandler]) -> None:
    for handler in old:
        logger.removeHandler(handler)
    for handler in new:
        logger.addHandler(handler)


class _LibraryHandler(logging.Handler):
    """A cause is the place in the library that logs, and the class of the exception: both are bounded."""

    def __init__(self, write_line: WriteLine, monotonic: Callable[[], float]) -> None:
        super().__init__(logging.WARNING)
        self._write_line = write_line
        self._monotonic = monotonic
        self._written: dict[Cause, float] = {}
        self._suppressed: dict[Cause, int] = {}

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        cause = (record.pathname, record.lineno, type(error).__name__)
        now = self._monotonic()
        if now - self._written.get(cause, float("-inf")) < QUIET_SECONDS:
            self._suppressed[cause] = self._suppressed.get(cause, 0) + 1
            return
        self._written[cause] = now
        suppressed = self._suppressed.pop(cause, 0)
        details = f" ({type(error).__name__}: {error})" if error else ""
        repeated = f" (and {suppressed} more like it)" if suppressed else ""
        level = Level.ERROR if record.levelno >= logging.ERROR else Level.WARN
        self._write_line(LogLine(level, f"{record.name}: {record.getMessage()}{details}{repeated}"))
