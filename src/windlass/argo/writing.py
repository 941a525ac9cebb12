"""The few things we ever write to an Application: an operation, its end, the wish for a refresh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from windlass.argo.applications import APPLICATIONS, REFRESH, Application, parse
from windlass.argo.operations import sync_operation
from windlass.kube.api_errors import (
    Conflict,
    ConnectionLost,
    DeadlineExceeded,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)

PASSING = (Conflict, ConnectionLost, DeadlineExceeded, NotFound, ServerError, TooManyRequests, Unreachable)
"""After these, a look at the Application says more than the error did."""

if TYPE_CHECKING:
    from collections.abc import Callable

    from windlass.argo.operations import Wish
    from windlass.kube.clients import KubeClient
    from windlass.kube.objects import Plain


@dataclass(slots=True)
class Writer:
    """`allow` raises where nothing may be written any more; it is asked before every write."""

    client: KubeClient
    allow: Callable[[], None] = lambda: None
    refreshes: int = 0

    async def sync(self, application: Application, wish: Wish) -> Application:
        """Onto exactly this state of it: a conflict says that it has moved."""
        return await self._patch(application, {"operation": sync_operation(application, wish)})

    async def try_sync(self, application: Application, wish: Wish) -> Application | str | None:
        """None if it has moved, or nobody knows what came of it: look again. A text says why it cannot be."""
        try:
            return await self.sync(application, wish)
        except PASSING:
            return None
        except KubeError as error:
            return f"the operation was refused: {error.what}"

    async def end_operation(self, application: Application) -> Application:
        """Terminates the one that runs, or takes back one that Argo CD has not taken up."""
        operation = parse(application).operation
        if operation is None or operation.is_over:
            return await self._patch(application, {"operation": None})
        # Argo CD has no other door for that: an Application has no status subresource.
        return await self._patch(application, {"status": {"operationState": {"phase": "Terminating"}}})

    async def refresh(self, application: Application) -> Application:
        """Asks Argo CD to compare it again. Changes nothing else, so it needs no guard against others."""
        self.allow()
        self.refreshes += 1
        ref = APPLICATIONS.named(application.metadata.name, application.metadata.namespace)
        return _read(await self.client.patch(ref, {"metadata": {"annotations": {REFRESH: "normal"}}}))

    async def _patch(self, application: Application, change: Plain) -> Application:
        self.allow()
        meta = application.metadata
        guarded = {"metadata": {"resourceVersion": meta.resource_version}, **change}
        return _read(await self.client.patch(APPLICATIONS.named(meta.name, meta.namespace), guarded))


def _read(answer: Plain) -> Application:
    return msgspec.convert(answer, Application)
