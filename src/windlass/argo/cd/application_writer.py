"""All writes to Applications: request or end an operation, request a refresh, change finalizers, delete."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windlass.argo.cd.applications import APPLICATIONS, Application, ObjectKey, requested_run_id
from windlass.argo.cd.resource_tracking import CASCADE_FINALIZER, has_cascade_finalizer
from windlass.argo.cd.sync_requests import sync_operation
from windlass.kube.api_errors import TRANSIENT_ERRORS, KubeError, NotFound

if TYPE_CHECKING:
    from windlass.argo.cd.sync_requests import SyncRequest
    from windlass.kube.client.objects import PropagationPolicy, RawObject
    from windlass.kube.client.resources import Ref
    from windlass.kube.leases import LockedClient


@dataclass(frozen=True, slots=True)
class ApplicationWriter:
    """Writes Applications and deletes objects, while the lock from which its client was made is held."""

    client: LockedClient
    open_requests: dict[ObjectKey, int] = field(default_factory=dict)
    """By Application: the version onto which a sync was requested that was not seen to end, nor to be refused."""

    async def sync(self, application: Application, request: SyncRequest) -> Application:
        """Request a sync of exactly this state; raises `Conflict` if the Application has changed since.

        As Argo CD's API server does, clear the state of the previous operation: Argo CD would merge the new operation
        into it, so a sync of everything would keep the selection of a selective sync.
        """
        self.open_requests[_key(application)] = application.version
        change = {"operation": sync_operation(application, request), "status": {"operationState": None}}
        return await self._patch(application, change)

    async def try_sync(self, application: Application, request: SyncRequest) -> Application | str | None:
        """Request a sync; return the reason as text if the server refuses it.

        `None` if the Application has changed or the result is unknown: read it again.
        """
        try:
            return await self.sync(application, request)
        except TRANSIENT_ERRORS:
            return None
        except KubeError as error:
            return f"the operation was refused: {error.what}"

    def close_request(self, application: Application, run_id: str) -> None:
        """Forget the request of this run if this state shows that it is over.

        Once the version has changed, a request that is still under way can only be refused.
        """
        key = _key(application)
        if requested_run_id(application) != run_id and application.version > self.open_requests.get(key, 0):
            self.open_requests.pop(key, None)

    async def end_operation(self, application: Application) -> Application:
        """Terminate the running operation, or withdraw a request that Argo CD has not started."""
        operation = application.state.operation
        if operation is None or operation.is_finished:
            return await self._patch(application, {"operation": None})
        # Applications have no status subresource; writing the phase is the only way to terminate an operation.
        return await self._patch(application, {"status": {"operationState": {"phase": "Terminating"}}})

    async def delete_application(self, application: Application) -> None:
        """Delete the Application with this UID, and everything it manages (cascade)."""
        if not has_cascade_finalizer(application):
            application = await self._patch_finalizers(
                application, [*application.metadata.finalizers, CASCADE_FINALIZER]
            )
        await self.delete_object(_ref(application), application.metadata.uid)

    async def add_cascade_finalizer(self, application: Application) -> None:
        """Make a later deletion of the Application delete everything it manages."""
        if not has_cascade_finalizer(application) and not application.metadata.deletion_timestamp:
            await self._patch_finalizers(application, [*application.metadata.finalizers, CASCADE_FINALIZER])

    async def delete_without_cascade(self, application: Application) -> None:
        """Delete the Application with this UID and leave everything it manages in place."""
        if has_cascade_finalizer(application):
            finalizers = [name for name in application.metadata.finalizers if not name.startswith(CASCADE_FINALIZER)]
            application = await self._patch_finalizers(application, finalizers)
        await self.delete_object(_ref(application), application.metadata.uid, "Orphan")

    async def delete_object(self, ref: Ref, uid: str, propagation: PropagationPolicy = "Background") -> None:
        """Delete any object; an object that no longer exists counts as deleted."""
        with suppress(NotFound):
            await self.client.delete(ref, uid=uid, propagation=propagation)

    async def _patch_finalizers(self, application: Application, finalizers: list[str]) -> Application:
        return await self._patch(application, {"metadata": {"finalizers": finalizers or None}})

    async def _patch(self, application: Application, patch: RawObject) -> Application:
        meta = {**patch.get("metadata", {}), "resourceVersion": application.metadata.resource_version}
        return self.client.convert(await self.client.patch(_ref(application), {**patch, "metadata": meta}), Application)


def _key(application: Application) -> ObjectKey:
    return (application.metadata.namespace, application.metadata.name)


def _ref(application: Application) -> Ref:
    return APPLICATIONS.named(application.metadata.name, application.metadata.namespace)
