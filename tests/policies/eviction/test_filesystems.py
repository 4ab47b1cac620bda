"""Layouts: usage that counts, reclaim actions, and thresholds of containerfs."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from policies.eviction.filesystems import (
    DEDICATED_IMAGES,
    ONE_FILESYSTEM,
    SPLIT,
    DiskUsageSource,
    Layout,
    ReclaimAction,
    infer_layout,
    update_containerfs_thresholds,
)
from policies.eviction.kubelet_releases import EVICTION_RELEASES, NEWEST_EVICTION
from policies.eviction.signals import Signal
from policies.eviction.stats import FilesystemStats, NodeStats
from policies.eviction.thresholds import Threshold
from tests.builders.eviction import bound, filesystem

LAYERS, LOGS, VOLUMES = DiskUsageSource.LAYERS, DiskUsageSource.LOGS, DiskUsageSource.VOLUMES
CONTAINERS, IMAGES = ReclaimAction.CONTAINERS, ReclaimAction.IMAGES
UNKNOWN = Layout(separate_containers=True)
DISKS = {"nodefs", "imagefs", "containerfs"}


@pytest.mark.parametrize(
    ("layout", "counted"),
    [
        (ONE_FILESYSTEM, {disk: {LAYERS, LOGS, VOLUMES} for disk in DISKS}),
        (UNKNOWN, {disk: {LAYERS, LOGS, VOLUMES} for disk in DISKS}),
        (
            DEDICATED_IMAGES,
            {"nodefs": {LOGS, VOLUMES}, "imagefs": {LAYERS}, "containerfs": {LAYERS}},
        ),
        (
            SPLIT,
            {
                "nodefs": {LAYERS, LOGS, VOLUMES},
                "imagefs": set(),
                "containerfs": {LAYERS, LOGS, VOLUMES},
            },
        ),
    ],
)
def test_the_layout_sets_the_usage_that_counts(
    layout: Layout, counted: Mapping[str, set[DiskUsageSource]]
) -> None:
    for kind in ("available", "inodesFree"):
        found = {disk: layout.counted_usage(Signal(f"{disk}.{kind}")) for disk in DISKS}
        assert found == counted


@pytest.mark.parametrize(
    ("layout", "reclaimed"),
    [
        (ONE_FILESYSTEM, dict.fromkeys(DISKS, (CONTAINERS, IMAGES))),
        (
            DEDICATED_IMAGES,
            {"nodefs": (), "imagefs": (CONTAINERS, IMAGES), "containerfs": (CONTAINERS, IMAGES)},
        ),
        (SPLIT, {"nodefs": (CONTAINERS,), "imagefs": (IMAGES,), "containerfs": (CONTAINERS,)}),
    ],
)
def test_the_layout_sets_the_reclaim_actions(
    layout: Layout, reclaimed: Mapping[str, tuple[ReclaimAction, ...]]
) -> None:
    for kind in ("available", "inodesFree"):
        found = {
            disk: layout.reclaim_actions(Signal(f"{disk}.{kind}"), NEWEST_EVICTION)
            for disk in DISKS
        }
        assert found == reclaimed


@pytest.mark.parametrize("signal", [Signal.MEMORY, Signal.ALLOCATABLE_MEMORY, Signal.PIDS])
def test_memory_and_processes_have_no_reclaim_actions(signal: Signal) -> None:
    assert ONE_FILESYSTEM.reclaim_actions(signal, NEWEST_EVICTION) == ()


def test_containerfs_has_reclaim_actions_since_1_32() -> None:
    old, new = EVICTION_RELEASES["1.31"], EVICTION_RELEASES["1.32"]
    assert ONE_FILESYSTEM.reclaim_actions(Signal.CONTAINER_FS, old) == ()
    assert ONE_FILESYSTEM.reclaim_actions(Signal.NODE_FS, old) == (CONTAINERS, IMAGES)
    assert ONE_FILESYSTEM.reclaim_actions(Signal.CONTAINER_FS, new) == (CONTAINERS, IMAGES)


NODE, NODE_SOFT = bound("nodefs.available<1Gi"), bound("nodefs.available<2Gi", grace="1m")
IMAGE, INODES = bound("imagefs.available<3Gi"), bound("nodefs.inodesFree<5%", reclaim="1k")
GIVEN = bound("containerfs.available<9Gi")
COPY, COPY_SOFT = bound("containerfs.available<1Gi"), bound("containerfs.available<2Gi", grace="1m")
COPY_INODES = bound("containerfs.inodesFree<5%", reclaim="1k")
COPY_IMAGE = bound("containerfs.available<3Gi")


@pytest.mark.parametrize(
    ("layout", "given", "first", "later"),
    [
        (
            ONE_FILESYSTEM,
            [NODE, NODE_SOFT, IMAGE, INODES],
            [NODE, NODE_SOFT, IMAGE, INODES],
            [NODE, NODE_SOFT, IMAGE, INODES, COPY, COPY_SOFT, COPY_INODES],
        ),
        (SPLIT, [NODE, IMAGE], [NODE, IMAGE], [NODE, IMAGE, COPY]),
        (DEDICATED_IMAGES, [NODE, IMAGE], [NODE, IMAGE], [NODE, IMAGE, COPY_IMAGE]),
        (UNKNOWN, [NODE, GIVEN], [NODE, GIVEN], [NODE, GIVEN]),
        (ONE_FILESYSTEM, [GIVEN, NODE], [COPY, NODE], [COPY, NODE]),
        (ONE_FILESYSTEM, [GIVEN, IMAGE], [IMAGE], [IMAGE]),
        (
            ONE_FILESYSTEM,
            [bound("containerfs.available<9Gi", grace="1s"), NODE, NODE_SOFT],
            [bound("containerfs.available<9Gi", grace="1s"), NODE, NODE_SOFT],
            [COPY_SOFT, NODE, NODE_SOFT, COPY],
        ),
    ],
    ids=[
        "copies come with the second round",
        "split: as nodefs",
        "dedicated imagefs: as imagefs",
        "containerfs alone is not understood",
        "what was configured is overridden at once",
        "by nothing, if there is nothing to copy",
        "but not behind the first that had to be added",
    ],
)
def test_thresholds_of_containerfs_are_copies(
    layout: Layout, given: list[Threshold], first: list[Threshold], later: list[Threshold]
) -> None:
    assert update_containerfs_thresholds(given, layout) == (first, later)


SMALL, LARGE = filesystem(capacity="100Gi"), filesystem(capacity="200Gi")
FEW = filesystem(capacity="100Gi", inodes=77)


@pytest.mark.parametrize(
    ("node", "image", "containers", "layout"),
    [
        (SMALL, SMALL, SMALL, ONE_FILESYSTEM),
        (SMALL, None, None, ONE_FILESYSTEM),
        (None, SMALL, SMALL, ONE_FILESYSTEM),
        (SMALL, LARGE, LARGE, DEDICATED_IMAGES),
        (SMALL, FEW, FEW, DEDICATED_IMAGES),
        (SMALL, LARGE, None, DEDICATED_IMAGES),
        (SMALL, LARGE, SMALL, SPLIT),
        (SMALL, FilesystemStats(), FilesystemStats(), ONE_FILESYSTEM),
    ],
)
def test_sizes_suggest_the_layout(
    node: FilesystemStats | None,
    image: FilesystemStats | None,
    containers: FilesystemStats | None,
    layout: Layout,
) -> None:
    stats = NodeStats(node_fs=node, image_fs=image, container_fs=containers)
    assert infer_layout(stats) == layout
