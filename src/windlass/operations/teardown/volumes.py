"""Persistent volumes by policy: protected before the first delete; claims are deleted after the last one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from windlass.argo.cd.application_watch import POLL_INTERVAL
from windlass.argo.cd.applications import RUN_ID_KEY
from windlass.argo.cd.root_application import MANAGED_BY_LABELS
from windlass.core.platform.teardown.inventory import ResourceKey
from windlass.core.platform.teardown.volumes import (
    ClaimSelection,
    ClaimTemplate,
    Volume,
    VolumeClaim,
    VolumePolicy,
    affected_volumes,
    snapshot_class,
    stateful_set_claims,
)
from windlass.errors import InvalidInput, WindlassError
from windlass.kube.api_errors import AlreadyExists, NotFound
from windlass.kube.client.objects import ObjectMeta, TypedObject
from windlass.kube.client.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Collection

    from windlass.argo.cd.application_writer import ApplicationWriter
    from windlass.core.platform.teardown.volumes import ObjectKey
    from windlass.kube.client.discovery import Discovery
    from windlass.kube.client.readers import KubeReader
    from windlass.operations.teardown.cluster_objects import ClusterInventory
    from windlass.operations.teardown.inventory import TeardownInventory

CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
SNAPSHOT_GROUP = "snapshot.storage.k8s.io"
DEFAULT_CLASS_ANNOTATION = "snapshot.storage.kubernetes.io/is-default-class"
PROVISIONED_BY_ANNOTATION = "pv.kubernetes.io/provisioned-by"
SNAPSHOT_TIMEOUT = 600.0  # seconds for all snapshots to become ready
VOLUME_DELETION_TIMEOUT = 120.0  # seconds for claims and their volumes to be deleted


class _VolumeStruct(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    pass


class _ClaimRef(_VolumeStruct, frozen=True, gc=False):
    namespace: str = ""
    name: str = ""


class _Csi(_VolumeStruct, frozen=True, gc=False):
    driver: str = ""


class _VolumeSpec(_VolumeStruct, frozen=True, gc=False):
    claim_ref: _ClaimRef | None = None
    persistent_volume_reclaim_policy: str = ""
    csi: _Csi | None = None


class _VolumeStatus(_VolumeStruct, frozen=True, gc=False):
    phase: str = ""


class _PersistentVolume(TypedObject, frozen=True, gc=False):
    spec: _VolumeSpec
    status: _VolumeStatus = _VolumeStatus()


class _ClaimTemplate(_VolumeStruct, frozen=True, gc=False):
    metadata: ObjectMeta


class _StatefulSetSpec(_VolumeStruct, frozen=True, gc=False):
    volume_claim_templates: tuple[_ClaimTemplate, ...] = ()


class _StatefulSet(TypedObject, frozen=True, gc=False):
    spec: _StatefulSetSpec


class _PersistentVolumeClaim(TypedObject, frozen=True, gc=False):
    pass


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """What was kept on purpose, and what should be gone. `keys`: objects that do not count as orphans."""

    retained: tuple[str, ...] = ()
    orphans: tuple[str, ...] = ()
    keys: frozenset[ResourceKey] = frozenset()


def check_policy(policy: VolumePolicy, discovery: Discovery) -> None:
    """Check, before anything is written, that this cluster supports the policy."""
    if policy is VolumePolicy.SNAPSHOT and discovery.find("VolumeSnapshot", SNAPSHOT_GROUP) is None:
        raise InvalidInput(
            f"volumes cannot be snapshotted here: {SNAPSHOT_GROUP} is not served",
            hint="choose --pv-policy retain or delete, or install a snapshot controller with its definitions",
        )


@dataclass(frozen=True, slots=True)
class AffectedVolumes:
    """Volumes and claims that a teardown affects."""

    volumes: tuple[Volume, ...] = ()
    """Bound volumes."""
    claims: tuple[VolumeClaim, ...] = ()
    """Claims of StatefulSets, which nothing else deletes."""
    templates: tuple[ClaimTemplate, ...] = ()
    """Claim templates of these StatefulSets."""


async def find_affected_volumes(reader: KubeReader, inventory: TeardownInventory) -> AffectedVolumes:
    """Find the volumes and claims of the Applications to delete.

    These are claims they manage, claims of their StatefulSets, and all claims in namespaces that only they use.
    """
    owned_uids, namespaces = inventory.owned_uids(list(inventory.to_delete)), inventory.exclusive_namespaces
    stateful_sets = (await reader.list(STATEFUL_SETS.everywhere, _StatefulSet)).items
    affected_sets = [
        each for each in stateful_sets if each.metadata.uid in owned_uids or each.metadata.namespace in namespaces
    ]
    templates = tuple(
        ClaimTemplate(template.metadata.name, each.metadata.name, each.metadata.namespace)
        for each in affected_sets
        for template in each.spec.volume_claim_templates
    )
    all_claims = (await reader.list(CLAIMS.everywhere, _PersistentVolumeClaim)).items
    claims = [VolumeClaim((each.metadata.namespace, each.metadata.name), each.metadata.uid) for each in all_claims]
    managed_claims = frozenset(
        (item.namespace, item.name) for item in inventory.managed_keys if item.kind == CLAIMS.kind and not item.group
    )
    selection = ClaimSelection(managed_claims, templates, frozenset(namespaces))
    return AffectedVolumes(
        affected_volumes(claims, await _list_bound_volumes(reader), selection),
        stateful_set_claims(claims, templates),
        templates,
    )


async def _list_bound_volumes(reader: KubeReader) -> list[Volume]:
    volumes = (await reader.list(VOLUMES.everywhere, _PersistentVolume)).items
    return [_parse_volume(each) for each in volumes if each.status.phase == "Bound" and each.spec.claim_ref]


@dataclass(slots=True)
class VolumeRetention:
    cluster: ClusterInventory
    writer: ApplicationWriter
    policy: VolumePolicy
    run_id: str
    affected: AffectedVolumes = AffectedVolumes()
    snapshots: dict[ObjectKey, str] = field(default_factory=dict)

    async def protect_volumes(self) -> None:
        """Retain or snapshot the volumes, as the policy says. Call before the first delete."""
        if self.policy is VolumePolicy.RETAIN:
            await self._retain_volumes()
        if self.policy is VolumePolicy.SNAPSHOT and self.affected.volumes:
            await self._create_snapshots()

    async def _retain_volumes(self) -> None:
        for volume in self.affected.volumes:
            if not volume.is_retained:
                self.writer.check_write_allowed()
                change = {"spec": {"persistentVolumeReclaimPolicy": "Retain"}}
                await self.writer.client.patch(VOLUMES.named(volume.name), change)
        retained = {volume.name: volume.is_retained for volume in await _list_bound_volumes(self.cluster.reader)}
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
        resource = self.cluster.discovery.find("VolumeSnapshotClass", SNAPSHOT_GROUP)
        if resource is None:
            return []
        classes = (await self.cluster.reader.list(resource.everywhere)).items
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
        self.writer.check_write_allowed()
        with suppress(AlreadyExists):  # created by our earlier attempt, whose response was lost
            await self.writer.client.create(resource.in_namespace(namespace), body)
        self.snapshots[namespace, name] = claim

    async def _wait_until_ready(self) -> None:
        clock, waited = self.cluster.reader.clock, 0.0
        pending = sorted(self.snapshots)
        while pending:
            namespace, name = pending[0]
            status = (await self.cluster.reader.get(self._snapshot_resource().named(name, namespace))).get(
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
        resource = self.cluster.discovery.find("VolumeSnapshot", SNAPSHOT_GROUP)
        assert resource is not None
        return resource

    async def delete_claims(self) -> None:
        """Delete claims of StatefulSets that are gone, unless the policy retains them. Call after the last delete."""
        if self.policy is VolumePolicy.RETAIN or not (self.affected.claims or self.affected.volumes):
            return
        remaining = (await self.cluster.reader.list(STATEFUL_SETS.everywhere, _StatefulSet)).items
        existing = {(each.metadata.namespace, each.metadata.name) for each in remaining}
        unused_templates = [
            each for each in self.affected.templates if (each.namespace, each.stateful_set) not in existing
        ]
        claims = stateful_set_claims(self.affected.claims, unused_templates)
        for claim in claims:
            await self.writer.delete_object(CLAIMS.named(claim.key[1], claim.key[0]), claim.uid)
        await self._wait_until_gone(claims)

    async def _wait_until_gone(self, claims: Collection[VolumeClaim]) -> None:
        clock, waited = self.cluster.reader.clock, 0.0
        keys = {claim.key for claim in claims}
        while waited < VOLUME_DELETION_TIMEOUT:
            volumes = await self._list_volumes()
            waiting = [
                each for each in self.affected.volumes if each.name in volumes and not volumes[each.name].is_retained
            ]
            existing_claims = (await self.cluster.reader.list(CLAIMS.everywhere, _PersistentVolumeClaim)).items
            keys &= {(each.metadata.namespace, each.metadata.name) for each in existing_claims}
            released = [
                each
                for each in waiting
                if each.claim not in {(c.metadata.namespace, c.metadata.name) for c in existing_claims}
            ]
            if not keys and not released:
                return
            await clock.sleep(POLL_INTERVAL)
            waited += POLL_INTERVAL

    async def _list_volumes(self) -> dict[str, Volume]:
        volumes = (await self.cluster.reader.list(VOLUMES.everywhere, _PersistentVolume)).items
        return {each.metadata.name: _parse_volume(each) for each in volumes}

    async def result(self) -> RetentionResult:
        """What happened to the volumes, claims and snapshots."""
        existing = await self._list_volumes()
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
            await self.cluster.reader.get(CLAIMS.named(volume.claim[1], volume.claim[0]))
        except NotFound:
            return True
        return False


def _volume_key(volume: Volume) -> ResourceKey:
    return ResourceKey("", VOLUMES.kind, "", volume.name)


def _parse_volume(volume: _PersistentVolume) -> Volume:
    spec = volume.spec
    claim = (spec.claim_ref.namespace, spec.claim_ref.name) if spec.claim_ref else ("", "")
    driver = spec.csi.driver if spec.csi else volume.metadata.annotations.get(PROVISIONED_BY_ANNOTATION, "")
    return Volume(volume.metadata.name, claim, spec.persistent_volume_reclaim_policy == "Retain", driver)
