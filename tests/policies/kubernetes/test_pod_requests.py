"""Requests of pods: containers over a pod's life, overhead, and in-place resize by release.

Amounts are milliCPU unless a test says otherwise. Tables give the sum from the release on in which
it changed, so every rule is also shown to be absent from the release before it.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from policies.kubernetes.pod_requests import (
    Amounts,
    ContainerRequests,
    PodResources,
    as_resources,
    is_scalar,
    pod_requests,
)
from policies.kubernetes.quantity import NANOS
from policies.kubernetes.releases import NEWEST, RELEASES, release
from policies.kubernetes.snapshot import Resources

MILLI = 10**6


def cpu(amount: int) -> Amounts:
    return {"cpu": amount * MILLI}


def container(asks: int, *, restartable: bool = False) -> ContainerRequests:
    return ContainerRequests(cpu(asks), restartable=restartable)


def resized(
    asks: int, *, allocated: int, actuated: int, restartable: bool = False
) -> ContainerRequests:
    """Build a container whose status reports other amounts than its spec asks."""
    return ContainerRequests(
        cpu(asks), cpu(allocated), cpu(actuated), reported=True, restartable=restartable
    )


def asked(pod: PodResources, release: str = NEWEST.name) -> int:
    return pod_requests(pod, RELEASES[release]).milli_cpu


@pytest.mark.parametrize(
    ("containers", "inits", "total"),
    [
        ((), (), 0),
        ((container(100), container(50)), (), 150),
        ((container(100),), (container(300),), 300),
        ((container(100),), (container(60),), 100),
        ((container(100),), (container(60), container(70)), 100),
        ((container(100),), (container(50, restartable=True),), 150),
        ((container(100),), (container(50, restartable=True), container(70)), 150),
        ((container(100),), (container(50, restartable=True), container(120)), 170),
        ((container(100),), (container(120), container(50, restartable=True)), 150),
        (
            (container(100),),
            (
                container(10, restartable=True),
                container(20, restartable=True),
                container(200),
                container(40, restartable=True),
            ),
            230,
        ),
    ],
)
@pytest.mark.parametrize("release", list(RELEASES))
def test_requests_are_the_peak_over_a_pods_life(
    containers: tuple[ContainerRequests, ...],
    inits: tuple[ContainerRequests, ...],
    total: int,
    release: str,
) -> None:
    assert asked(PodResources(containers, inits), release) == total


def test_overhead_comes_on_top_of_whatever_is_larger() -> None:
    pod = PodResources((container(100),), (container(300),), overhead=cpu(25))
    assert asked(pod) == 325


def test_each_resource_has_its_own_peak() -> None:
    pod = PodResources(
        containers=(ContainerRequests({"cpu": 100 * MILLI, "memory": 5 * NANOS}),),
        init_containers=(ContainerRequests({"cpu": 300 * MILLI, "memory": 2 * NANOS}),),
    )
    assert pod_requests(pod, NEWEST) == Resources(milli_cpu=300, memory=5)


def test_fractions_of_a_unit_add_up_before_they_are_rounded() -> None:
    half = ContainerRequests({"cpu": MILLI // 2, "memory": NANOS // 2})
    assert pod_requests(PodResources((half, half)), NEWEST) == Resources(milli_cpu=1, memory=1)


STEADY = container(50)
RULES: Mapping[str, tuple[PodResources, Mapping[str, int]]] = {
    "what the status reports counts if it is more": (
        PodResources((resized(100, allocated=200, actuated=300),)),
        {"1.30": 100, "1.33": 300},
    ),
    "what is allocated counts as well as what is in force": (
        PodResources((resized(100, allocated=300, actuated=200),)),
        {"1.30": 100, "1.33": 300},
    ),
    "the larger of both for each container, then the larger of both sums": (
        PodResources(
            (resized(300, allocated=100, actuated=100), resized(100, allocated=300, actuated=300))
        ),
        {"1.30": 400, "1.33": 600, "1.37": 400},
    ),
    "an allocation counts without resources in force": (
        PodResources((ContainerRequests(cpu(100), allocated=cpu(200)),)),
        {"1.30": 100, "1.37": 200},
    ),
    "a sidecar's status counts": (
        PodResources((STEADY,), (resized(100, allocated=500, actuated=500, restartable=True),)),
        {"1.30": 150, "1.33": 550},
    ),
    "the status of an init container that runs once counts": (
        PodResources((STEADY,), (resized(100, allocated=500, actuated=500),)),
        {"1.30": 100, "1.37": 500},
    ),
    "a resize that the kubelet cannot grant does not count": (
        PodResources((resized(900, allocated=100, actuated=200),), resize_infeasible=True),
        {"1.30": 900, "1.33": 200},
    ),
    "an infeasible resize without a status leaves nothing": (
        PodResources((container(900),), resize_infeasible=True),
        {"1.30": 900, "1.37": 0},
    ),
    "pod-level requests replace the containers' sum": (
        PodResources((container(300),), pod_level=cpu(1000)),
        {"1.30": 300, "1.34": 1000},
    ),
    "pod-level requests may be less than the containers' sum": (
        PodResources((container(300),), pod_level=cpu(200)),
        {"1.30": 300, "1.34": 200},
    ),
    "overhead comes on top of pod-level requests": (
        PodResources((container(300),), overhead=cpu(25), pod_level=cpu(1000)),
        {"1.30": 325, "1.34": 1025},
    ),
    "what the status says of the pod as a whole counts if it is more": (
        PodResources(
            (container(300),), pod_level=cpu(1000), pod_actuated=cpu(2000), pod_allocated=cpu(1500)
        ),
        {"1.30": 300, "1.34": 1000, "1.36": 2000},
    ),
    "an infeasible resize of the pod as a whole does not count": (
        PodResources(
            (container(300),),
            pod_level=cpu(1000),
            pod_actuated=cpu(400),
            pod_allocated=cpu(350),
            resize_infeasible=True,
        ),
        {"1.30": 300, "1.34": 1000, "1.36": 400},
    ),
    "the pod's status counts for a pod without pod-level requests": (
        PodResources((container(100),), pod_actuated=cpu(700), pod_allocated=cpu(600)),
        {"1.30": 100, "1.37": 700},
    ),
    "pod-level requests of nothing that a pod can ask for change nothing": (
        PodResources((container(100),), pod_level={"ephemeral-storage": NANOS}),
        {"1.30": 100},
    ),
}


ALPHA: Mapping[str, tuple[PodResources, Mapping[str, int]]] = {
    "what is allocated, later what is in force, counts if it is more": (
        PodResources((resized(100, allocated=200, actuated=300),)),
        {"1.30": 200, "1.32": 300},
    ),
    "it does not count if it is less": (
        PodResources((resized(900, allocated=200, actuated=300),)),
        {"1.30": 900, "1.32": 900},
    ),
    "an allocation counts without resources in force only as long as it is read": (
        PodResources((ContainerRequests(cpu(100), allocated=cpu(200)),)),
        {"1.30": 200, "1.32": 100},
    ),
    "a sidecar's status does not count": (
        PodResources((STEADY,), (resized(100, allocated=500, actuated=500, restartable=True),)),
        {"1.30": 150, "1.32": 150},
    ),
    "an infeasible resize by the condition counts": (
        PodResources((resized(900, allocated=100, actuated=200),), resize_infeasible=True),
        {"1.30": 900, "1.32": 900},
    ),
    "an infeasible resize by status.resize does not": (
        PodResources((resized(900, allocated=100, actuated=200),), resize_status_infeasible=True),
        {"1.30": 100, "1.32": 200},
    ),
}


@pytest.mark.parametrize(("resources", "totals"), ALPHA.values(), ids=ALPHA)
def test_resizes_behind_the_alpha_gate(resources: PodResources, totals: Mapping[str, int]) -> None:
    rules = {each: release(each, {"InPlacePodVerticalScaling": True}) for each in totals}
    assert {each: pod_requests(resources, rules[each]).milli_cpu for each in totals} == totals
    assert rules["1.30"].status_resources is release("1.31", {"AllAlpha": True}).status_resources


@pytest.mark.parametrize("release", list(RELEASES))
@pytest.mark.parametrize("rule", list(RULES))
def test_each_release_has_its_rule(rule: str, release: str) -> None:
    pod, since = RULES[rule]
    latest = max(first for first in since if first <= release)
    assert asked(pod, release) == since[latest]


@pytest.mark.parametrize(("release", "memory"), [("1.36", 3), ("1.37", 5)])
def test_the_pods_status_adds_resources_that_its_spec_does_not_name(
    release: str, memory: int
) -> None:
    pod = PodResources(
        (ContainerRequests({"cpu": 100 * MILLI, "memory": 3 * NANOS}),),
        pod_level=cpu(100),
        pod_actuated={"cpu": 100 * MILLI, "memory": 5 * NANOS},
    )
    assert pod_requests(pod, RELEASES[release]).memory == memory


def test_huge_pages_are_pod_level_and_storage_is_not() -> None:
    pod = PodResources(
        (ContainerRequests({"ephemeral-storage": 3 * NANOS}),),
        pod_level={"hugepages-2Mi": 4 * NANOS, "ephemeral-storage": 9 * NANOS},
    )
    assert pod_requests(pod, NEWEST) == Resources(ephemeral_storage=3, scalars={"hugepages-2Mi": 4})


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("example.com/gpu", True),
        ("hugepages-2Mi", True),
        ("attachable-volumes-aws-ebs", True),
        ("kubernetes.io/batch-cpu", True),
        ("pods", False),
        ("storage", False),
        ("requests.cpu", False),
        ("requests.example.com/gpu", False),
    ],
)
def test_scalar_resources_are_counted_by_name(name: str, *, counted: bool) -> None:
    assert is_scalar(name) is counted
    assert as_resources({name: NANOS}).scalars == ({name: 1} if counted else {})


def test_a_resource_asked_for_at_zero_is_not_counted() -> None:
    assert as_resources({"example.com/gpu": 0}).scalars == {}
