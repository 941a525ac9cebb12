"""Faults on demand: which requests they hit, and what happens to those. What is not told happens as usual."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from windlass.sandbox.apiserver.wire import api_status

if TYPE_CHECKING:
    from windlass.sandbox.apiserver.requests import Ask


ITSELF = "system:serviceaccount:kube-system:"


class Severed(Exception):
    """The connection broke: before the request arrived, or after it may have been carried out."""

    def __init__(self, *, sent: bool) -> None:
        super().__init__("severed after sending" if sent else "severed before sending")
        self.sent = sent


@dataclass(slots=True, kw_only=True)
class Fault:
    """Every field that selects is a pattern with `*`. The rest says what happens, in this order.

    Parts of the cluster itself, such as its garbage collector, are hit only where `user` names them.
    """

    verb: str = "*"
    kind: str = "*"
    """`deployments.apps`, `pods/log`."""
    namespace: str = "*"
    name: str = "*"
    user: str = "*"
    skip: int = 0
    """Requests that pass before the first is hit."""
    times: int | None = 1
    """How many are hit; None for all."""

    latency: float = 0.0
    sever: str = ""
    """`before` it arrives, or `after` it was carried out."""
    code: int = 0
    """Answered instead of carrying it out."""
    reason: str = ""
    retry_after: int = 0
    lag: float = 0.0
    """Seconds by which watches, and lists that accept any version, are behind."""
    hits: int = field(default=0, init=False)

    def is_for(self, ask: Ask) -> bool:
        kind = f"{ask.kind.id}/{ask.subresource}" if ask.subresource else ask.kind.id
        if self.user == "*" and ask.user.name.startswith(ITSELF):
            return False
        pairs = ((ask.verb, self.verb), (kind, self.kind), (ask.namespace, self.namespace), (ask.name, self.name))
        return all(fnmatchcase(text, pattern) for text, pattern in (*pairs, (ask.user.name, self.user)))

    def refusal(self) -> api_status.Refusal | None:
        if not self.code:
            return None
        if self.code == 429:
            return api_status.too_many("too many requests, please try again later", self.retry_after or 1)
        names = {409: "Conflict", 410: "Expired", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}
        reason = self.reason or names.get(self.code, "InternalError")
        details = {"retryAfterSeconds": self.retry_after} if self.retry_after else {}
        return api_status.Refusal(self.code, reason, f"injected fault: {reason}", details)


class Faults:
    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    def clear(self) -> None:
        self._faults.clear()

    def take(self, ask: Ask) -> list[Fault]:
        """Those that hit this request; each is counted."""
        hit = []
        for fault in self._faults:
            if not fault.is_for(ask):
                continue
            if fault.skip:
                fault.skip -= 1
            elif fault.times is None or fault.hits < fault.times:
                fault.hits += 1
                hit.append(fault)
        return hit
