"""Persistent volumes by policy: protected before the first delete; claims are deleted after the last one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windlass.argo.cd.application_watch import POLL_INTERVAL
from windlass.argo.cd.applications import RUN_ID_KEY
from windlass.argo.cd.root_application import MANAGED_BY_LABELS
from windlass.core.platform.teardown.inventory import ResourceKey
from windlass.core.platform.teardown.volumes import VolumePolicy, snapshot_class, stateful_set_claims
from windlass.errors import WindlassError
from windlass.kube.api_errors import AlreadyExists, NotFound
from windlass.operations.teardown.affected_volumes import (
    CLAIMS,
    SNAPSHOT_GROUP,
    VOLUMES,
    list_bound_volumes,
    list_claim_keys,
    list_stateful_set_keys,
    list_volumes,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from windlass.argo.cd.application_writer import ApplicationWriter
    from windlass.core.platform.teardown.volumes import ObjectKey, Volume, VolumeClaim
    from windlass.kube.client.resources import Resource
    from windlass.operations.teardown.affected_volumes import AffectedVolumes
    from windlass.operations.teardown.cluster_objects import ClusterObjects

DEFAULT_CLASS_ANNOTATION = "snapshot.storage.kubernetes.io/is-default-class"
SNAPSHOT_TIMEOUT = 600.0  # seconds for all snapshots to become ready
VOLUME_DELETION_TIMEOUT = 120.0  # seconds for claims and their volumes to be deleted


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """What was kept on purpose, and what should be gone. `keys`: objects that do not count as orphans."""

    retained: tuple[str, ...] = ()
    orphans: tuple[str, ...] = ()
    keys: frozenset[ResourceKey] = frozenset()


@dataclass(frozen=True, slots=True)
class VolumeRetention:
    objects: ClusterObjects
    writer: ApplicationWriter
    policy: VolumePolicy
    run_id: str
    affected: AffectedVolumes
    snapshots: dict[ObjectKey, str] = field(default_factory=dict)
    """Snapshots created by this run, with the claim of each."""

    async def protect_volumes(self) -> None:
        """Retain or snapshot the volumes, as the policy says. Call before the first delete."""
        if self.policy is VolumePolicy.RETAIN:
            await self._retain_volumes()
        if self.policy is VolumePolicy.SNAPSHOT and self.affected.volumes:
            await self._create_snapshots()

    async def _retain_volumes(self) -> None:
        for volume in self.affected.volumes:
            if not volume.is_retained:
                change = {"spec": {"persistentVolumeReclaimPolicy": "Retain"}}
                await self.writer.client.patch(VOLUMES.named(volume.name), change)
        retained = {volume.name: volume.is_retained for volume in await list_bound_volumes(self.objects.reader)}
        not_retained = [volume.name for volume in self.affected.volumes if not retained.get(volume.name, True)]
        if not_retained:
            raise WindlassError(
                f"not retained although it was asked for: {', '.join(not_retained)}; nothing was deleted"
            )

    async def _create_snapshots(self) -> None:
        classes = await self._list_snapshot_classes()
        missing = sorted(
            {volume.driver for volume in self.affected.volumes if not snapshot_class(volume.driver, classes)}
        )
        if missing:
            hint = f"make one for {', '.join(name or 'volumes without a driver' for name in missing)}"
            raise WindlassError("some volumes have no VolumeSnapshotClass; nothing was deleted", hint=hint)
        for volume in self.affected.volumes:
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
                message = (status.get("error") or {}).get("message") or "it says nothing"
                what = f"VolumeSnapshot {namespace}/{name} is not ready after {SNAPSHOT_TIMEOUT:g} s: {message}"
                raise WindlassError(what, hint="nothing was deleted")
            await clock.sleep(POLL_INTERVAL)
            waited += POLL_INTERVAL

    def _snapshot_resource(self) -> Resource:
        resource = self.objects.inventory.discovery.find("VolumeSnapshot", SNAPSHOT_GROUP)
        assert resource is not None
        return resource

    async def delete_claims(self) -> None:
        """Delete claims of StatefulSets that are gone, unless the policy retains them. Call after the last delete."""
        if self.policy is VolumePolicy.RETAIN or not (self.affected.claims or self.affected.volumes):
            return
        existing = await list_stateful_set_keys(self.objects.reader)
        unused_templates = [
            each for each in self.affected.templates if (each.namespace, each.stateful_set) not in existing
        ]
        claims = stateful_set_claims(self.affected.claims, unused_templates)
        for claim in claims:
            await self.writer.delete_object(CLAIMS.named(claim.key[1], claim.key[0]), claim.uid)
        await self._wait_until_gone(claims)

    async def _wait_until_gone(self, claims: Collection[VolumeClaim]) -> None:
        clock, waited = self.objects.reader.clock, 0.0
        keys = {claim.key for claim in claims}
        while waited < VOLUME_DELETION_TIMEOUT:
            volumes = await list_volumes(self.objects.reader)
            waiting = [
                each for each in self.affected.volumes if each.name in volumes and not volumes[each.name].is_retained
            ]
            existing_claims = await list_claim_keys(self.objects.reader)
            keys &= existing_claims
            released = [each for each in waiting if each.claim not in existing_claims]
            if not keys and not released:
                return
            await clock.sleep(POLL_INTERVAL)
            waited += POLL_INTERVAL

    async def result(self) -> RetentionResult:
        """What happened to the volumes, claims and snapshots."""
        existing = await list_volumes(self.objects.reader)
        volumes = [existing[each.name] for each in self.affected.volumes if each.name in existing]
        retained = [f"{_volume_key(each)} of claim {'/'.join(each.claim)}" for each in volumes if each.is_retained]
        orphaned: list[str] = []
        if self.policy is not VolumePolicy.RETAIN:
            orphaned = [
                f"{_volume_key(each)} of claim {'/'.join(each.claim)}"
                for each in volumes
                if await self._is_orphaned(each)
            ]
        snapshot_keys = [ResourceKey(SNAPSHOT_GROUP, "VolumeSnapshot", *key) for key in sorted(self.snapshots)]
        retained += [
            f"{item} of claim {item.namespace}/{self.snapshots[item.namespace, item.name]}" for item in snapshot_keys
        ]
        keys = {_volume_key(each) for each in volumes} | set(snapshot_keys)
        if self.policy is VolumePolicy.RETAIN:
            keys |= {ResourceKey("", CLAIMS.kind, *claim.key) for claim in self.affected.claims}
            keys |= {ResourceKey("", CLAIMS.kind, *each.claim) for each in volumes}
        return RetentionResult(tuple(retained), tuple(orphaned), frozenset(keys))

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
