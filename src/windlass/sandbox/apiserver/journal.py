"""`Journal`: every request with time, user, verb, object and status code; also as JSON lines."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from windlass.sandbox.apiserver.requests import READ_VERBS

if TYPE_CHECKING:
    from collections.abc import Iterator


class JournalEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    time: str
    user: str
    verb: str
    """`get`, `list`, `watch`, `create`, `update`, `patch`, `apply`, `delete`, `deletecollection`."""
    kind: str
    """`deployments.apps`, `pods/log`; the URL path of a request that names no object or is invalid."""
    namespace: str = ""
    name: str = ""
    code: int = 0
    """HTTP status code; 0 if no response was sent."""
    agent: str = ""
    dry_run: bool = False

    @property
    def is_write(self) -> bool:
        """Whether the request could change an object: not a read, a dry run or a review."""
        if self.kind.startswith("/") or self.kind.partition(".")[0].endswith("reviews"):
            return False
        return self.verb not in READ_VERBS and not self.dry_run


class Journal:
    def __init__(self) -> None:
        self.entries: deque[JournalEntry] = deque()

    def limit(self, max_entries: int) -> None:
        """From now on keep at most this many entries, dropping the oldest."""
        self.entries = deque(self.entries, maxlen=max_entries)

    def append(self, entry: JournalEntry) -> None:
        self.entries.append(entry)

    def writes(self, user: str = "") -> list[JournalEntry]:
        return [entry for entry in self.entries if entry.is_write and user in {"", entry.user}]

    def json_lines(self) -> Iterator[bytes]:
        for entry in self.entries:
            yield msgspec.json.encode(entry) + b"\n"
