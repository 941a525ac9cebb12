"""Whether a failed call is worth sending again, and when. Pure; the waiting is done by `calls`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.kube.api_errors import ConnectionLost, ServerError, TooManyRequests, Unreachable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.kube.api_errors import KubeError, Status

ATTEMPTS = 5
FIRST_WAIT = 0.1  # seconds; doubles up to the longest
LONGEST_WAIT = 10.0
NO_HINT_429 = 1.0  # what a 429 without Retry-After asks for


def is_retryable(error: KubeError, *, attempts: int, repeatable: bool) -> bool:
    """A request that was not carried out may be sent again; one that may have been, only if repeating changes nothing.

    A busy server is asked until the deadline: it is alive and says when. Other trouble is shown after a few attempts.
    """
    if isinstance(error, TooManyRequests):
        return True
    if attempts >= ATTEMPTS:
        return False
    if isinstance(error, Unreachable):
        return error.passing
    return repeatable and isinstance(error, ConnectionLost | ServerError)


def backoff(attempt: int, random: float) -> float:
    """Exponential from FIRST_WAIT, its upper half spread by `random` so that many clients do not come back at once."""
    longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(attempt, 10))
    return longest * (0.5 + random / 2)


def retry_after(headers: Mapping[str, str], status: Status) -> float | None:
    """The wait that the server asks for, in seconds. HTTP dates are not used by API servers and are ignored.

    A wait of zero is none: taken at its word, a busy server would be asked without a pause until the deadline.
    """
    value = headers.get("Retry-After", "")
    if value.isdecimal() and (seconds := float(value)) > 0:
        return seconds
    if status.details and status.details.retry_after_seconds > 0:
        return float(status.details.retry_after_seconds)
    return NO_HINT_429 if status.code == 429 else None
