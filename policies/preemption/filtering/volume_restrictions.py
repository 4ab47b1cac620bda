"""VolumeRestrictions: volumes for one pod only, and disks that only one node may write to.

A claim with the access mode ReadWriteOncePod is used by one pod of the whole cluster: while another
pod uses it, no node fits. A disk that the pod spec describes itself may not be used twice on a
node, unless all pods that use it only read (an EBS disk not even then).

Two of upstream's rules that a dry run exposes are kept as they are: conflicts are counted by claims
at first, but by volumes when a pod leaves or joins; and then by the claim's name alone, whatever
its namespace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from policies.kubernetes.csi_migration import AWS_EBS, GCE_PD, ISCSI, RBD
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.kubernetes.storage import (
    NO_POD_STORAGE,
    Disk,
    PersistentVolumeClaim,
    PodStorage,
    StorageKind,
)
from policies.preemption.filtering.framework import NOTHING_TO_CHECK, FilterPlugin, PreFilter
from policies.preemption.filtering.status import Code, Rejection, refused, unresolvable

_RESTRICTED = frozenset({AWS_EBS, GCE_PD, ISCSI, RBD})
_NO_DISK = refused(Code.NO_DISK)


@dataclass(frozen=True, slots=True)
class VolumeRestrictions:
    """Source: pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go."""

    name: str = "VolumeRestrictions"

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:
        """Count which of the pod's ReadWriteOncePod claims are in use."""
        if pod.storage is None or cannot_evaluate(pod, snapshot, release):
            return NOTHING_TO_CHECK
        claims: list[PersistentVolumeClaim] = []
        for name in _claims(pod):
            claim = snapshot.storage.claims.get(f"{pod.namespace}/{name}")
            if claim is None:
                return PreFilter(conflict=unresolvable(Code.NO_CLAIM, name))
            claims.append(claim)
        single = {claim.name for claim in claims if claim.read_write_once_pod}
        disks = tuple(disk for disk in pod.storage.disks if disk.plugin in _RESTRICTED)
        in_use = single & _in_use(pod.namespace, snapshot) if single else single
        if not disks and not in_use:
            return NOTHING_TO_CHECK
        rejection = _claim_in_use_rejection(sorted(in_use), pod.namespace, release)
        return PreFilter(VolumeRestrictionsFilter(disks, frozenset(single), len(in_use), rejection))


def cannot_evaluate(pod: Pod, snapshot: Snapshot, _: Release) -> bool:
    """Return whether a claim of the pod is unknown."""
    return any(
        not snapshot.storage.knows(StorageKind.CLAIMS, f"{pod.namespace}/{name}")
        for name in _claims(pod)
    )


@dataclass(frozen=True, slots=True)
class VolumeRestrictionsFilter:
    """The pod's restricted disks and claims; ``conflicts`` counts the uses of the claims."""

    disks: tuple[Disk, ...]
    claims: frozenset[str]
    conflicts: int
    claim_in_use: Rejection

    def is_affected_by(self, storage: PodStorage) -> bool:
        """Return whether a pod with this storage can affect the status of its node."""
        if not self.claims.isdisjoint(storage.non_ephemeral_claims):
            return True
        return any(_same(disk, other) for disk in self.disks for other in storage.disks)

    def refuse(self, node: NodeState) -> Rejection | None:
        """Return a rejection if a disk on the node, or a claim anywhere, is in use."""
        if any(_conflicting(disk, pod) for disk in self.disks for pod in node.pods):
            return _NO_DISK
        return self.claim_in_use if self.conflicts > 0 else None

    def removing(self, pod: Pod, node: NodeState) -> FilterPlugin:  # noqa: ARG002 - see FilterPlugin
        """Subtract the claims of a pod that has left."""
        return self._changed(pod, -1)

    def adding(self, pod: Pod, node: NodeState) -> FilterPlugin:  # noqa: ARG002 - see FilterPlugin
        """Add the claims of a pod that has joined."""
        return self._changed(pod, 1)

    def _changed(self, pod: Pod, by: int) -> FilterPlugin:
        users = sum(name in self.claims for name in _claims(pod))
        return replace(self, conflicts=self.conflicts + by * users) if users else self


def _claims(pod: Pod) -> tuple[str, ...]:
    return (pod.storage or NO_POD_STORAGE).non_ephemeral_claims


def _in_use(namespace: str, snapshot: Snapshot) -> frozenset[str]:
    return frozenset(
        name
        for state in snapshot.nodes.values()
        for pod in state.pods
        if pod.storage is not None and pod.namespace == namespace
        for name in _claims(pod)
    )


def _claim_in_use_rejection(names: Sequence[str], namespace: str, release: Release) -> Rejection:
    here = release.claim_in_use_is_of_the_node
    detail = ", ".join(f"claim {namespace}/{name}" for name in names)
    return refused(Code.CLAIM_IN_USE_HERE if here else Code.CLAIM_IN_USE, detail)


def _conflicting(disk: Disk, pod: Pod) -> bool:
    return any(_same(disk, other) for other in (pod.storage or NO_POD_STORAGE).disks)


def _same(disk: Disk, other: Disk) -> bool:
    if (disk.plugin, disk.identity) != (other.plugin, other.identity):
        return False
    if disk.plugin == RBD and disk.monitors.isdisjoint(other.monitors):
        return False
    return disk.plugin == AWS_EBS or not (disk.read_only and other.read_only)
