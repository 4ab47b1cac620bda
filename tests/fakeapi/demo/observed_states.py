"""Small scenarios and observed states, as short as table rows. UIDs are names."""

from __future__ import annotations

from typing import Any

from fakeapi.controlplane.scheduler.extender_trace import ExtenderCall, ExtenderOutcome
from fakeapi.demo.decisions import ExplainedDecision, ExplainedVictim, ReprievedPod
from fakeapi.demo.observed_state import ObservedEvent, ObservedNode, ObservedPod, ObservedState
from fakeapi.demo.scenarios.preemption_story import LoopScenario

SMALL = LoopScenario(
    {"register": [{"name": "n-{}", "count": 2}]},
    (),
    (
        {
            "kind": "ReplicaSet",
            "metadata": {"namespace": "d", "name": "web"},
            "spec": {"replicas": 2},
        },
    ),
    ({"kind": "Pod", "metadata": {"namespace": "d", "name": "vip"}},),
    "d/web",
    "{}",
)
"""Two nodes, two pods of d/web, and vip, which comes."""

NODES = (ObservedNode("n-1"), ObservedNode("n-2"))
BEFORE = frozenset(("web-1", "web-2"))


def pod(name: str, *, on: str = "", **fields: Any) -> ObservedPod:
    """Build a pod that runs if it has a node; all but vip belong to d/web."""
    given = {
        "workload": "" if name == "vip" else "d/web",
        "phase": "Running" if on else "Pending",
        "ready": bool(on),
        **fields,
    }
    return ObservedPod(name, f"d/{name}", node=on, **given)


def event(about: str, reason: str, message: str, at: int = 0) -> ObservedEvent:
    """Build an Event; ``at`` orders it among others."""
    return ObservedEvent(f"d/{about}", about, reason, message, (f"{at:03}", ""))


def preempted(name: str, by: str = "vip", on: str = "n-1", at: int = 0) -> ObservedEvent:
    """Build the scheduler's Event about a victim."""
    return event(name, "Preempted", f"Preempted by pod {by} on node {on}", at)


def refused(name: str, message: str = "0/2 nodes are available", at: int = 0) -> ObservedEvent:
    """Build the scheduler's Event about an unschedulable pod."""
    return event(name, "FailedScheduling", message, at)


def deliberation(
    *victims: str,
    by: str = "vip",
    on: str = "n-1",
    spared: tuple[ReprievedPod, ...] = (),
    **fields: Any,
) -> ExplainedDecision:
    """Build an answer of the extender; victims have priority 1."""
    given = {"decided_by": "", "candidates": 1, "pdb_violations": 0, "seconds": 0.002, **fields}
    gone = tuple(ExplainedVictim(f"d/{name}", 1) for name in victims)
    return ExplainedDecision(by, f"d/{by}", on, gone, spared, **given)


def exchange(
    verdict: ExtenderOutcome = ExtenderOutcome.ACCEPTED, seconds: float = 0.01, *notes: str
) -> ExtenderCall:
    """Build a call of the verb preempt for vip."""
    told = b"{}", 200, b"{}"
    return ExtenderCall(0, seconds, "d/vip", "http://x", "preempt", "", *told, verdict, "", notes)


def sight(
    *pods: ObservedPod, events: tuple[ObservedEvent, ...] = (), **fields: Any
) -> ObservedState:
    """Build a sight of two nodes that are ready."""
    given = {"nodes": NODES, "webhooks_registered": True, **fields}
    return ObservedState(pods=pods, events=events, **given)


FULL = sight(pod("web-1", on="n-1"), pod("web-2", on="n-2"))
"""The cluster is full."""

TAKEN = sight(
    pod("vip", on="n-1"),
    pod("web-2", on="n-2"),
    pod("web-3"),
    events=(preempted("web-1"), refused("web-3")),
    decisions=(deliberation("web-1"),),
    exchanges=(exchange(),),
    pods_before_burst=BEFORE,
)
"""vip has taken the place of web-1, and web-3 waits in its stead."""

TAINT = "node.kubernetes.io/memory-pressure:NoSchedule"
SHORT = ObservedNode("n-2", memory_pressure=True, taints=(TAINT,))
STRAINED = sight(
    pod("vip", on="n-1"),
    pod(
        "web-2", on="n-2", phase="Failed", ready=False, reason="Evicted", message="low on memory. "
    ),
    pod("web-3"),
    pod("web-4"),
    events=(preempted("web-1"), refused("web-3"), refused("web-4", "tainted")),
    decisions=(deliberation("web-1"),),
    exchanges=(exchange(),),
    pods_before_burst=BEFORE,
    nodes=(NODES[0], SHORT),
)
"""web-2 has been evicted; web-4 waits in its stead."""
