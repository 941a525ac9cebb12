"""Fault injection: which requests fail, and how. All other requests are executed normally."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from windlass.sandbox.apiserver.wire import api_status

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.requests import ApiRequest


CONTROLLER_USER_PREFIX = "system:serviceaccount:kube-system:"


class ConnectionSevered(Exception):
    """The connection broke before the request arrived, or after it may have been executed (`sent`)."""

    def __init__(self, *, sent: bool) -> None:
        super().__init__("connection lost after sending" if sent else "connection lost before sending")
        self.sent = sent


@dataclass(slots=True, kw_only=True)
class Fault:
    """Which requests to disrupt, and how.

    Selecting fields are patterns with `*`; effects apply in the order of their fields. Requests of the cluster's own
    controllers, such as the garbage collector, are selected only by an explicit `user`.
    """

    verb: str = "*"
    kind: str = "*"
    """`deployments.apps`, `pods/log`."""
    namespace: str = "*"
    name: str = "*"
    user: str = "*"
    skip: int = 0
    """Number of matching requests to let through first."""
    times: int | None = 1
    """Number of requests to disrupt; `None` for all."""

    latency: float = 0.0
    sever: str = ""
    """Break the connection `before` the request arrives, or `after` it was executed."""
    code: int = 0
    """HTTP status code to return instead of executing the request."""
    reason: str = ""
    retry_after: int = 0
    lag: float = 0.0
    """Seconds by which watches, and lists with resourceVersion 0, are behind."""
    hits: int = field(default=0, init=False)

    def matches(self, request: ApiRequest) -> bool:
        kind = f"{request.kind.id}/{request.subresource}" if request.subresource else request.kind.id
        if self.user == "*" and request.user.name.startswith(CONTROLLER_USER_PREFIX):
            return False
        pairs = (
            (request.verb, self.verb),
            (kind, self.kind),
            (request.namespace, self.namespace),
            (request.name, self.name),
        )
        return all(fnmatchcase(text, pattern) for text, pattern in (*pairs, (request.user.name, self.user)))

    def status_error(self) -> api_status.StatusError | None:
        if not self.code:
            return None
        if self.code == 429:
            return api_status.too_many_requests("too many requests, please try again later", self.retry_after or 1)
        names = {409: "Conflict", 410: "Expired", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}
        reason = self.reason or names.get(self.code, "InternalError")
        details = {"retryAfterSeconds": self.retry_after} if self.retry_after else {}
        return api_status.StatusError(self.code, reason, f"injected fault: {reason}", details)


class Faults:
    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    def clear(self) -> None:
        self._faults.clear()

    def take_matching(self, request: ApiRequest) -> list[Fault]:
        """Faults to apply to this request; counts each as a hit."""
        matching = []
        for fault in self._faults:
            if not fault.matches(request):
                continue
            if fault.skip:
                fault.skip -= 1
            elif fault.times is None or fault.hits < fault.times:
                fault.hits += 1
                matching.append(fault)
        return matching
