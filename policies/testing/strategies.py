"""Strategies: small clusters in which ties and conflicts are common.

Amounts, priorities, start times and labels come from tiny ranges, so that equal pods, exact fits,
overcommitted nodes, broken budgets and full ties are common and failures shrink to a few objects.

``clusters`` holds resources, ports, taints and budgets, for the laws that hold only there;
``rich_clusters`` also two namespaces, affinity in both directions, topology spread, pods that
terminate or are assumed victims, nominated pods of any priority and of two schedulers, an extended
resource, nodes with a pod that could not be read, and preemptors that are nominated already or must
not preempt; ``grouped_clusters`` everything that decisions read: pods of pod groups as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from hypothesis import strategies as st
from msgspec import structs

from policies.kubernetes.pod_groups import PodGroup
from policies.kubernetes.selectors import (
    LabelSelector,
    SpreadConstraint,
    equals_all,
    label_requirement,
)
from policies.kubernetes.snapshot import (
    AffinityTerm,
    DisruptionBudget,
    HostPort,
    Node,
    Pod,
    Snapshot,
)
from policies.testing.values import budget, node, pod, pod_group, snapshot, toleration

NODES = ("node-1", "node-2", "node-3")
LABELS: tuple[Mapping[str, str], ...] = (
    {},
    {"app": "web"},
    {"app": "db"},
    {"app": "web", "tier": "front"},
)
TAINTS = ("gpu=yes:NoSchedule", "soft:PreferNoSchedule", "age=5:NoSchedule")
TOLERATIONS = (
    (),
    (toleration("gpu", "Exists"),),
    (toleration("age", "Gt", "4"), toleration("age", "Lt", "2")),
)
NAMESPACES = ("default", "other")
TOPOLOGIES = ("host", "zone")
DEVICE = "example.com/device"

T = TypeVar("T")


@dataclass(frozen=True)
class Cluster:
    """The objects of a cluster, and a pending pod of high priority.

    ``namespaces`` maps names to labels; ``unread`` names nodes with a pod that could not be read.
    """

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    budgets: tuple[DisruptionBudget, ...]
    preemptor: Pod
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    groups: tuple[PodGroup, ...] = ()
    composites: tuple[PodGroup, ...] = ()

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot with these objects."""
        whole = snapshot(
            *self.nodes,
            *self.pods,
            *self.budgets,
            namespaces=self.namespaces,
            groups=self.groups,
            composites=self.composites,
        )
        marked = {
            name: structs.replace(whole.nodes[name], unreadable=("lost",)) for name in self.unread
        }
        return replace(whole, nodes={**whole.nodes, **marked})


_cpus = st.sampled_from(["0", "1", "2", "3"])
_ports = st.sets(st.sampled_from(["80", "UDP:80", "10.0.0.1:TCP:80"]), max_size=1)
_priorities = st.sampled_from([-1, 0, 0, 1, 1, 2, 4])
_seldom = st.sampled_from([False] * 9 + [True])
_sometimes = st.sampled_from([False, False, True])


@st.composite
def residents(draw: st.DrawFn, number: int, places: tuple[str, ...]) -> Pod:
    """Draw a pod that runs on some node, or is nominated to one."""
    place = draw(st.sampled_from(places))
    nominated = draw(st.integers(0, 9)) == 0
    return pod(
        f"pod-{number}",
        on=None if nominated else place,
        nominated_node=place if nominated else None,
        cpu=draw(_cpus),
        priority=draw(_priorities),
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
    """Draw a budget whose allowance may be zero or negative."""
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
    tolerations = draw(st.sampled_from(TOLERATIONS))
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


# Everything else that decisions read

SCHEDULERS = ("default-scheduler", "other-scheduler")

_schedulers = st.sampled_from([SCHEDULERS[0], *SCHEDULERS])
_selectors = st.sampled_from(
    [
        LabelSelector(equals_all({"app": "web"})),
        LabelSelector(equals_all({"app": "db"})),
        LabelSelector((label_requirement("app", "NotIn", ["web"]),)),
        LabelSelector(),
        None,
    ]
)
_namespaces = st.sampled_from(NAMESPACES)
_leaving = st.sampled_from(["stays", "stays", "ends", "preempted"])
_namespace_selectors = st.sampled_from(
    [None, None, LabelSelector(equals_all({"team": "red"})), LabelSelector()]
)


@st.composite
def terms(draw: st.DrawFn) -> AffinityTerm:
    """Draw a required term of affinity or anti-affinity."""
    return AffinityTerm(
        selector=draw(_selectors),
        namespaces=draw(st.sampled_from([frozenset(["default"]), frozenset(NAMESPACES)])),
        namespace_selector=draw(_namespace_selectors),
        topology_key=draw(st.sampled_from(TOPOLOGIES)),
    )


def _terms(counts: list[int]) -> st.SearchStrategy[tuple[AffinityTerm, ...]]:
    return st.sampled_from(counts).flatmap(lambda count: st.tuples(*[terms()] * count))


_some_terms = _terms([0, 0, 0, 1, 1, 2])
_few_terms = _terms([0, 0, 0, 0, 0, 0, 1, 2])


@st.composite
def constraints(draw: st.DrawFn, topology: str) -> SpreadConstraint:
    """Draw a hard constraint over one topology."""
    return SpreadConstraint(
        max_skew=draw(st.integers(1, 2)),
        topology_key=topology,
        selector=draw(_selectors),
        min_domains=draw(st.sampled_from([1, 1, 2, 3])),
        honors_affinity=draw(st.booleans()),
        honors_taints=draw(st.booleans()),
    )


@st.composite
def spreads(draw: st.DrawFn) -> tuple[SpreadConstraint, ...]:
    """Draw constraints over some of the topologies, each at most once as in the API."""
    chosen = draw(st.lists(st.sampled_from(TOPOLOGIES), max_size=2, unique=True))
    return tuple(draw(constraints(topology)) for topology in chosen)


@st.composite
def rich_residents(draw: st.DrawFn, number: int, places: tuple[str, ...]) -> Pod:
    """Draw a pod that runs, terminates, is an assumed victim or nominated; any may repel others."""
    leaving, assumed = draw(_leaving), draw(_seldom)
    drawn = draw(residents(number, places))
    nominated = drawn.nominated_node is not None
    return structs.replace(
        drawn,
        namespace=draw(_namespaces),
        # A nominated pod may be any pod's peer; its fellow preemptor has priority 1 to 5.
        priority=draw(st.integers(0, 6)) if nominated else drawn.priority,
        requests=drawn.requests + draw(_devices),
        terminating=leaving != "stays" and not nominated,
        preempted=leaving == "preempted" and not nominated,
        assumed_victim=assumed and not nominated,
        may_be_assumed=nominated and draw(st.booleans()),
        anti_affinity=draw(_some_terms),
        scheduler_name=draw(_schedulers) if nominated else drawn.scheduler_name,
    )


_features = st.sampled_from([frozenset(["A", "B"]), frozenset(["A"]), frozenset[str]()])
_devices = st.sampled_from([pod().requests] * 2 + [pod(others={DEVICE: "1"}).requests])


@st.composite
def rich_nodes(draw: st.DrawFn, name: str) -> Node:
    """Draw a node that may lack either topology's label, and may have devices."""
    labels = {"host": name, "zone": draw(st.sampled_from(["a", "b"]))}
    lacking = draw(st.sampled_from([*[()] * 6, ("host",), ("zone",), TOPOLOGIES]))
    devices = node(others={DEVICE: draw(st.sampled_from(["0", "1", "2"]))}).allocatable.scalars
    drawn = draw(nodes(name))
    closed = draw(_seldom)
    return structs.replace(
        drawn,
        unschedulable=closed and drawn.unschedulable,
        taints=tuple(each for each in drawn.taints if closed or not each.forbids_scheduling),
        labels={key: value for key, value in labels.items() if key not in lacking},
        allocatable=structs.replace(drawn.allocatable, scalars=devices),
        declared_features=draw(_features),
        resize_preemption_disabled=draw(_seldom),
    )


@st.composite
def rich_budgets(draw: st.DrawFn, name: str) -> DisruptionBudget:
    """Draw a budget in either namespace."""
    return replace(draw(budgets(name)), namespace=draw(st.sampled_from(NAMESPACES)))


@st.composite
def preemptors(draw: st.DrawFn, places: tuple[str, ...]) -> Pod:
    """Draw a pending pod with any requests that may be nominated and seldom must not preempt."""
    asked = draw(st.sampled_from(["0", "1", "1", "2"]))
    return structs.replace(
        pod(
            "preemptor",
            cpu=asked,
            priority=draw(st.sampled_from([3, 5, 4, 2, 1])),
            ports=draw(_ports),
            labels=draw(st.sampled_from(LABELS)),
            namespace=draw(st.sampled_from(NAMESPACES)),
            tolerations=draw(st.sampled_from(TOLERATIONS)),
            preempts=not draw(_seldom),
            nominated_node=draw(st.sampled_from([*[None] * 6, *places])),
            node_selector=equals_all(draw(_at_times({"zone": "a"}, {}))),
            affinity=draw(_few_terms),
            anti_affinity=draw(_some_terms),
            spread=draw(spreads()) if draw(_sometimes) else (),
        ),
        requests=pod(cpu=asked).requests + draw(_devices),
        required_features=draw(_features) if draw(_sometimes) else frozenset(),
    )


def _at_times(value: T, otherwise: T) -> st.SearchStrategy[T]:
    return st.sampled_from([*[otherwise] * 6, value])


@st.composite
def rich_clusters(draw: st.DrawFn) -> Cluster:
    """Draw up to three nodes, ten pods and three budgets with all features."""
    count = draw(st.sampled_from([1, 2, 3, 3]))
    places = NODES[:count]
    pods = [draw(rich_residents(n, places)) for n in range(draw(st.integers(count, 10)))]
    return Cluster(
        nodes=_each(draw, rich_nodes, places),
        pods=tuple(without_shared_ports(pods)),
        budgets=_each(draw, rich_budgets, _numbered("budget", draw(st.integers(0, 3)))),
        preemptor=draw(preemptors(places)),
        namespaces={"default": {"team": "red"}, "other": draw(_at_times({"team": "red"}, {}))},
        unread=frozenset(name for name in places if draw(_seldom) and draw(_sometimes)),
    )


GROUPS = ("group-1", "group-2", "group-3")
COMPOSITES = ("above", "top")


@st.composite
def groups(draw: st.DrawFn, name: str, parents: tuple[str, ...]) -> PodGroup:
    """Draw a group of either kind, which may be below one of its own kind in a cycle."""
    return pod_group(
        name,
        draw(st.sampled_from(["single", "all", "all"])),
        priority=draw(_priorities),
        parent=draw(st.sampled_from(["", *parents])),
    )


@st.composite
def grouped_clusters(draw: st.DrawFn) -> Cluster:
    """Draw a rich cluster of one namespace with pods of pod groups."""
    cluster = draw(rich_clusters())
    named = st.sampled_from(["", "", *GROUPS, "missing"])
    pods = (structs.replace(each, namespace="default", group=draw(named)) for each in cluster.pods)
    return replace(
        cluster,
        pods=tuple(pods),
        preemptor=structs.replace(
            cluster.preemptor, group=draw(st.sampled_from(["", "", GROUPS[0]]))
        ),
        groups=tuple(draw(groups(name, (*COMPOSITES, "missing"))) for name in GROUPS),
        composites=tuple(draw(groups(name, COMPOSITES)) for name in COMPOSITES),
    )


@st.composite
def deferred_resizes(draw: st.DrawFn) -> Cluster:
    """Draw a cluster whose preemptor runs and is to grow; the cache may have it as it was before.

    It may also be on a node that is not known, and the cache may lack it.
    """
    cluster = draw(st.one_of(rich_clusters(), grouped_clusters()))
    running = structs.replace(
        cluster.preemptor,
        node_name=draw(st.sampled_from(NODES)),
        nominated_node=None,
        resize_deferred=True,
    )
    before = structs.replace(running, requests=pod(cpu=draw(_cpus)).requests + draw(_devices))
    cached = draw(st.sampled_from([(running,), (running,), (before,), ()]))
    return replace(cluster, pods=(*cluster.pods, *cached), preemptor=running)


def _each(
    draw: st.DrawFn, strategy: Callable[[str], st.SearchStrategy[T]], names: Iterable[str]
) -> tuple[T, ...]:
    return tuple(draw(strategy(name)) for name in names)


def _numbered(kind: str, count: int) -> Iterator[str]:
    return (f"{kind}-{number}" for number in range(count))


def without_shared_ports(pods: Iterable[Pod]) -> Iterator[Pod]:
    """Return the pods without the ports that an earlier one has on the same node.

    kube-scheduler never binds two such pods to one node; if something else did, it would forget the
    port with the first of them that leaves, and this engine does as well.
    """
    taken: set[tuple[str | None, HostPort]] = set()
    for each in pods:
        free = frozenset(port for port in each.host_ports if (each.node_name, port) not in taken)
        taken |= {(each.node_name, port) for port in free}
        yield structs.replace(each, host_ports=free)
