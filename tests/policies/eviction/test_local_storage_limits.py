"""Limits of local storage and the messages of pods that exceed them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from policies.eviction.config import EvictionConfig
from policies.eviction.filesystems import DEDICATED_IMAGES, ONE_FILESYSTEM
from policies.eviction.kubelet_releases import MEMORY_BACKED_VOLUMES, NEWEST_EVICTION
from policies.eviction.manager import exceeded_limit_message
from policies.eviction.pods import EvictablePod
from policies.eviction.stats import DiskUsage, PodStats, VolumeStats
from tests.builders.eviction import container, disk, evictable, scratch, uses, whole

PLAIN = EvictionConfig()
RESIZABLE = EvictionConfig(
    release=NEWEST_EVICTION.with_feature_gates({MEMORY_BACKED_VOLUMES: True})
)


def message(pod: EvictablePod, stats: PodStats, configuration: EvictionConfig = PLAIN) -> str:
    return exceeded_limit_message(pod, stats, configuration)


VOLUME = evictable(volumes=[scratch("small", "1Gi"), scratch("smaller", "1024Mi")])
VOLUME_MESSAGE = 'Usage of EmptyDir volume "smaller" exceeds the limit "1Gi". '


@pytest.mark.parametrize(
    ("used", "expected"), [("1Gi", ""), ("1073741825", VOLUME_MESSAGE), ("0", "")]
)
def test_a_volume_may_be_as_large_as_its_limit(used: str, expected: str) -> None:
    assert message(VOLUME, uses(volumes={"smaller": disk(used)})) == expected


@pytest.mark.parametrize("limit", [None, "0"])
def test_a_volume_without_a_limit_may_have_any_size(limit: str | None) -> None:
    pod = evictable(volumes=[scratch("scratch", limit)])
    assert message(pod, uses(volumes={"scratch": disk("9Gi")})) == ""


def test_a_volume_without_stats_exceeds_no_limit() -> None:
    assert message(VOLUME, uses()) == ""
    assert message(VOLUME, PodStats(volumes=(VolumeStats("smaller", DiskUsage()),))) == ""


def test_only_the_first_volume_over_its_limit_is_reported() -> None:
    stats = uses(volumes={"smaller": disk("2Gi"), "small": disk("2Gi")})
    assert message(VOLUME, stats) == 'Usage of EmptyDir volume "small" exceeds the limit "1Gi". '


@pytest.mark.parametrize(
    ("configuration", "capacity", "expected"),
    [
        (PLAIN, "3Gi", 'Usage of EmptyDir volume "shm" exceeds the limit "1Gi". '),
        (RESIZABLE, "3Gi", ""),
        (RESIZABLE, None, ""),
        (RESIZABLE, "1536Mi", 'Usage of EmptyDir volume "shm" exceeds the limit "1536Mi". '),
    ],
)
def test_a_resizable_volume_in_memory_may_be_as_large_as_its_filesystem(
    configuration: EvictionConfig, capacity: str | None, expected: str
) -> None:
    pod = evictable(volumes=[scratch("shm", "1Gi", in_memory=True, local=False)])
    size = None if capacity is None else whole(capacity)
    stats = PodStats(volumes=(VolumeStats("shm", disk("2Gi"), size),))
    assert message(pod, stats, configuration) == expected


POD = evictable(storage_limit="800Mi")
POD_MESSAGE = "Pod ephemeral local storage usage exceeds the total limit of containers 800Mi. "


@pytest.mark.parametrize(("used", "expected"), [(None, ""), ("800Mi", ""), ("801Mi", POD_MESSAGE)])
def test_a_pod_may_use_the_sum_of_its_containers_limits(used: str | None, expected: str) -> None:
    assert message(POD, uses(storage=used)) == expected


def test_a_limit_of_zero_is_exceeded_by_any_usage() -> None:
    pod = evictable(storage_limit="0")
    assert message(pod, uses(storage="1")).endswith("limit of containers 0. ")
    assert message(pod, uses(storage="0")) == ""


CONTAINER = evictable(containers=[container(limit="1Gi")])
CONTAINER_MESSAGE = 'Container main exceeded its local ephemeral storage limit "1Gi". '


@pytest.mark.parametrize(
    ("layer", "logs", "one", "dedicated"),
    [
        ("1Gi", "0", "", ""),
        ("1Gi", "1", CONTAINER_MESSAGE, ""),
        ("0", "2Gi", CONTAINER_MESSAGE, CONTAINER_MESSAGE),
        ("2Gi", "0", CONTAINER_MESSAGE, ""),
    ],
)
def test_a_containers_limit_counts_the_nodes_own_disk(
    layer: str, logs: str, one: str, dedicated: str
) -> None:
    stats = uses(layer=disk(layer), logs=disk(logs))
    assert message(CONTAINER, stats, replace(PLAIN, layout=ONE_FILESYSTEM)) == one
    assert message(CONTAINER, stats, replace(PLAIN, layout=DEDICATED_IMAGES)) == dedicated


def test_a_containers_limit_of_zero_is_no_limit() -> None:
    pod = evictable(containers=[container(limit="0")])
    assert message(pod, uses(layer=disk("9Gi"))) == ""


def test_volumes_come_before_the_pod_and_the_pod_before_its_containers() -> None:
    stats = uses(layer=disk("9Gi"), volumes={"scratch": disk("9Gi")}, storage="9Gi")
    pod = evictable(
        containers=[container(limit="1Gi")], volumes=[scratch(limit="1Gi")], storage_limit="2Gi"
    )
    assert message(pod, stats).startswith("Usage of EmptyDir")
    assert message(replace(pod, volumes=()), stats).startswith("Pod ephemeral")
    assert message(replace(pod, volumes=(), storage_limit=None), stats).startswith("Container main")
