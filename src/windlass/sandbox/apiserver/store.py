"""`Store`: all objects, one increasing resource version, and the history that serves watches and older versions."""

from __future__ import annotations

from collections import deque
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from windlass.sandbox.apiserver.wire.api_status import Body

Key = tuple[str, str]
"""Namespace and name."""
FIRST = 1000  # version of an empty store; as in a real cluster, small versions have expired
HISTORY = 10_000  # changes kept for watches and paged lists; older versions have expired
WARM = 8_000  # objects kept decoded; the others exist only as JSON, which takes a fifth of the memory
_DECODE = msgspec.json.Decoder(dict[str, Any]).decode
_ENCODE = msgspec.json.Encoder().encode


class Stored(msgspec.Struct, eq=False):
    """One version of one object. Immutable: stored as JSON and shared by every response and watch."""

    kind_id: str
    namespace: str
    name: str
    uid: str
    version: int
    tail: bytes
    """JSON of the object without opening brace, kind and apiVersion: API versions of a kind differ only in those."""
    labels: Mapping[str, str]
    owners: tuple[str, ...]
    _warm: Any = None

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)

    @property
    def body(self) -> Body:
        """The decoded object. Shared by all readers: must not be modified."""
        return self._warm or self.warmed(self.load())

    def warmed(self, body: Body) -> Body:
        """Cache the decoded body, evicting the body that has been cached the longest."""
        self._warm = body
        _WARM.append(self)
        if len(_WARM) > WARM:
            _WARM.popleft()._warm = None  # noqa: SLF001 - an instance of the same class
        return body

    def load(self) -> Body:
        """A decoded copy that the caller may modify."""
        return _DECODE(b"{" + self.tail)


_WARM: deque[Stored] = deque()


class Change(msgspec.Struct, frozen=True, eq=False):
    """One write. For a deletion, `new` is the last state of the object, with the version of the deletion."""

    type: str
    old: Stored | None
    new: Stored
    at: datetime


def stored(kind_id: str, body: Body, version: int) -> Stored:
    meta = {**body["metadata"], "resourceVersion": str(version)}
    rest = {name: value for name, value in body.items() if name not in {"kind", "apiVersion", "metadata"}}
    whole = {"metadata": meta, **rest}
    owners = tuple(owner["uid"] for owner in meta.get("ownerReferences") or ())
    which = (meta.get("namespace", ""), meta["name"], meta["uid"], version)
    made = Stored(kind_id, *which, _ENCODE(whole)[1:], meta.get("labels") or {}, owners)
    made.warmed(whole)
    return made


class Store:
    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.version = FIRST
        self.floor = FIRST
        """The oldest version that has not expired."""
        self._begun: dict[str, int] = {}
        self._objects: dict[str, dict[Key, Stored]] = {}
        self._sorted: dict[str, list[Key]] = {}
        self._history: deque[Change] = deque()
        self._by_kind: dict[str, deque[Change]] = {}
        self._listeners: dict[Key, dict[int, Callable[[Change], None]]] = {}
        self._tickets = 0
        self._by_uid: dict[str, Stored] = {}
        self._dependents: dict[str, dict[tuple[str, str, str], None]] = {}

    def get(self, kind_id: str, namespace: str, name: str) -> Stored | None:
        return self._objects.get(kind_id, {}).get((namespace, name))

    def by_uid(self, uid: str) -> Stored | None:
        return self._by_uid.get(uid)

    def dependents(self, uid: str) -> list[Stored]:
        """Objects with an owner reference to this uid, in the order in which the references were added."""
        found = (self.get(*place) for place in self._dependents.get(uid, ()))
        return [item for item in found if item is not None]

    def list(self, kind_id: str, namespace: str = "", at: int | None = None) -> list[Stored]:
        """Objects ordered by namespace and name, as of `version` if given."""
        objects = self._objects.get(kind_id, {})
        if at is not None and at < self.version:
            objects = self._rewound(kind_id, at)
            keys = sorted(objects)
        else:
            keys = self._sorted.get(kind_id) or self._sorted.setdefault(kind_id, sorted(objects))
        return [objects[key] for key in keys if not namespace or key[0] == namespace]

    def _rewound(self, kind_id: str, version: int) -> dict[Key, Stored]:
        objects = dict(self._objects.get(kind_id, {}))
        for change in reversed(self._by_kind.get(kind_id, ())):
            if change.new.version <= version:
                break
            if change.old is None:
                objects.pop(change.new.key, None)
            else:
                objects[change.new.key] = change.old
        return objects

    def put(self, kind_id: str, body: Body) -> Stored:
        """Create or replace an object."""
        new = stored(kind_id, body, self.version + 1)
        objects = self._objects.setdefault(kind_id, {})
        old = objects.get(new.key)
        if old is None:
            self._sorted.pop(kind_id, None)
        objects[new.key] = new
        self._record(Change("MODIFIED" if old else "ADDED", old, new, self._now()))
        return new

    def remove(self, old: Stored) -> Stored:
        """Remove an object. Watches receive its last stored state, including finalizers."""
        new = stored(old.kind_id, old.body, self.version + 1)
        del self._objects[old.kind_id][old.key]
        self._sorted.pop(old.kind_id, None)
        self._record(Change("DELETED", old, new, self._now()))
        return new

    def _record(self, change: Change) -> None:
        new = change.new
        self.version = new.version
        self._history.append(change)
        self._by_kind.setdefault(new.kind_id, deque()).append(change)
        if len(self._history) > HISTORY:
            self._forget_first()
        self._index(change)
        for place in dict.fromkeys(((new.kind_id, new.namespace), (new.kind_id, ""), ("", ""))):
            for listener in tuple(self._listeners.get(place, {}).values()):
                listener(change)

    def _index(self, change: Change) -> None:
        old, new = change.old, change.new
        place = (new.kind_id, new.namespace, new.name)
        for uid in old.owners if old else ():
            self._dependents[uid].pop(place, None)
            if not self._dependents[uid]:
                del self._dependents[uid]
        if change.type == "DELETED":
            self._by_uid.pop(new.uid, None)
            return
        self._by_uid[new.uid] = new
        for uid in new.owners:
            self._dependents.setdefault(uid, {})[place] = None

    def _forget_first(self) -> None:
        first = self._history.popleft()
        self._by_kind[first.new.kind_id].popleft()
        self.floor = first.new.version

    def compact(self) -> None:
        """Drop all history: every older version has expired for watches and paged lists."""
        while self._history:
            self._forget_first()
        self.floor = self.version

    def begin(self, kind_id: str) -> None:
        """Start the history of a kind at the current version: every older version has expired for it."""
        self._begun.setdefault(kind_id, self.version)

    def floor_of(self, kind_id: str) -> int:
        return max(self.floor, self._begun.get(kind_id, 0))

    def since(self, kind_id: str, version: int) -> Sequence[Change]:
        """Changes of a kind after a version that has not expired."""
        latest_first = reversed(self._by_kind.get(kind_id, ()))
        return [*takewhile(lambda change: change.new.version > version, latest_first)][::-1]

    def version_at(self, moment: datetime) -> int:
        """The version that was current at a time in the past."""
        return next((change.new.version for change in reversed(self._history) if change.at <= moment), self.floor)

    def listen(self, kind_id: str, namespace: str, listener: Callable[[Change], None]) -> Callable[[], object]:
        """Call `listener` on every change of a kind (of all kinds if the id is empty).

        The returned function stops that.
        """
        self._tickets += 1
        ticket, listeners = self._tickets, self._listeners.setdefault((kind_id, namespace), {})
        listeners[ticket] = listener
        return lambda: listeners.pop(ticket, None)
