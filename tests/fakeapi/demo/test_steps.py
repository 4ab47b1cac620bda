"""What chapters lack: nothing where all is well, else the very thing that is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakeapi.demo.observed_state import ObservedNode, ObservedState
from fakeapi.demo.steps import DemoStep, unmet_conditions, unplaced_pods
from tests.fakeapi.demo.observed_states import (
    FULL,
    SMALL,
    STRAINED,
    TAKEN,
    deliberation,
    pod,
    preempted,
    refused,
    sight,
)

WEB = (pod("web-2", on="n-2"), pod("web-3"))
VIP = pod("vip", on="n-1")
EXPLAINED = deliberation("web-1")
BEFORE = TAKEN.pods_before_burst

CASES: dict[str, tuple[DemoStep, ObservedState, tuple[str, ...]]] = {
    "nobody is there": (
        DemoStep.START,
        ObservedState(),
        ("0 of 2 nodes are ready", "the webhooks of WorkloadSpreads are not registered"),
    ),
    "a node is not ready": (
        DemoStep.START,
        sight(nodes=(ObservedNode("n-1"), ObservedNode("n-2", ready=False))),
        ("1 of 2 nodes are ready",),
    ),
    "all is there": (DemoStep.START, sight(), ()),
    "a pod does not run": (
        DemoStep.FILLING,
        sight(pod("web-1", on="n-1"), pod("web-2", on="n-1", ready=False)),
        ("d/web: 1 of 2 pods run",),
    ),
    "who goes does not count": (
        DemoStep.FILLING,
        sight(*FULL.pods, pod("web-3", on="n-1", deleting=True)),
        (),
    ),
    "the cluster is full": (DemoStep.FILLING, FULL, ()),
    "nobody has come": (
        DemoStep.BURST,
        replace(FULL, pods_before_burst=BEFORE),
        ("d/vip has no node", "no pod was preempted", "no replacement is unschedulable"),
    ),
    "the burst is placed, and nobody had to go": (
        DemoStep.BURST,
        sight(VIP, *FULL.pods, pods_before_burst=BEFORE),
        ("no pod was preempted", "no replacement is unschedulable"),
    ),
    "the burst does not run yet": (
        DemoStep.BURST,
        replace(TAKEN, pods=(pod("vip", on="n-1", ready=False), *WEB)),
        ("d/vip does not run yet",),
    ),
    "a victim stays": (
        DemoStep.BURST,
        replace(TAKEN, pods=(VIP, *WEB, pod("web-1", on="n-1", deleting=True))),
        ("d/web-1 was preempted, but still exists",),
    ),
    "a victim that the extender has not named": (
        DemoStep.BURST,
        replace(TAKEN, decisions=(deliberation("web-9"),)),
        ("d/web-1 was preempted, but is not a victim of any extender response",),
    ),
    "the extender has named another node": (
        DemoStep.BURST,
        replace(TAKEN, decisions=(deliberation("web-1", on="n-2"),)),
        ("d/web-1 was preempted, but is not a victim of any extender response",),
    ),
    "nobody comes instead": (
        DemoStep.BURST,
        replace(TAKEN, pods=(VIP, WEB[0])),
        ("d/web: 1 of 2 pods exist", "no replacement is unschedulable"),
    ),
    "who comes instead is not told anything": (
        DemoStep.BURST,
        replace(TAKEN, events=(preempted("web-1"),)),
        (
            "d/web-3 is neither running nor reported as unschedulable",
            "no replacement is unschedulable",
        ),
    ),
    "who comes instead preempts in turn": (
        DemoStep.BURST,
        replace(TAKEN, pods=(VIP, WEB[0], pod("web-3", nominated="n-2"))),
        ("d/web-3 is nominated to n-2 and not bound yet",),
    ),
    "the burst has taken its places": (DemoStep.BURST, TAKEN, ()),
    "nothing leaks": (
        DemoStep.PRESSURE,
        TAKEN,
        ("no pod of d/web was evicted", "no node reports MemoryPressure"),
    ),
    "another one is evicted": (
        DemoStep.PRESSURE,
        replace(STRAINED, pods=tuple(replace(each, workload="d/x") for each in STRAINED.pods)),
        ("no pod of d/web was evicted", "d/web: 0 of 2 pods exist"),
    ),
    "the node is not tainted": (
        DemoStep.PRESSURE,
        replace(STRAINED, nodes=(ObservedNode("n-2", memory_pressure=True),)),
        ("n-2 reports MemoryPressure and is not tainted",),
    ),
    "a node was short of memory": (DemoStep.PRESSURE, STRAINED, ()),
    "the end": (DemoStep.END, ObservedState(), ()),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_chapter_lacks(name: str) -> None:
    chapter, seen, missing = CASES[name]
    assert unmet_conditions(chapter, seen, SMALL) == missing


def test_pods_without_nodes() -> None:
    seen = sight(pod("web-1", on="n-1", ready=False), pod("web-2"))
    assert unplaced_pods("d/web", seen, SMALL) == ("d/web: 1 of 2 pods have a node",)
    assert unplaced_pods("d/web", FULL, SMALL) == ()


def test_the_last_words_about_a_pod_count() -> None:
    seen = sight(pod("web-3"), events=(refused("web-3", "late", 2), refused("web-3", "early", 1)))
    assert seen.scheduling_failure(seen.pods[0]) == "late"


def test_a_victim_reported_twice_is_preempted_once() -> None:
    seen = sight(events=(preempted("b", at=2), preempted("a", at=1), preempted("b", at=3)))
    assert [each.pod for each in seen.preempted()] == ["d/a", "d/b"]
