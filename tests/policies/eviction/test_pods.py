"""Requests, limits and quality of service of pods, by the rules of each release."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from policies.eviction.kubelet_releases import (
    EVICTION_RELEASES,
    POD_LEVEL_RESOURCES,
    EvictionRelease,
)
from policies.eviction.pods import (
    KubeletRequests,
    is_best_effort,
    reports_pod_memory_request,
    requested_nanos,
    storage_limit_nanos,
)
from policies.eviction.signals import Resource
from policies.kubernetes.pod_requests import Amounts, ContainerRequests, PodResources

OLD, NEW = EVICTION_RELEASES["1.33"], EVICTION_RELEASES["1.34"]
UNGATED = NEW.with_feature_gates({POD_LEVEL_RESOURCES: False})
MEMORY, STORAGE = Resource.MEMORY, Resource.STORAGE


def one(amounts: Amounts | None = None, *, restartable: bool = False) -> ContainerRequests:
    return ContainerRequests(amounts or {}, restartable=restartable)


def asking(
    *containers: Amounts,
    init: tuple[ContainerRequests, ...] = (),
    whole: Amounts | None = None,
    whole_limits: Amounts | None = None,
    overhead: Amounts | None = None,
) -> KubeletRequests:
    requests = PodResources(tuple(map(one, containers)), init, overhead or {}, whole or {})
    return KubeletRequests(requests, PodResources(pod_level=whole_limits or {}))


def test_containers_run_together_and_sidecars_with_them_since_1_34() -> None:
    sidecar = one({MEMORY: 200}, restartable=True)
    claims = asking({MEMORY: 100}, {MEMORY: 50}, init=(sidecar,))
    assert [requested_nanos(claims, MEMORY, each) for each in (OLD, NEW)] == [200, 350]


def test_init_containers_run_alone_but_for_sidecars_before_them() -> None:
    claims = asking({MEMORY: 100}, init=(one({MEMORY: 70}, restartable=True), one({MEMORY: 400})))
    assert [requested_nanos(claims, MEMORY, each) for each in (OLD, NEW)] == [400, 470]


@pytest.mark.parametrize("release", [OLD, NEW])
def test_overhead_is_added_unless_the_request_is_zero(release: EvictionRelease) -> None:
    claims = asking({MEMORY: 100}, overhead={MEMORY: 10, STORAGE: 10})
    assert requested_nanos(claims, MEMORY, release) == 110
    assert requested_nanos(claims, STORAGE, release) == 0


@pytest.mark.parametrize(
    ("whole", "limits", "memory", "storage"),
    [
        ({MEMORY: 900}, {}, (100, 900, 900), (5, 0, 5)),
        ({"cpu": 1}, {}, (100, 0, 100), (5, 0, 5)),
        ({}, {MEMORY: 900}, (100, 0, 100), (5, 0, 5)),
        ({}, {}, (100, 100, 100), (5, 5, 5)),
    ],
    ids=["memory", "cpu alone", "limits alone", "none"],
)
def test_pod_level_requests_replace_those_of_containers(
    whole: Amounts, limits: Amounts, memory: tuple[int, int, int], storage: tuple[int, int, int]
) -> None:
    claims = asking({MEMORY: 100, STORAGE: 5}, whole=whole, whole_limits=limits)
    rules = (OLD, NEW, UNGATED)
    assert tuple(requested_nanos(claims, MEMORY, each) for each in rules) == memory
    assert tuple(requested_nanos(claims, STORAGE, each) for each in rules) == storage


def test_messages_report_a_pod_level_memory_request() -> None:
    claims = asking({MEMORY: 1}, whole={MEMORY: 0})
    assert reports_pod_memory_request(claims, NEW)
    assert not reports_pod_memory_request(claims, OLD)
    assert not reports_pod_memory_request(asking({MEMORY: 1}, whole={"cpu": 1}), NEW)


def limiting(
    *containers: Amounts, init: tuple[ContainerRequests, ...] = (), overhead: Amounts | None = None
) -> KubeletRequests:
    limits = PodResources(tuple(map(one, containers)), init, overhead or {})
    return KubeletRequests(PodResources(), limits)


@pytest.mark.parametrize(
    ("claims", "limit"),
    [
        (limiting({}), None),
        (limiting({MEMORY: 9}), None),
        (limiting({STORAGE: 0}), 0),
        (limiting({STORAGE: 7}, {}), 7),
        (limiting({STORAGE: 7}, {STORAGE: 8}), 15),
        (limiting({STORAGE: 7}, init=(one({STORAGE: 9}),)), 9),
        (limiting({STORAGE: 7}, init=(one({STORAGE: 9}, restartable=True),)), 16),
        (limiting({STORAGE: 7}, overhead={STORAGE: 1}), 8),
        (limiting({STORAGE: 0}, overhead={STORAGE: 1}), 0),
        (limiting({}, overhead={STORAGE: 1}), None),
    ],
)
def test_the_limit_of_a_pod_is_the_sum_of_those_that_its_containers_have(
    claims: KubeletRequests, limit: int | None
) -> None:
    assert storage_limit_nanos(claims) == limit


@pytest.mark.parametrize(
    ("requests", "limits", "whole", "best_effort"),
    [
        ({}, {}, {}, True),
        ({STORAGE: 1, "example.com/gpu": 1}, {}, {}, True),
        ({MEMORY: 0}, {"cpu": 0}, {}, True),
        ({MEMORY: 1}, {}, {}, False),
        ({}, {"cpu": 1}, {}, False),
        ({}, {}, {MEMORY: 1}, False),
        ({MEMORY: 1}, {}, {"hugepages-2Mi": 1}, True),
    ],
)
def test_a_best_effort_pod_has_neither_cpu_nor_memory_requests_nor_limits(
    requests: Mapping[str, int],
    limits: Mapping[str, int],
    whole: Mapping[str, int],
    *,
    best_effort: bool,
) -> None:
    claims = KubeletRequests(
        PodResources(init_containers=(one(requests),), pod_level=whole),
        PodResources((one(limits),)),
    )
    assert is_best_effort(claims, NEW) is best_effort


def test_pod_level_resources_do_not_affect_quality_of_service_before_1_34() -> None:
    claims = KubeletRequests(PodResources(pod_level={MEMORY: 1}), PodResources())
    assert is_best_effort(claims, OLD)
