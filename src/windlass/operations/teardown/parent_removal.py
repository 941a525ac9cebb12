"""Parents that would recreate their children: deleted before these, and without cascade."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windlass.argo.cd.application_watch import POLL_INTERVAL
from windlass.argo.cd.ownership import APPLICATION_SETS
from windlass.argo.cd.resource_tracking import CASCADE_FINALIZER
from windlass.errors import WindlassError
from windlass.kube.api_errors import TRANSIENT_ERRORS, KubeError, NotFound

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable

    from windlass.argo.cd.application_watch import ApplicationsWatch
    from windlass.argo.cd.application_writer import ApplicationWriter
    from windlass.argo.cd.applications import Application, ObjectKey
    from windlass.core.platform.teardown.inventory import ResourceKey
    from windlass.core.platform.teardown.parents import ParentObject
    from windlass.kube.client.objects import RawObject

PARENT_DELETION_TIMEOUT = 60.0  # seconds for one parent to be deleted


@dataclass(frozen=True, slots=True)
class ParentRemoval:
    applications: ApplicationsWatch
    writer: ApplicationWriter
    explain: Callable[[Collection[ResourceKey]], Awaitable[tuple[str, ...]]]
    deleted_applications: dict[ObjectKey, Application] = field(default_factory=dict)
    """The Applications that were deleted, as they were before."""

    async def delete_parents(self, parents: Iterable[ParentObject]) -> None:
        for parent in parents:
            key = (parent.key.namespace, parent.key.name)
            if parent.key.kind == APPLICATION_SETS.kind:
                await self._delete_application_set(parent.key)
            elif (application := self.applications.view.get(key)) is not None:
                self.deleted_applications[key] = application
                await self._delete_application(parent.key, key)

    async def _delete_application(self, resource_key: ResourceKey, key: ObjectKey) -> None:
        waited, deleted_uid = 0.0, ""
        with self.applications.watch(key) as watch:
            while watch.current is not None:
                meta = watch.current.metadata
                if not meta.deletion_timestamp and deleted_uid != meta.uid:
                    try:
                        await self.writer.delete_without_cascade(watch.current)
                        deleted_uid = meta.uid
                    except TRANSIENT_ERRORS:
                        pass  # retry: the watch will show its current state
                    except KubeError as error:
                        raise await self._stuck_error(resource_key, error.what) from None
                waited += 0.0 if await watch.wait_for_change() else POLL_INTERVAL
                if waited >= PARENT_DELETION_TIMEOUT:
                    raise await self._stuck_error(resource_key, f"it still exists after {PARENT_DELETION_TIMEOUT:g} s")

    async def _delete_application_set(self, key: ResourceKey) -> None:
        ref, client = APPLICATION_SETS.named(key.name, key.namespace), self.writer.client
        waited = 0.0
        while waited < PARENT_DELETION_TIMEOUT:
            try:
                application_set = await client.get(ref)
                if not application_set["metadata"].get("deletionTimestamp"):
                    application_set = await self._remove_finalizer(application_set)
                    await self.writer.delete_object(ref, application_set["metadata"]["uid"], "Orphan")
            except NotFound:
                return
            except TRANSIENT_ERRORS:
                pass
            except KubeError as error:
                raise await self._stuck_error(key, error.what) from None
            await client.clock.sleep(POLL_INTERVAL)
            waited += POLL_INTERVAL
        raise await self._stuck_error(key, f"it still exists after {PARENT_DELETION_TIMEOUT:g} s")

    async def _remove_finalizer(self, application_set: RawObject) -> RawObject:
        """Remove Argo CD's finalizer, with which the ApplicationSet would delete its Applications too."""
        meta = application_set["metadata"]
        finalizers = meta.get("finalizers") or []
        remaining = [name for name in finalizers if not name.startswith(CASCADE_FINALIZER)]
        if remaining == finalizers:
            return application_set
        change = {"metadata": {"finalizers": remaining or None, "resourceVersion": meta["resourceVersion"]}}
        return await self.writer.client.patch(APPLICATION_SETS.named(meta["name"], meta["namespace"]), change)

    async def _stuck_error(self, key: ResourceKey, reason: str) -> WindlassError:
        lines = await self.explain([key])
        message = f"{key}, which recreates what is removed, could not be removed: {reason}"
        return WindlassError(message, hint="; ".join(lines) or "check it, then rerun; nothing else was removed")
