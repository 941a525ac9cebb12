"""`wait`: wait until one Application is proven healthy, in sync and at the requested revision. Reads only.

"Synced and Healthy" is not enough: right after a sync both still describe the state before it. The gate needs proof.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from windlass.argo.cd.applications import APPLICATIONS, Application, NotServed, parse
from windlass.core.platform import gates
from windlass.core.platform.gates import Failed, Open, Reason, Seen, Wait, Wanted
from windlass.core.platform.model.applications import Patience
from windlass.core.platform.model.snapshots import ApplicationState, Phase, Sync, wanted_revisions
from windlass.core.platform.planning.plans import is_drifting
from windlass.kube.api_errors import KubeError, NotFound
from windlass.kube.client.readers import Selection
from windlass.kube.client.reflectors import Reflector

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from windlass.core.platform.gates import Judgement
    from windlass.core.platform.model.applications import ApplicationRef
    from windlass.operations.observation import Cluster

TICK = 1.0  # seconds; evaluate again even without a change, because some proof depends on elapsed time
FOREVER = timedelta(days=36_500)  # the caller sets the timeout
PATIENCE = Patience(sync=FOREVER, health=FOREVER)
_ABBREVIATED = re.compile(r"[0-9a-f]{7,63}")


@dataclass(frozen=True, slots=True)
class Wish:
    """What `wait` was asked to wait for.

    `revisions`: empty for the target revision of the Application; one to match any source; several, one per source.
    """

    target: ApplicationRef
    revisions: tuple[str, ...] = ()
    limit: timedelta = FOREVER


@dataclass(frozen=True, slots=True)
class OutOfTime:
    """The timeout passed; `detail` says what was still missing."""

    detail: str


Told = ApplicationState | None | KubeError


@dataclass(slots=True)
class _Memory:
    """What was observed so far, and since when the last operation has been a failed one."""

    reflector: Reflector[Application]
    seen: Seen | None = None
    failed_since: datetime | None = None
    told: str = ""
    states: asyncio.Queue[Told] = field(default_factory=asyncio.Queue)


async def wait(cluster: Cluster, wish: Wish, tell: Callable[[str], None]) -> Open | Failed | OutOfTime:
    """Wait for the Application; call `on_progress` with what is missing whenever that changes."""
    select = Selection(fields=f"metadata.name={wish.target.name}")
    ref = APPLICATIONS.within(wish.target.namespace or cluster.argocd)
    reflector = Reflector(cluster.reader, ref, Application, select=select)
    memory = _Memory(reflector)
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(_follow(reflector, memory.states))
        try:
            async with asyncio.timeout(wish.limit.total_seconds()):
                end = await _end(cluster, wish, memory, tell)
        except TimeoutError:
            end = OutOfTime(memory.told or "the server has not answered")
        finally:
            following.cancel()
    if isinstance(end, NotFound):
        raise NotServed(end.where) from None
    if isinstance(end, KubeError):
        raise end
    return end


async def _end(
    cluster: Cluster, wish: Wish, memory: _Memory, tell: Callable[[str], None]
) -> Open | Failed | OutOfTime | KubeError:
    while True:
        if (error := await _look(cluster, memory)) is not None:
            return error
        judgement = _judged(wish, memory, cluster.now())
        if isinstance(judgement, Open | Failed):
            return judgement
        trouble = memory.reflector.trouble
        detail = f"no news from the server: {trouble.what}" if trouble else judgement.detail
        if detail != memory.told:
            memory.told = detail
            tell(detail)


async def _follow(reflector: Reflector[Application], states: asyncio.Queue[Told]) -> None:
    """Queue every state in order; `None` if the Application does not exist."""
    try:
        async for change in reflector.changes():
            if change.new is not None:
                states.put_nowait(parse(change.new))
            elif change.old is not None or not reflector.view:
                states.put_nowait(None)
    except KubeError as error:
        states.put_nowait(error)


async def _look(cluster: Cluster, memory: _Memory) -> KubeError | None:
    """Record the next state, or none after `REEVALUATE_INTERVAL`; wait for the first one without limit.

    Return the error if the watch failed.
    """
    try:
        async with asyncio.timeout(TICK if memory.seen else None):
            state = await memory.states.get()
    except TimeoutError:
        return None
    if isinstance(state, KubeError):
        return state
    now = cluster.now()
    memory.seen = gates.followed(memory.seen, state, now) if memory.seen else gates.first_seen(state, now)
    has_failed = state is not None and _has_failed(state)
    memory.failed_since = (memory.failed_since or now) if has_failed else None
    return None


def _judged(wish: Wish, memory: _Memory, now: datetime) -> Judgement:
    seen = memory.seen
    assert seen is not None
    state = seen.last
    if not isinstance(state, ApplicationState):
        was_there = seen.before is not None or bool(seen.earlier_revisions)
        return Failed(Reason.ABSENT, "it was deleted") if was_there else Wait(Reason.ABSENT, "it does not exist yet")
    wanted = _wanted(wish.revisions, state)
    judgement = gates.judge(Wanted(wanted, state.sources, PATIENCE), seen, now)
    if isinstance(judgement, Open) and state.sync is not Sync.SYNCED and not is_drifting(state, wanted):
        judgement = Wait(Reason.NOT_COMPARED, f"it is {state.sync} at {gates.short(state.revisions)}")
    if isinstance(judgement, Open | Failed) or memory.failed_since is None:
        return judgement
    return _failed_operation(wish, state, now - memory.failed_since) or judgement


def _has_failed(state: ApplicationState) -> bool:
    """Whether the last operation failed, no other one is requested, and the Application is not in sync."""
    operation = state.operation
    if operation is None or state.operation_requested or state.sync is Sync.SYNCED:
        return False
    return operation.phase in {Phase.FAILED, Phase.ERROR}


def _failed_operation(wish: Wish, state: ApplicationState, lasted: timedelta) -> Failed | None:
    """The failure, once it has lasted for the grace period: another client may be about to retry.

    A failed operation on another revision does not count.
    """
    operation = state.operation
    assert operation is not None
    is_ours = not wish.revisions or not operation.revisions or _wanted(wish.revisions, state) == operation.revisions
    if not is_ours or lasted < PATIENCE.degraded_grace:
        return None
    said = f": {operation.message}" if operation.message else ""
    return Failed(Reason.OPERATION_FAILED, f"its operation ended {operation.phase}{said}")


def _wanted(asked: tuple[str, ...], state: ApplicationState) -> tuple[str, ...]:
    """The revisions to wait for; an abbreviated commit stands for the commit shown, if that starts with it."""
    shown = state.revisions
    if not asked:
        return wanted_revisions(state)
    if len(asked) == 1:
        return shown if any(_is(revision, asked[0]) for revision in shown) else asked * max(1, len(state.sources))
    if len(asked) != len(shown):
        return asked
    return tuple(each if _is(each, wish) else wish for each, wish in zip(shown, asked, strict=True))


def _is(shown: str, asked: str) -> bool:
    return shown == asked or (bool(_ABBREVIATED.fullmatch(asked)) and shown.startswith(asked))
