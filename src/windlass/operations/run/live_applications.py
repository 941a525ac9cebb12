"""The Applications of a cluster during a run: one watch for everything that reads them or waits for them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from windlass.argo.cd import root_application
from windlass.argo.cd.application_resources import child_applications
from windlass.argo.cd.application_watch import ApplicationsWatch
from windlass.argo.cd.applications import NotServed, requested_run_id
from windlass.argo.cd.diagnostics import diagnose_application
from windlass.core.log_lines import Level, LogLine
from windlass.core.platform.model.applications import ApplicationRef
from windlass.core.platform.model.snapshots import OperationPhase, Snapshot
from windlass.errors import WindlassError
from windlass.kube.api_errors import TRANSIENT_ERRORS, KubeError, NotFound
from windlass.operations.observation import build_observation, read_resource_state, with_definitions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping

    from windlass.argo.cd.application_watch import ApplicationWatch
    from windlass.argo.cd.application_writer import ApplicationWriter
    from windlass.argo.cd.applications import Application, ObjectKey
    from windlass.core.platform.model.applications import Platform, ResourceRef
    from windlass.core.platform.model.snapshots import ResourceState
    from windlass.operations.observation import Observation
    from windlass.operations.run.context import RunContext

REFRESH_TIMEOUT = 30  # seconds for Argo CD to compare again; after that it counts as not answering
DIAGNOSTICS_LIMIT = 60.0  # seconds for all nodes of a run together
END_OPERATIONS_TIMEOUT = 10.0  # seconds to end the operations of a run that ends early
END_OPERATION_INTERVAL = 0.5  # seconds until the next look at an operation that is being ended


class LiveApplications:
    def __init__(self, context: RunContext, platform: Platform) -> None:
        self._context = context
        self._platform = platform
        self._error: KubeError | None = None
        self._cluster = context.cluster
        targets = [node.target for node in platform.applications.values()]
        target_namespaces = {ref.key(context.argocd_namespace)[0] for ref in targets if isinstance(ref, ApplicationRef)}
        self.namespaces = frozenset(target_namespaces | {context.argocd_namespace})
        self.applications = ApplicationsWatch(context.cluster.reader, self.namespaces, self._repeat_missed_request)

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            watch_task = tasks.create_task(self._run_watch(), name="applications")
            try:
                yield
            finally:
                watch_task.cancel()

    async def _run_watch(self) -> None:
        try:
            await self.applications.run()
        except KubeError as error:
            self._error = error
            self.applications.initial_list_done.set()
            self._context.control.fail(error)

    async def wait_for_initial_list(self) -> None:
        """Wait until all existing Applications are listed; raise the error if the watch failed."""
        await self.applications.initial_list_done.wait()
        if isinstance(self._error, NotFound):
            raise NotServed(self._error.where) from None
        if self._error is not None:
            raise self._error

    async def observe(self) -> Observation:
        taken_at, names, view = self._cluster.now(), self._platform.graph.names, self.applications.view
        return await build_observation(self._cluster, self._platform, names, taken_at, view)

    async def snapshot(self) -> Snapshot:
        return (await self.observe()).snapshot

    async def observe_definitions(self) -> Snapshot:
        """What defines the nodes now, without their states."""
        snapshot = Snapshot(self._cluster.now())
        return await with_definitions(self._cluster, self._platform, snapshot, self.applications.view)

    @property
    def root(self) -> Application | None:
        return self.applications.view.get((self._context.argocd_namespace, root_application.NAME))

    def find_application(self, name: str) -> Application | None:
        """The Application of a node as the watch shows it; `None` if there is none or the node is another object."""
        target = self._platform.applications[name].target
        if not isinstance(target, ApplicationRef):
            return None
        return self.applications.view.get(target.key(self._context.argocd_namespace))

    async def read_resource(self, ref: ResourceRef) -> ResourceState | None:
        return await read_resource_state(self._cluster, ref)

    async def refresh(self, keys: Collection[ObjectKey]) -> None:
        """Have Argo CD compare these Applications again; those it does not compare are remembered as unanswered."""
        async with asyncio.TaskGroup() as tasks:
            for key in sorted(keys):
                tasks.create_task(self._refresh_application(key), name=f"refresh of {'/'.join(key)}")

    def keys_to_refresh(self, names: Collection[str]) -> set[ObjectKey]:
        """These nodes, their parents and the root, if they follow a branch, tag or version range that may have moved.

        A root that defines none of them now may define them at its next commit.
        """
        targets = [self._platform.applications[name].target for name in names]
        keys = {ref.key(self._context.argocd_namespace) for ref in targets if isinstance(ref, ApplicationRef)}
        applications = self.applications.view
        keys.add((self._context.argocd_namespace, root_application.NAME))
        parents = set(keys)
        while parents:  # the parents of parents too
            parents = {
                key
                for key, application in applications.items()
                if key not in keys and any(child in parents for child, _ in child_applications(application))
            }
            keys |= parents
        existing = (key for key in keys if key in applications)
        return {key for key in existing if applications[key].state.has_mutable_revision}

    async def _refresh_application(self, key: ObjectKey) -> None:
        with self.applications.watch(key) as watch:
            try:
                async with asyncio.timeout(REFRESH_TIMEOUT):
                    await _wait_for_refresh(watch)  # a refresh requested earlier may return an older comparison
                    if watch.current is not None:
                        watch.record_write(await self._context.refresher.refresh(watch.current))
                        await _wait_for_refresh(watch)
            except (TimeoutError, *TRANSIENT_ERRORS):
                self._cluster.definitions.unanswered.add(key)
                message = f"Argo CD did not compare {'/'.join(key)} within {REFRESH_TIMEOUT} s"
                self._context.control.emit(LogLine(Level.WARN, message))
            else:
                self._cluster.definitions.unanswered.discard(key)

    async def _repeat_missed_request(self, application: Application) -> Application | None:
        """Request a refresh if Argo CD missed a request: any write triggers it, and this one changes nothing else."""
        has_missed_request = _has_missed_request(application, self._context.run_id)
        return await self._context.refresher.try_refresh(application) if has_missed_request else None

    async def diagnostics(self, names: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        """Lines that may explain why these nodes are not healthy, by node; what cannot be read in time is left out.

        A request to stop ends it, unless the run was stopped before: then its report explains what was under way.
        """
        diagnostics: dict[str, tuple[str, ...]] = {}
        control, work = self._context.control, self._diagnose(names, diagnostics)
        with suppress(WindlassError, TimeoutError):
            async with asyncio.timeout(DIAGNOSTICS_LIMIT):
                await (work if control.stop.is_set() else control.unless_stopped(work))
        return diagnostics

    async def _diagnose(self, names: Collection[str], diagnostics: dict[str, tuple[str, ...]]) -> None:
        for name in names:
            application = self.find_application(name)
            if application is not None:
                diagnostics[name] = await diagnose_application(self._cluster.reader, application)

    async def end_operations(self, writer: ApplicationWriter) -> None:
        """End the operations of this run that still wait or run, and wait until Argo CD has ended them."""
        for key in sorted(writer.open_requests):
            if (application := self.applications.view.get(key)) is not None:
                writer.close_request(application, self._context.run_id)
        try:
            async with asyncio.timeout(END_OPERATIONS_TIMEOUT), asyncio.TaskGroup() as tasks:
                for key in sorted(writer.open_requests):
                    tasks.create_task(self._end_operation(writer, key), name=f"end of the operation on {'/'.join(key)}")
        except TimeoutError:
            pass
        for key in sorted(writer.open_requests):
            message = f"the operation of this run on {'/'.join(key)} could not be ended and may go on"
            self._context.control.emit(LogLine(Level.WARN, message))

    async def _end_operation(self, writer: ApplicationWriter, key: ObjectKey) -> None:
        """End the operation until it is over. An error that does not pass, such as a lost lock, leaves it open."""
        run_id = self._context.run_id
        while key in writer.open_requests:
            if (application := self.applications.view.get(key)) is None:
                return
            try:
                # The refresh changes the version, so that a request that is still under way is refused.
                application = await self._context.refresher.refresh(application)
                writer.close_request(application, run_id)
                if key in writer.open_requests and not _is_terminating(application):
                    writer.close_request(await writer.end_operation(application), run_id)
            except TRANSIENT_ERRORS:
                pass
            except WindlassError:
                return
            await self._context.clock.sleep(END_OPERATION_INTERVAL)


def _is_terminating(application: Application) -> bool:
    operation = application.state.operation
    return operation is not None and operation.phase is OperationPhase.TERMINATING


def _has_missed_request(application: Application, run_id: str) -> bool:
    """Whether a refresh, or an operation of this run, is requested and Argo CD does not show that it has started."""
    state = application.state
    if state.is_deleting:
        return False
    is_idle = state.operation is None or state.operation.is_finished
    return state.refresh_requested or (is_idle and requested_run_id(application) == run_id)


async def _wait_for_refresh(watch: ApplicationWatch) -> None:
    """Wait until the requested refresh, if there is one, is done."""
    while watch.state is not None and watch.state.refresh_requested:
        await watch.wait_for_change()
