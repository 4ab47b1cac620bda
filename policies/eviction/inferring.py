"""Inference of a node's filesystem layout from its stats.

The stats do not contain the layout. Two names of one filesystem have the same capacity and the same
number of inodes, so images or containers whose filesystem has other numbers have one of their own.
Two filesystems of exactly the same size are taken for one.
"""

from __future__ import annotations

from policies.eviction.filesystems import Layout
from policies.eviction.stats import FilesystemStats, NodeStats


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
