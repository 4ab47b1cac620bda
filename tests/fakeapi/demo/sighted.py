"""Small stories and sights, written down as briefly as a table allows. UIDs are names."""

from __future__ import annotations

from typing import Any

from fakeapi.controlplane.scheduler.trace import Exchange, Verdict
from fakeapi.demo.deliberations import Deliberation, Spared, Victim
from fakeapi.demo.sights import SeenEvent, SeenNode, SeenPod, Sight
from fakeapi.scenarios.loop import Story

SMALL = Story(
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

NODES = (SeenNode("n-1"), SeenNode("n-2"))
BEFORE = frozenset(("web-1", "web-2"))


def pod(name: str, *, on: str = "", **fields: Any) -> SeenPod:
    """Build a pod that runs if it has a node; all but vip belong to d/web."""
    given = {
        "workload": "" if name == "vip" else "d/web",
        "phase": "Running" if on else "Pending",
        "ready": bool(on),
        **fields,
    }
    return SeenPod(name, f"d/{name}", node=on, **given)


def event(about: str, reason: str, message: str, at: int = 0) -> SeenEvent:
    """Build an Event; ``at`` orders it among others."""
    return SeenEvent(f"d/{about}", about, reason, message, (f"{at:03}", ""))


def preempted(name: str, by: str = "vip", on: str = "n-1", at: int = 0) -> SeenEvent:
    """Build the Event by which the scheduler tells of a victim."""
    return event(name, "Preempted", f"Preempted by pod {by} on node {on}", at)


def refused(name: str, message: str = "0/2 nodes are available", at: int = 0) -> SeenEvent:
    """Build the Event by which the scheduler tells that a pod has to wait."""
    return event(name, "FailedScheduling", message, at)


def deliberation(
    *victims: str, by: str = "vip", on: str = "n-1", spared: tuple[Spared, ...] = (), **fields: Any
) -> Deliberation:
    """Build an answer of the extender; victims have priority 1."""
    given = {"decided_by": "", "candidates": 1, "budgets_broken": 0, "seconds": 0.002, **fields}
    gone = tuple(Victim(f"d/{name}", 1) for name in victims)
    return Deliberation(by, f"d/{by}", on, gone, spared, **given)


def exchange(verdict: Verdict = Verdict.ACCEPTED, seconds: float = 0.01, *notes: str) -> Exchange:
    """Build a call of the verb preempt for vip."""
    told = b"{}", 200, b"{}"
    return Exchange(0, seconds, "d/vip", "http://x", "preempt", "", *told, verdict, "", notes)


def sight(*pods: SeenPod, events: tuple[SeenEvent, ...] = (), **fields: Any) -> Sight:
    """Build a sight of two nodes that are ready."""
    given = {"nodes": NODES, "spreading": True, **fields}
    return Sight(pods=pods, events=events, **given)


FULL = sight(pod("web-1", on="n-1"), pod("web-2", on="n-2"))
"""The cluster is full."""

TAKEN = sight(
    pod("vip", on="n-1"),
    pod("web-2", on="n-2"),
    pod("web-3"),
    events=(preempted("web-1"), refused("web-3")),
    deliberations=(deliberation("web-1"),),
    exchanges=(exchange(),),
    before=BEFORE,
)
"""vip has taken the place of web-1, and web-3 waits in its stead."""

TAINT = "node.kubernetes.io/memory-pressure:NoSchedule"
SHORT = SeenNode("n-2", short_of_memory=True, taints=(TAINT,))
STRAINED = sight(
    pod("vip", on="n-1"),
    pod(
        "web-2", on="n-2", phase="Failed", ready=False, reason="Evicted", message="low on memory. "
    ),
    pod("web-3"),
    pod("web-4"),
    events=(preempted("web-1"), refused("web-3"), refused("web-4", "tainted")),
    deliberations=(deliberation("web-1"),),
    exchanges=(exchange(),),
    before=BEFORE,
    nodes=(NODES[0], SHORT),
)
"""web-2 has been evicted; web-4 waits in its stead."""
