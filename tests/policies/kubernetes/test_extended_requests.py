"""Device requests for the extended resources of a pod, by container."""

from __future__ import annotations

import pytest

from policies.kubernetes.pod_requests import ContainerRequests, PodResources, extended_requests
from policies.kubernetes.quantity import NANOS

GPU = "example.com/gpu"


def wants(count: int, *, restartable: bool = False, **others: int) -> ContainerRequests:
    amounts = {name: amount * NANOS for name, amount in {GPU: count, **others}.items()}
    return ContainerRequests(amounts, restartable=restartable)


CASES = {
    "each container has a request": (
        PodResources((wants(1), wants(2))),
        {"container-0-request-0": 1, "container-1-request-0": 2},
    ),
    "a request is numbered by its place among the container's resources": (
        PodResources((wants(1, cpu=1, memory=1),)),
        {"container-0-request-1": 1},
    ),
    "a container without the resource has none": (
        PodResources((wants(0), wants(1))),
        {"container-1-request-0": 1},
    ),
    "init containers reuse devices of later containers": (
        PodResources((wants(2),), (wants(1), wants(2))),
        {"container-2-request-0": 2},
    ),
    "init containers share one request, the largest, for what is missing": (
        PodResources((wants(1),), (wants(3), wants(4))),
        {"container-1-request-0": 3, "container-2-request-0": 1},
    ),
    "a sidecar that starts later is reused, one that runs already is not": (
        PodResources((), (wants(1, restartable=True), wants(2), wants(1, restartable=True))),
        {"container-0-request-0": 1, "container-1-request-0": 1, "container-2-request-0": 1},
    ),
    "native resources have none": (PodResources((ContainerRequests({"cpu": NANOS}),)), {}),
}


@pytest.mark.parametrize(("pod", "expected"), CASES.values(), ids=CASES)
def test_the_device_requests_of_a_pod(pod: PodResources, expected: dict[str, int]) -> None:
    assert {each.name: each.count for each in extended_requests(pod)} == expected
