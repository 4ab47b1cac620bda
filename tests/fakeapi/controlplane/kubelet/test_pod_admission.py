"""Admission of pods by nodes, and the pods that a critical one preempts."""

from __future__ import annotations

from collections.abc import Sequence
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
from policies.kubernetes.snapshot import Node, Pod
from tests.builders import container_json, manifest, pod_json

CRITICAL = 2_000_001_000

Admitted = tuple[Pod, AllocatedPod]


def decoded_node(*taints: dict[str, str], **allocatable: str) -> Node:
    """Build a node for three pods in zone a."""
    amounts = {"cpu": "4", "memory": "1Gi", "pods": "3", "ephemeral-storage": "10Gi"}
    document = manifest(
        "Node",
        "n",
        metadata={"labels": {"zone": "a"}},
        spec={"taints": list(taints)},
        status={"allocatable": amounts | allocatable},
    )
    return decode_node(orjson.dumps(document))


def decoded_pod(name: str, *, quality: str = "Burstable", **fields: Any) -> Admitted:
    """Build a pod; fields are those of its container, metadata or spec."""
    container = container_json("c", fields.pop("requests", {}), ports=fields.pop("ports", []))
    metadata = {key: fields.pop(key, {}) for key in ("labels", "annotations")}
    spec = {"containers": [container], **fields}
    document = pod_json(name, on="n", metadata=metadata, spec=spec, status={"qosClass": quality})
    raw = orjson.dumps(document)
    model = decode_model(raw, NEWEST)
    return model, AllocatedPod.of(model, decode_pod(msgspec.Raw(raw)).object)


def allocation(*pods: Admitted) -> NodeAllocation:
    found = NodeAllocation()
    for _, allocated in pods:
        found.add(allocated)
    return found


def case(
    expected: Admission | Rejection, *others: Admitted, on: Node | None = None, **fields: Any
) -> tuple[Node, Sequence[Admitted], Admitted, Admission | Rejection]:
    """Build a case: the pod ``p`` of these fields is to be admitted beside others."""
    return on or decoded_node(), others, decoded_pod("p", **fields), expected


def out_of(resource: str, requested: int, used: int, capacity: int) -> Rejection:
    amounts = f"requested: {requested}, used: {used}, capacity: {capacity}"
    message = f"Node didn't have enough resource: {resource}, {amounts}"
    return Rejection(f"OutOf{resource}", message)


def failed(plugin: str, message: str) -> Rejection:
    return Rejection(plugin, f"Predicate {plugin} failed: {message}")


SSH = [{"containerPort": 22, "hostPort": 22}]
NO_EXECUTE = {"key": "gone", "effect": "NoExecute"}
NO_SCHEDULE = {"key": "busy", "effect": "NoSchedule"}
TOLERATION = {"key": "gone", "operator": "Exists"}

CASES = {
    "an empty node": case(Admission(), requests={"cpu": "4"}),
    "too little cpu": case(
        out_of("cpu", 1000, 3500, 4000),
        decoded_pod("a", requests={"cpu": "3500m"}),
        requests={"cpu": "1"},
    ),
    "too little memory": case(
        out_of("memory", 1, 2**30, 2**30),
        decoded_pod("a", requests={"memory": "1Gi"}),
        requests={"memory": "1"},
    ),
    "too many pods": case(out_of("pods", 1, 1, 1), decoded_pod("a"), on=decoded_node(pods="1")),
    "too many pods comes before too little cpu": case(
        out_of("pods", 1, 1, 1), decoded_pod("a"), on=decoded_node(pods="1"), requests={"cpu": "9"}
    ),
    "too little disk": case(
        out_of("ephemeral-storage", 11 * 2**30, 0, 10 * 2**30),
        requests={"ephemeral-storage": "11Gi"},
    ),
    "an extended resource that the node has too little of": case(
        out_of("example.com/gpu", 2, 0, 1),
        on=decoded_node(**{"example.com/gpu": "1"}),
        requests={"example.com/gpu": "2"},
    ),
    "an extended resource that the node does not have": case(
        Admission(), requests={"example.com/gpu": "2"}
    ),
    "another node's labels": case(
        failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"),
        nodeSelector={"zone": "b"},
    ),
    "another node's name": case(
        failed("NodeName", "node(s) didn't match the requested node name"), nodeName="m"
    ),
    "a port that is taken": case(
        failed("NodePorts", "node(s) didn't have free ports for the requested pod ports"),
        decoded_pod("a", ports=SSH),
        ports=SSH,
    ),
    "a taint NoExecute": case(
        failed("TaintToleration", "node(s) had taints that the pod didn't tolerate"),
        on=decoded_node(NO_EXECUTE),
    ),
    "a taint that is tolerated": case(
        Admission(), on=decoded_node(NO_EXECUTE), tolerations=[TOLERATION]
    ),
    "a taint NoSchedule": case(Admission(), on=decoded_node(NO_SCHEDULE)),
    "another operating system": case(
        Rejection(
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        ),
        labels={"kubernetes.io/os": "windows"},
    ),
    "a critical pod preempts another": case(
        Admission(("a",)),
        decoded_pod("a", requests={"cpu": "4"}),
        requests={"cpu": "1"},
        priority=CRITICAL,
    ),
    "a critical pod that can preempt no other": case(
        Rejection(
            "UnexpectedAdmissionError",
            "Unexpected error while attempting to recover from admission failure: preemption: "
            "error finding a set of pods to preempt: no set of running pods found to reclaim "
            "resources: [(res: cpu, q: 1000), ]",
        ),
        decoded_pod("a", requests={"cpu": "4"}, priority=CRITICAL),
        requests={"cpu": "1"},
        priority=CRITICAL,
    ),
    "a critical pod is rejected for other reasons than resources": case(
        failed("NodeName", "node(s) didn't match the requested node name"),
        decoded_pod("a", requests={"cpu": "4"}),
        requests={"cpu": "1"},
        priority=CRITICAL,
        nodeName="m",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_admission(name: str) -> None:
    target, others, (model, allocated), expected = CASES[name]
    assert admit_pod(model, allocated, target, allocation(*others), NEWEST) == expected


@pytest.mark.parametrize(
    ("fields", "critical"),
    [
        ({}, False),
        ({"priority": CRITICAL}, True),
        ({"priority": 1_999_999_999}, False),
        ({"annotations": {"kubernetes.io/config.source": "file"}}, True),
        ({"annotations": {"kubernetes.io/config.source": "api"}}, False),
        ({"annotations": {"kubernetes.io/config.mirror": "x"}}, True),
    ],
)
def test_critical_pods(fields: dict[str, Any], critical: bool) -> None:  # noqa: FBT001
    assert decoded_pod("p", **fields)[1].critical is critical


def asks(name: str, quality: str, cpu: int, memory: int) -> Admitted:
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    return decoded_pod(name, quality=quality, requests=requests if cpu or memory else {})


BEST = asks("best", "BestEffort", 0, 0)
TINY = asks("tiny", "Burstable", 1, 1)
BURST = asks("burst", "Burstable", 100, 100)
LARGE_BURST = asks("large-burst", "Burstable", 300, 300)
SURE = asks("sure", "Guaranteed", 100, 100)
LARGE_SURE = asks("large-sure", "Guaranteed", 300, 300)
ALL = (BEST, TINY, BURST, LARGE_BURST, SURE, LARGE_SURE)


@pytest.mark.parametrize(
    ("present", "cpu", "memory", "victims"),
    [
        (ALL, 100, 0, ["burst"]),
        (ALL, 100, 100, ["burst"]),
        (ALL, 1, 1, ["tiny"]),
        (ALL, 200, 0, ["large-burst"]),
        (ALL, 101, 101, ["large-burst"]),
        (ALL, 401, 401, ["large-burst", "burst", "tiny"]),
        (ALL, 500, 0, ["large-burst", "burst", "sure"]),
        (ALL, 700, 700, ["large-burst", "burst", "large-sure"]),
        ((SURE, LARGE_SURE), 150, 0, ["large-sure"]),
        ((SURE, LARGE_SURE), 400, 1, ["large-sure", "sure"]),
        ((BURST, SURE), 0, 100, ["burst"]),
    ],
)
def test_the_fewest_and_least_important_pods_are_preempted(
    present: Sequence[Admitted], cpu: int, memory: int, victims: list[str]
) -> None:
    milli_cpu = sum(model.requests.milli_cpu for model, _ in present)
    total = sum(model.requests.memory for model, _ in present)
    full = decoded_node(cpu=f"{milli_cpu}m", memory=str(total), pods="99")
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    model, allocated = decoded_pod("p", requests=requests, priority=CRITICAL)
    decision = admit_pod(model, allocated, full, allocation(*present), NEWEST)
    assert isinstance(decision, Admission), decision
    assert list(decision.victims) == victims


def test_a_critical_pod_preempts_for_the_number_of_pods() -> None:
    critical, present = decoded_pod("p", priority=CRITICAL), allocation(BURST, BEST)
    decision = admit_pod(*critical, decoded_node(pods="2"), present, NEWEST)
    assert decision == Admission(("best",))


def test_removed_pods_leave_no_allocation() -> None:
    full = allocation(*ALL)
    for _, allocated in ALL:
        full.add(allocated)
        full.remove(allocated.uid)
        full.remove(allocated.uid)
    assert full.requested.milli_cpu == full.requested.memory == 0
    assert not full.pods
