"""Counts the lines of Windlass that are executed: an assertion about cost that needs no clock."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

PACKAGE, SANDBOX = "/windlass/", "/windlass/sandbox/"
TURN = asyncio.Handle._run.__code__
R = TypeVar("R")


class TooManySteps(AssertionError):
    """The call was ended: it had taken more steps than allowed."""


def count_lines(work: Callable[[], object], most: float = float("inf")) -> int:
    """The lines that `work` executes, those of generators and comprehensions too. Raises once they are too many."""
    steps = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal steps
        if event == "call" and PACKAGE not in frame.f_code.co_filename:
            return None
        steps += 1
        if steps > most:
            raise TooManySteps(f"more than {most:,.0f} steps, now in {frame.f_code.co_name}, line {frame.f_lineno}")
        return trace

    _run_traced(work, trace)
    return steps


def count_turns(work: Callable[[], R]) -> tuple[R, int, int]:
    """The result of `work`, the lines of Windlass without its sandbox, and the most between two turns of a loop."""
    steps = turn = longest = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal steps, turn, longest
        path = frame.f_code.co_filename
        if event == "call" and (PACKAGE not in path or SANDBOX in path):
            if frame.f_code is TURN:
                turn = 0
            return None
        steps += 1
        turn += 1
        longest = max(longest, turn)
        return trace

    return _run_traced(work, trace), steps, longest


def _run_traced(work: Callable[[], R], trace: Callable[[FrameType, str, object], Any]) -> R:
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return work()
    finally:
        sys.settrace(before)
