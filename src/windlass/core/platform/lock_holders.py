"""Who holds the lock of runs, as the Lease records it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windlass.printable_text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

HOLDER_ANNOTATION = "windlass.dev/holder"
MAX_SHOWN_FIELD = 300  # characters: another client may have written anything


@dataclass(frozen=True, slots=True)
class LockHolder:
    """A run that holds the lock; every field may be empty except its ID."""

    run_id: str
    person: str = ""
    """The user, the host and, if given, the URL of the pipeline."""
    since: str = ""

    def __str__(self) -> str:
        by = f" by {self.person}" if self.person else ""
        since = f", since {self.since}" if self.since else ""
        return f"run {self.run_id}{by}{since}"


def describe_person(user: str, host: str, pipeline_url: str) -> str:
    return f"{user}@{host}" + (f" ({pipeline_url})" if pipeline_url else "")


def recorded_holder(lease: Mapping[str, Any]) -> LockHolder | None:
    """The holder that a Lease names; `None` if it has none."""
    spec, annotations = lease.get("spec") or {}, (lease.get("metadata") or {}).get("annotations") or {}
    if not spec.get("holderIdentity"):
        return None
    fields = (spec["holderIdentity"], annotations.get(HOLDER_ANNOTATION), spec.get("acquireTime"))
    return LockHolder(*(one_line(str(each or "")[:MAX_SHOWN_FIELD]) for each in fields))
