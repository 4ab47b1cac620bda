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

from fakeapi.controlplane.kubelet.preemption import NoVictimsError, Shortage, pick_victims
from fakeapi.controlplane.kubelet.rooms import Room, Tenant, amounts
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


def admit(
    pod: Pod, tenant: Tenant, node: Node, room: Room, release: Release
) -> Admission | Rejection:
    """Return whether ``node`` admits a pod, beside the pods that it has admitted before."""
    if pod.labels.get(_OS_LABEL, "linux") != "linux":
        return Rejection(
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        )
    short = list(_shortages(pod, node, room))
    failed = list(_failures(pod, tenant, node, room, release))
    if tenant.critical and short and not failed:
        try:
            return Admission(pick_victims(tenant, room, short))
        except NoVictimsError as error:
            told = f"Unexpected error while attempting to recover from admission failure: {error}"
            return Rejection("UnexpectedAdmissionError", told)
    if short and not tenant.critical:
        return Rejection(f"OutOf{short[0].resource}", str(short[0]))
    return failed[0] if failed else Admission()


def _shortages(pod: Pod, node: Node, room: Room) -> Iterator[Shortage]:
    count = len(room.tenants)
    if count + 1 > node.allowed_pods:
        yield Shortage("pods", 1, count, node.allowed_pods)
    capacity, used = amounts(node.allocatable), amounts(room.requested)
    for name, asked in amounts(pod.requests).items():
        unknown = is_extended(name) and name not in capacity
        if asked and not unknown and asked > capacity.get(name, 0) - used.get(name, 0):
            yield Shortage(name, asked, used.get(name, 0), capacity.get(name, 0))


def _failures(
    pod: Pod, tenant: Tenant, node: Node, room: Room, release: Release
) -> Iterator[Rejection]:
    affinity = NodeAffinity().prepare(pod, Snapshot(), release)
    check = affinity.check
    if affinity.conflict or (check and check.refuse(NodeState(node))):
        yield _failed("NodeAffinity", _AFFINITY)
    if pod.node_name not in (None, node.name):
        yield _failed("NodeName", _NAME)
    if room.taken(tenant.ports):
        yield _failed("NodePorts", _PORTS)
    driving = [taint for taint in node.taints if taint.effect == "NoExecute"]
    if any(not any(each.tolerates(taint) for each in pod.tolerations) for taint in driving):
        yield _failed("TaintToleration", _TAINTS)


def _failed(name: str, why: str) -> Rejection:
    return Rejection(name, f"Predicate {name} failed: {why}")
