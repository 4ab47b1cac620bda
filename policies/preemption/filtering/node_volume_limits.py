"""NodeVolumeLimits: a node takes no more volumes of a CSI driver than the driver can attach.

The limits are those of the node's CSINode. These volumes count, each once: those of the pods on the
node, and since 1.32 those attached to it although no pod uses them any more. An unbound claim
counts as one volume of its class's driver; an in-tree disk as one of the driver that replaces its
plugin.

Up to 1.30, a node without a CSINode takes no more disks of EBS, GCE and Azure than its allocatable
resources say, or a fixed number. These are filters of their own upstream (EBSLimits, GCEPDLimits,
AzureDiskLimits), which run next to NodeVolumeLimits and refuse a node with the same message.

Volumes of other pods that do not exist are not counted, as upstream. A node is undecided if its
CSINode cannot be decoded, or if volumes of its pods that cannot be decoded may exceed the limit.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from policies.kubernetes.csi_migration import (
    AWS_EBS,
    AZURE_DISK,
    GCE_PD,
    csi_driver_of,
    is_csi_migration_on,
    is_in_tree,
    translate_to_csi,
)
from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import Node, NodeState, Pod, Snapshot
from policies.kubernetes.storage import (
    NO_POD_STORAGE,
    ClaimVolume,
    CsiNode,
    CsiVolume,
    Disk,
    PersistentVolumeClaim,
    Storage,
    StorageKind,
)
from policies.preemption.filtering.framework import NOTHING_TO_CHECK, NodeOnlyPlugin, PreFilter
from policies.preemption.filtering.status import Code, Rejection, refused, unresolvable

_COUNTED_KINDS = frozenset((StorageKind.ATTACHMENTS, StorageKind.DRIVERS))
_LIMIT_PREFIX = "attachable-volumes-csi-"
_LONGEST_NAME = 63
UNLIMITED: Final = 2**31 - 1
_DISK_LIMITS: Final[Mapping[str, tuple[str, int]]] = {
    AWS_EBS: ("attachable-volumes-aws-ebs", 39),
    GCE_PD: ("attachable-volumes-gce-pd", 16),
    AZURE_DISK: ("attachable-volumes-azure-disk", 16),
}
"""In-tree plugins → the allocatable resource that limits their disks, and the default."""
_NITRO: Final = re.compile(r"^[cmr]5.*|t3|z1d")
_NITRO_LIMIT: Final = 25
_INSTANCE_TYPES: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")


@dataclass(frozen=True, slots=True)
class NodeVolumeLimits:
    """Source: pkg/scheduler/framework/plugins/nodevolumelimits (csi.go, non_csi.go)."""

    name: str = "NodeVolumeLimits"

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:
        """Count the volumes that each node would have with the pod, if the pod has any."""
        storage = snapshot.storage
        if not _attaches(pod) or cannot_evaluate(pod, snapshot, release):
            return NOTHING_TO_CHECK
        missing = next((name for name, claim in _claims(pod, storage) if claim is None), None)
        if missing is not None:
            conflict = unresolvable(Code.NO_CLAIM_TO_COUNT, pod.namespace, missing)
            return PreFilter(conflict=conflict)
        return PreFilter(VolumeLimitsFilter(pod, VolumeCounting(storage, release)))


def cannot_evaluate(pod: Pod, snapshot: Snapshot, release: Release) -> bool:
    """Return whether an object that the count depends on is unknown or cannot be translated."""
    if pod.storage is None or not _attaches(pod):
        return False
    needed = {StorageKind.CLAIMS, StorageKind.VOLUMES, StorageKind.CSI_NODES}
    needed |= {StorageKind.ATTACHMENTS} if release.attachments_count else set()
    needed |= {StorageKind.DRIVERS} if FeatureGate.VOLUME_LIMIT_SCALING in release.gates else set()
    storage = snapshot.storage
    return (
        not needed.isdisjoint(storage.unknown)
        or not all(map(storage.knows_all, needed & _COUNTED_KINDS))
        or any(
            translate_to_csi(disk) is None for disk in pod.storage.disks if is_in_tree(disk.plugin)
        )
        or any(
            not storage.knows_claim(f"{pod.namespace}/{each.claim}") for each in pod.storage.claims
        )
    )


def _attaches(pod: Pod) -> bool:
    volumes = (pod.storage or NO_POD_STORAGE).volumes
    return any(isinstance(each, ClaimVolume) or is_in_tree(each.plugin) for each in volumes)


def _claims(pod: Pod, storage: Storage) -> Iterator[tuple[str, PersistentVolumeClaim | None]]:
    for volume in (pod.storage or NO_POD_STORAGE).claims:
        yield volume.claim, storage.claims.get(f"{pod.namespace}/{volume.claim}")


@dataclass(frozen=True, slots=True)
class VolumeLimitsFilter(NodeOnlyPlugin):
    """The volume limits, evaluated for one pod."""

    pod: Pod
    counting: VolumeCounting

    def refuse(self, node: NodeState) -> Rejection | None:
        """Return a rejection if a driver is missing, or would exceed its limit."""
        absent = self.absent_driver(node.node)
        if absent is not None:
            return absent
        exceeding = self._exceeding(node, 0)
        if exceeding:
            return refused(Code.TOO_MANY_VOLUMES, f"driver {exceeding}")
        exceeding = self._exceeding_disks(node)
        if exceeding:
            return refused(Code.TOO_MANY_VOLUMES, f"plugin {exceeding}")
        unread = self.counting.unread_volumes(node)
        undecided = bool(unread) and bool(self._exceeding(node, len(unread)))
        return unresolvable(Code.VOLUMES_UNKNOWN, unread[0]) if undecided else None

    def absent_driver(self, node: Node) -> Rejection | None:
        """Return a rejection if the node lacks a required driver, or its drivers are not known."""
        storage = self.counting.storage
        if storage.unreadable and not storage.knows(StorageKind.CSI_NODES, node.name):
            return unresolvable(Code.VOLUMES_UNKNOWN, f"csinodes/{node.name}")
        csi_node = storage.csi_nodes.get(node.name)
        absent = self.counting.absent_driver(self._volumes_of_pod(csi_node), csi_node)
        return None if absent is None else refused(Code.NO_DRIVER, absent)

    def room(self, node: Node) -> int:
        """Return how many other volumes, attached or of pods, a node may have without refusing.

        They may all be of the driver with the lowest limit.
        """
        csi_node = self.counting.storage.csi_nodes.get(node.name)
        volumes_of_pod = self._volumes_of_pod(csi_node)
        limits = self.counting.limits({each.driver for each in volumes_of_pod}, node, csi_node)
        disks = self.counting.disks(self.pod, csi_node)
        rooms = [limit - len(volumes_of_pod) for limit in limits.values()]
        rooms += [_disk_limit(disk.plugin, node) - len(disks) for disk in disks]
        return min(rooms, default=UNLIMITED)

    def _volumes_of_pod(self, csi_node: CsiNode | None) -> set[CsiVolume]:
        return set(self.counting.volumes(self.pod, csi_node))

    def _exceeding(self, state: NodeState, unread: int) -> str:
        """Return the first driver whose limit ``unread`` more volumes would exceed, or ""."""
        counting, node = self.counting, self.counting.storage.csi_nodes.get(state.node.name)
        volumes_of_pod = self._volumes_of_pod(node)
        limits = counting.limits({volume.driver for volume in volumes_of_pod}, state.node, node)
        if not limits:
            return ""
        used = {volume for other in state.pods for volume in counting.volumes(other, node)}
        taken = Counter(volume.driver for volume in used | counting.attached(state.node))
        added = Counter(volume.driver for volume in volumes_of_pod - used)
        exceeding = (
            driver
            for driver, more in sorted(added.items())
            if driver in limits and taken[driver] + more + unread > limits[driver]
        )
        return next(exceeding, "")

    def _exceeding_disks(self, state: NodeState) -> str:
        """Return the first in-tree plugin whose limit would be exceeded, or ""."""
        counting, csi_node = self.counting, self.counting.storage.csi_nodes.get(state.node.name)
        wanted = counting.disks(self.pod, csi_node)
        if not wanted:
            return ""
        used = {disk for other in state.pods for disk in counting.disks(other, csi_node)}
        counts = Counter(disk.plugin for disk in used | wanted)
        plugins = sorted({disk.plugin for disk in wanted})
        return next((it for it in plugins if counts[it] > _disk_limit(it, state.node)), "")


class CountedDisk(NamedTuple):
    """A disk by the name that its plugin's limit counts."""

    plugin: str
    name: str


@dataclass(frozen=True, slots=True)
class VolumeCounting:
    """Counts the CSI volumes of pods and nodes by the rules of a release."""

    storage: Storage
    release: Release

    def absent_driver(self, volumes: set[CsiVolume], node: CsiNode | None) -> str | None:
        """Return the first required driver that the node lacks, or None."""
        if FeatureGate.VOLUME_LIMIT_SCALING not in self.release.gates:
            return None
        present = frozenset[str]() if node is None else node.drivers
        # Upstream names the first one of a map iteration.
        for driver in sorted({volume.driver for volume in volumes} - present):
            found = self.storage.drivers.get(driver)
            if found is not None and found.required:
                return driver
        return None

    def limits(self, drivers: set[str], node: Node, csi_node: CsiNode | None) -> Mapping[str, int]:
        """Return the node's volume limits of the drivers that have one."""
        limits: Mapping[str, int] = {} if csi_node is None else csi_node.limits
        if not self.release.node_lists_volume_limits:
            return {driver: limits[driver] for driver in drivers if driver in limits}
        listed = node.allocatable.scalars
        found = {driver: limits.get(driver, listed.get(_key(driver))) for driver in drivers}
        return {driver: limit for driver, limit in found.items() if limit is not None}

    def attached(self, node: Node) -> set[CsiVolume]:
        """Return the volumes of the node's VolumeAttachments, if the release counts them."""
        if not self.release.attachments_count:
            return set()
        found: set[CsiVolume] = set()
        for each in self.storage.attachments.get(node.name, ()):
            volume = self.storage.volumes.get(each.volume)
            if volume is not None and volume.csi is not None:
                found.add(CsiVolume(each.driver, volume.csi.handle))
        return found

    def unread_volumes(self, state: NodeState) -> list[str]:
        """Return the volumes of the node's pods whose claim, or what it names, is not decoded."""
        if not self.storage.unreadable:
            return []
        return [
            f"volume of {pod.key} with claim {each.claim}"
            for pod in state.pods
            for each in (pod.storage or NO_POD_STORAGE).claims
            if not self.storage.knows_claim(f"{pod.namespace}/{each.claim}")
        ]

    def volumes(self, pod: Pod, node: CsiNode | None) -> Iterator[CsiVolume]:
        """Yield the pod's volumes as the drivers on the node count them."""
        for each in (pod.storage or NO_POD_STORAGE).volumes:
            found = (
                self._of_claim(pod, each, node)
                if isinstance(each, ClaimVolume)
                else self._of_disk(each, node)
            )
            if found is not None:
                yield found

    def disks(self, pod: Pod, node: CsiNode | None) -> set[CountedDisk]:
        """Return the pod's disks that count as such: in a release that limits them, no CSINode."""
        if node is not None or not self.release.limits_disks:
            return set()
        volumes = (pod.storage or NO_POD_STORAGE).volumes
        disks = (
            self._disk_of_claim(pod, each) if isinstance(each, ClaimVolume) else _counted(each)
            for each in volumes
        )
        return {disk for disk in disks if disk is not None and disk.plugin in _DISK_LIMITS}

    def _disk_of_claim(self, pod: Pod, each: ClaimVolume) -> CountedDisk | None:
        claim = self.storage.claims.get(f"{pod.namespace}/{each.claim}")
        if claim is None or (each.ephemeral and claim.owner != pod.uid):
            return None
        volume = self.storage.volumes.get(claim.volume)
        if volume is not None:
            return None if volume.migration is None else _counted(volume.migration.disk)
        # The volume that the class would provision, or that does not exist.
        found = self.storage.classes.get(claim.storage_class)
        return None if found is None else CountedDisk(found.provisioner, f"?{claim.key}")

    def _of_disk(self, disk: Disk, node: CsiNode | None) -> CsiVolume | None:
        migrated = is_csi_migration_on(disk.plugin, node, self.release)
        return translate_to_csi(disk) if migrated else None

    def _of_claim(self, pod: Pod, each: ClaimVolume, node: CsiNode | None) -> CsiVolume | None:
        claim = self.storage.claims.get(f"{pod.namespace}/{each.claim}")
        if claim is None or (each.ephemeral and claim.owner != pod.uid):
            return None
        volume = self.storage.volumes.get(claim.volume)
        if volume is None:
            return self._of_class(claim, node)
        if volume.csi is not None or volume.migration is None:
            found = volume.csi
        elif is_csi_migration_on(volume.migration.disk.plugin, node, self.release):
            found = volume.migration.volume
        else:
            found = None
        return found if found is not None and found.driver and found.handle else None

    def _of_class(self, claim: PersistentVolumeClaim, node: CsiNode | None) -> CsiVolume | None:
        """Return the volume that the class of a claim without one would provision for it."""
        found = self.storage.classes.get(claim.storage_class)
        if found is None or not found.provisioner:
            return None
        handle = f"?{claim.key}"  # not a driver's handle; upstream uses a random one
        if not is_in_tree(found.provisioner):
            return CsiVolume(found.provisioner, handle)
        if not is_csi_migration_on(found.provisioner, node, self.release):
            return None
        return CsiVolume(csi_driver_of(found.provisioner), handle)


def _counted(disk: Disk) -> CountedDisk:
    return CountedDisk(disk.plugin, disk.name or disk.identity)


def _disk_limit(plugin: str, node: Node) -> int:
    """Return how many disks of a plugin a node without a CSINode takes (getMaxVolumeFunc)."""
    key, limit = _DISK_LIMITS[plugin]
    types = (node.labels.get(label, "") for label in _INSTANCE_TYPES)
    if plugin == AWS_EBS and _NITRO.search(next(filter(None, types), "")):
        limit = _NITRO_LIMIT
    return node.allocatable.scalars.get(key, limit)


def _key(driver: str) -> str:
    """Return the key of a driver's limit in the allocatable resources (GetCSIAttachLimitKey)."""
    if len(_LIMIT_PREFIX) + len(driver) < _LONGEST_NAME:
        return _LIMIT_PREFIX + driver
    digest = hashlib.sha1(driver.encode(), usedforsecurity=False).hexdigest()
    return f"{_LIMIT_PREFIX}{driver[:23]}{digest[:16]}"
