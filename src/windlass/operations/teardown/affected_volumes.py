"""The persistent volumes, claims and StatefulSets that a teardown affects. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from windlass.core.platform.teardown.volumes import (
    ClaimSelection,
    ClaimTemplate,
    Volume,
    VolumeClaim,
    VolumePolicy,
    affected_volumes,
    stateful_set_claims,
)
from windlass.errors import InvalidInput
from windlass.kube.client.objects import ObjectMeta, TypedObject
from windlass.kube.client.resources import Resource

if TYPE_CHECKING:
    from windlass.core.platform.teardown.volumes import ObjectKey
    from windlass.kube.client.discovery import Discovery
    from windlass.kube.client.readers import KubeReader
    from windlass.operations.teardown.inventory import TeardownInventory

CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
SNAPSHOT_GROUP = "snapshot.storage.k8s.io"
PROVISIONED_BY_ANNOTATION = "pv.kubernetes.io/provisioned-by"


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
        affected_volumes(claims, await list_bound_volumes(reader), selection),
        stateful_set_claims(claims, templates),
        templates,
    )


async def list_bound_volumes(reader: KubeReader) -> list[Volume]:
    volumes = (await reader.list(VOLUMES.everywhere, _PersistentVolume)).items
    return [_parse_volume(each) for each in volumes if each.status.phase == "Bound" and each.spec.claim_ref]


async def list_volumes(reader: KubeReader) -> dict[str, Volume]:
    volumes = (await reader.list(VOLUMES.everywhere, _PersistentVolume)).items
    return {each.metadata.name: _parse_volume(each) for each in volumes}


async def list_claim_keys(reader: KubeReader) -> set[ObjectKey]:
    claims = (await reader.list(CLAIMS.everywhere, _PersistentVolumeClaim)).items
    return {(each.metadata.namespace, each.metadata.name) for each in claims}


async def list_stateful_set_keys(reader: KubeReader) -> set[ObjectKey]:
    stateful_sets = (await reader.list(STATEFUL_SETS.everywhere, _StatefulSet)).items
    return {(each.metadata.namespace, each.metadata.name) for each in stateful_sets}


def _parse_volume(volume: _PersistentVolume) -> Volume:
    spec = volume.spec
    claim = (spec.claim_ref.namespace, spec.claim_ref.name) if spec.claim_ref else ("", "")
    driver = spec.csi.driver if spec.csi else volume.metadata.annotations.get(PROVISIONED_BY_ANNOTATION, "")
    return Volume(volume.metadata.name, claim, spec.persistent_volume_reclaim_policy == "Retain", driver)
