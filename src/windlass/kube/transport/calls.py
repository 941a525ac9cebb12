"""API calls with rate limit, timeout, retries, call counts and located errors."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windlass.kube.api_errors import (
    ApiError,
    DeadlineExceeded,
    KubeError,
    TooManyRequests,
    error_from_status,
    parse_status,
)
from windlass.kube.clocks import Clock
from windlass.kube.transport.retries import backoff, is_retryable, retry_after
from windlass.kube.transport.transports import read_body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from windlass.kube.transport.transports import ByteStream, Request, Response, Transport

READ_VERBS = frozenset({"get", "list", "watch", "review"})


class TokenBucket:
    """Allows `rate` calls per second on average and `burst` at once. Callers are served in order of arrival.

    A caller that is cancelled while it waits consumes nothing; the callers behind it move up.
    """

    def __init__(self, rate: float, burst: int, clock: Clock) -> None:
        self._interval = 1 / rate
        self._slack = self._interval * (burst - 1)
        self._clock = clock
        self._next = float("-inf")
        self._queue = asyncio.Lock()

    async def take(self) -> None:
        async with self._queue:
            now = self._clock.monotonic()
            turn = max(self._next, now - self._slack)
            if turn > now:
                await self._clock.sleep(turn - now)
            self._next = turn + self._interval


@dataclass(slots=True)
class CallCounts:
    """Number of requests sent, by verb and kind. The report uses it to prove that a run wrote nothing."""

    by_verb_and_kind: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def writes(self) -> int:
        return sum(n for (verb, _), n in self.by_verb_and_kind.items() if verb not in READ_VERBS)

    @property
    def total(self) -> int:
        return self.by_verb_and_kind.total()


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Rate limit and timeout of one client."""

    calls_per_second: float = 50
    burst: int = 100
    timeout: float = 30
    """Seconds for one call, including all retries."""


@dataclass(frozen=True, slots=True)
class Call:
    verb: str
    kind: str
    request: Request
    check: Callable[[], None] | None = None
    """Called before each attempt, retries included; raises if the request must not be sent any more."""


class CallSender:
    """Sends calls over a transport: applies the rate limit, timeout and retries, and counts requests."""

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock | None = None,
        limits: CallLimits | None = None,
        notices: tuple[str, ...] = (),
    ) -> None:
        """`notices`: what the report and the log of a run must say about the connection."""
        self.transport = transport
        self.notices = notices
        self.clock = clock or Clock()
        self.limits = limits or CallLimits()
        self.counts = CallCounts()
        self._bucket = TokenBucket(self.limits.calls_per_second, self.limits.burst, self.clock)

    def where(self, call: Call) -> str:
        """The call as the location of an error."""
        return f"{call.verb} {call.kind} at {self.transport.server}{call.request.target.partition('?')[0]}"

    async def send(self, call: Call, timeout: float | None = None) -> Response:
        """The response of a successful call; any other result raises a `KubeError` that names the call."""
        seconds = self.limits.timeout if timeout is None else timeout
        errors: list[KubeError] = []
        try:
            async with asyncio.timeout(seconds):
                return await self._send_with_retries(call, errors)
        except TimeoutError:
            raise self._deadline_error(call, seconds, errors) from (errors[-1] if errors else None)

    async def _send_with_retries(self, call: Call, errors: list[KubeError]) -> Response:
        while True:
            delay: float | None = None
            try:
                response = await self._exchange(call)
                if response.status < 300:
                    return response
                status = parse_status(response.status, response.body, self.transport.redactor)
                delay = retry_after(response.headers, status)
                raise error_from_status(status, self.where(call))
            except KubeError as error:
                errors.append(error)
                if not is_retryable(error, attempts=len(errors), idempotent=call.request.idempotent):
                    raise self._add_location(error, call) from error.__cause__
            await self.clock.sleep(backoff(len(errors) - 1, self.clock.random()) if delay is None else delay)

    async def _exchange(self, call: Call) -> Response:
        await self._bucket.take()
        if call.check is not None:
            call.check()
        self.counts.by_verb_and_kind[call.verb, call.kind] += 1
        return await self.transport.exchange(call.request)

    @asynccontextmanager
    async def open(self, call: Call, timeout: float | None = None) -> AsyncIterator[ByteStream]:
        """A streamed response. Only a 429 is retried here; the consumer decides about other errors.

        The timeout applies until the response starts; after that the consumer must watch for silence.
        """
        errors: list[KubeError] = []
        seconds = self.limits.timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(seconds) as open_timeout, AsyncExitStack() as exit_stack:
                stream = await self._open_with_retries(call, exit_stack, errors)
                open_timeout.reschedule(None)
                yield stream
        except TimeoutError:
            raise self._deadline_error(call, seconds, errors) from (errors[-1] if errors else None)
        except KubeError as error:
            raise self._add_location(error, call) from error.__cause__

    async def _open_with_retries(self, call: Call, exit_stack: AsyncExitStack, errors: list[KubeError]) -> ByteStream:
        while True:
            await self._bucket.take()
            self.counts.by_verb_and_kind[call.verb, call.kind] += 1
            stream = await exit_stack.enter_async_context(self.transport.stream(call.request))
            if stream.status < 300:
                return stream
            status = parse_status(stream.status, await read_body(stream.chunks()), self.transport.redactor)
            error, delay = error_from_status(status, self.where(call)), retry_after(stream.headers, status)
            await exit_stack.aclose()
            if not isinstance(error, TooManyRequests) or delay is None:
                raise error
            errors.append(error)
            await self.clock.sleep(delay)

    def _deadline_error(self, call: Call, seconds: float, errors: list[KubeError]) -> DeadlineExceeded:
        last = f"; last: {errors[-1].what}" if errors else ""
        return DeadlineExceeded(f"no answer within {seconds:g} s{last}", where=self.where(call))

    def _add_location(self, error: KubeError, call: Call) -> KubeError:
        """Prefix the error's location with the call: a transport knows the server, but not the verb and kind."""
        if not isinstance(error, ApiError):
            error.where = f"{self.where(call)}: {error.where}" if error.where else self.where(call)
        return error
