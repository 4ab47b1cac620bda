"""VolumeBinding: the volumes of the pod's claims must be accessible from the node.

A claim that is not bound either should be (its class binds immediately: no node fits), or waits for
its first consumer: then a node needs a volume for it, or a driver that can provision one (see
policies.preemption.filtering.unbound_claims). Nothing depends on other pods, so eviction never
helps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from policies.kubernetes.csi_migration import is_translated
from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.releases import Release
from policies.kubernetes.selectors import NodeSelector
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.kubernetes.storage import (
    NO_POD_STORAGE,
    ClaimVolume,
    CsiNode,
    PersistentVolume,
    PersistentVolumeClaim,
    Storage,
    StorageKind,
)
from policies.preemption.filtering.framework import NOTHING_TO_CHECK, NodeFilter, PreFilter
from policies.preemption.filtering.status import (
    Code,
    Reason,
    Rejection,
    unresolvable,
)
from policies.preemption.filtering.unbound_claims import (
    NO_PROVISIONER,
    UnboundClaims,
    alternatives_of,
    keys_of,
)


@dataclass(frozen=True, slots=True)
class VolumeBinding:
    """Source: pkg/scheduler/framework/plugins/volumebinding (volume_binding.go, binder.go)."""

    name: str = "VolumeBinding"

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:
        """Find the pod's claims, and the volumes that they are or can be bound to."""
        storage = snapshot.storage
        volumes = (pod.storage or NO_POD_STORAGE).claims
        if not volumes or _has_unknown_objects(pod, storage):
            return NOTHING_TO_CHECK
        claims: list[PersistentVolumeClaim] = []
        for volume in volumes:
            claim = _find_claim(volume, pod, storage)
            if isinstance(claim, Rejection):
                return PreFilter(conflict=claim)
            claims.append(claim)
        unbound = [claim for claim in claims if not _is_bound(claim)]
        for claim in unbound:
            if not _waits(claim, storage):
                return PreFilter(conflict=unresolvable(Code.CLAIM_UNBOUND, f"claim {claim.key}"))
        if any(_needs_unknown_objects(claim, storage, release) for claim in unbound):
            unbound = []
        volumes_found = [
            (f"claim {each.key}", storage.volumes.get(each.volume))
            for each in claims
            if _is_bound(each)
        ]
        if not volumes_found and not unbound:
            return NOTHING_TO_CHECK
        bound = BoundVolumes(volumes_found, storage, release)
        return PreFilter(_node_filter(bound, UnboundClaims.of(unbound, storage)))


def cannot_evaluate(pod: Pod, snapshot: Snapshot, release: Release) -> bool:
    """Return whether an object that the pod's claims depend on is unknown or malformed."""
    if pod.storage is None or not pod.storage.claims:
        return False
    storage = snapshot.storage
    if _has_unknown_objects(pod, storage):
        return True
    return any(
        _needs_unknown_objects(claim, storage, release)
        if not _is_bound(claim) and _waits(claim, storage)
        else _is_untranslatable(claim, storage)
        for claim in _claims(pod, storage)
    )


def _node_filter(bound: BoundVolumes, unbound: UnboundClaims) -> NodeFilter:
    def rule(state: NodeState) -> Rejection | None:
        failures = bound.failure(state), unbound.failure(state)
        if failures[0] is not None and failures[0].code is Code.VOLUME_MISSING:
            failures = failures[::-1]  # in upstream's order
        found = tuple(reason for reason in failures if reason is not None)
        return Rejection(found, resolvable=False) if found else None

    read, others = bound.label_keys(), unbound.label_keys()
    reads = None if read is None or others is None else read | others
    return NodeFilter(rule, reads, None if bound.volumes else unbound.passing_values())


def _has_unknown_objects(pod: Pod, storage: Storage) -> bool:
    for each in (pod.storage or NO_POD_STORAGE).claims:
        key = f"{pod.namespace}/{each.claim}"
        claim = storage.claims.get(key)
        if not storage.knows_claim(key) or (claim and _needs_unknown_csi_node(claim, storage)):
            return True
    return False


def _needs_unknown_csi_node(claim: PersistentVolumeClaim, storage: Storage) -> bool:
    """Return whether the volume is in-tree and CSINodes, which show its migration, are unknown."""
    volume = storage.volumes.get(claim.volume)
    return (
        volume is not None
        and volume.migration is not None
        and StorageKind.CSI_NODES in storage.unknown
    )


def _needs_unknown_objects(
    claim: PersistentVolumeClaim, storage: Storage, release: Release
) -> bool:
    """Return whether volumes, the driver or its capacities are unknown, for a claim that waits.

    A claim with an attributes class, which upstream reports as an error where the feature is off,
    counts as such a claim there.
    """
    if claim.selected_node is None and (
        not storage.knows_all(StorageKind.VOLUMES)
        or (claim.attributes_class and FeatureGate.VOLUME_ATTRIBUTES_CLASS not in release.gates)
    ):
        return True
    provisioner = storage.classes[claim.storage_class].provisioner
    if provisioner in NO_PROVISIONER:
        return False
    driver = storage.drivers.get(provisioner)
    if driver is None:
        return not storage.knows(StorageKind.DRIVERS, provisioner)
    return driver.storage_capacity and not storage.knows_all(StorageKind.CAPACITIES)


def _is_untranslatable(claim: PersistentVolumeClaim, storage: Storage) -> bool:
    """Return whether the claim's volume is an in-tree one that cannot be translated."""
    volume = storage.volumes.get(claim.volume)
    return volume is not None and volume.migration is not None and volume.migration.volume is None


def _claims(pod: Pod, storage: Storage) -> Iterator[PersistentVolumeClaim]:
    for volume in (pod.storage or NO_POD_STORAGE).claims:
        claim = storage.claims.get(f"{pod.namespace}/{volume.claim}")
        if claim is not None:
            yield claim


def _find_claim(
    volume: ClaimVolume, pod: Pod, storage: Storage
) -> PersistentVolumeClaim | Rejection:
    """Return a claim, or why the pod cannot use it (podHasPVCs)."""
    name = volume.claim
    claim = storage.claims.get(f"{pod.namespace}/{name}")
    if claim is None:
        return unresolvable(Code.NO_EPHEMERAL_CLAIM if volume.ephemeral else Code.NO_CLAIM, name)
    if claim.lost:
        return unresolvable(Code.CLAIM_LOST, name, claim.volume)
    if claim.deleting:
        return unresolvable(Code.CLAIM_DELETED, name)
    if volume.ephemeral and claim.owner != pod.uid:
        return unresolvable(Code.CLAIM_OF_OTHER, claim.key, pod.key)
    return claim


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.volume) and claim.bound


def _waits(claim: PersistentVolumeClaim, storage: Storage) -> bool:
    found = storage.classes.get(claim.storage_class)
    return found is not None and found.waits_for_first_consumer and not claim.volume


@dataclass(frozen=True, slots=True)
class BoundVolumes:
    """Bound claims and their volumes; None for one that does not exist (checkBoundClaims)."""

    volumes: Sequence[tuple[str, PersistentVolume | None]]
    storage: Storage
    release: Release

    def failure(self, state: NodeState) -> Reason | None:
        """Return why the first volume that fails cannot be used on the node, or None."""
        node = self.storage.csi_nodes.get(state.node.name)
        for claim, volume in self.volumes:
            if volume is None:
                return Reason(Code.VOLUME_MISSING, claim)
            affinity = _affinity(volume, node, self.release)
            # Upstream matches labels only: it passes the selector a node without a name.
            if affinity is not None and not affinity.matches("", state.node.labels):
                conflict = self.release.volume_affinity_is_a_conflict
                code = Code.VOLUME_CONFLICT if conflict else Code.VOLUME_AFFINITY
                return Reason(code, f"{claim}, volume {volume.name}")
        return None

    def label_keys(self) -> frozenset[str] | None:
        """Return the node labels that decide; None if a volume may be translated on a node."""
        present = [each for _, each in self.volumes if each is not None]
        if any(each.migration is not None for each in present):
            return None
        return keys_of(alternatives_of(each.affinity) for each in present)


def _affinity(
    volume: PersistentVolume, node: CsiNode | None, release: Release
) -> NodeSelector | None:
    migration = volume.migration
    if migration is not None and is_translated(migration.disk.plugin, node, release):
        return migration.affinity
    return volume.affinity
