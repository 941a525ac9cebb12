"""Sync of child Applications through the parent Application that defines them.

An Application runs one operation at a time, so requests that arrive during an operation are batched into the next one.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.argo.cd.applications import APPLICATIONS, Application, Place, parse, result_of
from windlass.argo.cd.sync_requests import Wish
from windlass.core.platform.model.snapshots import Parent, Phase

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from windlass.argo.cd.application_watch import Applications, Follower
    from windlass.argo.cd.application_writer import Writer
    from windlass.kube.client.objects import Plain

LIMIT = timedelta(minutes=5)


class Definitions:
    def __init__(self, applications: Applications, writer: Writer, now: Callable[[], datetime], run_id: str) -> None:
        self._applications = applications
        self._writer = writer
        self._now = now
        self._run_id = run_id
        self._revisions: dict[Place, tuple[str, ...]] = {}
        self._waiting: dict[Place, set[Place]] = {}
        self._turns: dict[Place, asyncio.Lock] = {}
        self._failures: dict[Place, str] = {}
        self.brought: set[Place] = set()
        """Children that this run has synced to their definition."""

    async def bring(self, parent: Parent, child: Place) -> str:
        """Sync the child from its parent; return why that failed, or an empty string.

        All children of a parent are synced to the revision it had when the first of them was requested.
        """
        place = (parent.namespace, parent.name)
        if not self._revisions.setdefault(place, parent.revisions):
            del self._revisions[place]
            return f"{parent}, which defines it, was never compared"
        self._waiting.setdefault(place, set()).add(child)
        async with self._turns.setdefault(place, asyncio.Lock()):
            await asyncio.sleep(0)  # noqa: TID251 - yields only, so that requests starting now join the batch
            if child in self._waiting[place]:  # otherwise the previous batch included it
                batch, self._waiting[place] = sorted(self._waiting[place]), set()
                await self._sync(place, batch)
        return self._failures.pop(child, "")

    async def _sync(self, place: Place, batch: list[Place]) -> None:
        wish = Wish(self._revisions[place], self._run_id, tuple(_named(child) for child in batch))
        with self._applications.following(place) as follower:
            said = await self._ended(follower, wish)
        for child in batch:
            why = said if isinstance(said, str) else _failure(said, child)
            if why:
                self._failures[child] = f"{'/'.join(place)}, which defines it: {why}"
            else:
                self.brought.add(child)

    async def _ended(self, follower: Follower, wish: Wish) -> Application | str:
        """Run the operation; return the Application with its result, or why there is no result."""
        began, before, is_written = self._now(), None, False
        while self._now() - began < LIMIT:
            if follower.current is None:
                return "it does not exist"
            state = parse(follower.current)
            if is_written and not state.operation_requested:
                is_other = state.operation != before
                is_ours = state.operation is not None and state.operation.run_id == self._run_id
                if is_ours and (is_other or _synced_by(follower.current) == [*wish.resources]):
                    return follower.current
                # An operation that seemed abandoned has ended and dropped our request: write it again.
                is_written = not is_other
            if not is_written and not state.operation_requested:
                answer = await self._writer.try_sync(follower.current, wish)
                if isinstance(answer, str):
                    return answer
                if answer is not None:
                    before, is_written = state.operation, True
                    follower.wrote(answer)
            await follower.next()
        return f"its operation is not over after {LIMIT.total_seconds():g} s"


def _named(child: Place) -> Plain:
    return {"group": APPLICATIONS.group, "kind": APPLICATIONS.kind, "namespace": child[0], "name": child[1]}


def _synced_by(application: Application) -> list[Plain]:
    """Resources that the last operation named: two operations within one second differ in nothing else."""
    state = application.status.operation_state if application.status else None
    asked = state.operation.sync if state and state.operation else None
    return (asked.resources if asked else None) or []


def _failure(parent: Application, child: Place) -> str:
    operation = parse(parent).operation
    assert operation is not None
    if operation.phase is Phase.SUCCEEDED:
        return ""
    status, message = result_of(parent, child)
    return "" if status == "Synced" else message or operation.message or f"its operation ended {operation.phase}"
