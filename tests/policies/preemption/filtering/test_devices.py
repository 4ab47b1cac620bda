"""DynamicResources and NodeResourcesFit: claims that are not allocated, and extended resources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from policies import RELEASES, SchedulerRules
from policies.kubernetes.devices import DeviceClass, ResourceSlice
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.kubernetes.storage import ResourceClaim, StorageKind, UnreadableObject
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import node, pod, snapshot
from tests.builders.devices import GPU, gpu, gpu_claim, gpus, held_by, request, uses

NODES = node("node-1", cpu="4"), node("node-2", cpu="4")
TWO = gpus("node-1", gpu("gpu-0"), gpu("gpu-1"))
ENGINES = (ReferenceEngine, VectorizedEngine)
EngineType = type[ReferenceEngine] | type[VectorizedEngine]
ASKING = pod("asking", cpu="1", devices=uses("wanted"), priority=10)
PLAIN = pod("plain", cpu="1", others={"example.com/gpu": "1"}, priority=10)

pytestmark = pytest.mark.parametrize("engine", ENGINES)


def refusals(
    engine: EngineType, asked: Pod, moment: Snapshot, version: str = "1.37"
) -> Mapping[str, str]:
    """Return the message of each node that is refused."""
    decision = engine(SchedulerRules(RELEASES[version])).filter_nodes(asked, moment)
    if decision.conflict is not None:
        return {"": str(decision.conflict)}
    return {name: str(why) for name, why in decision.rejected.items()}


def chosen(engine: EngineType, asked: Pod, moment: Snapshot) -> str | None:
    """Return the node on which pods are evicted."""
    decision = engine(SchedulerRules(RELEASES["1.37"])).preempt(asked, moment)
    return None if decision.chosen is None else decision.chosen.node


def test_an_extended_resource_that_a_class_backs_is_found_among_devices(
    engine: EngineType,
) -> None:
    moment = snapshot(*NODES, GPU, TWO)
    assert refusals(engine, PLAIN, moment) == {"node-2": "cannot allocate all claims"}
    assert refusals(engine, PLAIN, moment, "1.35").keys() == {"node-1", "node-2"}


def test_a_class_backs_a_resource_of_its_own_name(engine: EngineType) -> None:
    implicit = pod(others={"deviceclass.resource.kubernetes.io/gpu": "2"})
    assert refusals(engine, implicit, snapshot(*NODES, GPU, TWO)).keys() == {"node-2"}


def test_a_node_with_some_of_the_resource_counts_it(engine: EngineType) -> None:
    classic = node("node-1", others={"example.com/gpu": "4"})
    full = pod("old", on="node-1", others={"example.com/gpu": "4"})
    devices = gpus("node-2", gpu("gpu-0"))
    assert refusals(engine, PLAIN, snapshot(classic, NODES[1], GPU, devices)) == {}
    found = refusals(engine, PLAIN, snapshot(classic, NODES[1], full, GPU, devices, TWO))
    assert found == {"node-1": "Insufficient example.com/gpu"}


def test_a_resource_that_no_class_backs_is_insufficient(engine: EngineType) -> None:
    unbacked = replace(GPU, resource="")
    found = refusals(engine, PLAIN, snapshot(NODES[0], unbacked, TWO))
    assert found == {"node-1": "Insufficient example.com/gpu"}


def test_the_newest_class_backs_a_resource_and_of_two_the_first_by_name(
    engine: EngineType,
) -> None:
    nothing = DeviceClass("nothing", ("false",), GPU.resource)
    older, newer = replace(nothing, created_ns=-1), replace(nothing, created_ns=1)
    assert refusals(engine, PLAIN, snapshot(NODES[0], GPU, nothing, TWO)) == {}
    assert refusals(engine, PLAIN, snapshot(NODES[0], GPU, older, TWO)) == {}
    assert refusals(engine, PLAIN, snapshot(NODES[0], GPU, newer, TWO)) != {}


def test_a_left_over_claim_for_extended_resources_blocks_the_pod(engine: EngineType) -> None:
    left = gpu_claim("left", owner=PLAIN.uid, extended=True)
    found = refusals(engine, PLAIN, snapshot(NODES[0], GPU, TWO, left))
    assert found == {"node-1": "cannot schedule extended resource claim"}


@pytest.mark.parametrize(
    ("left", "sentence"),
    [
        ((), "still not schedulable"),
        (
            (gpu_claim("left", owner=PLAIN.uid, extended=True),),
            "deletion of ResourceClaim completed",
        ),
    ],
)
def test_the_message_reports_the_claim_for_extended_resources(
    engine: EngineType, left: tuple[ResourceClaim, ...], sentence: str
) -> None:
    moment = snapshot(NODES[0], GPU, *left)
    decision = engine(SchedulerRules(RELEASES["1.36"])).preempt(PLAIN, moment)
    assert f" {sentence}, preemption: 0/1 nodes" in decision.message


def test_without_the_classes_a_node_without_the_resource_passes_and_is_not_chosen(
    engine: EngineType,
) -> None:
    low = (pod(f"low-{n}", on=f"node-{n}", cpu="4") for n in (1, 2))
    counted = node("node-2", cpu="4", others={"example.com/gpu": "1"})
    moment = snapshot(NODES[0], counted, *low, unknown=[StorageKind.DEVICE_CLASSES])
    assert chosen(engine, PLAIN, moment) == "node-2"
    free = snapshot(NODES[0], unknown=[StorageKind.DEVICE_CLASSES])
    assert refusals(engine, PLAIN, free) == {}


def test_a_claim_is_allocated_where_devices_are_free(engine: EngineType) -> None:
    moment = snapshot(*NODES, GPU, TWO, gpu_claim("wanted"))
    assert refusals(engine, ASKING, moment) == {"node-2": "cannot allocate all claims"}


CONFLICTS = {
    "a class that does not exist": (
        gpu_claim("wanted", request(device_class="none")),
        "request gpus: device class none does not exist",
    ),
    "a class of an alternative that does not exist": (
        gpu_claim("wanted", request(first_available=(request("a", device_class="none"),))),
        "request gpus/a: device class none does not exist",
    ),
    "a claim that 256 other pods use": (
        replace(
            held_by("wanted", "node-1", "gpu-0"),
            reserved_for=frozenset(str(n) for n in range(256)),
        ),
        "resourceclaim in use",
    ),
}


@pytest.mark.parametrize(("wanted", "message"), CONFLICTS.values(), ids=CONFLICTS)
def test_a_claim_that_no_node_can_have(
    engine: EngineType, wanted: ResourceClaim, message: str
) -> None:
    moment = snapshot(*NODES, GPU, TWO, wanted)
    assert set(refusals(engine, ASKING, moment).values()) == {message}


def test_pods_are_evicted_only_where_devices_are_free(engine: EngineType) -> None:
    low = [pod(f"low-{n}", on=f"node-{n}", cpu="4") for n in (1, 2)]
    devices = (GPU, TWO, gpus("node-2", gpu("gpu-0")), gpu_claim("wanted"))
    held = held_by("of-low-1", "node-1", "gpu-0", "gpu-1")
    assert chosen(engine, ASKING, snapshot(*NODES, *low, *devices, held)) == "node-2"
    taken = held_by("of-low-2", "node-2", "gpu-0")
    assert chosen(engine, ASKING, snapshot(*NODES, *low, *devices, held, taken)) is None


def test_devices_that_are_not_evaluated_pass_filtering_and_are_not_chosen(
    engine: EngineType,
) -> None:
    odd = gpus("node-1", gpu("gpu-0", others={"unsupported": "compatibilityGroups"}))
    things = (*NODES, GPU, odd, gpus("node-2", gpu("gpu-0")), gpu_claim("wanted"))
    assert refusals(engine, ASKING, snapshot(*things)) == {}
    low = [pod(f"low-{n}", on=f"node-{n}", cpu="4", priority=n) for n in (1, 2)]
    assert chosen(engine, ASKING, snapshot(*things, *low)) == "node-2"
    assert chosen(engine, ASKING, snapshot(*things[:3], low[0], things[-1])) is None


UNKNOWN_KINDS = (StorageKind.SLICES, StorageKind.DEVICE_CLASSES, StorageKind.TAINT_RULES)


@pytest.mark.parametrize("kind", UNKNOWN_KINDS)
def test_unknown_kinds_leave_a_node_undecided(engine: EngineType, kind: StorageKind) -> None:
    low = pod("low", on="node-1", cpu="4")
    moment = snapshot(NODES[0], GPU, TWO, gpu_claim("wanted"), low, unknown=[kind])
    decision = engine(SchedulerRules(RELEASES["1.37"])).preempt(ASKING, moment, ["node-1"])
    assert str(decision.rejected["node-1"]) == f"devices not evaluated: {kind.value}"


def test_a_class_that_cannot_be_decoded_matters_only_for_pods_that_name_it(
    engine: EngineType,
) -> None:
    low = pod("low", on="node-1", cpu="4")
    for classes, unread, node_name in (([GPU], "other", "node-1"), ([], GPU.name, None)):
        whole = snapshot(NODES[0], *classes, TWO, gpu_claim("wanted"), low)
        marked = frozenset({UnreadableObject(StorageKind.DEVICE_CLASSES, unread)})
        moment = replace(whole, storage=replace(whole.storage, unreadable=marked))
        assert chosen(engine, ASKING, moment) == node_name


ALL = gpu_claim("wanted", request(count=None))
INCOMPLETE = gpus("node-1", gpu("gpu-0"), count=2)


@pytest.mark.parametrize(
    ("broken", "wanted"),
    [
        (INCOMPLETE, ALL),
        (gpus("node-1", gpu("gpu-0"), gpu("gpu-0")), ALL),
        (gpus("node-1", *(gpu(f"gpu-{n}") for n in range(33))), ALL),
    ],
    ids=["an incomplete pool", "an invalid pool", "more than 32 devices"],
)
def test_an_error_of_the_allocator_on_a_free_node_ends_the_attempt_without_evictions(
    engine: EngineType, broken: ResourceSlice, wanted: ResourceClaim
) -> None:
    low = pod("low", on="node-2", cpu="4")
    moment = snapshot(*NODES, GPU, broken, gpus("node-2", gpu("gpu-0")), wanted, low)
    decision = engine(SchedulerRules(RELEASES["1.37"])).preempt(ASKING, moment)
    assert (decision.chosen, decision.eligible) == (None, False)
    assert decision.reason.startswith("devices cannot be allocated: ")
    full = pod("full", on="node-1", cpu="4")
    busy = snapshot(*NODES, GPU, broken, gpus("node-2", gpu("gpu-0")), wanted, low, full)
    assert chosen(engine, ASKING, busy) == "node-2"


def test_pods_are_never_evicted_for_a_claim_of_more_than_32_devices(engine: EngineType) -> None:
    low = [pod(f"low-{n}", on=f"node-{n}", cpu="4") for n in (1, 2)]
    many = [gpus(f"node-{n}", *(gpu(f"gpu-{i}") for i in range(40))) for n in (1, 2)]
    wanted = gpu_claim("wanted", request(count=33))
    assert chosen(engine, ASKING, snapshot(*NODES, GPU, *many, wanted, *low)) is None
    assert chosen(engine, ASKING, snapshot(*NODES, GPU, *many, wanted, low[0])) is None
