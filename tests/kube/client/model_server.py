"""A model of an API server's list and watch, in process: a collection, a history it can forget, connections that break.

It is the ground truth for the reflector's properties and a scripted answerer for the rest of the client.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from windlass.kube.api_errors import ConnectionLost, Unreachable
from windlass.kube.redactions import Redactor
from windlass.kube.transport.transports import Response

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from windlass.kube.transport.transports import ByteStream, Request

Obj = dict[str, Any]


class Watcher:
    """One open watch: sends history from a position, until it is cut, falls silent or is told to end."""

    status = 200

    def __init__(self, server: ModelServer, position: int, prefix: list[bytes], seconds: float) -> None:
        self.headers = {"Content-Type": "application/json"}
        self._server = server
        self._position = position
        self._lines = prefix
        self._ends = asyncio.get_running_loop().time() + seconds
        self.is_cut = False
        self.is_silent = False
        self.is_ended = False
        self.wakened = asyncio.Event()

    def send(self, line: Obj) -> None:
        self._lines.append(_line(line))

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        loop = asyncio.get_running_loop()
        while True:
            self.wakened.clear()
            if self.is_silent:
                await asyncio.Event().wait()
            if not self.is_cut:
                self._catch_up()
            sent = b"".join(self._lines)
            self._lines.clear()
            if self.is_cut:
                raise ConnectionLost("cut")
            size = self._server.chunk_size
            for start in range(0, len(sent), size):
                yield sent[start : start + size]
                if self.is_cut:
                    raise ConnectionLost("cut in the middle of a line")
            if self.is_ended or loop.time() >= self._ends:
                return
            try:
                async with asyncio.timeout_at(self._ends):
                    await self.wakened.wait()
            except TimeoutError:
                return

    def _catch_up(self) -> None:
        for version, kind, item in self._server.history:
            if version > self._position:
                self.send({"type": kind, "object": item})
                self._position = version


class ModelServer:
    """Implements `Transport`. `faults` are taken one per request: a number is answered, an exception raised."""

    server = "model://"
    redactor = Redactor()

    def __init__(self, *, streams_state: bool = True, chunk_size: int = 1 << 16) -> None:
        self.version = 1
        self.forgotten = 0
        self.items: dict[str, Obj] = {}
        self.history: list[tuple[int, str, Obj]] = []
        self.everything: list[Obj] = []
        self.watchers: list[Watcher] = []
        self.faults: list[int | Exception] = []
        self.requests: list[Request] = []
        self.streams_state = streams_state
        self.chunk_size = chunk_size
        self.marks_end_of_state = True
        self.deleted_while_streaming = ""
        self.answer: Callable[[Request], Response] | None = None

    def put(self, name: str, *, value: int = 0) -> None:
        self.version += 1
        old = self.items.get(name)
        uid = old["metadata"]["uid"] if old else f"uid-{self.version}"
        item = {
            "metadata": {"name": name, "namespace": "n", "uid": uid, "resourceVersion": str(self.version)},
            "value": value,
        }
        self.items[name] = item
        self._record("MODIFIED" if old else "ADDED", item)

    def delete(self, name: str) -> None:
        if old := self.items.pop(name, None):
            self.version += 1
            metadata = {**old["metadata"], "resourceVersion": str(self.version)}
            self._record("DELETED", {**old, "metadata": metadata})

    def _record(self, kind: str, item: Obj) -> None:
        self.history.append((self.version, kind, item))
        self.everything.append(item)
        self.wake()

    def wake(self) -> None:
        for watcher in self.watchers:
            watcher.wakened.set()

    def forget(self) -> None:
        """Compaction: versions up to now can no longer be watched from."""
        for watcher in self.watchers:
            watcher._catch_up()  # what is open has its own queue
        self.forgotten = self.version
        self.history.clear()

    def bookmark(self) -> None:
        for watcher in self.watchers:
            watcher._catch_up()
            watcher.send({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self.version)}}})
        self.wake()

    def disturb(self, how: str) -> None:
        """`cut`, `silent` or `ended`, for every open watch."""
        for watcher in self.watchers:
            setattr(watcher, f"is_{how}", True)
        self.wake()

    def expire(self) -> None:
        for watcher in self.watchers:
            watcher.send({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}})
            watcher.is_ended = True
        self.wake()

    async def close(self) -> None:
        self.watchers.clear()

    async def exchange(self, request: Request) -> Response:
        await asyncio.sleep(0)  # noqa: TID251 - lets others run, as a network does
        self.requests.append(request)
        if self.faults:
            return _fault(self.faults.pop(0))
        if self.answer:
            return self.answer(request)
        return self._list(parse_qs(urlsplit(request.target).query))

    def _list(self, query: dict[str, list[str]]) -> Response:
        """Pages of two, each from the snapshot its token names; a forgotten one has expired."""
        [token] = query.get("continue", ["0:"])
        snapshot, _, after = token.partition(":")
        if after and int(snapshot) < self.forgotten:
            return _status(410, "Expired")
        version = int(snapshot) or self.version
        if version != self.version:
            return _status(410, "Expired")  # the model keeps no old snapshots: any write expires a running list
        names = sorted(name for name in self.items if name > after)
        page = names[:2] if "limit" in query else names
        more = f"{version}:{page[-1]}" if len(page) < len(names) else ""
        metadata = {"resourceVersion": str(version), "continue": more}
        return _json(200, {"metadata": metadata, "items": [self.items[name] for name in page]})

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[ByteStream]:
        await asyncio.sleep(0)  # noqa: TID251 - lets others run, as a network does
        self.requests.append(request)
        query = {name: value for name, [value] in parse_qs(urlsplit(request.target).query).items()}
        refusal = self._refusal(query)
        if refusal is not None:
            yield _Refused(refusal)
            return
        watcher = Watcher(self, int(query.get("resourceVersion", self.version)), [], float(query["timeoutSeconds"]))
        if "sendInitialEvents" in query:
            for item in self.items.values():
                watcher.send({"type": "ADDED", "object": item})
            if self.deleted_while_streaming:
                self.delete(self.deleted_while_streaming)
                watcher._catch_up()
            marks = {"k8s.io/initial-events-end": "true"}
            mark = {"resourceVersion": str(self.version), "annotations": marks}
            if self.marks_end_of_state:
                watcher.send({"type": "BOOKMARK", "object": {"metadata": mark}})
        self.watchers.append(watcher)
        try:
            yield watcher
        finally:
            if watcher in self.watchers:
                self.watchers.remove(watcher)

    def _refusal(self, query: dict[str, str]) -> Response | None:
        if self.faults:
            return _fault(self.faults.pop(0))
        if "sendInitialEvents" in query and not self.streams_state:
            return _status(422, "Invalid", "sendInitialEvents: Forbidden")
        if int(query.get("resourceVersion", self.version)) < self.forgotten:
            return _status(410, "Expired")
        return None


class _Refused:
    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers = response.headers
        self._body = response.body

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        yield self._body


def _fault(fault: int | Exception) -> Response:
    if isinstance(fault, Exception):
        raise fault
    return _status(fault, "Injected")


def _status(code: int, reason: str, message: str = "") -> Response:
    return _json(code, {"kind": "Status", "code": code, "reason": reason, "message": message})


def _json(code: int, value: object) -> Response:
    return Response(code, {"Content-Type": "application/json"}, msgspec.json.encode(value))


def _line(value: Obj) -> bytes:
    return msgspec.json.encode(value) + b"\n"


REFUSED = Unreachable("connection refused")
LOST = ConnectionLost("reset by peer")
