"""Persistent volumes by policy: protected before the first delete; claims are deleted after the last one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from windlass.argo.cd.application_watch import TICK
from windlass.argo.cd.applications import RUN_ID
from windlass.argo.cd.root_application import OURS
from windlass.core.platform.teardown.inventory import Item
from windlass.core.platform.teardown.volumes import (
    Claim,
    Meant,
    Policy,
    Template,
    Volume,
    claims_of_sets,
    class_for,
    endangered,
)
from windlass.errors import InvalidInput, WindlassError
from windlass.kube.api_errors import AlreadyExists, NotFound
from windlass.kube.client.objects import Metadata, Typed
from windlass.kube.client.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Collection

    from windlass.argo.cd.application_writer import Writer
    from windlass.core.platform.teardown.volumes import Place
    from windlass.kube.client.discovery import Discovery
    from windlass.kube.client.readers import KubeReader
    from windlass.operations.teardown.cluster_objects import Looking
    from windlass.operations.teardown.inventory import Scene

CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
SNAPSHOTS = "snapshot.storage.k8s.io"
DEFAULT_CLASS = "snapshot.storage.kubernetes.io/is-default-class"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
READY_WITHIN = 600.0  # seconds for all snapshots to become ready
GIVEN_UP_WITHIN = 120.0  # seconds for claims and their volumes to be deleted


class _Part(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    pass


class _ClaimRef(_Part, frozen=True, gc=False):
    namespace: str = ""
    name: str = ""


class _Csi(_Part, frozen=True, gc=False):
    driver: str = ""


class _VolumeSpec(_Part, frozen=True, gc=False):
    claim_ref: _ClaimRef | None = None
    persistent_volume_reclaim_policy: str = ""
    csi: _Csi | None = None


class _Phase(_Part, frozen=True, gc=False):
    phase: str = ""


class _Volume(Typed, frozen=True, gc=False):
    spec: _VolumeSpec
    status: _Phase = _Phase()


class _Template(_Part, frozen=True, gc=False):
    metadata: Metadata


class _SetSpec(_Part, frozen=True, gc=False):
    volume_claim_templates: tuple[_Template, ...] = ()


class _Set(Typed, frozen=True, gc=False):
    spec: _SetSpec


class _Claim(Typed, frozen=True, gc=False):
    pass


@dataclass(frozen=True, slots=True)
class Kept:
    """What was kept on purpose, and what should be gone. `keys`: objects that do not count as orphans."""

    retained: tuple[str, ...] = ()
    orphans: tuple[str, ...] = ()
    items: frozenset[Item] = frozenset()


def check_policy(policy: Policy, discovery: Discovery) -> None:
    """Check, before anything is written, that this cluster supports the policy."""
    if policy is Policy.SNAPSHOT and discovery.find("VolumeSnapshot", SNAPSHOTS) is None:
        raise InvalidInput(
            f"volumes cannot be snapshotted here: {SNAPSHOTS} is not served",
            hint="choose --pv-policy retain or delete, or install a snapshot controller with its definitions",
        )


@dataclass(frozen=True, slots=True)
class Data:
    """Volumes and claims that a teardown affects."""

    volumes: tuple[Volume, ...] = ()
    """Bound volumes."""
    claims: tuple[Claim, ...] = ()
    """Claims of StatefulSets, which nothing else deletes."""
    templates: tuple[Template, ...] = ()
    """Claim templates of these StatefulSets."""


async def observed(reader: KubeReader, scene: Scene) -> Data:
    """Find the volumes and claims of the Applications to delete.

    These are claims they manage, claims of their StatefulSets, and all claims in namespaces that only they use.
    """
    owned, namespaces = scene.belongings(list(scene.going)), scene.namespaces
    sets = (await reader.list(STATEFUL_SETS.everywhere, _Set)).items
    theirs = [each for each in sets if each.metadata.uid in owned or each.metadata.namespace in namespaces]
    templates = tuple(
        Template(template.metadata.name, each.metadata.name, each.metadata.namespace)
        for each in theirs
        for template in each.spec.volume_claim_templates
    )
    listed = (await reader.list(CLAIMS.everywhere, _Claim)).items
    claims = [Claim((each.metadata.namespace, each.metadata.name), each.metadata.uid) for each in listed]
    named = frozenset((item.namespace, item.name) for item in scene.made if item.kind == CLAIMS.kind and not item.group)
    meant = Meant(named, templates, frozenset(namespaces))
    return Data(endangered(claims, await _bound(reader), meant), claims_of_sets(claims, templates), templates)


async def _bound(reader: KubeReader) -> list[Volume]:
    listed = (await reader.list(VOLUMES.everywhere, _Volume)).items
    return [_read(each) for each in listed if each.status.phase == "Bound" and each.spec.claim_ref]


@dataclass(slots=True)
class Keeping:
    looking: Looking
    writer: Writer
    policy: Policy
    run_id: str
    data: Data = Data()
    snapshots: dict[Place, str] = field(default_factory=dict)

    async def secure(self) -> None:
        """Retain or snapshot the volumes, as the policy says. Call before the first delete."""
        if self.policy is Policy.RETAIN:
            await self._retain()
        if self.policy is Policy.SNAPSHOT and self.data.volumes:
            await self._snapshot()

    async def _retain(self) -> None:
        for volume in self.data.volumes:
            if not volume.is_retained:
                self.writer.allow()
                change = {"spec": {"persistentVolumeReclaimPolicy": "Retain"}}
                await self.writer.client.patch(VOLUMES.named(volume.name), change)
        shown = {volume.name: volume.is_retained for volume in await _bound(self.looking.reader)}
        wrong = [volume.name for volume in self.data.volumes if not shown.get(volume.name, True)]
        if wrong:
            raise WindlassError(f"not retained although it was asked for: {', '.join(wrong)}; nothing was deleted")

    async def _snapshot(self) -> None:
        classes = await self._classes()
        missing = sorted({volume.driver for volume in self.data.volumes if not class_for(volume.driver, classes)})
        if missing:
            hint = f"make one for {', '.join(name or 'volumes without a driver' for name in missing)}"
            raise WindlassError("some volumes have no VolumeSnapshotClass; nothing was deleted", hint=hint)
        for volume in self.data.volumes:
            await self._create(volume, class_for(volume.driver, classes))
        await self._until_ready()

    async def _classes(self) -> list[tuple[str, str, bool]]:
        resource = self.looking.discovery.find("VolumeSnapshotClass", SNAPSHOTS)
        if resource is None:
            return []
        found = (await self.looking.reader.list(resource.everywhere)).items
        return [
            (
                str(each["metadata"]["name"]),
                str(each.get("driver") or ""),
                (each["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true",
            )
            for each in found
        ]

    async def _create(self, volume: Volume, class_name: str) -> None:
        resource = self._resource()
        namespace, claim = volume.claim
        name = f"{claim}-{self.run_id[:8]}"
        meta = {"name": name, "namespace": namespace, "labels": OURS, "annotations": {RUN_ID: self.run_id}}
        spec = {"volumeSnapshotClassName": class_name, "source": {"persistentVolumeClaimName": claim}}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": spec}
        self.writer.allow()
        with suppress(AlreadyExists):  # created by our earlier attempt, whose response was lost
            await self.writer.client.create(resource.within(namespace), body)
        self.snapshots[namespace, name] = claim

    async def _until_ready(self) -> None:
        clock, waited = self.looking.reader.clock, 0.0
        todo = sorted(self.snapshots)
        while todo:
            namespace, name = todo[0]
            status = (await self.looking.reader.get(self._resource().named(name, namespace))).get("status") or {}
            if status.get("readyToUse"):
                todo.pop(0)
                continue
            if waited >= READY_WITHIN:
                said = (status.get("error") or {}).get("message") or "it says nothing"
                what = f"VolumeSnapshot {namespace}/{name} is not ready after {READY_WITHIN:g} s: {said}"
                raise WindlassError(what, hint="nothing was deleted")
            await clock.sleep(TICK)
            waited += TICK

    def _resource(self) -> Resource:
        resource = self.looking.discovery.find("VolumeSnapshot", SNAPSHOTS)
        assert resource is not None
        return resource

    async def give_up(self) -> None:
        """Delete claims of StatefulSets that are gone, unless the policy retains them. Call after the last delete."""
        if self.policy is Policy.RETAIN or not (self.data.claims or self.data.volumes):
            return
        left = (await self.looking.reader.list(STATEFUL_SETS.everywhere, _Set)).items
        living = {(each.metadata.namespace, each.metadata.name) for each in left}
        dead = [each for each in self.data.templates if (each.namespace, each.set_name) not in living]
        gone = claims_of_sets(self.data.claims, dead)
        for claim in gone:
            await self.writer.delete(CLAIMS.named(claim.place[1], claim.place[0]), claim.uid)
        await self._until_gone(gone)

    async def _until_gone(self, claims: Collection[Claim]) -> None:
        clock, waited = self.looking.reader.clock, 0.0
        places = {claim.place for claim in claims}
        while waited < GIVEN_UP_WITHIN:
            there = await self._there()
            waiting = [each for each in self.data.volumes if each.name in there and not there[each.name].is_retained]
            claimed = (await self.looking.reader.list(CLAIMS.everywhere, _Claim)).items
            places &= {(each.metadata.namespace, each.metadata.name) for each in claimed}
            released = [
                each for each in waiting if each.claim not in {(c.metadata.namespace, c.metadata.name) for c in claimed}
            ]
            if not places and not released:
                return
            await clock.sleep(TICK)
            waited += TICK

    async def _there(self) -> dict[str, Volume]:
        listed = (await self.looking.reader.list(VOLUMES.everywhere, _Volume)).items
        return {each.metadata.name: _read(each) for each in listed}

    async def kept(self) -> Kept:
        """What happened to the volumes, claims and snapshots."""
        there = await self._there()
        volumes = [there[each.name] for each in self.data.volumes if each.name in there]
        retained = [f"{_item(each)} of claim {'/'.join(each.claim)}" for each in volumes if each.is_retained]
        stuck: list[str] = []
        if self.policy is not Policy.RETAIN:
            stuck = [f"{_item(each)} of claim {'/'.join(each.claim)}" for each in volumes if await self._is_stuck(each)]
        made = [Item(SNAPSHOTS, "VolumeSnapshot", *place) for place in sorted(self.snapshots)]
        retained += [f"{item} of claim {item.namespace}/{self.snapshots[item.namespace, item.name]}" for item in made]
        items = {_item(each) for each in volumes} | set(made)
        if self.policy is Policy.RETAIN:
            items |= {Item("", CLAIMS.kind, *claim.place) for claim in self.data.claims}
            items |= {Item("", CLAIMS.kind, *each.claim) for each in volumes}
        return Kept(tuple(retained), tuple(stuck), frozenset(items))

    async def _is_stuck(self, volume: Volume) -> bool:
        """Whether its claim is gone and the volume should have been deleted with it."""
        if volume.is_retained:
            return False
        try:
            await self.looking.reader.get(CLAIMS.named(volume.claim[1], volume.claim[0]))
        except NotFound:
            return True
        return False


def _item(volume: Volume) -> Item:
    return Item("", VOLUMES.kind, "", volume.name)


def _read(found: _Volume) -> Volume:
    spec = found.spec
    claim = (spec.claim_ref.namespace, spec.claim_ref.name) if spec.claim_ref else ("", "")
    driver = spec.csi.driver if spec.csi else found.metadata.annotations.get(PROVISIONED_BY, "")
    return Volume(found.metadata.name, claim, spec.persistent_volume_reclaim_policy == "Retain", driver)
