"""Retry policy: whether to retry a failed call, and after how long. Pure functions; `calls` does the waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windlass.kube.api_errors import ConnectionLost, ServerError, TooManyRequests, Unreachable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windlass.kube.api_errors import KubeError, Status

MAX_ATTEMPTS = 5
INITIAL_BACKOFF = 0.1  # seconds; doubles up to MAX_BACKOFF
MAX_BACKOFF = 10.0
DEFAULT_RETRY_AFTER = 1.0  # seconds; for a 429 without Retry-After


def is_retryable(error: KubeError, *, attempts: int, idempotent: bool) -> bool:
    """Whether to send the request again.

    A request that the server did not process may be retried; one that it may have processed, only if it is idempotent.
    A 429 is retried until the timeout of the call, because the server is alive and says when to retry. Other errors are
    raised after MAX_ATTEMPTS.
    """
    if isinstance(error, TooManyRequests):
        return True
    if attempts >= MAX_ATTEMPTS:
        return False
    if isinstance(error, Unreachable):
        return error.temporary
    return idempotent and isinstance(error, ConnectionLost | ServerError)


def backoff(attempt: int, random: float) -> float:
    """Seconds to wait: exponential from INITIAL_BACKOFF.

    `random` (0 to 1) varies the upper half, so that many clients do not retry at once.
    """
    delay = min(MAX_BACKOFF, INITIAL_BACKOFF * 2.0 ** min(attempt, 10))
    return delay * (0.5 + random / 2)


def retry_after(headers: Mapping[str, str], status: Status) -> float | None:
    """The wait that the server requests, in seconds, or `None`. HTTP dates are ignored: API servers do not send them.

    Zero counts as missing: otherwise a busy server would get retries without a pause until the timeout.
    """
    value = headers.get("Retry-After", "")
    if value.isdecimal() and (seconds := float(value)) > 0:
        return seconds
    if status.details and status.details.retry_after_seconds > 0:
        return float(status.details.retry_after_seconds)
    return DEFAULT_RETRY_AFTER if status.code == 429 else None
