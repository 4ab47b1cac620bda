"""NodeResourcesFit: the pod's requests must fit beside the requests of the node's pods.

The reasons name every insufficient resource, not only the first. Eviction cannot help a request
above the node's whole allocatable amount; since 1.34 one such resource makes the node unresolvable.
A resource that devices back is left to DynamicResources on nodes without it.

A pod whose in-place resize is deferred is one of the node's pods: what these request includes its
desired resources. So it fits if the node is not over-allocated. But as upstream it counts twice
against the node's number of pods, so on a node without a free pod slot one more pod is evicted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from policies.devices.extended_resources import delegated_resources, is_delegated
from policies.kubernetes.pod_requests import is_extended
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import NO_RESOURCES, NodeState, Pod, Resources, Snapshot
from policies.preemption.filtering.framework import NodeFilter, PreFilter
from policies.preemption.filtering.status import Code, Reason, Rejection

TOO_MANY_PODS = Reason(Code.TOO_MANY_PODS)
_STANDARD = ("cpu", "memory", "ephemeral-storage")


@dataclass(frozen=True, slots=True)
class NodeResourcesFit:
    """Source: pkg/scheduler/framework/plugins/noderesources/fit.go (fitsRequest).

    Extended resources in ``ignored``, or in one of ``ignored_groups`` (the part before the slash),
    are not counted; others always are.
    """

    name: str = "NodeResourcesFit"
    ignored: frozenset[str] = field(default_factory=frozenset)
    ignored_groups: frozenset[str] = field(default_factory=frozenset)

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:
        """Compare the pod's requests with the free resources of each node."""
        requests = tuple(self.counted(pod.requests))
        delegated = delegated_resources(pod, snapshot, release)

        def rule(state: NodeState) -> Rejection | None:
            allocatable, requested = state.node.allocatable, state.requested
            counted = _counted_already(pod, state)
            insufficient = [
                (name, amount > amount_of(allocatable, name))
                for name, amount in requests
                if (more := max(0, amount - amount_of(counted, name)))
                > amount_of(allocatable, name) - amount_of(requested, name)
                and (more or name in _STANDARD)
                and not (name in delegated and is_delegated(name, state.node))
            ]
            reasons = tuple(Reason(Code.INSUFFICIENT, name) for name, _ in insufficient)
            if len(state.pods) + 1 > state.node.allowed_pods:
                reasons = (TOO_MANY_PODS, *reasons)
            if not reasons:
                return None
            unresolvable = release.oversized_is_unresolvable and any(
                larger for _, larger in insufficient
            )
            return Rejection(reasons, resolvable=not unresolvable)

        return PreFilter(NodeFilter(rule))

    def counted(self, requests: Resources) -> Iterator[tuple[str, int]]:
        """Return the positive requests that count, in the order in which reasons list them."""
        return (each for each in _positive(requests) if not self.ignores(each[0]))

    def ignores(self, resource: str) -> bool:
        """Return whether ``resource`` is left to others, such as an extender."""
        group, _, _ = resource.partition("/")
        return is_extended(resource) and (resource in self.ignored or group in self.ignored_groups)


def _counted_already(pod: Pod, state: NodeState) -> Resources:
    """Return the requests of a pod to be resized that are among those of the node's pods.

    Source: adjustDeltasToAccomodateCacheDiscrepancy in fit.go.
    """
    if not pod.resize_deferred:
        return NO_RESOURCES
    return next((each.requests for each in state.pods if each.uid == pod.uid), NO_RESOURCES)


def _positive(requests: Resources) -> Iterator[tuple[str, int]]:
    for name in (*_STANDARD, *sorted(requests.scalars)):
        amount = amount_of(requests, name)
        if amount > 0:
            yield name, amount


def amount_of(resources: Resources, name: str) -> int:
    """Return the amount of a resource, in its unit of scheduling: CPUs in thousandths."""
    match name:
        case "cpu":
            return resources.milli_cpu
        case "memory":
            return resources.memory
        case "ephemeral-storage":
            return resources.ephemeral_storage
    return resources.scalars.get(name, 0)
