"""Sync of child Applications through the parent Application that defines them.

An Application runs one operation at a time, so requests that arrive during an operation are batched into the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.argo.cd.application_resources import child_sync_result
from windlass.argo.cd.applications import APPLICATIONS, Application, ObjectKey, requested_run_id
from windlass.argo.cd.sync_requests import SyncRequest
from windlass.core.platform.gate_values import abbreviate
from windlass.core.platform.model.snapshots import OperationPhase, ParentApplication
from windlass.kube.api_errors import TRANSIENT_ERRORS

if TYPE_CHECKING:
    from datetime import datetime

    from windlass.argo.cd.application_watch import ApplicationsWatch, ApplicationWatch
    from windlass.argo.cd.application_writer import ApplicationWriter
    from windlass.kube.client.objects import RawObject

PARENT_SYNC_TIMEOUT = timedelta(minutes=5)
ReadyNodes = Callable[[Collection[str]], Awaitable[Collection[str]]]
"""Those of these nodes whose sync may start now. One call for all of them: verdicts that are read one after another
would be of different ages when the operation is written."""


class ParentSync:
    def __init__(
        self,
        applications: ApplicationsWatch,
        writer: ApplicationWriter,
        now: Callable[[], datetime],
        run_id: str,
        ready_nodes: ReadyNodes,
    ) -> None:
        self._applications = applications
        self._writer = writer
        self._now = now
        self._run_id = run_id
        self._ready_nodes = ready_nodes
        self._definitions: dict[ObjectKey, SyncRequest] = {}
        """By parent: the revisions and sources from which all of its children are synced."""
        self._pending_children: dict[ObjectKey, dict[ObjectKey, set[str]]] = {}
        """By parent and child: the nodes that need the child."""
        self._locks: dict[ObjectKey, asyncio.Lock] = {}
        self._results: dict[ObjectKey, str | None] = {}
        """How the last request for each child ended; several steps may request the same one."""
        self.synced_children: set[ObjectKey] = set()
        """Children that this run has synced to their definition."""

    async def sync_child(self, parent: ParentApplication, child: ObjectKey, node: str) -> str | None:
        """Sync the child, which this node needs, from its parent; return why that failed, or an empty string.

        The request may wait for other operations: `None` if the node was not ready any more when it was its turn. All
        children of a parent are synced from the revisions and sources it had when the first of them was requested: what
        defines the parent may change it during the run, and its children would then be of different commits.
        """
        parent_key = (parent.namespace, parent.name)
        if not parent.revisions:
            return f"{parent}, which defines it, was never compared"
        definition = SyncRequest(parent.revisions, self._run_id, sources=parent.sources)
        self._definitions.setdefault(parent_key, definition)
        self._pending_children.setdefault(parent_key, {}).setdefault(child, set()).add(node)
        self._results.pop(child, None)
        async with self._locks.setdefault(parent_key, asyncio.Lock()):
            await asyncio.sleep(0)  # noqa: TID251 - yields only, so that requests starting now join the batch
            if child in self._pending_children[parent_key]:  # otherwise the previous batch included it
                batch, self._pending_children[parent_key] = self._pending_children[parent_key], {}
                await self._sync(parent_key, dict(sorted(batch.items())))
        return self._results.get(child)  # none, too, if an error ended the request, such as a lost lock

    async def _sync(self, parent_key: ObjectKey, batch: dict[ObjectKey, set[str]]) -> None:
        with self._applications.watch(parent_key) as watch:
            children, result = await self._run_operation(watch, self._definitions[parent_key], batch)
            if watch.current is not None:
                self._writer.close_request(watch.current, self._run_id)
        self._results |= dict.fromkeys(batch)
        for child in children:
            shorten = self._writer.client.redactor.message
            failure = result if isinstance(result, str) else shorten(_child_failure(result, child))
            self._results[child] = f"{'/'.join(parent_key)}, which defines it: {failure}" if failure else ""
            if not failure:
                self.synced_children.add(child)

    async def _run_operation(
        self, watch: ApplicationWatch, request: SyncRequest, batch: dict[ObjectKey, set[str]]
    ) -> tuple[Collection[ObjectKey], Application | str]:
        """Run the operation; return the children that were ready when it was requested, and the result.

        The result is the Application after the operation, or why there is none.
        """
        started, previous_operation, is_written = self._now(), None, False
        children: Collection[ObjectKey] = batch
        while self._now() - started < PARENT_SYNC_TIMEOUT:
            if watch.current is None:
                return children, "it does not exist"
            state = watch.current.state
            if is_written and not state.operation_requested:
                is_new_operation = state.operation != previous_operation
                is_ours = state.operation is not None and state.operation.run_id == self._run_id
                if is_ours and (is_new_operation or _operation_resources(watch.current) == [*request.resources]):
                    return children, watch.current
                # An operation that seemed abandoned has ended and dropped our request: write it again.
                is_written = not is_new_operation
            if not is_written and not state.operation_requested:
                ready = frozenset(await self._ready_nodes(frozenset().union(*batch.values())))
                children = [child for child, nodes in batch.items() if nodes & ready]
                if not children:
                    return children, ""
                request = replace(request, resources=tuple(map(_child_resource, children)))
                response = await self._writer.try_sync(watch.current, request)
                if isinstance(response, str):
                    return children, response
                if response is not None:
                    previous_operation, is_written = state.operation, True
                    watch.record_write(response)
            await watch.wait_for_change()
        await self._end_operation(watch)
        return children, f"its operation is not over after {PARENT_SYNC_TIMEOUT.total_seconds():g} s"

    async def _end_operation(self, watch: ApplicationWatch) -> None:
        """End the operation if this run requested it; the run ends later what cannot be ended now."""
        if watch.current is not None and requested_run_id(watch.current) == self._run_id:
            with suppress(*TRANSIENT_ERRORS):
                watch.record_write(await self._writer.end_operation(watch.current))


def _child_resource(child: ObjectKey) -> RawObject:
    return {"group": APPLICATIONS.group, "kind": APPLICATIONS.kind, "namespace": child[0], "name": child[1]}


def _operation_resources(application: Application) -> list[RawObject]:
    """Resources that the last operation named: two operations within one second differ in nothing else."""
    state = application.status.operation_state if application.status else None
    sync = state.operation.sync if state and state.operation else None
    return (sync.resources if sync else None) or []


def _child_failure(parent: Application, child: ObjectKey) -> str:
    """Why the operation did not sync this child; empty if it did, whatever became of the others."""
    operation = parent.state.operation
    assert operation is not None
    status, message = child_sync_result(parent, child)
    if status == "Synced":
        return ""
    if not status and operation.phase is OperationPhase.SUCCEEDED:
        return f"it does not define it at {abbreviate(operation.revisions)}"
    return message or operation.message or f"its operation ended {operation.phase}"
