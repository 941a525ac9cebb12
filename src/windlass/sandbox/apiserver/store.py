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

NamespacedName = tuple[str, str]
"""Namespace and name."""
INITIAL_VERSION = 1000  # version of an empty store; as in a real cluster, small versions have expired
HISTORY_LIMIT = 10_000  # changes kept for watches and paged lists; older versions have expired
DECODED_LIMIT = 8_000  # objects kept decoded; the others exist only as JSON, which takes a fifth of the memory
_DECODE = msgspec.json.Decoder(dict[str, Any]).decode
_ENCODE = msgspec.json.Encoder().encode


class StoredObject(msgspec.Struct, eq=False):
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
    def key(self) -> NamespacedName:
        return (self.namespace, self.name)

    @property
    def body(self) -> Body:
        """The decoded object. Shared by all readers: must not be modified."""
        return self._warm or self.cache_body(self.load())

    def cache_body(self, body: Body) -> Body:
        """Cache the decoded body, evicting the body that has been cached the longest."""
        self._warm = body
        _DECODED.append(self)
        if len(_DECODED) > DECODED_LIMIT:
            _DECODED.popleft()._warm = None  # noqa: SLF001 - an instance of the same class
        return body

    def load(self) -> Body:
        """A decoded copy that the caller may modify."""
        return _DECODE(b"{" + self.tail)


_DECODED: deque[StoredObject] = deque()


class StoreChange(msgspec.Struct, frozen=True, eq=False):
    """One write. For a deletion, `new` is the last state of the object, with the version of the deletion."""

    type: str
    old: StoredObject | None
    new: StoredObject
    at: datetime


def make_stored_object(kind_id: str, body: Body, version: int) -> StoredObject:
    meta = {**body["metadata"], "resourceVersion": str(version)}
    rest = {name: value for name, value in body.items() if name not in {"kind", "apiVersion", "metadata"}}
    full_body = {"metadata": meta, **rest}
    owners = tuple(owner["uid"] for owner in meta.get("ownerReferences") or ())
    identity = (meta.get("namespace", ""), meta["name"], meta["uid"], version)
    stored_object = StoredObject(kind_id, *identity, _ENCODE(full_body)[1:], meta.get("labels") or {}, owners)
    stored_object.cache_body(full_body)
    return stored_object


class Store:
    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.version = INITIAL_VERSION
        self.oldest_version = INITIAL_VERSION
        """The oldest version that has not expired."""
        self._kind_start_versions: dict[str, int] = {}
        self._objects: dict[str, dict[NamespacedName, StoredObject]] = {}
        self._sorted_keys: dict[str, list[NamespacedName]] = {}
        self._history: deque[StoreChange] = deque()
        self._by_kind: dict[str, deque[StoreChange]] = {}
        self._listeners: dict[NamespacedName, dict[int, Callable[[StoreChange], None]]] = {}
        self._last_listener_id = 0
        self._by_uid: dict[str, StoredObject] = {}
        self._dependents: dict[str, dict[tuple[str, str, str], None]] = {}

    def get(self, kind_id: str, namespace: str, name: str) -> StoredObject | None:
        return self._objects.get(kind_id, {}).get((namespace, name))

    def by_uid(self, uid: str) -> StoredObject | None:
        return self._by_uid.get(uid)

    def dependents(self, uid: str) -> list[StoredObject]:
        """Objects with an owner reference to this uid, in the order in which the references were added."""
        objects = (self.get(*key) for key in self._dependents.get(uid, ()))
        return [item for item in objects if item is not None]

    def list(self, kind_id: str, namespace: str = "", version: int | None = None) -> list[StoredObject]:
        """Objects ordered by namespace and name, as of `version` if given."""
        objects = self._objects.get(kind_id, {})
        if version is not None and version < self.version:
            objects = self._objects_at(kind_id, version)
            keys = sorted(objects)
        else:
            keys = self._sorted_keys.get(kind_id) or self._sorted_keys.setdefault(kind_id, sorted(objects))
        return [objects[key] for key in keys if not namespace or key[0] == namespace]

    def _objects_at(self, kind_id: str, version: int) -> dict[NamespacedName, StoredObject]:
        objects = dict(self._objects.get(kind_id, {}))
        for change in reversed(self._by_kind.get(kind_id, ())):
            if change.new.version <= version:
                break
            if change.old is None:
                objects.pop(change.new.key, None)
            else:
                objects[change.new.key] = change.old
        return objects

    def put(self, kind_id: str, body: Body) -> StoredObject:
        """Create or replace an object."""
        new = make_stored_object(kind_id, body, self.version + 1)
        objects = self._objects.setdefault(kind_id, {})
        old = objects.get(new.key)
        if old is None:
            self._sorted_keys.pop(kind_id, None)
        objects[new.key] = new
        self._record(StoreChange("MODIFIED" if old else "ADDED", old, new, self._now()))
        return new

    def remove(self, old: StoredObject) -> StoredObject:
        """Remove an object. Watches receive its last stored state, including finalizers."""
        new = make_stored_object(old.kind_id, old.body, self.version + 1)
        del self._objects[old.kind_id][old.key]
        self._sorted_keys.pop(old.kind_id, None)
        self._record(StoreChange("DELETED", old, new, self._now()))
        return new

    def _record(self, change: StoreChange) -> None:
        new = change.new
        self.version = new.version
        self._history.append(change)
        self._by_kind.setdefault(new.kind_id, deque()).append(change)
        if len(self._history) > HISTORY_LIMIT:
            self._drop_oldest_change()
        self._update_indexes(change)
        for key in dict.fromkeys(((new.kind_id, new.namespace), (new.kind_id, ""), ("", ""))):
            for listener in tuple(self._listeners.get(key, {}).values()):
                listener(change)

    def _update_indexes(self, change: StoreChange) -> None:
        old, new = change.old, change.new
        key = (new.kind_id, new.namespace, new.name)
        for uid in old.owners if old else ():
            self._dependents[uid].pop(key, None)
            if not self._dependents[uid]:
                del self._dependents[uid]
        if change.type == "DELETED":
            self._by_uid.pop(new.uid, None)
            return
        self._by_uid[new.uid] = new
        for uid in new.owners:
            self._dependents.setdefault(uid, {})[key] = None

    def _drop_oldest_change(self) -> None:
        first = self._history.popleft()
        self._by_kind[first.new.kind_id].popleft()
        self.oldest_version = first.new.version

    def compact(self) -> None:
        """Drop all history: every older version has expired for watches and paged lists."""
        while self._history:
            self._drop_oldest_change()
        self.oldest_version = self.version

    def start_history(self, kind_id: str) -> None:
        """Start the history of a kind at the current version: every older version has expired for it."""
        self._kind_start_versions.setdefault(kind_id, self.version)

    def oldest_kind_version(self, kind_id: str) -> int:
        return max(self.oldest_version, self._kind_start_versions.get(kind_id, 0))

    def changes_since(self, kind_id: str, version: int) -> Sequence[StoreChange]:
        """Changes of a kind after a version that has not expired."""
        latest_first = reversed(self._by_kind.get(kind_id, ()))
        return [*takewhile(lambda change: change.new.version > version, latest_first)][::-1]

    def version_at(self, moment: datetime) -> int:
        """The version that was current at a time in the past."""
        return next(
            (change.new.version for change in reversed(self._history) if change.at <= moment), self.oldest_version
        )

    def listen(self, kind_id: str, namespace: str, listener: Callable[[StoreChange], None]) -> Callable[[], object]:
        """Call `listener` on every change of a kind (of all kinds if the id is empty).

        The returned function stops that.
        """
        self._last_listener_id += 1
        listener_id, listeners = self._last_listener_id, self._listeners.setdefault((kind_id, namespace), {})
        listeners[listener_id] = listener
        return lambda: listeners.pop(listener_id, None)
