"""What a decision reads: pods, nodes, disruption budgets, and the snapshot that holds them.

Everything here is immutable and made of ints and texts, so a snapshot can be shared by any number
of decisions, and evicting a pod is arithmetic that gives a new :class:`NodeState`, never a
mutation. Units: CPU in milliCPU, memory and ephemeral storage in bytes, times in nanoseconds since
the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from policies.selectors import Labels, LabelSelector, NodeSelector, Requirement, Taint, Toleration
from policies.storage import NO_STORAGE, PodStorage, Storage
from policies.workloads import Owner, Workload

NO_LABELS: Labels = {}
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - how a host port without an address is written, not a bind


@dataclass(frozen=True, slots=True)
class Resources:
    """Amounts of resources; ``scalars`` holds extended resources, huge pages and their like."""

    milli_cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    scalars: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Resources) -> Resources:
        return Resources(
            self.milli_cpu + other.milli_cpu,
            self.memory + other.memory,
            self.ephemeral_storage + other.ephemeral_storage,
            _summed(self.scalars, other.scalars, 1),
        )

    def __sub__(self, other: Resources) -> Resources:
        return Resources(
            self.milli_cpu - other.milli_cpu,
            self.memory - other.memory,
            self.ephemeral_storage - other.ephemeral_storage,
            _summed(self.scalars, other.scalars, -1),
        )


NOTHING = Resources()


def total(amounts: Sequence[Resources]) -> Resources:
    """Add up amounts."""
    scalars: Mapping[str, int] = {}
    for each in amounts:
        scalars = _summed(scalars, each.scalars, 1)
    return Resources(
        sum([each.milli_cpu for each in amounts]),
        sum([each.memory for each in amounts]),
        sum([each.ephemeral_storage for each in amounts]),
        scalars,
    )


class HostPort(NamedTuple):
    """A port that a pod takes on its node; ``address`` 0.0.0.0 stands for all of them."""

    address: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Which pods a required (anti-)affinity term speaks of, and within which topology.

    ``selector`` None matches no pod. ``namespaces`` are named ones (the pod's own if the term names
    neither namespaces nor a selector of them); ``namespace_selector`` adds those whose labels it
    matches.
    """

    selector: LabelSelector | None
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    topology_key: str

    def matches(self, pod: Pod, namespaces: Mapping[str, Labels]) -> bool:
        """Return whether the term speaks of ``pod``; ``namespaces`` maps names to labels."""
        if self.selector is None or not self.selector.matches(pod.labels):
            return False
        if pod.namespace in self.namespaces:
            return True
        labels = namespaces.get(pod.namespace, NO_LABELS)
        return self.namespace_selector is not None and self.namespace_selector.matches(labels)


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """A hard spread constraint: no domain may exceed the emptiest by more than ``max_skew``.

    Domains are the values of the node label ``topology_key``. ``selector`` says which pods count
    (None: none). With fewer than ``min_domains`` domains the emptiest counts as empty. Nodes that
    the pod's node affinity, or their own taints, keep it from are left out if ``honors_affinity``
    or ``honors_taints`` say so.
    """

    max_skew: int
    topology_key: str
    selector: LabelSelector | None
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod, as far as scheduling reads it.

    ``priority`` is 0 where the object has none. ``started_ns`` is None until the kubelet has set
    it. ``preempted`` tells that kube-scheduler has marked the pod as its victim (its first
    DisruptionTarget condition is True with reason PreemptionByScheduler); ``promised``, that it is
    a victim of a decision that the watch does not show yet. ``resource_names`` are
    those that any container requests or limits, even at zero. ``affinity`` and
    ``anti_affinity`` are required terms, ``spread`` hard constraints, ``soft_spread`` whether there
    are others; ``controller`` is what the pod belongs to. ``storage`` is None for a pod without
    volumes and device claims, as most are. ``priority_class`` decides nothing, and names the
    priority for people.
    """

    namespace: str
    name: str
    uid: str
    labels: Labels = field(default_factory=dict)
    priority: int = 0
    preempts: bool = True
    node_name: str | None = None
    nominated_node: str | None = None
    started_ns: int | None = None
    terminating: bool = False
    preempted: bool = False
    promised: bool = False
    finished: bool = False
    requests: Resources = NOTHING
    resource_names: frozenset[str] = frozenset()
    host_ports: frozenset[HostPort] = frozenset()
    node_selector: tuple[Requirement, ...] = ()
    node_affinity: NodeSelector | None = None
    tolerations: tuple[Toleration, ...] = ()
    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    soft_spread: bool = False
    controller: Owner | None = None
    storage: PodStorage | None = None
    priority_class: str = ""

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def departing(self) -> bool:
        """Whether the pod is on its way out, or soon will be."""
        return self.terminating or self.promised

    def concerns(self, managed: frozenset[str]) -> bool:
        """Return whether an extender that manages these resources is asked about the pod.

        None managed means every pod. Source: IsInterested in pkg/scheduler/extender.go.
        """
        return not managed or not managed.isdisjoint(self.resource_names)


@dataclass(frozen=True, slots=True)
class Node:
    """A node's standing facts; ``allowed_pods`` is its allocatable number of pods."""

    name: str
    labels: Labels = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    allocatable: Resources = NOTHING
    allowed_pods: int = 0


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """A PodDisruptionBudget; ``allowed`` is what its status still permits.

    ``selector`` None matches nothing. ``disrupted`` holds the names of pods whose eviction the API
    server has already charged.
    """

    namespace: str
    name: str
    selector: LabelSelector | None
    allowed: int
    disrupted: frozenset[str] = frozenset()

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class NodeState:
    """A node with the pods on it.

    ``pods`` are bound to it and not finished; ``requested`` is the sum of their requests;
    ``nominated`` are pending pods promised to it. ``unreadable`` names pods that occupy it but
    could not be decoded, so that nothing certain can be said of its free room.
    """

    node: Node
    pods: tuple[Pod, ...] = ()
    requested: Resources = NOTHING
    used_ports: frozenset[HostPort] = frozenset()
    nominated: tuple[Pod, ...] = ()
    unreadable: tuple[str, ...] = ()

    def with_pod(self, pod: Pod) -> NodeState:
        """Return the same node with ``pod`` on it as well."""
        return replace(
            self,
            pods=(*self.pods, pod),
            requested=self.requested + pod.requests,
            used_ports=self.used_ports | pod.host_ports,
        )

    def without(self, gone: Iterable[Pod]) -> NodeState:
        """Return the same node without the pods ``gone``, told apart by UID.

        As upstream, a port becomes free with the first pod that gives it up, even if another pod,
        bound past the scheduler, has it too.
        """
        leaving = {pod.uid: pod for pod in gone}
        return replace(
            self,
            pods=tuple([pod for pod in self.pods if pod.uid not in leaving]),
            requested=self.requested - total([pod.requests for pod in leaving.values()]),
            used_ports=self.used_ports.difference(*(pod.host_ports for pod in leaving.values())),
        )


def occupied(
    node: Node,
    pods: Iterable[Pod],
    nominated: Iterable[Pod] = (),
    unreadable: Iterable[str] = (),
) -> NodeState:
    """Put ``pods`` on ``node``; those that have finished take no room and are left out."""
    present = tuple([pod for pod in pods if not pod.finished])
    return NodeState(
        node=node,
        pods=present,
        requested=total([pod.requests for pod in present]),
        used_ports=frozenset().union(*(pod.host_ports for pod in present)),
        nominated=tuple(nominated),
        unreadable=tuple(unreadable),
    )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One moment of the cluster; decisions read nothing else.

    ``generation`` grows with every change, so two snapshots of one cluster with the same generation
    are equal. ``namespaces`` maps names to labels. ``repelling`` are the pods whose required
    anti-affinity may keep others away. ``workloads`` are what may select pods, by namespace; they
    are there only if a filter reads them. ``storage`` is what stands behind volumes and device
    claims.
    """

    nodes: Mapping[str, NodeState] = field(default_factory=dict)
    budgets: tuple[DisruptionBudget, ...] = ()
    namespaces: Mapping[str, Labels] = field(default_factory=dict)
    repelling: tuple[Pod, ...] = ()
    workloads: Mapping[str, tuple[Workload, ...]] = field(default_factory=dict)
    storage: Storage = NO_STORAGE
    generation: int = 0


def assemble(
    nodes: Iterable[Node],
    pods: Iterable[Pod] = (),
    budgets: Iterable[DisruptionBudget] = (),
    namespaces: Mapping[str, Labels] | None = None,
    workloads: Iterable[Workload] = (),
    storage: Storage = NO_STORAGE,
) -> Snapshot:
    """Build a snapshot from loose objects.

    Pods bound to an unknown node are left out, as kube-scheduler's snapshot leaves them out;
    pending pods count only where they are nominated.
    """
    bound: dict[str, list[Pod]] = {}
    promised: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.node_name is not None:
            bound.setdefault(pod.node_name, []).append(pod)
        elif pod.nominated_node is not None and not pod.finished:
            promised.setdefault(pod.nominated_node, []).append(pod)
    selecting: dict[str, list[Workload]] = {}
    for workload in workloads:
        selecting.setdefault(workload.namespace, []).append(workload)
    states = {
        node.name: occupied(node, bound.get(node.name, ()), promised.get(node.name, ()))
        for node in nodes
    }
    return Snapshot(
        nodes=states,
        budgets=tuple(budgets),
        namespaces=dict(namespaces or {}),
        repelling=tuple(p for state in states.values() for p in state.pods if p.anti_affinity),
        workloads={namespace: tuple(them) for namespace, them in selecting.items()},
        storage=storage,
    )


def _summed(left: Mapping[str, int], right: Mapping[str, int], sign: int) -> Mapping[str, int]:
    if not right:
        return left
    total = dict(left)
    for name, amount in right.items():
        total[name] = total.get(name, 0) + sign * amount
    return total
