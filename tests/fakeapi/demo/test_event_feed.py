"""The event feed shows what is new in the second of two observed states."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakeapi.demo.decisions import ReprievedPod
from fakeapi.demo.event_feed import describe_changes
from fakeapi.demo.observed_state import ObservedState
from tests.fakeapi.demo.observed_states import (
    BEFORE,
    EVICTED,
    FULL,
    PREEMPTED,
    SMALL,
    decision,
    observed,
    pod,
    refused,
)

STARTED = replace(FULL, pods_before_burst=BEFORE)

CASES: dict[str, tuple[ObservedState, ObservedState, list[str]]] = {
    "nothing": (PREEMPTED, PREEMPTED, []),
    "a workload runs": (ObservedState(), FULL, ["d/web: 2 pods run"]),
    "a workload runs in its subsets": (
        observed(pod("web-1", on="n-1")),
        observed(pod("web-1", on="n-1", subset="a"), pod("web-2", on="n-2", subset="b")),
        ["d/web: 2 pods run (1 a, 1 b)"],
    ),
    "the extender answers": (
        STARTED,
        replace(
            STARTED,
            decisions=(
                decision(
                    "web-1",
                    spared=(ReprievedPod("d/web-2", 1, "fits beside the preemptor"),),
                    decided_by="fewest victims",
                    candidates=2,
                ),
            ),
        ),
        [
            "the extender picks n-1 for d/vip: best of 2 by fewest victims",
            "  victims: web-1; reprieved: web-2",
        ],
    ),
    "a pod preempts": (
        STARTED,
        PREEMPTED,
        [
            "the extender picks n-1 for d/vip: the only candidate",
            "  victims: web-1; reprieved: none",
            "the scheduler preempts: web-1",
            "d/vip runs on n-1",
            "replacement: web-3, FailedScheduling: 0/2 nodes are available",
        ],
    ),
    "another Event about a pending pod": (
        PREEMPTED,
        replace(PREEMPTED, events=(*PREEMPTED.events, refused("web-3", "again", 9))),
        [],
    ),
    "a replacement is bound": (
        PREEMPTED,
        replace(PREEMPTED, pods=(*PREEMPTED.pods[:2], pod("web-3", on="n-2", subset="spot"))),
        ["replacement: web-3 (spot), placed on n-2"],
    ),
    "a node is under pressure": (
        PREEMPTED,
        EVICTED,
        [
            "n-2 reports MemoryPressure",
            "n-2 is tainted node.kubernetes.io/memory-pressure:NoSchedule",
            "d/web-2 is evicted from n-2: low on memory.",
            "replacement: web-4, FailedScheduling: tainted",
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_changes(name: str) -> None:
    before, after, lines = CASES[name]
    assert describe_changes(before, after, SMALL) == lines
