"""Limits of local storage: which one is broken, and in whose words."""

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


def said(pod: EvictablePod, stats: PodStats, configuration: EvictionConfig = PLAIN) -> str:
    return exceeded_limit_message(pod, stats, configuration)


VOLUME = evictable(volumes=[scratch("small", "1Gi"), scratch("smaller", "1024Mi")])
VOLUME_TOLD = 'Usage of EmptyDir volume "smaller" exceeds the limit "1Gi". '


@pytest.mark.parametrize(("used", "told"), [("1Gi", ""), ("1073741825", VOLUME_TOLD), ("0", "")])
def test_a_volume_may_be_as_large_as_its_limit(used: str, told: str) -> None:
    assert said(VOLUME, uses(volumes={"smaller": disk(used)})) == told


@pytest.mark.parametrize("limit", [None, "0"])
def test_a_volume_without_a_limit_may_be_as_large_as_it_likes(limit: str | None) -> None:
    pod = evictable(volumes=[scratch("scratch", limit)])
    assert said(pod, uses(volumes={"scratch": disk("9Gi")})) == ""


def test_a_volume_that_was_not_measured_breaks_nothing() -> None:
    assert said(VOLUME, uses()) == ""
    assert said(VOLUME, PodStats(volumes=(VolumeStats("smaller", DiskUsage()),))) == ""


def test_only_the_first_volume_over_its_limit_is_reported() -> None:
    stats = uses(volumes={"smaller": disk("2Gi"), "small": disk("2Gi")})
    assert said(VOLUME, stats) == 'Usage of EmptyDir volume "small" exceeds the limit "1Gi". '


@pytest.mark.parametrize(
    ("configuration", "capacity", "told"),
    [
        (PLAIN, "3Gi", 'Usage of EmptyDir volume "shm" exceeds the limit "1Gi". '),
        (RESIZABLE, "3Gi", ""),
        (RESIZABLE, None, ""),
        (RESIZABLE, "1536Mi", 'Usage of EmptyDir volume "shm" exceeds the limit "1536Mi". '),
    ],
)
def test_a_resizable_volume_in_memory_may_be_as_large_as_it_is_now(
    configuration: EvictionConfig, capacity: str | None, told: str
) -> None:
    pod = evictable(volumes=[scratch("shm", "1Gi", in_memory=True, local=False)])
    size = None if capacity is None else whole(capacity)
    stats = PodStats(volumes=(VolumeStats("shm", disk("2Gi"), size),))
    assert said(pod, stats, configuration) == told


POD = evictable(storage_limit="800Mi")
POD_TOLD = "Pod ephemeral local storage usage exceeds the total limit of containers 800Mi. "


@pytest.mark.parametrize(("used", "told"), [(None, ""), ("800Mi", ""), ("801Mi", POD_TOLD)])
def test_a_pod_may_use_what_its_containers_may_together(used: str | None, told: str) -> None:
    assert said(POD, uses(storage=used)) == told


def test_a_limit_of_nothing_is_broken_by_anything() -> None:
    pod = evictable(storage_limit="0")
    assert said(pod, uses(storage="1")).endswith("limit of containers 0. ")
    assert said(pod, uses(storage="0")) == ""


CONTAINER = evictable(containers=[container(limit="1Gi")])
CONTAINER_TOLD = 'Container main exceeded its local ephemeral storage limit "1Gi". '


@pytest.mark.parametrize(
    ("layer", "logs", "one", "dedicated"),
    [
        ("1Gi", "0", "", ""),
        ("1Gi", "1", CONTAINER_TOLD, ""),
        ("0", "2Gi", CONTAINER_TOLD, CONTAINER_TOLD),
        ("2Gi", "0", CONTAINER_TOLD, ""),
    ],
)
def test_a_container_may_write_so_much_on_the_nodes_own_disk(
    layer: str, logs: str, one: str, dedicated: str
) -> None:
    stats = uses(layer=disk(layer), logs=disk(logs))
    assert said(CONTAINER, stats, replace(PLAIN, layout=ONE_FILESYSTEM)) == one
    assert said(CONTAINER, stats, replace(PLAIN, layout=DEDICATED_IMAGES)) == dedicated


def test_a_container_with_a_limit_of_nothing_has_none() -> None:
    pod = evictable(containers=[container(limit="0")])
    assert said(pod, uses(layer=disk("9Gi"))) == ""


def test_volumes_come_before_the_pod_and_the_pod_before_its_containers() -> None:
    stats = uses(layer=disk("9Gi"), volumes={"scratch": disk("9Gi")}, storage="9Gi")
    pod = evictable(
        containers=[container(limit="1Gi")], volumes=[scratch(limit="1Gi")], storage_limit="2Gi"
    )
    assert said(pod, stats).startswith("Usage of EmptyDir")
    assert said(replace(pod, volumes=()), stats).startswith("Pod ephemeral")
    assert said(replace(pod, volumes=(), storage_limit=None), stats).startswith("Container main")
