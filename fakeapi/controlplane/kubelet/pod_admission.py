"""Pod admission: whether a node admits a pod that was bound to it.

The scheduler has checked most of this; pods that were bound by other clients, or concurrently, are
rejected here. The requests and host ports of the node's pods are allocated. All insufficient
resources are found, and the first is reported:

    OutOfcpu      Node didn't have enough resource: cpu, requested: 500, used: 3800, capacity: 4000
    OutOfpods     Node didn't have enough resource: pods, requested: 1, used: 110, capacity: 110
    NodeAffinity  Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector
    NodePorts, NodeName, TaintToleration (of NoExecute taints)

A critical pod that fails only for insufficient resources preempts other pods. The victims are as
few and as small as possible. First those guaranteed pods are chosen that are needed even if all
others are preempted, then burstable pods, then best-effort ones. Within a QoS class the pod with
the smallest distance to the missing amounts is chosen repeatedly: for each resource the fraction
that it leaves missing, squared, summed up. Ties are broken by the smaller memory request, then CPU
request.

Sources: pkg/kubelet/lifecycle/predicate.go, pkg/kubelet/preemption/preemption.go, AdmissionCheck in
pkg/scheduler/eventhandlers.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from fakeapi.controlplane.kubelet.types import KubeletPod as Shape
from policies.kubernetes.pod_requests import is_extended
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import (
    NO_RESOURCES,
    HostPort,
    Node,
    NodeState,
    Pod,
    Resources,
    Snapshot,
)
from policies.preemption.filtering.node_affinity import NodeAffinity
from policies.preemption.filtering.node_ports import ports_conflict

NO_PORTS: Final[frozenset[HostPort]] = frozenset()
CRITICAL_PRIORITY: Final = 2_000_000_000
_SOURCE: Final = "kubernetes.io/config.source"
_MIRROR: Final = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True)
class AllocatedPod:
    """A pod on a node; a critical pod is never preempted, and preempts others.

    Source: IsCriticalPod in pkg/kubelet/types/pod_update.go.
    """

    uid: str
    requests: Resources
    ports: frozenset[HostPort]
    priority: int = 0
    qos_class: str = ""
    critical: bool = False

    @classmethod
    def of(cls, pod: Pod, shape: Shape) -> AllocatedPod:
        """Return the allocation of a pod."""
        annotations = shape.metadata.annotations or {}
        static = annotations.get(_SOURCE, "api") != "api"
        critical = static or _MIRROR in annotations or pod.priority >= CRITICAL_PRIORITY
        quality = shape.status.qos_class
        ports = pod.host_ports or NO_PORTS  # one for all: an empty set takes 216 bytes
        return cls(pod.uid, pod.requests, ports, pod.priority, quality, critical)


@dataclass(slots=True)
class NodeAllocation:
    """The admitted pods of a node, by UID, and the sum of their requests."""

    pods: dict[str, AllocatedPod] = field(default_factory=dict)
    requested: Resources = NO_RESOURCES
    _ports: Counter[HostPort] = field(default_factory=Counter)

    @property
    def ports(self) -> Collection[HostPort]:
        """The ports in use."""
        return self._ports.keys()

    def add(self, allocated: AllocatedPod) -> None:
        """Add a pod."""
        self.remove(allocated.uid)
        self.pods[allocated.uid] = allocated
        self.requested += allocated.requests
        self._ports.update(allocated.ports)

    def remove(self, uid: str) -> None:
        """Remove a pod, if it is present."""
        allocated = self.pods.pop(uid, None)
        if allocated is not None:
            self.requested -= allocated.requests
            self._ports -= Counter(allocated.ports)

    def has_port_conflict(self, ports: Iterable[HostPort]) -> bool:
        """Return whether one of the ports conflicts with a port in use."""
        return any(ports_conflict(port, used) for port in ports for used in self._ports)


def resource_amounts(resources: Resources) -> Mapping[str, int]:
    """Return amounts by resource name: milliCPU, and whole units of the others."""
    return {
        "cpu": resources.milli_cpu,
        "memory": resources.memory,
        "ephemeral-storage": resources.ephemeral_storage,
        **resources.scalars,
    }


PREEMPTING = "Preempting"
PREEMPTION_MESSAGE = "Preempted in order to admit critical pod"
PREEMPTION_DISRUPTION_MESSAGE = "Pod was preempted by Kubelet to accommodate a critical pod."

_QOS_CLASSES = ("Guaranteed", "Burstable", "BestEffort")


class NoVictimsError(Exception):
    """No set of pods frees enough resources; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class InsufficientResource:
    """An insufficient resource of a node, in milliCPU or whole units."""

    resource: str
    requested: int
    used: int
    capacity: int

    def __str__(self) -> str:
        return (
            f"Node didn't have enough resource: {self.resource}, requested: {self.requested}, "
            f"used: {self.used}, capacity: {self.capacity}"
        )

    @property
    def missing(self) -> int:
        """The amount to be freed."""
        return self.requested - (self.capacity - self.used)


Missing = dict[str, int]


def pick_victims(
    preemptor: AllocatedPod, allocation: NodeAllocation, shortages: Iterable[InsufficientResource]
) -> tuple[str, ...]:
    """Return the UIDs of the victims. Raise NoVictimsError."""
    missing = {each.resource: each.missing for each in shortages}
    groups = {
        quality: [
            each
            for each in allocation.pods.values()
            if each.qos_class == quality and _preemptable(preemptor, each)
        ]
        for quality in _QOS_CLASSES
    }
    preemptable = [allocated for group in groups.values() for allocated in group]
    impossible = _still_missing(missing, preemptable)
    if impossible:
        raise _no_victims(impossible)
    chosen: dict[str, Sequence[AllocatedPod]] = dict(groups)
    for quality in _QOS_CLASSES:
        others = [t for other, group in chosen.items() if other != quality for t in group]
        chosen[quality] = _nearest(groups[quality], _still_missing(missing, others))
    return tuple(
        allocated.uid for quality in reversed(_QOS_CLASSES) for allocated in chosen[quality]
    )


def _preemptable(preemptor: AllocatedPod, allocated: AllocatedPod) -> bool:
    if preemptor.critical and not allocated.critical:
        return True
    return preemptor.priority > allocated.priority


def _nearest(pods: Sequence[AllocatedPod], missing: Missing) -> list[AllocatedPod]:
    """Choose pods until nothing is missing, each time the one with the smallest distance."""
    candidates, taken = list(pods), []
    while missing:
        if not candidates:
            raise _no_victims(missing)
        best = 0
        for index, allocated in enumerate(candidates):
            rival = candidates[best]
            distances = _distance(allocated, missing), _distance(rival, missing)
            nearer = distances[0] < distances[1]
            if nearer or (distances[0] == distances[1] and _no_larger(allocated, rival)):
                best = index
        taken.append(candidates[best])
        missing = _still_missing(missing, [candidates[best]])
        candidates[best] = candidates[-1]
        candidates.pop()
    return taken


def _distance(allocated: AllocatedPod, missing: Missing) -> Fraction:
    requests = resource_amounts(allocated.requests)
    left = {name: amount - _requested_amount(requests, name) for name, amount in missing.items()}
    parts = [Fraction(left[name], amount) for name, amount in missing.items() if left[name] > 0]
    return sum((part * part for part in parts), Fraction(0))


def _no_larger(one: AllocatedPod, other: AllocatedPod) -> bool:
    ours, theirs = one.requests, other.requests
    return (ours.memory, ours.milli_cpu) <= (theirs.memory, theirs.milli_cpu)


def _still_missing(missing: Missing, removed: Iterable[AllocatedPod]) -> Missing:
    """Return the amounts that are still missing without some pods."""
    left = dict(missing)
    for allocated in removed:
        requests = resource_amounts(allocated.requests)
        left = {name: amount - _requested_amount(requests, name) for name, amount in left.items()}
    return {name: amount for name, amount in left.items() if amount > 0}


def _requested_amount(requests: Mapping[str, int], name: str) -> int:
    """Return a pod's request of a resource; of ``pods``, each pod requests one."""
    return 1 if name == "pods" else requests.get(name, 0)


def _no_victims(missing: Missing) -> NoVictimsError:
    listed = "".join(f"(res: {name}, q: {amount}), " for name, amount in missing.items())
    return NoVictimsError(
        "preemption: error finding a set of pods to preempt: "
        f"no set of running pods found to reclaim resources: [{listed}]"
    )


_AFFINITY = "node(s) didn't match Pod's node affinity/selector"
_NAME = "node(s) didn't match the requested node name"
_PORTS = "node(s) didn't have free ports for the requested pod ports"
_TAINTS = "node(s) had taints that the pod didn't tolerate"
_OS_LABEL = "kubernetes.io/os"


@dataclass(frozen=True, slots=True)
class Rejection:
    """The rejection of a pod: its status reason, and the message after "Pod was rejected: "."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Admission:
    """The admission of a pod, once the pods with the UIDs ``victims`` have ended."""

    victims: tuple[str, ...] = ()


def admit_pod(
    pod: Pod, allocated_pod: AllocatedPod, node: Node, allocation: NodeAllocation, release: Release
) -> Admission | Rejection:
    """Return whether ``node`` admits a pod, beside the pods that it has admitted before."""
    if pod.labels.get(_OS_LABEL, "linux") != "linux":
        return Rejection(
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        )
    short = list(_shortages(pod, node, allocation))
    failed = list(_predicate_failures(pod, allocated_pod, node, allocation, release))
    if allocated_pod.critical and short and not failed:
        try:
            return Admission(pick_victims(allocated_pod, allocation, short))
        except NoVictimsError as error:
            message = (
                f"Unexpected error while attempting to recover from admission failure: {error}"
            )
            return Rejection("UnexpectedAdmissionError", message)
    if short and not allocated_pod.critical:
        return Rejection(f"OutOf{short[0].resource}", str(short[0]))
    return failed[0] if failed else Admission()


def _shortages(pod: Pod, node: Node, allocation: NodeAllocation) -> Iterator[InsufficientResource]:
    count = len(allocation.pods)
    if count + 1 > node.allowed_pods:
        yield InsufficientResource("pods", 1, count, node.allowed_pods)
    capacity, used = resource_amounts(node.allocatable), resource_amounts(allocation.requested)
    for name, requested in resource_amounts(pod.requests).items():
        unknown = is_extended(name) and name not in capacity
        if requested and not unknown and requested > capacity.get(name, 0) - used.get(name, 0):
            yield InsufficientResource(name, requested, used.get(name, 0), capacity.get(name, 0))


def _predicate_failures(
    pod: Pod, allocated: AllocatedPod, node: Node, allocation: NodeAllocation, release: Release
) -> Iterator[Rejection]:
    affinity = NodeAffinity().pre_filter(pod, Snapshot(), release)
    check = affinity.plugin
    if affinity.conflict or (check and check.refuse(NodeState(node))):
        yield _predicate_failure("NodeAffinity", _AFFINITY)
    if pod.node_name not in (None, node.name):
        yield _predicate_failure("NodeName", _NAME)
    if allocation.has_port_conflict(allocated.ports):
        yield _predicate_failure("NodePorts", _PORTS)
    evicting = [taint for taint in node.taints if taint.effect == "NoExecute"]
    if any(not any(each.tolerates(taint) for each in pod.tolerations) for taint in evicting):
        yield _predicate_failure("TaintToleration", _TAINTS)


def _predicate_failure(name: str, message: str) -> Rejection:
    return Rejection(name, f"Predicate {name} failed: {message}")
