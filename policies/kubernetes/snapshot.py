"""The snapshot that decisions read: pods, nodes, disruption budgets and workloads.

Everything here is immutable and made of ints and texts, so any number of decisions can share a
snapshot. Evicting a pod is arithmetic that returns a new :class:`NodeState`, never a mutation.
Units: CPU in milliCPU, memory and ephemeral storage in bytes, times in nanoseconds since the epoch.
It corresponds to kube-scheduler's framework types and cache.Snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from msgspec import Struct, structs

from policies.kubernetes.default_selector import PodOwner, PodSelectingObject
from policies.kubernetes.devices import ExtendedRequest
from policies.kubernetes.pod_groups import NO_POD_GROUPS, PodGroups
from policies.kubernetes.policy_objects import NO_POLICY_OBJECTS, PolicyObjects
from policies.kubernetes.selectors import (
    Labels,
    LabelSelector,
    NodeSelector,
    Requirement,
    SpreadConstraint,
    Taint,
    Toleration,
)
from policies.kubernetes.storage import NO_STORAGE, PodStorage, Storage

NO_LABELS: Labels = {}
NO_PORTS: frozenset[HostPort] = frozenset()
DEFAULT_SCHEDULER = "default-scheduler"
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - how a host port without an address is written, not a bind


class Resources(Struct, frozen=True, gc=False):
    """Amounts of resources; ``scalars`` holds extended resources, huge pages and the like."""

    milli_cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    scalars: Mapping[str, int] = {}

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


NO_RESOURCES = Resources()


def sum_resources(amounts: Sequence[Resources]) -> Resources:
    """Return the sum of amounts."""
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
    """A host port of a pod; ``address`` 0.0.0.0 means all addresses."""

    address: str
    protocol: str
    port: int


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """A required (anti-)affinity term: which pods it selects, in which topology.

    ``selector`` None matches no pod. ``namespaces`` are named ones (the pod's own if the term names
    neither namespaces nor a selector of them); ``namespace_selector`` adds those whose labels it
    matches.
    """

    selector: LabelSelector | None
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    topology_key: str

    def matches(self, pod: Pod, namespaces: Mapping[str, Labels]) -> bool:
        """Return whether the term selects ``pod``; ``namespaces`` maps names to labels."""
        if self.selector is None or not self.selector.matches(pod.labels):
            return False
        if pod.namespace in self.namespaces:
            return True
        labels = namespaces.get(pod.namespace, NO_LABELS)
        return self.namespace_selector is not None and self.namespace_selector.matches(labels)


class Pod(Struct, frozen=True, gc=False):
    """A pod, as far as scheduling reads it. Garbage collections skip pods: they are in no cycles.

    ``priority`` is 0 where the object has none. ``started_ns`` is None until the kubelet has set
    it. ``preempted``: kube-scheduler has marked the pod as its victim. ``assumed_victim``: the pod
    is a victim of an assumed preemption, which the watch does not show yet. ``may_be_assumed``: the
    pod is pending, and kube-scheduler may have assumed it on its nominated node.
    ``resize_deferred``: the pod runs, its in-place resize waits for resources on its node, and
    kube-scheduler preempts for it. ``resource_names`` are those that any container requests or
    limits, even at zero. ``affinity`` and ``anti_affinity`` are required terms, ``spread`` hard
    constraints, ``soft_spread`` whether there are soft ones; ``controller`` is the controller that
    owns the pod. ``storage`` is None for a pod without volumes and device claims, as most are.
    ``required_features`` are those that a node has to declare. ``extended_requests`` are the
    requests of its extended resources, as device requests. ``scheduler_name`` is that of the
    scheduler that is to place the pod. ``group`` is the name of its PodGroup, "" for none.

    kube-scheduler's own rules do not read the fields after it; policies do. ``owner`` is the
    controller of any kind that owns the pod. ``annotations`` are only those that the policy names.
    ``restarts`` counts those of all containers. ``preempted_ns`` is when kube-scheduler marked the
    pod as its victim, ``waiting_since_ns`` when the pod was last found to fit no node, or else when
    it was created.
    """

    namespace: str
    name: str
    uid: str
    labels: Labels = NO_LABELS
    priority: int = 0
    preempts: bool = True
    node_name: str | None = None
    nominated_node: str | None = None
    started_ns: int | None = None
    terminating: bool = False
    preempted: bool = False
    assumed_victim: bool = False
    may_be_assumed: bool = False
    resize_deferred: bool = False
    finished: bool = False
    requests: Resources = NO_RESOURCES
    resource_names: frozenset[str] = frozenset()
    host_ports: frozenset[HostPort] = frozenset()
    node_selector: tuple[Requirement, ...] = ()
    node_affinity: NodeSelector | None = None
    tolerations: tuple[Toleration, ...] = ()
    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()
    soft_spread: bool = False
    controller: PodOwner | None = None
    storage: PodStorage | None = None
    required_features: frozenset[str] = frozenset()
    extended_requests: tuple[ExtendedRequest, ...] = ()
    scheduler_name: str = DEFAULT_SCHEDULER
    group: str = ""
    priority_class: str = ""
    owner: PodOwner | None = None
    annotations: Labels = NO_LABELS
    ready: bool = False
    restarts: int = 0
    preempted_ns: int = 0
    waiting_since_ns: int = 0

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def departing(self) -> bool:
        """Whether the pod is terminating, or a victim of an assumed preemption."""
        return self.terminating or self.assumed_victim

    def requests_any_of(self, managed_resources: frozenset[str]) -> bool:
        """Return whether an extender with these managed resources is called for the pod.

        An extender without managed resources is called for every pod. Source: IsInterested in
        pkg/scheduler/extender.go.
        """
        return not managed_resources or not managed_resources.isdisjoint(self.resource_names)


class Node(Struct, frozen=True, gc=False):
    """A node without its pods.

    ``allowed_pods`` is its allocatable number of pods, ``declared_features`` are the features that
    its kubelet has declared. ``resize_preemption_disabled``: no pod is evicted from it for an
    in-place resize.
    """

    name: str
    labels: Labels = NO_LABELS
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    allocatable: Resources = NO_RESOURCES
    allowed_pods: int = 0
    declared_features: frozenset[str] = frozenset()
    resize_preemption_disabled: bool = False


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """A PodDisruptionBudget; ``allowed`` is the disruptionsAllowed of its status.

    ``selector`` None matches nothing. ``disrupted`` holds the names of pods whose eviction the API
    server has already counted (disruptedPods). ``desired_healthy`` is the number of pods that have
    to stay ready (desiredHealthy).
    """

    namespace: str
    name: str
    selector: LabelSelector | None
    allowed: int
    disrupted: frozenset[str] = frozenset()
    desired_healthy: int = 0

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class NodeState(Struct, frozen=True, gc=False):
    """A node with its pods.

    ``pods`` are bound to it and not finished; ``requested`` is the sum of their requests;
    ``nominated`` are pending pods nominated to it. ``unreadable`` names pods that are bound to it
    but could not be decoded, so that its free resources are not known.
    """

    node: Node
    pods: tuple[Pod, ...] = ()
    requested: Resources = NO_RESOURCES
    used_ports: frozenset[HostPort] = frozenset()
    nominated: tuple[Pod, ...] = ()
    unreadable: tuple[str, ...] = ()

    def with_pod(self, pod: Pod) -> NodeState:
        """Return the same node with ``pod`` added."""
        return structs.replace(
            self,
            pods=(*self.pods, pod),
            requested=self.requested + pod.requests,
            used_ports=self.used_ports | pod.host_ports,
        )

    def without_pods(self, pods: Iterable[Pod]) -> NodeState:
        """Return the same node without some pods, identified by UID.

        As upstream, a host port becomes free with the first pod that releases it, even if another
        pod, bound past the scheduler, uses it too.
        """
        removed = {pod.uid: pod for pod in pods}
        return structs.replace(
            self,
            pods=tuple([pod for pod in self.pods if pod.uid not in removed]),
            requested=self.requested - sum_resources([pod.requests for pod in removed.values()]),
            used_ports=self.used_ports.difference(*(pod.host_ports for pod in removed.values())),
        )


def build_node_state(
    node: Node, pods: Iterable[Pod], nominated: Iterable[Pod] = (), unreadable: Iterable[str] = ()
) -> NodeState:
    """Return the state of ``node`` with ``pods``; finished pods use nothing and are left out."""
    present = tuple([pod for pod in pods if not pod.finished])
    return NodeState(
        node=node,
        pods=present,
        requested=sum_resources([pod.requests for pod in present]),
        used_ports=frozenset().union(*(pod.host_ports for pod in present)) or NO_PORTS,
        nominated=tuple(nominated),
        unreadable=tuple(unreadable),
    )


@dataclass(frozen=True, slots=True)
class PastPreemption:
    """A victim, when it was preempted, and the pod that preempted it, None if that is not known."""

    at_ns: int
    victim: Pod
    preemptor: Pod | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of the cluster at one moment; decisions read nothing else.

    ``generation`` grows with every change, so two snapshots of one cluster with the same generation
    are equal. ``namespaces`` maps names to labels. ``pods_with_anti_affinity`` are the pods with
    required anti-affinity. ``workloads`` are the objects that select pods, by namespace; they are
    present only if a filter reads them. ``storage`` holds the objects behind volumes and device
    claims. ``group_members`` are the bound pods of PodGroups, by the key of their group.
    ``unplaced_members`` are the keys of other pods of theirs that may be on a node: they cannot be
    decoded, or kube-scheduler may have assumed them. ``now_ns`` is the time of the decision, in
    nanoseconds since the epoch. Only policies read it, ``preemptions``, and ``policy_objects``.
    """

    nodes: Mapping[str, NodeState] = field(default_factory=dict)
    budgets: tuple[DisruptionBudget, ...] = ()
    namespaces: Mapping[str, Labels] = field(default_factory=dict)
    pods_with_anti_affinity: tuple[Pod, ...] = ()
    workloads: Mapping[str, tuple[PodSelectingObject, ...]] = field(default_factory=dict)
    storage: Storage = NO_STORAGE
    pod_groups: PodGroups = NO_POD_GROUPS
    group_members: Mapping[str, tuple[Pod, ...]] = field(default_factory=dict)
    unplaced_members: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    generation: int = 0
    now_ns: int = 0
    preemptions: tuple[PastPreemption, ...] = ()
    policy_objects: PolicyObjects = NO_POLICY_OBJECTS

    def with_assumed(self, pod: Pod, node: str) -> Snapshot:
        """Return the snapshot with a pending pod on a known node, and nominated to none.

        It corresponds to AssumePod of kube-scheduler's cache.
        """
        assumed = structs.replace(pod, node_name=node, nominated_node=None, may_be_assumed=False)
        nodes = dict(self.nodes)
        for name in {node, pod.nominated_node or node} & nodes.keys():
            others = tuple(each for each in nodes[name].nominated if each.uid != pod.uid)
            nodes[name] = structs.replace(nodes[name], nominated=others)
        nodes[node] = nodes[node].with_pod(assumed)
        repelling = (assumed,) if assumed.anti_affinity else ()
        members, unplaced = dict(self.group_members), dict(self.unplaced_members)
        if assumed.group:
            key = f"{assumed.namespace}/{assumed.group}"
            members[key] = (*members.get(key, ()), assumed)
            unplaced[key] = tuple(each for each in unplaced.get(key, ()) if each != pod.key)
        return replace(
            self,
            nodes=nodes,
            pods_with_anti_affinity=self.pods_with_anti_affinity + repelling,
            group_members=members,
            unplaced_members=unplaced,
        )


def assemble(
    nodes: Iterable[Node],
    pods: Iterable[Pod] = (),
    budgets: Iterable[DisruptionBudget] = (),
    namespaces: Mapping[str, Labels] | None = None,
    workloads: Iterable[PodSelectingObject] = (),
    storage: Storage = NO_STORAGE,
) -> Snapshot:
    """Build a snapshot from single objects.

    Pods bound to an unknown node are left out, as in kube-scheduler's snapshot; pending pods count
    only on the nodes that they are nominated to.
    """
    bound: dict[str, list[Pod]] = {}
    nominated: dict[str, list[Pod]] = {}
    members: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.node_name is not None:
            bound.setdefault(pod.node_name, []).append(pod)
            if pod.group and not pod.finished:
                members.setdefault(f"{pod.namespace}/{pod.group}", []).append(pod)
        elif pod.nominated_node is not None and not pod.finished:
            nominated.setdefault(pod.nominated_node, []).append(pod)
    selecting: dict[str, list[PodSelectingObject]] = {}
    for workload in workloads:
        selecting.setdefault(workload.namespace, []).append(workload)
    states = {
        node.name: build_node_state(node, bound.get(node.name, ()), nominated.get(node.name, ()))
        for node in nodes
    }
    return Snapshot(
        nodes=states,
        budgets=tuple(budgets),
        namespaces=dict(namespaces or {}),
        pods_with_anti_affinity=tuple(
            p for state in states.values() for p in state.pods if p.anti_affinity
        ),
        workloads={namespace: tuple(objects) for namespace, objects in selecting.items()},
        storage=storage,
        group_members={key: tuple(pods) for key, pods in members.items()},
    )


def _summed(left: Mapping[str, int], right: Mapping[str, int], sign: int) -> Mapping[str, int]:
    if not right:
        return left
    total = dict(left)
    for name, amount in right.items():
        total[name] = total.get(name, 0) + sign * amount
    return total
