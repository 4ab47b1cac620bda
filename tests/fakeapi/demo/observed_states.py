"""Small scenarios and observed states, as short as table rows. UIDs are names."""

from __future__ import annotations

from typing import Any

from fakeapi.controlplane.scheduler.extender_trace import ExtenderCall, ExtenderOutcome
from fakeapi.demo.decisions import ExplainedDecision, ExplainedVictim, ReprievedPod
from fakeapi.demo.observed_state import ObservedEvent, ObservedNode, ObservedPod, ObservedState
from fakeapi.demo.scenarios.preemption_story import LoopScenario
from tests.builders import manifest

SMALL = LoopScenario(
    {"register": [{"name": "n-{}", "count": 2}]},
    (),
    (manifest("ReplicaSet", "web", namespace="d", spec={"replicas": 2}),),
    (manifest("Pod", "vip", namespace="d"),),
    "d/web",
    "{}",
)
"""Two nodes, two pods of d/web, and the burst: vip."""

NODES = (ObservedNode("n-1"), ObservedNode("n-2"))
BEFORE = frozenset(("web-1", "web-2"))


def pod(name: str, *, on: str = "", **fields: Any) -> ObservedPod:
    """Build a pod that runs if it has a node; all but vip belong to d/web."""
    defaults = {
        "workload": "" if name == "vip" else "d/web",
        "phase": "Running" if on else "Pending",
        "ready": bool(on),
        **fields,
    }
    return ObservedPod(name, f"d/{name}", node=on, **defaults)


def event(about: str, reason: str, message: str, at: int = 0) -> ObservedEvent:
    """Build an Event; ``at`` orders it among others."""
    return ObservedEvent(f"d/{about}", about, reason, message, (f"{at:03}", ""))


def preempted(name: str, by: str = "vip", on: str = "n-1", at: int = 0) -> ObservedEvent:
    """Build the scheduler's Event about a victim."""
    return event(name, "Preempted", f"Preempted by pod {by} on node {on}", at)


def refused(name: str, message: str = "0/2 nodes are available", at: int = 0) -> ObservedEvent:
    """Build the scheduler's Event about an unschedulable pod."""
    return event(name, "FailedScheduling", message, at)


def decision(
    *victims: str,
    by: str = "vip",
    on: str = "n-1",
    spared: tuple[ReprievedPod, ...] = (),
    **fields: Any,
) -> ExplainedDecision:
    """Build an answer of the extender; victims have priority 1."""
    defaults = {"decided_by": "", "candidates": 1, "pdb_violations": 0, "seconds": 0.002, **fields}
    gone = tuple(ExplainedVictim(f"d/{name}", 1) for name in victims)
    return ExplainedDecision(by, f"d/{by}", on, gone, spared, **defaults)


def extender_call(
    verdict: ExtenderOutcome = ExtenderOutcome.ACCEPTED, seconds: float = 0.01, *notes: str
) -> ExtenderCall:
    """Build a call of the verb preempt for vip."""
    bodies = b"{}", 200, b"{}"
    return ExtenderCall(0, seconds, "d/vip", "http://x", "preempt", "", *bodies, verdict, "", notes)


def observed(
    *pods: ObservedPod, events: tuple[ObservedEvent, ...] = (), **fields: Any
) -> ObservedState:
    """Build the observed state of two ready nodes."""
    defaults = {"nodes": NODES, "webhooks_registered": True, **fields}
    return ObservedState(pods=pods, events=events, **defaults)


FULL = observed(pod("web-1", on="n-1"), pod("web-2", on="n-2"))
"""The cluster is full."""

PREEMPTED = observed(
    pod("vip", on="n-1"),
    pod("web-2", on="n-2"),
    pod("web-3"),
    events=(preempted("web-1"), refused("web-3")),
    decisions=(decision("web-1"),),
    exchanges=(extender_call(),),
    pods_before_burst=BEFORE,
)
"""vip has preempted web-1, and its replacement web-3 is pending."""

TAINT = "node.kubernetes.io/memory-pressure:NoSchedule"
SHORT = ObservedNode("n-2", memory_pressure=True, taints=(TAINT,))
EVICTED = observed(
    pod("vip", on="n-1"),
    pod(
        "web-2", on="n-2", phase="Failed", ready=False, reason="Evicted", message="low on memory. "
    ),
    pod("web-3"),
    pod("web-4"),
    events=(preempted("web-1"), refused("web-3"), refused("web-4", "tainted")),
    decisions=(decision("web-1"),),
    exchanges=(extender_call(),),
    pods_before_burst=BEFORE,
    nodes=(NODES[0], SHORT),
)
"""web-2 has been evicted, and its replacement web-4 is pending."""
