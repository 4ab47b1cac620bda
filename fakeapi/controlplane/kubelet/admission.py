"""Pod admission: whether a node admits a pod that was bound to it.

The scheduler has checked most of this; pods that were bound by other clients, or concurrently, are
rejected here. All insufficient resources are found, and the first is reported:

    OutOfcpu      Node didn't have enough resource: cpu, requested: 500, used: 3800, capacity: 4000
    OutOfpods     Node didn't have enough resource: pods, requested: 1, used: 110, capacity: 110
    NodeAffinity  Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector
    NodePorts, NodeName, TaintToleration (of NoExecute taints)

A critical pod that fails only for insufficient resources preempts other pods (critical pod
admission).

Sources: pkg/kubelet/lifecycle/predicate.go, AdmissionCheck in pkg/scheduler/eventhandlers.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fakeapi.controlplane.kubelet.preemption import (
    InsufficientResource,
    NoVictimsError,
    pick_victims,
)
from fakeapi.controlplane.kubelet.rooms import AllocatedPod, NodeAllocation, resource_amounts
from policies.filtering.node_affinity import NodeAffinity
from policies.model import Node, NodeState, Pod, Snapshot
from policies.requests import is_extended
from policies.upstream import Release

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
            told = f"Unexpected error while attempting to recover from admission failure: {error}"
            return Rejection("UnexpectedAdmissionError", told)
    if short and not allocated_pod.critical:
        return Rejection(f"OutOf{short[0].resource}", str(short[0]))
    return failed[0] if failed else Admission()


def _shortages(pod: Pod, node: Node, room: NodeAllocation) -> Iterator[InsufficientResource]:
    count = len(room.pods)
    if count + 1 > node.allowed_pods:
        yield InsufficientResource("pods", 1, count, node.allowed_pods)
    capacity, used = resource_amounts(node.allocatable), resource_amounts(room.requested)
    for name, asked in resource_amounts(pod.requests).items():
        unknown = is_extended(name) and name not in capacity
        if asked and not unknown and asked > capacity.get(name, 0) - used.get(name, 0):
            yield InsufficientResource(name, asked, used.get(name, 0), capacity.get(name, 0))


def _predicate_failures(
    pod: Pod, tenant: AllocatedPod, node: Node, room: NodeAllocation, release: Release
) -> Iterator[Rejection]:
    affinity = NodeAffinity().pre_filter(pod, Snapshot(), release)
    check = affinity.plugin
    if affinity.conflict or (check and check.refuse(NodeState(node))):
        yield _predicate_failure("NodeAffinity", _AFFINITY)
    if pod.node_name not in (None, node.name):
        yield _predicate_failure("NodeName", _NAME)
    if room.has_port_conflict(tenant.ports):
        yield _predicate_failure("NodePorts", _PORTS)
    driving = [taint for taint in node.taints if taint.effect == "NoExecute"]
    if any(not any(each.tolerates(taint) for each in pod.tolerations) for taint in driving):
        yield _predicate_failure("TaintToleration", _TAINTS)


def _predicate_failure(name: str, why: str) -> Rejection:
    return Rejection(name, f"Predicate {name} failed: {why}")
