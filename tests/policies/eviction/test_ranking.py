"""The three orders of eviction and their explanations."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.eviction.filesystems import DEDICATED_IMAGES, ONE_FILESYSTEM, SPLIT, Layout
from policies.eviction.pods import EvictablePod
from policies.eviction.ranking import first_evictable_pod, order_for, rank, ranking_steps
from policies.eviction.signals import Signal
from policies.eviction.stats import PodStats
from tests.builders.eviction import disk, evictable, scratch, uses

Pods = Mapping[EvictablePod, PodStats | None]


def steps_of(pods: Pods, signal: Signal, layout: Layout = ONE_FILESYSTEM) -> list[str]:
    """Return the ranking as ``a > b: criterion``."""
    stats = {pod.uid: used for pod, used in pods.items() if used is not None}
    ranking = rank(pods, stats, signal, layout)
    return [
        f"{step.pod.name} > {step.ahead_of.name}: {step.criterion}"
        for step in ranking_steps(ranking, signal)
    ]


@pytest.mark.parametrize("signal", [Signal.MEMORY, Signal.ALLOCATABLE_MEMORY])
def test_memory_is_ranked_by_request_then_priority_then_excess(signal: Signal) -> None:
    pods = {
        evictable("within-low", memory="1Gi", priority=-1): uses("900Mi"),
        evictable("within-high", memory="1Gi", priority=1): uses("1Gi"),
        evictable("above-low-far", memory="100Mi", priority=-1): uses("500Mi"),
        evictable("above-low-near", memory="400Mi", priority=-1): uses("600Mi"),
        evictable("above-high", priority=1): uses("2Gi"),
        evictable("unmeasured", priority=9): None,
        evictable("unmeasured-too", priority=9): None,
    }
    assert steps_of(pods, signal) == [
        "unmeasured > unmeasured-too: name",
        "unmeasured-too > above-low-far: no stats",
        "above-low-far > above-low-near: larger usage above its request",
        "above-low-near > above-high: lower priority",
        "above-high > within-low: usage above its request",
        "within-low > within-high: lower priority",
    ]


def test_usage_without_stats_counts_as_zero() -> None:
    pods = {
        evictable("silent", memory="1"): uses(),
        evictable("small", memory="1"): uses("1"),
        evictable("void"): PodStats(),
    }
    assert steps_of(pods, Signal.MEMORY) == [
        "small > void: name",
        "void > silent: larger usage above its request",
    ]


def test_processes_are_ranked_by_priority_then_count() -> None:
    pods = {
        evictable("many", priority=1): uses(processes=900),
        evictable("few", priority=0): uses(processes=1),
        evictable("some", priority=0): uses(processes=10),
        evictable("unmeasured", priority=0): None,
    }
    assert steps_of(pods, Signal.PIDS) == [
        "unmeasured > some: no stats",
        "some > few: more processes",
        "few > many: lower priority",
    ]


WRITER = evictable("layer", storage="10Mi")
LOGGER = evictable("logs", storage="10Mi")
KEEPER = evictable("volume", storage="10Mi", volumes=[scratch("a")])
DISKS: Pods = {
    WRITER: uses(layer=disk("1Gi", 1)),
    LOGGER: uses(logs=disk("2Gi", 2)),
    KEEPER: uses(volumes={"a": disk("3Gi", 3), "remote": disk("9Gi", 9)}),
}


@pytest.mark.parametrize(
    ("layout", "signal", "order"),
    [
        (ONE_FILESYSTEM, Signal.NODE_FS, "volume logs layer"),
        (ONE_FILESYSTEM, Signal.IMAGE_FS, "volume logs layer"),
        (ONE_FILESYSTEM, Signal.CONTAINER_FS, "volume logs layer"),
        (ONE_FILESYSTEM, Signal.IMAGE_FS_INODES, "volume logs layer"),
        (DEDICATED_IMAGES, Signal.NODE_FS, "volume logs layer"),
        (DEDICATED_IMAGES, Signal.IMAGE_FS, "layer logs volume"),
        (DEDICATED_IMAGES, Signal.CONTAINER_FS_INODES, "layer logs volume"),
        (SPLIT, Signal.NODE_FS_INODES, "volume logs layer"),
        (SPLIT, Signal.CONTAINER_FS, "volume logs layer"),
        (SPLIT, Signal.IMAGE_FS, "layer logs volume"),
    ],
)
def test_disks_are_ranked_by_what_the_layout_counts(
    layout: Layout, signal: Signal, order: str
) -> None:
    stats = {pod.uid: used for pod, used in DISKS.items() if used is not None}
    assert [each.pod.name for each in rank(DISKS, stats, signal, layout)] == order.split()


def test_without_counted_usage_only_priority_decides() -> None:
    pods = {
        evictable("full", priority=1): uses(layer=disk("9Gi")),
        evictable("empty", priority=0): uses(),
    }
    assert steps_of(pods, Signal.IMAGE_FS, SPLIT) == ["empty > full: lower priority"]


def test_any_inode_is_above_the_request_and_bytes_are_taken_off_inodes() -> None:
    pods = {
        evictable("asked", storage="1Gi"): uses(layer=disk(inodes=1000)),
        evictable("modest"): uses(layer=disk(inodes=1)),
        evictable("none", storage="1"): uses(layer=disk(inodes=0)),
    }
    assert steps_of(pods, Signal.NODE_FS_INODES) == [
        "modest > asked: larger usage above its request",
        "asked > none: usage above its request",
    ]


POOL = [
    evictable(name, memory=memory, storage=memory, priority=priority, volumes=[scratch()])
    for name, memory, priority in (
        ("a", "1Gi", 0),
        ("b", "1Gi", 0),
        ("c", "0", 1),
        ("d", "100Mi", 0),
        ("critical", "0", 2_000_000_000),
        ("static", "0", 0),
    )
]
USES = [None, uses(), *(uses(size, processes=1, layer=disk(size, 5)) for size in ("50Mi", "2Gi"))]
populations = st.lists(
    st.tuples(st.sampled_from(POOL), st.sampled_from(USES)), unique_by=lambda pair: pair[0].uid
)
signals = st.sampled_from(list(Signal))
layouts = st.sampled_from([ONE_FILESYSTEM, DEDICATED_IMAGES, SPLIT])


@given(populations, signals, layouts, st.data())
def test_the_order_of_the_pods_never_matters(
    population: list[tuple[EvictablePod, PodStats | None]],
    signal: Signal,
    layout: Layout,
    data: st.DataObject,
) -> None:
    stats = {pod.uid: used for pod, used in population if used is not None}
    pods = [pod for pod, _ in population]
    shuffled = data.draw(st.permutations(pods))
    assert rank(shuffled, stats, signal, layout) == rank(pods, stats, signal, layout)


@given(populations, signals, layouts)
def test_the_first_victim_is_the_first_of_the_ranking_that_is_not_critical(
    population: list[tuple[EvictablePod, PodStats | None]], signal: Signal, layout: Layout
) -> None:
    stats = {pod.uid: used for pod, used in population if used is not None}
    pods = [pod for pod, _ in population]
    ranking = rank(pods, stats, signal, layout)
    movable = [standing.pod for standing in ranking if not standing.pod.critical]
    assert first_evictable_pod(pods, stats, signal, layout) == (movable[0] if movable else None)


@given(populations, signals, layouts)
def test_each_step_is_explained_by_its_deciding_criterion(
    population: list[tuple[EvictablePod, PodStats | None]], signal: Signal, layout: Layout
) -> None:
    stats = {pod.uid: used for pod, used in population if used is not None}
    ranking = rank([pod for pod, _ in population], stats, signal, layout)
    keys = {criterion.name: criterion.key for criterion in order_for(signal).criteria}
    standing = {each.pod.uid: each for each in ranking}
    for step in ranking_steps(ranking, signal):
        ahead, behind = standing[step.pod.uid], standing[step.ahead_of.uid]
        if step.criterion in keys:
            assert keys[step.criterion](ahead) < keys[step.criterion](behind)
        else:
            assert all(key(ahead) == key(behind) for key in keys.values())
            assert ahead.pod.key < behind.pod.key
