"""Persistent volumes by policy: protected before the first delete; claims are deleted after the last one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from windlass.argo.cd.application_watch import POLL_INTERVAL
from windlass.argo.cd.applications import RUN_ID_KEY
from windlass.argo.cd.root_application import MANAGED_BY_LABELS
from windlass.core.platform.teardown.inventory import ResourceKey
from windlass.core.platform.teardown.volumes import (
    VolumePolicy,
    abandoned_claims,
    reclaimable_volumes,
    snapshot_class,
)
from windlass.errors import WindlassError
from windlass.kube.api_errors import AlreadyExists, NotFound
from windlass.operations.teardown.affected_volumes import (
    CLAIMS,
    PREVIOUS_POLICY_ANNOTATION,
    RETAINED_CLAIM_ANNOTATION,
    RETAINED_FOR_ANNOTATION,
    SNAPSHOT_GROUP,
    VOLUMES,
    find_affected_volumes,
    list_claim_templates,
    list_claims,
    list_used_claims,
    list_volumes,
    look_again,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from windlass.argo.cd.application_writer import ApplicationWriter
    from windlass.core.platform.teardown.volumes import ObjectKey, Volume, VolumeClaim
    from windlass.kube.client.resources import Resource
    from windlass.operations.teardown.affected_volumes import AffectedVolumes
    from windlass.operations.teardown.cluster_objects import ClusterObjects
    from windlass.operations.teardown.inventory import TeardownInventory

DEFAULT_CLASS_ANNOTATION = "snapshot.storage.kubernetes.io/is-default-class"
RETAIN_ATTEMPTS = 3  # looks, each followed by a change where one is needed; the last one must find all retained
SNAPSHOT_TIMEOUT = 600.0  # seconds for all snapshots to become ready
VOLUME_DELETION_TIMEOUT = 120.0  # seconds for claims and their volumes to be deleted


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """What was kept on purpose, what should be gone, and what is gone. `keys`: objects that are no orphans."""

    retained: tuple[str, ...] = ()
    orphans: tuple[str, ...] = ()
    destroyed: tuple[str, ...] = ()
    keys: frozenset[ResourceKey] = frozenset()


@dataclass(slots=True)
class VolumeRetention:
    objects: ClusterObjects
    writer: ApplicationWriter
    policy: VolumePolicy
    run_id: str
    inventory: TeardownInventory
    affected: AffectedVolumes
    """As of the last look."""
    volumes: dict[str, Volume] = field(default_factory=dict)
    """All volumes that were affected at some time of the run."""
    snapshots: dict[ObjectKey, str] = field(default_factory=dict)
    """Snapshots created by this run, with the claim of each."""

    async def protect_volumes(self) -> None:
        """Retain or snapshot the volumes, as the policy says. Call before the first delete."""
        self._remember_volumes()
        await self.retain_volumes()
        if self.policy is VolumePolicy.SNAPSHOT and self._bound_volumes():
            await self._create_snapshots()

    async def retain_volumes(self) -> None:
        """Retain the volumes as they are now, if the policy says so. Call before each delete: claims come and go.

        Raises unless a look afterwards shows the volume of every bound claim, and that it is retained.
        """
        if self.policy is not VolumePolicy.RETAIN:
            return
        for _ in range(RETAIN_ATTEMPTS):
            affected = self.affected = await self._look_again()
            self._remember_volumes()
            not_retained = [volume for volume in affected.volumes if not volume.is_retained]
            if not not_retained and not affected.missing:
                return
            for volume in not_retained:
                await self._retain_volume(volume, affected.applications[volume.claim])
        names = ", ".join([*(volume.name for volume in not_retained), *affected.missing])
        raise WindlassError(
            f"not retained although the volume policy requires it: {names}; what uses it was not deleted"
        )

    async def _look_again(self) -> AffectedVolumes:
        """The affected volumes as of now. Owners are read again only if it is not known whose a new claim is."""
        affected = await look_again(self.objects.reader, self.affected)
        if not affected.has_new_claims:
            return affected
        inventory = self.inventory.with_objects(await self.objects.list_all())
        return await find_affected_volumes(self.objects.reader, inventory, affected.selections)

    async def _retain_volume(self, volume: Volume, application: ObjectKey) -> None:
        """Set the policy, and mark the volume, so that a later teardown with the policy `delete` can undo it."""
        mark = {
            RETAINED_FOR_ANNOTATION: "/".join(application),
            RETAINED_CLAIM_ANNOTATION: volume.claim_uid,
            PREVIOUS_POLICY_ANNOTATION: volume.policy,
        }
        change = {"metadata": {"annotations": mark}, "spec": {"persistentVolumeReclaimPolicy": "Retain"}}
        await self.writer.client.patch(VOLUMES.named(volume.name), change)

    def _remember_volumes(self) -> None:
        self.volumes |= {volume.name: volume for volume in self.affected.volumes}

    def _bound_volumes(self) -> list[Volume]:
        return [volume for volume in self.affected.volumes if volume.is_bound]

    async def _create_snapshots(self) -> None:
        classes = await self._list_snapshot_classes()
        missing = sorted(
            {volume.driver for volume in self._bound_volumes() if not snapshot_class(volume.driver, classes)}
        )
        if missing:
            hint = f"make one for {', '.join(name or 'volumes without a driver' for name in missing)}"
            raise WindlassError("some volumes have no VolumeSnapshotClass; nothing was deleted", hint=hint)
        for volume in self._bound_volumes():
            await self._create_snapshot(volume, snapshot_class(volume.driver, classes))
        await self._wait_until_ready()

    async def _list_snapshot_classes(self) -> list[tuple[str, str, bool]]:
        resource = self.objects.inventory.discovery.find("VolumeSnapshotClass", SNAPSHOT_GROUP)
        if resource is None:
            return []
        classes = (await self.objects.reader.list(resource.everywhere)).items
        return [
            (
                str(each["metadata"]["name"]),
                str(each.get("driver") or ""),
                (each["metadata"].get("annotations") or {}).get(DEFAULT_CLASS_ANNOTATION) == "true",
            )
            for each in classes
        ]

    async def _create_snapshot(self, volume: Volume, class_name: str) -> None:
        resource = self._snapshot_resource()
        namespace, claim = volume.claim
        name = f"{claim}-{self.run_id[:8]}"
        meta = {
            "name": name,
            "namespace": namespace,
            "labels": MANAGED_BY_LABELS,
            "annotations": {RUN_ID_KEY: self.run_id},
        }
        spec = {"volumeSnapshotClassName": class_name, "source": {"persistentVolumeClaimName": claim}}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": spec}
        with suppress(AlreadyExists):  # created by our earlier attempt, whose response was lost
            await self.writer.client.create(resource.in_namespace(namespace), body)
        self.snapshots[namespace, name] = claim

    async def _wait_until_ready(self) -> None:
        clock, waited = self.objects.reader.clock, 0.0
        pending = sorted(self.snapshots)
        while pending:
            namespace, name = pending[0]
            status = (await self.objects.reader.get(self._snapshot_resource().named(name, namespace))).get(
                "status"
            ) or {}
            if status.get("readyToUse"):
                pending.pop(0)
                continue
            if waited >= SNAPSHOT_TIMEOUT:
                message = (status.get("error") or {}).get("message") or "it gives no reason"
                what = f"VolumeSnapshot {namespace}/{name} is not ready after {SNAPSHOT_TIMEOUT:g} s: {message}"
                raise WindlassError(what, hint="nothing was deleted")
            await clock.sleep(POLL_INTERVAL)
            waited += POLL_INTERVAL

    def _snapshot_resource(self) -> Resource:
        resource = self.objects.inventory.discovery.find("VolumeSnapshot", SNAPSHOT_GROUP)
        assert resource is not None
        return resource

    async def delete_claims(self, gone: Collection[ObjectKey]) -> None:
        """Delete what nothing else deletes of these Applications, unless the policy retains it.

        Call after the last delete. What exists and what is in use is read anew.
        """
        if self.policy is VolumePolicy.RETAIN or not (self.affected.claims or self.volumes):
            return
        reader = self.objects.reader
        existing, living = await list_claims(reader), await list_claim_templates(reader)
        selections = [self.affected.selections[key] for key in gone if key in self.affected.selections]
        known = {claim.uid for claim in self.affected.claims}
        claims = abandoned_claims([each for each in existing.values() if each.uid in known], selections, living)
        reclaimed: tuple[Volume, ...] = ()
        if self.policy is VolumePolicy.DELETE:
            in_use = {key for key in existing if any(template.matches(key) for template in living)}
            in_use |= await list_used_claims(reader) - {claim.key for claim in claims}
            reclaimed = reclaimable_volumes((await list_volumes(reader)).values(), gone, in_use)
            uids = {volume.claim_uid for volume in reclaimed}
            claims = tuple({*claims, *(each for each in existing.values() if each.uid in uids and not each.is_kept)})
        for claim in sorted(claims, key=lambda each: each.key):
            await self.writer.delete_object(CLAIMS.named(claim.key[1], claim.key[0]), claim.uid)
        doomed = {claim.uid for claim in claims}
        left = {claim.uid for claim in existing.values()} - doomed
        await self._restore_policies([each for each in reclaimed if each.claim_uid not in left])
        await self._wait_until_gone(claims)

    async def _restore_policies(self, volumes: Iterable[Volume]) -> None:
        """Undo an earlier teardown's change of the policy. A released volume is then deleted by its provisioner."""
        unmarked = dict.fromkeys((RETAINED_FOR_ANNOTATION, RETAINED_CLAIM_ANNOTATION, PREVIOUS_POLICY_ANNOTATION))
        for volume in volumes:
            self.volumes[volume.name] = replace(volume, is_retained=False)
            change = {"metadata": {"annotations": unmarked}, "spec": {"persistentVolumeReclaimPolicy": "Delete"}}
            await self.writer.client.patch(VOLUMES.named(volume.name), change)

    async def _wait_until_gone(self, claims: Collection[VolumeClaim]) -> None:
        clock, waited = self.objects.reader.clock, 0.0
        while waited < VOLUME_DELETION_TIMEOUT:
            volumes = await list_volumes(self.objects.reader)
            waiting = [volumes[name] for name in self.volumes if name in volumes and not volumes[name].is_retained]
            existing_claims = await list_claims(self.objects.reader)
            remaining = {claim.key for claim in claims} & existing_claims.keys()
            if not remaining and all(each.claim in existing_claims for each in waiting):
                return
            await clock.sleep(POLL_INTERVAL)
            waited += POLL_INTERVAL

    async def result(self, gone: Collection[ObjectKey]) -> RetentionResult:
        """What happened to the volumes, claims and snapshots. `gone`: the Applications that were removed.

        A volume of an Application that still exists is in use, not retained.
        """
        existing = await list_volumes(self.objects.reader)
        volumes = [existing[name] for name in sorted(self.volumes) if name in existing]
        owners = self.affected.applications
        retained = [
            each.description for each in volumes if each.is_retained and owners.get(each.claim) in {None, *gone}
        ]
        orphaned: list[str] = []
        destroyed: list[str] = []
        if self.policy is not VolumePolicy.RETAIN:
            orphaned = [each.description for each in volumes if await self._is_orphaned(each)]
            destroyed = [each.description for name, each in sorted(self.volumes.items()) if name not in existing]
        snapshot_keys = [ResourceKey(SNAPSHOT_GROUP, "VolumeSnapshot", *key) for key in sorted(self.snapshots)]
        retained += [
            f"{item} of claim {item.namespace}/{self.snapshots[item.namespace, item.name]}" for item in snapshot_keys
        ]
        keys = {_volume_key(each) for each in volumes} | set(snapshot_keys)
        if self.policy is VolumePolicy.RETAIN:
            keys |= {ResourceKey("", CLAIMS.kind, *claim.key) for claim in self.affected.claims}
            keys |= {ResourceKey("", CLAIMS.kind, *each.claim) for each in volumes}
        return RetentionResult(tuple(retained), tuple(orphaned), tuple(destroyed), frozenset(keys))

    async def _is_orphaned(self, volume: Volume) -> bool:
        """Whether its claim is gone and the volume should have been deleted with it."""
        if volume.is_retained:
            return False
        try:
            await self.objects.reader.get(CLAIMS.named(volume.claim[1], volume.claim[0]))
        except NotFound:
            return True
        return False


def _volume_key(volume: Volume) -> ResourceKey:
    return ResourceKey("", VOLUMES.kind, "", volume.name)
