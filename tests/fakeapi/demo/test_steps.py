"""Unmet conditions of the steps of the demo."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakeapi.demo.observed_state import ObservedNode, ObservedState
from fakeapi.demo.steps import DemoStep, unmet_conditions, unplaced_pods
from tests.fakeapi.demo.observed_states import (
    EVICTED,
    FULL,
    PREEMPTED,
    SMALL,
    decision,
    observed,
    pod,
    preempted,
    refused,
)

WEB = (pod("web-2", on="n-2"), pod("web-3"))
VIP = pod("vip", on="n-1")
EXPLAINED = decision("web-1")
BEFORE = PREEMPTED.pods_before_burst

CASES: dict[str, tuple[DemoStep, ObservedState, tuple[str, ...]]] = {
    "no node is registered": (
        DemoStep.START,
        ObservedState(),
        ("0 of 2 nodes are ready", "the webhooks of WorkloadSpreads are not registered"),
    ),
    "a node is not ready": (
        DemoStep.START,
        observed(nodes=(ObservedNode("n-1"), ObservedNode("n-2", ready=False))),
        ("1 of 2 nodes are ready",),
    ),
    "the nodes are ready": (DemoStep.START, observed(), ()),
    "a pod does not run": (
        DemoStep.FILLING,
        observed(pod("web-1", on="n-1"), pod("web-2", on="n-1", ready=False)),
        ("d/web: 1 of 2 pods run",),
    ),
    "terminating pods do not count": (
        DemoStep.FILLING,
        observed(*FULL.pods, pod("web-3", on="n-1", deleting=True)),
        (),
    ),
    "the cluster is full": (DemoStep.FILLING, FULL, ()),
    "the burst is not created": (
        DemoStep.BURST,
        replace(FULL, pods_before_burst=BEFORE),
        ("d/vip has no node", "no pod was preempted", "no replacement is unschedulable"),
    ),
    "the burst is placed without preemption": (
        DemoStep.BURST,
        observed(VIP, *FULL.pods, pods_before_burst=BEFORE),
        ("no pod was preempted", "no replacement is unschedulable"),
    ),
    "the burst does not run yet": (
        DemoStep.BURST,
        replace(PREEMPTED, pods=(pod("vip", on="n-1", ready=False), *WEB)),
        ("d/vip does not run yet",),
    ),
    "a victim stays": (
        DemoStep.BURST,
        replace(PREEMPTED, pods=(VIP, *WEB, pod("web-1", on="n-1", deleting=True))),
        ("d/web-1 was preempted, but still exists",),
    ),
    "a victim that the extender has not named": (
        DemoStep.BURST,
        replace(PREEMPTED, decisions=(decision("web-9"),)),
        ("d/web-1 was preempted, but is not a victim of any extender response",),
    ),
    "the extender has named another node": (
        DemoStep.BURST,
        replace(PREEMPTED, decisions=(decision("web-1", on="n-2"),)),
        ("d/web-1 was preempted, but is not a victim of any extender response",),
    ),
    "no replacement is created": (
        DemoStep.BURST,
        replace(PREEMPTED, pods=(VIP, WEB[0])),
        ("d/web: 1 of 2 pods exist", "no replacement is unschedulable"),
    ),
    "a replacement has no Event": (
        DemoStep.BURST,
        replace(PREEMPTED, events=(preempted("web-1"),)),
        (
            "d/web-3 is neither running nor reported as unschedulable",
            "no replacement is unschedulable",
        ),
    ),
    "a replacement preempts": (
        DemoStep.BURST,
        replace(PREEMPTED, pods=(VIP, WEB[0], pod("web-3", nominated="n-2"))),
        ("d/web-3 is nominated to n-2 and not bound yet",),
    ),
    "the burst is placed": (DemoStep.BURST, PREEMPTED, ()),
    "nothing leaks": (
        DemoStep.PRESSURE,
        PREEMPTED,
        ("no pod of d/web was evicted", "no node reports MemoryPressure"),
    ),
    "another one is evicted": (
        DemoStep.PRESSURE,
        replace(EVICTED, pods=tuple(replace(each, workload="d/x") for each in EVICTED.pods)),
        ("no pod of d/web was evicted", "d/web: 0 of 2 pods exist"),
    ),
    "the node is not tainted": (
        DemoStep.PRESSURE,
        replace(EVICTED, nodes=(ObservedNode("n-2", memory_pressure=True),)),
        ("n-2 reports MemoryPressure and is not tainted",),
    ),
    "a node was short of memory": (DemoStep.PRESSURE, EVICTED, ()),
    "the end": (DemoStep.END, ObservedState(), ()),
}


@pytest.mark.parametrize("name", CASES)
def test_unmet_conditions(name: str) -> None:
    step, seen, missing = CASES[name]
    assert unmet_conditions(step, seen, SMALL) == missing


def test_pods_without_nodes() -> None:
    seen = observed(pod("web-1", on="n-1", ready=False), pod("web-2"))
    assert unplaced_pods("d/web", seen, SMALL) == ("d/web: 1 of 2 pods have a node",)
    assert unplaced_pods("d/web", FULL, SMALL) == ()


def test_the_last_scheduling_failure_counts() -> None:
    seen = observed(
        pod("web-3"), events=(refused("web-3", "late", 2), refused("web-3", "early", 1))
    )
    assert seen.scheduling_failure(seen.pods[0]) == "late"


def test_a_victim_reported_twice_is_preempted_once() -> None:
    seen = observed(events=(preempted("b", at=2), preempted("a", at=1), preempted("b", at=3)))
    assert [each.pod for each in seen.preempted()] == ["d/a", "d/b"]
