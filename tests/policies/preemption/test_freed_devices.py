"""Devices of victims that count as free in a dry run, which kube-scheduler never does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from msgspec import structs

from policies import RELEASES, PreemptionDecision, SchedulerRules
from policies.kubernetes.devices import Counters
from policies.kubernetes.quantity import NANOS
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.kubernetes.storage import ResourceClaim, StorageKind
from policies.preemption.filtering import FilterSettings, configured_filters
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import node, pod, snapshot
from tests.builders.devices import GPU, gpu, gpu_claim, gpus, held_by, request, uses

ENGINES = (ReferenceEngine, VectorizedEngine)
EngineType = type[ReferenceEngine] | type[VectorizedEngine]
FREEING = configured_filters(FilterSettings(frees_victims=True))
RULES = SchedulerRules(RELEASES["1.37"], FREEING)
NODE = node("node-1", cpu="4")
ONE = gpus("node-1", gpu("gpu-0"))
TWO = gpus("node-1", gpu("gpu-0"), gpu("gpu-1"))
ASKING = pod("asking", cpu="1", devices=uses("wanted"), priority=10)
PLAIN = pod("plain", cpu="1", others={"example.com/gpu": "1"}, priority=10)
WANTED = gpu_claim("wanted")

pytestmark = pytest.mark.parametrize("engine", ENGINES)


def low(name: str, priority: int = 0, **fields: Any) -> Pod:
    """Build a pod on node-1 that can be a victim."""
    return pod(name, on="node-1", cpu="1", priority=priority, **fields)


def used_by(claim: ResourceClaim, *users: str, **fields: Any) -> ResourceClaim:
    """Reserve a claim for pods."""
    return replace(claim, reserved_for=frozenset(users), **fields)


def holding(name: str, *users: str, device: str = "gpu-0", **fields: Any) -> ResourceClaim:
    """Build the claim of a device of node-1 that is reserved for pods."""
    return used_by(held_by(name, "node-1", device), *users, **fields)


@dataclass(frozen=True)
class Case:
    """Objects beside node-1 and the class; the victims there, and the claims that they free."""

    things: tuple[Any, ...]
    victims: tuple[str, ...] = ()
    freed: tuple[str, ...] = ()
    asked: Pod = ASKING


HELD = holding("of-v", "v")
PARTS = (
    gpus("node-1", gpu("s", consumes={"mem": 40}), gpu("l", consumes={"mem": 60}), count=2),
    gpus("node-1", name="c", count=2, counters=(Counters("set", (("mem", 80 * NANOS),)),)),
)
CASES: dict[str, Case] = {
    "a victim frees its device": Case((ONE, WANTED, low("v"), HELD), ("v",), ("default/of-v",)),
    "a pod of the same priority keeps its device": Case((ONE, WANTED, low("v", 10), HELD)),
    "a claim is freed if all its pods are victims": Case(
        (ONE, WANTED, low("v"), low("w"), holding("both", "v", "w")),
        ("v", "w"),
        ("default/both",),
    ),
    "a claim that a pod of higher priority uses stays": Case(
        (ONE, WANTED, low("v"), low("w", 11), holding("both", "v", "w"))
    ),
    "a claim that a pod on another node uses stays": Case(
        (ONE, WANTED, node("node-2"), low("v"), pod("w", on="node-2"), holding("both", "v", "w"))
    ),
    "a claim with another user than pods stays": Case(
        (ONE, WANTED, low("v"), holding("of-v", "v", used_by_others=True))
    ),
    "a claim that is reserved for no pod stays": Case((ONE, WANTED, low("v"), holding("idle"))),
    "only the least important holder is a victim": Case(
        (TWO, WANTED, low("v"), low("w", 1), HELD, holding("of-w", "w", device="gpu-1")),
        ("v",),
        ("default/of-v",),
    ),
    "all devices are free only without any holder": Case(
        (
            TWO,
            gpu_claim("wanted", request(count=None)),
            low("v"),
            low("w", 1),
            low("other"),
            HELD,
            holding("of-w", "w", device="gpu-1"),
        ),
        ("w", "v"),
        ("default/of-v", "default/of-w"),
    ),
    "nothing needs to be freed beside a free device": Case(
        (TWO, WANTED, pod("v", on="node-1", cpu="4"), HELD),
        ("v",),
    ),
    "a device of the pod's own claim stays in use": Case(
        (ONE, WANTED, low("v"), holding("mine", "v")),
        asked=structs.replace(ASKING, storage=pod(devices=uses("wanted", "mine")).storage),
    ),
    "the claim of an extended resource is freed": Case(
        (ONE, low("v"), replace(HELD, extended=True, owner="v")), ("v",), ("default/of-v",), PLAIN
    ),
    "a partition frees its counters": Case(
        (*PARTS, WANTED, low("v"), holding("of-v", "v", device="l")),
        ("v",),
        ("default/of-v",),
    ),
}


def preempt(engine: EngineType, asked: Pod, moment: Snapshot) -> PreemptionDecision:
    """Return the decision with the devices of victims free."""
    return engine(RULES).preempt(asked, moment)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_devices_of_victims(engine: EngineType, case: Case) -> None:
    chosen = preempt(engine, case.asked, snapshot(NODE, GPU, *case.things)).chosen
    victims = () if chosen is None else tuple(each.name for each in chosen.victims.pods)
    assert victims == case.victims
    assert case.freed == (() if chosen is None else chosen.freed_claims)


def test_by_default_victims_free_nothing(engine: EngineType) -> None:
    moment = snapshot(NODE, GPU, ONE, WANTED, low("v"), HELD)
    assert engine(SchedulerRules(RELEASES["1.37"])).preempt(ASKING, moment).chosen is None


def test_filtering_frees_nothing_and_says_that_eviction_may_help(engine: EngineType) -> None:
    decision = engine(RULES).filter_nodes(ASKING, snapshot(NODE, GPU, ONE, WANTED, low("v"), HELD))
    assert (decision.feasible, decision.rejected["node-1"].resolvable) == ((), True)
    assert str(decision.rejected["node-1"]) == "cannot allocate all claims"


def test_claims_that_cannot_all_be_read_leave_the_node_undecided(engine: EngineType) -> None:
    moment = snapshot(NODE, GPU, ONE, WANTED, low("v"), HELD, unknown=[StorageKind.DEVICES])
    assert preempt(engine, ASKING, moment).chosen is None


def test_the_message_of_the_event_is_kube_schedulers(engine: EngineType) -> None:
    things = GPU, ONE, WANTED, low("v", 10), HELD, *ELSEWHERE, low("w"), holding("of-w", "w", "v")
    own = engine(RULES).preempt(ASKING, snapshot(NODE, *things), ["node-1"])
    upstream = engine(SchedulerRules(RELEASES["1.37"])).preempt(ASKING, snapshot(NODE, *things), [])
    assert own.chosen is None
    assert own.message == upstream.message


def test_the_explanation_names_the_claims(engine: EngineType) -> None:
    decision = preempt(engine, ASKING, snapshot(NODE, GPU, ONE, WANTED, low("v"), HELD))
    line = "    devices of victims count as free: claims default/of-v"
    assert line in list(decision.describe())


ELSEWHERE = (
    node("node-2", cpu="4"),
    gpus("node-2", gpu("gpu-0")),
    pod("innocent", on="node-2", cpu="4"),
)
LEAVING = {
    "while its pod terminates": (low("v", terminating=True), HELD),
    "after its pod is gone": (HELD,),
    "while one of its pods terminates and the other is gone": (
        low("v", terminating=True),
        holding("of-v", "v", "w"),
    ),
}


@pytest.mark.parametrize("things", LEAVING.values(), ids=LEAVING)
def test_the_pod_waits_for_a_device_that_is_released(
    engine: EngineType, things: tuple[Any, ...]
) -> None:
    """No other pod is preempted in vain."""
    moment = snapshot(NODE, GPU, ONE, WANTED, *ELSEWHERE, *things)
    decision = preempt(engine, ASKING, moment)
    assert (decision.eligible, decision.chosen) == (False, None)
    assert decision.reason == "not eligible due to devices that pods release on node node-1."
    assert engine(SchedulerRules(RELEASES["1.37"])).preempt(ASKING, moment).chosen is not None


STAYING = {
    "its pod stays": (low("v", priority=20), HELD),
    "one of its pods stays": (low("v", terminating=True), low("w", 20), holding("a", "v", "w")),
    "its pod is nominated to the node": (pod("v", priority=20, nominated_node="node-1"), HELD),
    "another object uses it": (holding("of-v", "v", used_by_others=True),),
    "the node lacks more than the device": (pod("big", on="node-1", cpu="4", priority=20), HELD),
}


@pytest.mark.parametrize("things", STAYING.values(), ids=STAYING)
def test_the_pod_does_not_wait_for_a_device_if(engine: EngineType, things: tuple[Any, ...]) -> None:
    decision = preempt(engine, ASKING, snapshot(NODE, GPU, ONE, WANTED, *ELSEWHERE, *things))
    assert decision.chosen is not None
    assert [each.name for each in decision.chosen.victims.pods] == ["innocent"]


def test_once_the_device_is_released_the_pod_fits(engine: EngineType) -> None:
    released = gpu_claim("of-v")
    moment = snapshot(NODE, GPU, ONE, WANTED, *ELSEWHERE, released)
    assert engine(RULES).filter_nodes(ASKING, moment).feasible == ("node-1",)
