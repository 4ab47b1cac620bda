"""Strategies: small clusters in which everything that can tie or collide does so often.

Amounts, priorities, start times and labels come from tiny ranges, so that equal pods, exact fits,
overcommitted nodes, broken budgets and full ties are common and failures shrink to a few objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from policies.model import DisruptionBudget, HostPort, Node, Pod, Snapshot
from tests.builders import budget, node, pod, snapshot, toleration

NODES = ("node-1", "node-2", "node-3")
LABELS: tuple[Mapping[str, str], ...] = (
    {},
    {"app": "web"},
    {"app": "db"},
    {"app": "web", "tier": "front"},
)
TAINTS = ("gpu=yes:NoSchedule", "soft:PreferNoSchedule")


@dataclass(frozen=True)
class Cluster:
    """The loose objects of a cluster, and a pending pod of high priority."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    budgets: tuple[DisruptionBudget, ...]
    preemptor: Pod

    @property
    def snapshot(self) -> Snapshot:
        return snapshot(*self.nodes, *self.pods, *self.budgets)


_cpus = st.sampled_from(["0", "1", "2", "3"])
_ports = st.sets(st.sampled_from(["80", "UDP:80", "10.0.0.1:TCP:80"]), max_size=1)


@st.composite
def residents(draw: st.DrawFn, number: int, places: tuple[str, ...]) -> Pod:
    """Draw a pod that runs on some node, or is promised to one."""
    place = draw(st.sampled_from(places))
    promised = draw(st.integers(0, 9)) == 0
    return pod(
        f"pod-{number}",
        on=None if promised else place,
        nominated_node=place if promised else None,
        cpu=draw(_cpus),
        priority=draw(st.sampled_from([-1, 0, 0, 1, 1, 2, 4])),
        started=draw(st.none() | st.integers(0, 2)),
        labels=draw(st.sampled_from(LABELS)),
        ports=draw(_ports),
        terminating=draw(st.booleans()),
    )


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Node:
    """Draw a node of a few cores and few places."""
    return node(
        name,
        cpu=draw(st.sampled_from(["2", "3", "4"])),
        pods=draw(st.integers(1, 6)),
        unschedulable=draw(st.integers(0, 9)) == 0,
        taints=draw(st.lists(st.sampled_from(TAINTS), max_size=1)),
    )


@st.composite
def budgets(draw: st.DrawFn, name: str) -> DisruptionBudget:
    """Draw a budget that may be spent or overdrawn already."""
    return budget(
        name,
        match=draw(st.sampled_from((None, *LABELS))),
        allowed=draw(st.integers(-1, 2)),
        disrupted=draw(st.sets(st.sampled_from(["pod-0", "pod-1"]), max_size=1)),
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Draw up to three nodes with up to twelve pods and two budgets."""
    count = draw(st.sampled_from([1, 2, 3, 3]))
    pods = [draw(residents(n, NODES[:count])) for n in range(draw(st.integers(count, 12)))]
    tolerations = draw(st.sampled_from([(), (toleration("gpu", "Exists"),)]))
    return Cluster(
        nodes=tuple(draw(nodes(name)) for name in NODES[:count]),
        pods=tuple(without_shared_ports(pods)),
        budgets=tuple(draw(budgets(f"budget-{n}")) for n in range(draw(st.integers(0, 2)))),
        preemptor=pod(
            "preemptor",
            cpu=draw(st.sampled_from(["0", "1", "2", "2", "3"])),
            priority=draw(st.integers(1, 5)),
            ports=draw(_ports),
            tolerations=tolerations,
        ),
    )


def without_shared_ports(pods: Iterable[Pod]) -> Iterator[Pod]:
    """Take from each pod the ports that an earlier one has on the same node.

    kube-scheduler never binds two such pods to one node; if something else did, it would forget the
    port with the first of them that leaves, and this engine does as well.
    """
    taken: set[tuple[str | None, HostPort]] = set()
    for each in pods:
        free = frozenset(port for port in each.host_ports if (each.node_name, port) not in taken)
        taken |= {(each.node_name, port) for port in free}
        yield replace(each, host_ports=free)
