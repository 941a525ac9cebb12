"""The persistent volumes, claims and StatefulSets that a teardown affects. Reads only."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

from windlass.argo.cd.resource_tracking import is_deletion_disabled, target_namespace
from windlass.core.platform.teardown.volumes import (
    ClaimSelection,
    ClaimTemplate,
    RetentionMark,
    Volume,
    VolumeClaim,
    VolumePolicy,
    claim_applications,
)
from windlass.errors import InvalidInput, WindlassError
from windlass.kube.client.objects import ObjectMeta, TypedObject
from windlass.kube.client.resources import PODS, Resource

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windlass.core.platform.teardown.inventory import PresentObjects, ResourceKey
    from windlass.core.platform.teardown.volumes import ObjectKey
    from windlass.kube.client.discovery import Discovery
    from windlass.kube.client.readers import KubeReader
    from windlass.operations.teardown.inventory import TeardownInventory

CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
SNAPSHOT_GROUP = "snapshot.storage.k8s.io"
PROVISIONED_BY_ANNOTATION = "pv.kubernetes.io/provisioned-by"
RETAINED_FOR_ANNOTATION = "windlass.dev/retained-for"
"""The Application, as namespace/name, for which a teardown changed the reclaim policy of a volume to Retain."""
RETAINED_CLAIM_ANNOTATION, PREVIOUS_POLICY_ANNOTATION = "windlass.dev/retained-claim", "windlass.dev/reclaim-policy"
"""UID of the claim at that time, and the reclaim policy before."""


class _VolumeStruct(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    pass


class _ClaimRef(_VolumeStruct, frozen=True, gc=False):
    namespace: str = ""
    name: str = ""
    uid: str = ""


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


class _ClaimSpec(_VolumeStruct, frozen=True, gc=False):
    volume_name: str = ""


class _PersistentVolumeClaim(TypedObject, frozen=True, gc=False):
    spec: _ClaimSpec = _ClaimSpec()


class _ClaimSource(_VolumeStruct, frozen=True, gc=False):
    claim_name: str = ""


class _PodVolume(_VolumeStruct, frozen=True, gc=False):
    persistent_volume_claim: _ClaimSource | None = None


class _PodSpec(_VolumeStruct, frozen=True, gc=False):
    volumes: tuple[_PodVolume, ...] = ()


class _Pod(TypedObject, frozen=True, gc=False):
    spec: _PodSpec = _PodSpec()

    @property
    def claims(self) -> frozenset[ObjectKey]:
        sources = (volume.persistent_volume_claim for volume in self.spec.volumes)
        return frozenset((self.metadata.namespace, source.claim_name) for source in sources if source)


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

    selections: Mapping[ObjectKey, ClaimSelection] = field(default_factory=dict)
    """By Application: which claims are affected."""
    claims: tuple[VolumeClaim, ...] = ()
    """Affected claims."""
    volumes: tuple[Volume, ...] = ()
    """Their volumes, and those that an earlier teardown retained for the same Applications."""
    missing: tuple[str, ...] = ()
    """Volumes that an affected claim names and that could not be found."""
    applications: Mapping[ObjectKey, ObjectKey] = field(default_factory=dict)
    """The Application of each affected claim."""
    judged_claims: frozenset[str] = frozenset()
    """UIDs of all claims that existed when the selections were made."""
    has_new_claims: bool = False
    """Whether a claim appeared since then that is bound and of which it is not known whether it is affected."""

    @property
    def own_claims(self) -> tuple[VolumeClaim, ...]:
        """Claims of the Applications themselves, without those that are only in one of their namespaces."""
        return tuple(each for each in self.claims if any(chosen.owns(each) for chosen in self.selections.values()))


async def find_affected_volumes(
    reader: KubeReader, inventory: TeardownInventory, known: Mapping[ObjectKey, ClaimSelection] | None = None
) -> AffectedVolumes:
    """Find the volumes and claims of the Applications to delete.

    These are claims they manage, claims of their StatefulSets, claims that their objects own or their pods use, and all
    claims in namespaces that only they use. Raises if one of these kinds cannot be listed. `known`: selections that
    were made earlier, when owners existed that are gone now.
    """
    stateful_sets = (await reader.list(STATEFUL_SETS.everywhere, _StatefulSet)).items
    pods = (await reader.list(PODS.everywhere, _Pod)).items
    exclusive, selections = frozenset(inventory.exclusive_namespaces), {}
    for key, objects in inventory.objects_by_application().items():
        own_sets = [each for each in stateful_sets if each.metadata.uid in objects.uids]
        target = target_namespace(inventory.to_delete[key]) if key in inventory.to_delete else ""
        inside = [each for each in stateful_sets if each.metadata.namespace in exclusive & {target}]
        managed = {(item.namespace, item.name) for item in objects.applications.managed_keys if _is_claim(item)}
        used = (each.claims for each in pods if _is_owned(each, objects.uids))
        selection = ClaimSelection(
            frozenset(managed),
            frozenset().union(*used),
            tuple(template for each in (*own_sets, *inside) for template in _claim_templates(each)),
            objects.uids,
            exclusive & {target},
        )
        selections[key] = selection.merge((known or {}).get(key, ClaimSelection()))
    return await look_again(reader, AffectedVolumes(selections), inventory.listed)


async def look_again(
    reader: KubeReader, affected: AffectedVolumes, listed: PresentObjects | None = None
) -> AffectedVolumes:
    """The claims and volumes as of now. `listed`: all objects, to refuse claims whose owner could not be read."""
    items = (await reader.list(CLAIMS.everywhere, _PersistentVolumeClaim)).items
    if listed is not None:
        _check_owners(items, listed)
    claims = [_parse_claim(each) for each in items]
    applications = claim_applications(claims, affected.selections)
    affected_claims = tuple(each for each in claims if each.key in applications)
    volumes = await list_volumes(reader)
    bound = [each for each in volumes.values() if each.is_bound and each.claim in applications]
    marked = [
        each
        for each in volumes.values()
        if each not in bound and each.is_retained_by_us and each.mark and each.mark.application in affected.selections
    ]
    missing = tuple(each.volume for each in affected_claims if each.volume and each.volume not in volumes)
    judged = affected.judged_claims if listed is None else frozenset(each.uid for each in claims)
    others = [each for each in claims if each.key not in applications and each.uid not in judged]
    return replace(
        affected,
        claims=affected_claims,
        volumes=tuple(sorted((*bound, *marked), key=lambda each: each.name)),
        missing=missing,
        applications=applications,
        judged_claims=judged,
        has_new_claims=any(each.volume in volumes and not volumes[each.volume].is_retained for each in others),
    )


def _check_owners(claims: Iterable[_PersistentVolumeClaim], listed: PresentObjects) -> None:
    """Raise if it is unknown whether a claim belongs to an Application, because its owner could not be read."""
    known, unreadable = {found.uid for found in listed.objects}, {each.group for each in listed.unreadable}
    for claim in claims:
        for owner in claim.metadata.owner_references:
            if owner.uid not in known and owner.api_version.rpartition("/")[0] in unreadable:
                where = f"{claim.metadata.namespace}/{claim.metadata.name}"
                raise WindlassError(
                    f"cannot tell whose PersistentVolumeClaim {where} is: {owner.kind} {owner.name}, which owns it, "
                    "could not be read; nothing was deleted",
                    hint="grant this identity list on that kind",
                )


async def list_volumes(reader: KubeReader) -> dict[str, Volume]:
    volumes = (await reader.list(VOLUMES.everywhere, _PersistentVolume)).items
    return {each.metadata.name: _parse_volume(each) for each in volumes}


async def list_claims(reader: KubeReader) -> dict[ObjectKey, VolumeClaim]:
    claims = (await reader.list(CLAIMS.everywhere, _PersistentVolumeClaim)).items
    return {claim.key: claim for claim in map(_parse_claim, claims)}


async def list_claim_templates(reader: KubeReader) -> list[ClaimTemplate]:
    """The claim templates of all StatefulSets that exist."""
    stateful_sets = (await reader.list(STATEFUL_SETS.everywhere, _StatefulSet)).items
    return [template for each in stateful_sets for template in _claim_templates(each)]


async def list_used_claims(reader: KubeReader) -> frozenset[ObjectKey]:
    """Claims that a pod uses."""
    return frozenset().union(*(pod.claims for pod in (await reader.list(PODS.everywhere, _Pod)).items))


def _claim_templates(stateful_set: _StatefulSet) -> list[ClaimTemplate]:
    meta = stateful_set.metadata
    return [
        ClaimTemplate(each.metadata.name, meta.name, meta.namespace)
        for each in stateful_set.spec.volume_claim_templates
    ]


def _is_claim(key: ResourceKey) -> bool:
    return (key.group, key.kind) == (CLAIMS.group, CLAIMS.kind)


def _is_owned(pod: _Pod, uids: frozenset[str]) -> bool:
    return not uids.isdisjoint((pod.metadata.uid, *(owner.uid for owner in pod.metadata.owner_references)))


def _parse_claim(claim: _PersistentVolumeClaim) -> VolumeClaim:
    meta = claim.metadata
    owners = tuple(owner.uid for owner in meta.owner_references)
    is_kept = is_deletion_disabled(meta.annotations)
    return VolumeClaim((meta.namespace, meta.name), meta.uid, owners, claim.spec.volume_name, is_kept)


def _parse_volume(volume: _PersistentVolume) -> Volume:
    spec = volume.spec
    reference = spec.claim_ref or _ClaimRef()
    driver = spec.csi.driver if spec.csi else volume.metadata.annotations.get(PROVISIONED_BY_ANNOTATION, "")
    return Volume(
        volume.metadata.name,
        (reference.namespace, reference.name),
        spec.persistent_volume_reclaim_policy == "Retain",
        driver,
        reference.uid,
        _parse_mark(volume.metadata.annotations),
        volume.status.phase == "Bound" and spec.claim_ref is not None,
        spec.persistent_volume_reclaim_policy,
    )


def _parse_mark(annotations: Mapping[str, str]) -> RetentionMark | None:
    namespace, _, name = annotations.get(RETAINED_FOR_ANNOTATION, "").partition("/")
    policy = annotations.get(PREVIOUS_POLICY_ANNOTATION, "")
    claim_uid = annotations.get(RETAINED_CLAIM_ANNOTATION, "")
    return RetentionMark((namespace, name), claim_uid, policy) if name and claim_uid and policy == "Delete" else None
