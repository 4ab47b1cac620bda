"""Messages of evictions, to the last space."""

from __future__ import annotations

import pytest

from policies.eviction.messages import (
    DISRUPTION_TARGET,
    ResourceShortage,
    eviction_message,
    reclaim_event_message,
)
from policies.eviction.observations import Observation
from policies.eviction.signals import Resource, Signal, read_quantity
from policies.eviction.stats import ContainerStats, DiskUsage, PodStats
from policies.eviction.thresholds import Threshold
from tests.builders.eviction import bound, container, disk, evictable, uses, whole


def short_of(
    resource: Resource, *thresholds: Threshold, **left: tuple[str, str]
) -> ResourceShortage:
    """Build a shortage; what is left is given as available and capacity, by signal name."""
    found = {
        Signal[name]: Observation(whole(amount), whole(capacity))
        for name, (amount, capacity) in left.items()
    }
    return ResourceShortage(resource, thresholds, found)


MEMORY = short_of(Resource.MEMORY, bound("memory.available<2Gi"), MEMORY=("1.5Gi", "4Gi"))
LOW = "The node was low on resource: memory. Threshold quantity: 2Gi, available: 1536Mi. "


def test_a_container_above_its_request_is_named() -> None:
    pod = evictable("web", memory="100Mi")
    message, annotations = eviction_message(pod, uses("700Mi"), MEMORY)
    assert message == (
        f"{LOW}Container main was using 700Mi, request is 100Mi, has larger consumption of memory. "
    )
    assert annotations == {
        "offending_containers": "main",
        "offending_containers_usage": "700Mi",
        "starved_resource": "memory",
    }


@pytest.mark.parametrize("used", ["100Mi", "1Mi"])
def test_a_container_within_its_request_is_not_named(used: str) -> None:
    message, annotations = eviction_message(evictable(memory="100Mi"), uses(used), MEMORY)
    assert message == LOW
    assert annotations["offending_containers"] == ""


def test_any_usage_is_above_an_absent_request() -> None:
    message, _ = eviction_message(evictable(), uses("1"), MEMORY)
    assert message.endswith(
        "Container main was using 1, request is 0, has larger consumption of memory. "
    )


def test_without_stats_only_the_node_is_reported() -> None:
    assert eviction_message(evictable(), None, MEMORY) == (LOW, {})


def test_containers_are_named_in_the_order_of_the_stats() -> None:
    pod = evictable(containers=[container("a"), container("b", memory="1Gi"), container("init")])
    names = ("init", "unknown", "b", "a")
    stats = PodStats(containers=tuple(ContainerStats(name, whole("1Mi")) for name in names))
    message, annotations = eviction_message(pod, stats, MEMORY)
    assert message == (
        f"{LOW}Container init was using 1Mi, request is 0, has larger consumption of memory. "
        "Container a was using 1Mi, request is 0, has larger consumption of memory. "
    )
    assert annotations["offending_containers"] == "init,a"
    assert annotations["offending_containers_usage"] == "1Mi,1Mi"


def test_a_pod_level_memory_request_is_named_even_if_not_exceeded() -> None:
    pod = evictable("web", memory="1Gi", pod_memory_request=read_quantity("2Gi"))
    message, annotations = eviction_message(pod, uses("500Mi"), MEMORY)
    assert message == (
        f"{LOW}Pod web was using 500Mi, request is 2Gi, has larger consumption of memory. "
    )
    assert annotations["offending_pod"] == "web"
    assert annotations["offending_pod_usage"] == "500Mi"
    assert "Pod web" not in eviction_message(pod, PodStats(), MEMORY)[0]


STORAGE = short_of(Resource.STORAGE, bound("nodefs.available<50Gi"), NODE_FS=("10Gi", "80Gi"))


def test_storage_counts_writable_layer_and_logs_together() -> None:
    stats = uses(layer=disk("79Gi"), logs=disk("1Gi"))
    assert eviction_message(evictable(storage="50Gi"), stats, STORAGE)[0] == (
        "The node was low on resource: ephemeral-storage. "
        "Threshold quantity: 50Gi, available: 10Gi. "
        "Container main was using 80Gi, request is 50Gi, "
        "has larger consumption of ephemeral-storage. "
    )


@pytest.mark.parametrize(
    "stats",
    [
        uses(layer=disk("79Gi")),
        uses(logs=disk("79Gi")),
        uses(layer=disk("79Gi"), logs=DiskUsage()),
        uses(layer=DiskUsage(), logs=disk("1Gi")),
    ],
)
def test_storage_is_not_named_with_only_one_of_both(stats: PodStats) -> None:
    assert "Container" not in eviction_message(evictable(), stats, STORAGE)[0]


@pytest.mark.parametrize(
    ("shortage", "expected"),
    [
        (
            short_of(Resource.INODES, bound("nodefs.inodesFree<5%"), NODE_FS_INODES=("2000", "1M")),
            "The node was low on resource: inodes. Threshold quantity: 50000, available: 2k. ",
        ),
        (
            short_of(Resource.PIDS, bound("pid.available<1200"), PIDS=("500", "1500")),
            "The node was low on resource: pids. Threshold quantity: 1200, available: 500. ",
        ),
        (
            short_of(Resource.PIDS, bound("pid.available<2000"), PIDS=("0", "1500")),
            "The node was low on resource: pids. Threshold quantity: 2k, available: 0. ",
        ),
    ],
)
def test_inodes_and_pids_are_reported_for_the_node_only(
    shortage: ResourceShortage, expected: str
) -> None:
    stats = uses("1Gi", processes=9, layer=disk("1Gi", 9), logs=disk("1Gi", 9))
    assert eviction_message(evictable(), stats, shortage)[0] == expected


def test_the_first_observed_threshold_of_the_resource_is_reported() -> None:
    shortage = short_of(
        Resource.STORAGE,
        bound("memory.available<9Gi"),
        bound("imagefs.available<8Gi"),
        bound("nodefs.available<10%"),
        bound("nodefs.available<7Gi"),
        MEMORY=("1", "1"),
        NODE_FS=("500Mi", "10Gi"),
    )
    message, _ = eviction_message(evictable(), None, shortage)
    assert message == (
        "The node was low on resource: ephemeral-storage. "
        "Threshold quantity: 1073741840, available: 500Mi. "
    )


def test_the_nodes_event_and_the_pods_condition() -> None:
    assert reclaim_event_message(Resource.STORAGE) == "Attempting to reclaim ephemeral-storage"
    assert (DISRUPTION_TARGET.type, DISRUPTION_TARGET.reason) == (
        "DisruptionTarget",
        "TerminationByKubelet",
    )
