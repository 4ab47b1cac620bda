"""NodeResourcesFit: the pod's requests must fit beside the requests of the node's pods.

The reasons name every insufficient resource, not only the first. Eviction cannot help a request
above the node's whole allocatable amount; since 1.34 one such resource makes the node unresolvable.
A resource that devices back is left to DynamicResources on nodes without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from policies.kubernetes.pod_requests import is_extended
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import NodeState, Pod, Resources, Snapshot
from policies.preemption.filtering.extended_resources import delegated_resources, is_delegated
from policies.preemption.filtering.framework import NodeFilter, PreFilter
from policies.preemption.filtering.status import Code, Reason, Rejection

TOO_MANY_PODS = Reason(Code.TOO_MANY_PODS)


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
            insufficient = [
                (name, amount > _amount(allocatable, name))
                for name, amount in requests
                if amount > _amount(allocatable, name) - _amount(requested, name)
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


def _positive(requests: Resources) -> Iterator[tuple[str, int]]:
    standard = ("cpu", "memory", "ephemeral-storage")
    for name in (*standard, *sorted(requests.scalars)):
        amount = _amount(requests, name)
        if amount > 0:
            yield name, amount


def _amount(resources: Resources, name: str) -> int:
    match name:
        case "cpu":
            return resources.milli_cpu
        case "memory":
            return resources.memory
        case "ephemeral-storage":
            return resources.ephemeral_storage
    return resources.scalars.get(name, 0)
