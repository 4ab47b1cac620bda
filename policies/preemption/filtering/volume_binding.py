"""VolumeBinding: the volumes that the pod's claims are bound to must be accessible from the node.

A claim that is not bound either should be (its class binds immediately: no node fits), or waits for
its first consumer. For one that waits, kube-scheduler looks for a volume or for capacity to
provision one, node by node, with the rules of the volume controller. These are not implemented
here, so such a pod is not evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from policies.kubernetes.csi_migration import is_translated
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
from policies.preemption.filtering.status import Code, Rejection, unresolvable

_UNBOUND = unresolvable(Code.CLAIM_UNBOUND)
_MISSING = unresolvable(Code.VOLUME_MISSING)


@dataclass(frozen=True, slots=True)
class VolumeBinding:
    """Source: pkg/scheduler/framework/plugins/volumebinding (volume_binding.go, binder.go)."""

    name: str = "VolumeBinding"

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:
        """Find the pod's claims; then match each bound volume's node affinity."""
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
        bound = [claim for claim in claims if _is_bound(claim)]
        if any(not _is_bound(claim) and not _waits(claim, storage) for claim in claims):
            return PreFilter(conflict=_UNBOUND)
        if not bound:
            return NOTHING_TO_CHECK
        found = [storage.volumes.get(claim.volume) for claim in bound]
        mismatch = _affinity_rejection(release)

        def rule(state: NodeState) -> Rejection | None:
            node = storage.csi_nodes.get(state.node.name)
            for volume in found:
                if volume is None:
                    return _MISSING
                affinity = _affinity(volume, node, release)
                # Upstream matches labels only: it passes the selector a node without a name.
                if affinity is not None and not affinity.matches("", state.node.labels):
                    return mismatch
            return None

        return PreFilter(NodeFilter(rule))


def cannot_evaluate(pod: Pod, snapshot: Snapshot, _: Release) -> bool:
    """Return whether a claim waits for its first consumer, or an object is unknown or malformed."""
    if pod.storage is None or not pod.storage.claims:
        return False
    storage = snapshot.storage
    if _has_unknown_objects(pod, storage):
        return True
    return any(
        (not _is_bound(claim) and _waits(claim, storage)) or _is_untranslatable(claim, storage)
        for claim in _claims(pod, storage)
    )


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


def _affinity(
    volume: PersistentVolume, node: CsiNode | None, release: Release
) -> NodeSelector | None:
    migration = volume.migration
    if migration is not None and is_translated(migration.plugin, node, release):
        return migration.affinity
    return volume.affinity


def _affinity_rejection(release: Release) -> Rejection:
    conflict = release.volume_affinity_is_a_conflict
    return unresolvable(Code.VOLUME_CONFLICT if conflict else Code.VOLUME_AFFINITY)
