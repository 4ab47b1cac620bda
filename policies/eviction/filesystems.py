"""The filesystem layout of a node and its effect on thresholds, ranking and reclaim.

Images and the writable layers of containers share the kubelet's filesystem, or have a dedicated
imagefs, or only the images have one (split). The layout determines three things: which thresholds
apply to the containers' filesystem, which usage of a pod is counted under disk pressure, and what
the node can reclaim before a pod is evicted.

                          nodefs                   imagefs              containerfs
    one filesystem        layers, logs, volumes    the same             as nodefs
    dedicated imagefs     logs, volumes            layers               as imagefs
    split                 layers, logs, volumes    nothing of a pod     as nodefs

    one filesystem        containers, images       the same             as nodefs
    dedicated imagefs     nothing                  containers, images   as imagefs
    split                 containers               images               as nodefs

:func:`infer_layout` infers the layout from a node's stats, which do not contain it. Two names of
one filesystem have the same capacity and the same number of inodes, so images or containers whose
filesystem has other numbers have one of their own. Two filesystems of exactly the same size are
taken for one.

Sources: UpdateContainerFsThresholds, buildSignalToRankFunc and buildSignalToNodeReclaimFuncs in
pkg/kubelet/eviction/helpers.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from policies.eviction.kubelet_releases import EvictionRelease
from policies.eviction.signals import Signal
from policies.eviction.stats import FilesystemStats, NodeStats
from policies.eviction.thresholds import Threshold


class DiskUsageSource(Enum):
    """A kind of disk usage of a pod."""

    LAYERS = "the writable layers of its containers"
    LOGS = "the logs of its containers"
    VOLUMES = "its local volumes"


class ReclaimAction(Enum):
    """A node-level reclaim action, which evicts no pod."""

    CONTAINERS = "delete unused containers"
    IMAGES = "delete unused images"


class NodeFilesystem(Enum):
    """One of the three filesystems."""

    NODE = "nodefs"
    IMAGES = "imagefs"
    CONTAINERS = "containerfs"


SIGNAL_FILESYSTEMS: Final[Mapping[Signal, NodeFilesystem]] = {
    Signal.NODE_FS: NodeFilesystem.NODE,
    Signal.NODE_FS_INODES: NodeFilesystem.NODE,
    Signal.IMAGE_FS: NodeFilesystem.IMAGES,
    Signal.IMAGE_FS_INODES: NodeFilesystem.IMAGES,
    Signal.CONTAINER_FS: NodeFilesystem.CONTAINERS,
    Signal.CONTAINER_FS_INODES: NodeFilesystem.CONTAINERS,
}

_ALL: Final = frozenset(DiskUsageSource)
_BOTH: Final = (ReclaimAction.CONTAINERS, ReclaimAction.IMAGES)


@dataclass(frozen=True, slots=True)
class Layout:
    """Whether images have a filesystem of their own, and whether containers have another one.

    The kubelet does not know a separate container filesystem without a dedicated imagefs: it ranks
    and reclaims as with one filesystem, and copies no thresholds.
    """

    dedicated_images: bool = False
    separate_containers: bool = False

    @property
    def split(self) -> bool:
        """Whether only the images have a filesystem of their own."""
        return self.dedicated_images and self.separate_containers

    @property
    def shared_by_containers(self) -> NodeFilesystem | None:
        """The filesystem whose thresholds also apply to the containers' filesystem."""
        if not self.dedicated_images:
            return None if self.separate_containers else NodeFilesystem.NODE
        return NodeFilesystem.NODE if self.separate_containers else NodeFilesystem.IMAGES

    def counted_usage(self, signal: Signal) -> frozenset[DiskUsageSource]:
        """Return the kinds of disk usage that are counted of a pod when ``signal`` runs short."""
        if not self.dedicated_images:
            return _ALL
        of_node = self._ranked_as(signal) is NodeFilesystem.NODE
        if self.separate_containers:
            return _ALL if of_node else frozenset()
        layers = frozenset({DiskUsageSource.LAYERS})
        return _ALL - layers if of_node else layers

    def reclaim_actions(
        self, signal: Signal, release: EvictionRelease
    ) -> tuple[ReclaimAction, ...]:
        """Return the actions that the node takes before it evicts for ``signal``, in order."""
        if signal not in SIGNAL_FILESYSTEMS:
            return ()
        of_containers = SIGNAL_FILESYSTEMS[signal] is NodeFilesystem.CONTAINERS
        if of_containers and not release.reclaims_for_containerfs:
            return ()
        if not self.dedicated_images:
            return _BOTH
        of_node = self._ranked_as(signal) is NodeFilesystem.NODE
        if self.separate_containers:
            return (ReclaimAction.CONTAINERS if of_node else ReclaimAction.IMAGES,)
        return () if of_node else _BOTH

    def _ranked_as(self, signal: Signal) -> NodeFilesystem:
        filesystem = SIGNAL_FILESYSTEMS[signal]
        if filesystem is not NodeFilesystem.CONTAINERS:
            return filesystem
        dedicated = self.dedicated_images and not self.separate_containers
        return NodeFilesystem.IMAGES if dedicated else NodeFilesystem.NODE


ONE_FILESYSTEM: Final = Layout()
DEDICATED_IMAGES: Final = Layout(dedicated_images=True)
SPLIT: Final = Layout(dedicated_images=True, separate_containers=True)

_COPIES: Final = (
    (
        Signal.CONTAINER_FS,
        {NodeFilesystem.NODE: Signal.NODE_FS, NodeFilesystem.IMAGES: Signal.IMAGE_FS},
    ),
    (
        Signal.CONTAINER_FS_INODES,
        {NodeFilesystem.NODE: Signal.NODE_FS_INODES, NodeFilesystem.IMAGES: Signal.IMAGE_FS_INODES},
    ),
)


def update_containerfs_thresholds(
    thresholds: Sequence[Threshold], layout: Layout
) -> tuple[list[Threshold], list[Threshold]]:
    """Copy the hard and soft thresholds of the filesystem that containers share to containerfs.

    Configured thresholds of containerfs are overridden; without a configured threshold of the other
    filesystem, containerfs has none. Upstream copies the thresholds in its first round. Within that
    round it sees only the copies that replace an existing list element, up to the first copy that
    it has to append. Therefore two lists are returned, for the first round and for all later
    rounds.
    """
    source = layout.shared_by_containers
    if source is None:
        return list(thresholds), list(thresholds)
    first: list[Threshold | None] = list(thresholds)
    later: list[Threshold | None] = list(thresholds)
    in_place = True
    for target, sources in _COPIES:
        for hard in (True, False):
            original = _last_index(thresholds, sources[source], hard=hard)
            copy = None if original is None else replace(thresholds[original], signal=target)
            index = _last_index(thresholds, target, hard=hard)
            if index is None:
                later.append(copy)
                in_place = False
                continue
            later[index] = copy
            if in_place:
                first[index] = copy
    return [each for each in first if each], [each for each in later if each]


def _last_index(thresholds: Sequence[Threshold], signal: Signal, *, hard: bool) -> int | None:
    found = (i for i, each in enumerate(thresholds) if each.signal is signal and each.hard is hard)
    return max(found, default=None)


def infer_layout(node: NodeStats) -> Layout:
    """Infer the layout of a node's filesystems."""
    dedicated = _differ(node.image_fs, node.node_fs)
    separate = dedicated and _differ(node.container_fs, node.image_fs)
    return Layout(dedicated_images=dedicated, separate_containers=separate)


def _differ(one: FilesystemStats | None, other: FilesystemStats | None) -> bool:
    if one is None or other is None:
        return False
    sizes = ((one.capacity, other.capacity), (one.inodes, other.inodes))
    return any(a is not None and b is not None and a != b for a, b in sizes)
