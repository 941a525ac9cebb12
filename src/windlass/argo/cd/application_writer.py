"""The few things we ever write to an Application: an operation, its end, the wish for a refresh; and its removal."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from windlass.argo.cd.applications import APPLICATIONS, REFRESH, Application, parse
from windlass.argo.cd.resource_tracking import CASCADE, cascades
from windlass.argo.cd.sync_requests import sync_operation
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

    from windlass.argo.cd.sync_requests import Wish
    from windlass.kube.client.clients import KubeClient, Propagation
    from windlass.kube.client.objects import Plain
    from windlass.kube.client.resources import Ref


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
        """Asks Argo CD to compare it again. Changes nothing else, so it needs no guard against others.

        Where that is asked for already it is asked in another word, or the server would not tell anybody.
        """
        self.allow()
        self.refreshes += 1
        asked = (application.metadata.annotations or {}).get(REFRESH)
        word = {"hard": "hard", "normal": "again"}.get(asked or "", "normal")
        return _read(await self.client.patch(_ref(application), {"metadata": {"annotations": {REFRESH: word}}}))

    async def try_refresh(self, application: Application) -> Application | None:
        """None if nobody knows what came of it."""
        try:
            return await self.refresh(application)
        except PASSING:
            return None

    async def remove(self, application: Application) -> None:
        """Asks for this one life of it to end, together with all that it made."""
        if not cascades(application):
            application = await self._patch_finalizers(application, [*application.metadata.finalizers, CASCADE])
        await self.delete(_ref(application), application.metadata.uid)

    async def cascade(self, application: Application) -> None:
        """When it is removed, what it made goes with it."""
        if not cascades(application) and not application.metadata.deletion_timestamp:
            await self._patch_finalizers(application, [*application.metadata.finalizers, CASCADE])

    async def detach(self, application: Application) -> None:
        """Ends this one life of it, and nothing else."""
        if cascades(application):
            kept = [name for name in application.metadata.finalizers if not name.startswith(CASCADE)]
            application = await self._patch_finalizers(application, kept)
        await self.delete(_ref(application), application.metadata.uid, "Orphan")

    async def delete(self, ref: Ref, uid: str, propagation: Propagation = "Background") -> None:
        """Any object; one that is gone already was deleted."""
        self.allow()
        with suppress(NotFound):
            await self.client.delete(ref, uid=uid, propagation=propagation)

    async def _patch_finalizers(self, application: Application, finalizers: list[str]) -> Application:
        return await self._patch(application, {"metadata": {"finalizers": finalizers or None}})

    async def _patch(self, application: Application, change: Plain) -> Application:
        self.allow()
        meta = {**change.get("metadata", {}), "resourceVersion": application.metadata.resource_version}
        return _read(await self.client.patch(_ref(application), {**change, "metadata": meta}))


def _ref(application: Application) -> Ref:
    return APPLICATIONS.named(application.metadata.name, application.metadata.namespace)


def _read(answer: Plain) -> Application:
    return msgspec.convert(answer, Application)
