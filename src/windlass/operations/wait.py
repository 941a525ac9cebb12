"""`wait`: wait until one Application is proven healthy, in sync and at the requested revision. Reads only.

"Synced and Healthy" is not enough: right after a sync both still describe the state before it. The gate needs proof.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from windlass.argo.cd.application_resources import child_applications
from windlass.argo.cd.applications import APPLICATIONS, Application, NotServed
from windlass.argo.gate_evaluation import evaluate_with_objects
from windlass.core.platform import gates
from windlass.core.platform.gate_values import Failed, GateHistory, GateTarget, Open, Reason, Wait, abbreviate
from windlass.core.platform.model.applications import NodeTiming
from windlass.core.platform.model.snapshots import ApplicationState, OperationPhase, SyncStatus, desired_revisions
from windlass.core.platform.planning.plans import is_drifting
from windlass.errors import WindlassError
from windlass.kube.api_errors import KubeError, NotFound
from windlass.kube.client.readers import Selection
from windlass.kube.client.reflectors import Reflector
from windlass.operations.object_health import ObjectCheck, check_objects
from windlass.operations.observation import NoNamespace, check_argocd_namespace

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from windlass.core.platform.gate_values import GateDecision
    from windlass.core.platform.model.applications import ApplicationRef
    from windlass.operations.observation import ObservedCluster

REEVALUATE_INTERVAL = 1.0  # seconds; evaluate again even without a change, because some proof depends on elapsed time
FOREVER = timedelta(days=36_500)  # the caller sets the timeout
NODE_TIMING = NodeTiming(sync=FOREVER, health=FOREVER)
_ABBREVIATED_COMMIT = re.compile(r"[0-9a-f]{7,63}")


@dataclass(frozen=True, slots=True)
class WaitRequest:
    """What `wait` was asked to wait for.

    `revisions`: empty for the target revision of the Application; one to match any source; several, one per source.
    """

    target: ApplicationRef
    revisions: tuple[str, ...] = ()
    timeout: timedelta = FOREVER


@dataclass(frozen=True, slots=True)
class WaitTimeout:
    """The timeout passed; `detail` says what was still missing."""

    detail: str


WatchUpdate = Application | None | KubeError


@dataclass(slots=True)
class _WaitProgress:
    """What was observed so far, and since when the last operation has been a failed one."""

    reflector: Reflector[Application]
    application: Application | None = None
    history: GateHistory | None = None
    failed_since: datetime | None = None
    last_message: str = ""
    updates: asyncio.Queue[WatchUpdate] = field(default_factory=asyncio.Queue)


async def wait(
    cluster: ObservedCluster, request: WaitRequest, on_progress: Callable[[str], None]
) -> Open | Failed | WaitTimeout:
    """Wait for the Application; call `on_progress` with what is missing whenever that changes."""
    select = Selection(fields=f"metadata.name={request.target.name}")
    ref = APPLICATIONS.in_namespace(request.target.key(cluster.argocd_namespace)[0])
    reflector = Reflector(cluster.reader, ref, Application, select=select)
    progress = _WaitProgress(reflector)
    async with asyncio.TaskGroup() as tasks:
        watch_task = tasks.create_task(_watch_application(reflector, progress.updates))
        try:
            async with asyncio.timeout(request.timeout.total_seconds()):
                result = await _wait_for_result(cluster, request, progress, on_progress)
        except TimeoutError:
            result = WaitTimeout(progress.last_message or "the server has not answered")
        finally:
            watch_task.cancel()
    if isinstance(result, NotFound):
        raise NotServed(result.where) from None
    if isinstance(result, WindlassError):
        raise result
    return result


async def _wait_for_result(
    cluster: ObservedCluster, request: WaitRequest, progress: _WaitProgress, on_progress: Callable[[str], None]
) -> Open | Failed | WaitTimeout | WindlassError:
    while True:
        is_first = progress.history is None
        if (error := await _record_next_update(cluster, progress)) is not None:
            return error
        if is_first and progress.application is None and (misplaced := await _namespace_error(cluster, request)):
            return misplaced
        decision = await _evaluate(cluster, request, progress)
        if isinstance(decision, Open | Failed):
            return decision
        watch_error = progress.reflector.current_error
        detail = f"no news from the server: {watch_error.what}" if watch_error else decision.detail
        if detail != progress.last_message:
            progress.last_message = detail
            on_progress(detail)


async def _namespace_error(cluster: ObservedCluster, request: WaitRequest) -> WindlassError | None:
    """Why an Application without a namespace cannot be found; `None` if Argo CD is in its namespace."""
    if request.target.namespace is not None:
        return None
    try:
        await check_argocd_namespace(cluster, {})
    except NoNamespace as error:
        error.hint = f"name the namespace of the Application: NAMESPACE/{request.target.name}"
        return error
    except KubeError as error:
        return error
    return None


async def _watch_application(reflector: Reflector[Application], updates: asyncio.Queue[WatchUpdate]) -> None:
    """Queue every state in order; `None` if the Application does not exist."""
    try:
        async for change in reflector.changes():
            if change.new is not None:
                updates.put_nowait(change.new)
            elif change.old is not None or not reflector.view:
                updates.put_nowait(None)
    except KubeError as error:
        updates.put_nowait(error)


async def _record_next_update(cluster: ObservedCluster, progress: _WaitProgress) -> KubeError | None:
    """Record the next state, or none after `REEVALUATE_INTERVAL`; wait for the first one without limit.

    Return the error if the watch failed.
    """
    try:
        async with asyncio.timeout(REEVALUATE_INTERVAL if progress.history else None):
            update = await progress.updates.get()
    except TimeoutError:
        return None
    if isinstance(update, KubeError):
        return update
    progress.application = update
    state, now = update.state if update else None, cluster.now()
    progress.history = progress.history or gates.start_history(state, now)
    has_failed_operation = state is not None and _has_failed_operation(state)
    progress.failed_since = (progress.failed_since or now) if has_failed_operation else None
    return None


async def _evaluate(cluster: ObservedCluster, request: WaitRequest, progress: _WaitProgress) -> GateDecision:
    application, history = progress.application, progress.history
    assert history is not None
    if application is None:
        has_existed = history.initial is not None or bool(history.earlier_revisions)
        return Failed(Reason.ABSENT, "it was deleted") if has_existed else Wait(Reason.ABSENT, "it does not exist yet")
    state = application.state
    revisions = _revisions_to_await(request.revisions, state)
    target = GateTarget(revisions, state.sources, NODE_TIMING)
    decision, progress.history = await evaluate_with_objects(
        target, history, state, partial(_assess, cluster, application), cluster.now
    )
    if isinstance(decision, Open) and state.sync is not SyncStatus.SYNCED and not is_drifting(state, revisions):
        decision = Wait(Reason.NOT_COMPARED, f"it is {state.sync} at {abbreviate(state.revisions)}")
    if isinstance(decision, Open | Failed) or progress.failed_since is None:
        return decision
    return _operation_failure(request, state, cluster.now() - progress.failed_since) or decision


async def _assess(cluster: ObservedCluster, application: Application, state: ApplicationState) -> ApplicationState:
    """Assess the Application as one that is not critical, and not its children, which can be waited for themselves."""
    children = frozenset(key for key, _ in child_applications(application))
    checks = {"": ObjectCheck(application, state, is_critical=False)}
    return (await check_objects(cluster, checks, children))[""].state


def _has_failed_operation(state: ApplicationState) -> bool:
    """Whether the last operation failed, no other one is requested, and the Application is not in sync."""
    operation = state.operation
    if operation is None or state.operation_requested or state.sync is SyncStatus.SYNCED:
        return False
    return operation.phase in {OperationPhase.FAILED, OperationPhase.ERROR}


def _operation_failure(request: WaitRequest, state: ApplicationState, duration: timedelta) -> Failed | None:
    """The failure, once it has lasted for the grace period: another client may be about to retry.

    A failed operation on another revision does not count.
    """
    operation = state.operation
    assert operation is not None
    is_requested_revision = (
        not request.revisions
        or not operation.revisions
        or _revisions_to_await(request.revisions, state) == operation.revisions
    )
    if not is_requested_revision or duration < NODE_TIMING.degraded_grace:
        return None
    message = f": {operation.message}" if operation.message else ""
    return Failed(Reason.OPERATION_FAILED, f"its operation ended {operation.phase}{message}")


def _revisions_to_await(requested: tuple[str, ...], state: ApplicationState) -> tuple[str, ...]:
    """The revisions to wait for; an abbreviated commit stands for the commit shown, if that starts with it."""
    current = state.revisions
    if not requested:
        return desired_revisions(state)
    if len(requested) == 1:
        return (
            current
            if any(_matches_revision(revision, requested[0]) for revision in current)
            else requested * max(1, len(state.sources))
        )
    if len(requested) != len(current):
        return requested
    return tuple(
        current_revision if _matches_revision(current_revision, requested_revision) else requested_revision
        for current_revision, requested_revision in zip(current, requested, strict=True)
    )


def _matches_revision(current: str, requested: str) -> bool:
    return current == requested or (bool(_ABBREVIATED_COMMIT.fullmatch(requested)) and current.startswith(requested))
