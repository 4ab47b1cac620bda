"""Which pods a node takes, and at whose cost."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson
import pytest

from extender.kube.decoders.cluster_objects import decode_node
from extender.kube.decoders.pods import decode_pod as decode_model
from fakeapi.controlplane.kubelet.pod_admission import (
    Admission,
    AllocatedPod,
    NodeAllocation,
    Rejection,
    admit_pod,
)
from fakeapi.controlplane.kubelet.types import decode_pod
from policies.kubernetes.releases import NEWEST
from policies.kubernetes.snapshot import Pod

CRITICAL = 2_000_001_000
MI = 2**20


def node(*taints: dict[str, str], **allocatable: str) -> Any:
    amounts = {"cpu": "4", "memory": "1Gi", "pods": "3", "ephemeral-storage": "10Gi"}
    document = {
        "metadata": {"name": "n", "labels": {"zone": "a"}},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": amounts | allocatable},
    }
    return decode_node(orjson.dumps(document))


def pod(
    name: str, *, quality: str = "Burstable", labels: dict[str, str] | None = None, **given: Any
) -> tuple[Pod, AllocatedPod]:
    """Build a pod; ``requests`` and ``ports`` are its container's, the rest is of its spec."""
    requests, ports = given.pop("requests", {}), given.pop("ports", [])
    container = {"name": "c", "resources": {"requests": requests}, "ports": ports}
    annotations = given.pop("annotations", {})
    metadata = {"name": name, "uid": name, "labels": labels or {}, "annotations": annotations}
    spec = {"nodeName": "n", "containers": [container], **given}
    raw = orjson.dumps({"metadata": metadata, "spec": spec, "status": {"qosClass": quality}})
    model = decode_model(raw, NEWEST)
    return model, AllocatedPod.of(model, decode_pod(msgspec.Raw(raw)).object)


def room(*pods: tuple[Pod, AllocatedPod]) -> NodeAllocation:
    found = NodeAllocation()
    for _, tenant in pods:
        found.add(tenant)
    return found


SHORT = "Node didn't have enough resource: "
FAILED = "Predicate {0} failed: {1}".format
SSH = [{"containerPort": 22, "hostPort": 22}]
NO_EXECUTE = {"key": "gone", "effect": "NoExecute"}

TABLE: dict[str, tuple[Any, NodeAllocation, tuple[Pod, AllocatedPod], Admission | Rejection]] = {
    "an empty node": (node(), room(), pod("p", requests={"cpu": "4"}), Admission()),
    "too little cpu": (
        node(),
        room(pod("a", requests={"cpu": "3500m"})),
        pod("p", requests={"cpu": "1"}),
        Rejection("OutOfcpu", f"{SHORT}cpu, requested: 1000, used: 3500, capacity: 4000"),
    ),
    "too little memory": (
        node(),
        room(pod("a", requests={"memory": "1Gi"})),
        pod("p", requests={"memory": "1"}),
        Rejection("OutOfmemory", f"{SHORT}memory, requested: 1, used: {2**30}, capacity: {2**30}"),
    ),
    "too many pods": (
        node(pods="1"),
        room(pod("a")),
        pod("p"),
        Rejection("OutOfpods", f"{SHORT}pods, requested: 1, used: 1, capacity: 1"),
    ),
    "too many pods comes before too little cpu": (
        node(pods="1"),
        room(pod("a")),
        pod("p", requests={"cpu": "9"}),
        Rejection("OutOfpods", f"{SHORT}pods, requested: 1, used: 1, capacity: 1"),
    ),
    "too little disk": (
        node(),
        room(),
        pod("p", requests={"ephemeral-storage": "11Gi"}),
        Rejection(
            "OutOfephemeral-storage",
            f"{SHORT}ephemeral-storage, requested: {11 * 2**30}, used: 0, capacity: {10 * 2**30}",
        ),
    ),
    "an extended resource that the node has too little of": (
        node(**{"example.com/gpu": "1"}),
        room(),
        pod("p", requests={"example.com/gpu": "2"}),
        Rejection(
            "OutOfexample.com/gpu", f"{SHORT}example.com/gpu, requested: 2, used: 0, capacity: 1"
        ),
    ),
    "an extended resource that the node knows nothing of": (
        node(),
        room(),
        pod("p", requests={"example.com/gpu": "2"}),
        Admission(),
    ),
    "another node's labels": (
        node(),
        room(),
        pod("p", nodeSelector={"zone": "b"}),
        Rejection(
            "NodeAffinity",
            FAILED("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"),
        ),
    ),
    "another node's name": (
        node(),
        room(),
        pod("p", nodeName="m"),
        Rejection("NodeName", FAILED("NodeName", "node(s) didn't match the requested node name")),
    ),
    "a port that is taken": (
        node(),
        room(pod("a", ports=SSH)),
        pod("p", ports=SSH),
        Rejection(
            "NodePorts",
            FAILED("NodePorts", "node(s) didn't have free ports for the requested pod ports"),
        ),
    ),
    "a taint that drives pods away": (
        node(NO_EXECUTE),
        room(),
        pod("p"),
        Rejection(
            "TaintToleration",
            FAILED("TaintToleration", "node(s) had taints that the pod didn't tolerate"),
        ),
    ),
    "a taint that is tolerated": (
        node(NO_EXECUTE),
        room(),
        pod("p", tolerations=[{"key": "gone", "operator": "Exists"}]),
        Admission(),
    ),
    "a taint that only keeps the scheduler away": (
        node({"key": "busy", "effect": "NoSchedule"}),
        room(),
        pod("p"),
        Admission(),
    ),
    "another system": (
        node(),
        room(),
        pod("p", labels={"kubernetes.io/os": "windows"}),
        Rejection(
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        ),
    ),
    "a critical pod takes the room of another": (
        node(),
        room(pod("a", requests={"cpu": "4"})),
        pod("p", requests={"cpu": "1"}, priority=CRITICAL),
        Admission(("a",)),
    ),
    "a critical pod for which nobody can make room": (
        node(),
        room(pod("a", requests={"cpu": "4"}, priority=CRITICAL)),
        pod("p", requests={"cpu": "1"}, priority=CRITICAL),
        Rejection(
            "UnexpectedAdmissionError",
            "Unexpected error while attempting to recover from admission failure: preemption: "
            "error finding a set of pods to preempt: no set of running pods found to reclaim "
            "resources: [(res: cpu, q: 1000), ]",
        ),
    ),
    "a critical pod is refused for anything but resources": (
        node(),
        room(pod("a", requests={"cpu": "4"})),
        pod("p", requests={"cpu": "1"}, priority=CRITICAL, nodeName="m"),
        Rejection("NodeName", FAILED("NodeName", "node(s) didn't match the requested node name")),
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_admission(case: str) -> None:
    where, others, (model, tenant), expected = TABLE[case]
    assert admit_pod(model, tenant, where, others, NEWEST) == expected


@pytest.mark.parametrize(
    ("given", "critical"),
    [
        ({}, False),
        ({"priority": CRITICAL}, True),
        ({"priority": 1_999_999_999}, False),
        ({"annotations": {"kubernetes.io/config.source": "file"}}, True),
        ({"annotations": {"kubernetes.io/config.source": "api"}}, False),
        ({"annotations": {"kubernetes.io/config.mirror": "x"}}, True),
    ],
)
def test_critical_pods(given: dict[str, Any], critical: bool) -> None:  # noqa: FBT001
    assert pod("p", **given)[1].critical is critical


def asks(name: str, quality: str, cpu: int, memory: int) -> tuple[Pod, AllocatedPod]:
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    return pod(name, quality=quality, requests=requests if cpu or memory else {})


BEST = asks("best", "BestEffort", 0, 0)
TINY = asks("tiny", "Burstable", 1, 1)
BURST = asks("burst", "Burstable", 100, 100)
LARGE_BURST = asks("large-burst", "Burstable", 300, 300)
SURE = asks("sure", "Guaranteed", 100, 100)
LARGE_SURE = asks("large-sure", "Guaranteed", 300, 300)
EVERYBODY = (BEST, TINY, BURST, LARGE_BURST, SURE, LARGE_SURE)


@pytest.mark.parametrize(
    ("present", "cpu", "memory", "victims"),
    [
        (EVERYBODY, 100, 0, ["burst"]),
        (EVERYBODY, 100, 100, ["burst"]),
        (EVERYBODY, 1, 1, ["tiny"]),
        (EVERYBODY, 200, 0, ["large-burst"]),
        (EVERYBODY, 101, 101, ["large-burst"]),
        (EVERYBODY, 401, 401, ["large-burst", "burst", "tiny"]),
        (EVERYBODY, 500, 0, ["large-burst", "burst", "sure"]),
        (EVERYBODY, 700, 700, ["large-burst", "burst", "large-sure"]),
        ((SURE, LARGE_SURE), 150, 0, ["large-sure"]),
        ((SURE, LARGE_SURE), 400, 1, ["large-sure", "sure"]),
        ((BURST, SURE), 0, 100, ["burst"]),
    ],
)
def test_as_few_and_as_unimportant_pods_as_can_be_are_preempted(
    present: tuple[tuple[Pod, AllocatedPod], ...], cpu: int, memory: int, victims: list[str]
) -> None:
    taken = sum(model.requests.milli_cpu for model, _ in present)
    held = sum(model.requests.memory for model, _ in present)
    full = node(cpu=f"{taken}m", memory=str(held), pods="99")
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    model, tenant = pod("p", requests=requests, priority=CRITICAL)
    decision = admit_pod(model, tenant, full, room(*present), NEWEST)
    assert isinstance(decision, Admission), decision
    assert list(decision.victims) == victims


def test_a_pod_makes_room_for_a_pod() -> None:
    decision = admit_pod(*pod("p", priority=CRITICAL), node(pods="2"), room(BURST, BEST), NEWEST)
    assert decision == Admission(("best",))


def test_rooms_are_left_as_they_were_found() -> None:
    full = room(*EVERYBODY)
    for _, tenant in EVERYBODY:
        full.add(tenant)
        full.remove(tenant.uid)
        full.remove(tenant.uid)
    assert full.requested.milli_cpu == full.requested.memory == 0
    assert not full.pods
