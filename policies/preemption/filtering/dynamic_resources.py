"""DynamicResources: the devices allocated to the pod's claims must be usable from the node.

The allocation of a claim states the nodes on which its devices can be used. Allocating a claim is a
search through the published devices of every driver, node by node; it is not implemented here. So a
pod with an unallocated claim is not evaluated, nor is one whose devices have binding conditions.

Extended resources backed by devices (since 1.36) are treated as any other extended resource here.
"""

from __future__ import annotations

from dataclasses import dataclass

from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.kubernetes.storage import (
    NO_POD_STORAGE,
    DeviceClaim,
    ResourceClaim,
    Storage,
    StorageKind,
)
from policies.preemption.filtering.framework import NOTHING_TO_CHECK, NodeFilter, PreFilter
from policies.preemption.filtering.status import Code, FilterDecision, Rejection, unresolvable

_GATE = FeatureGate.DYNAMIC_RESOURCE_ALLOCATION
_ELSEWHERE = unresolvable(Code.DEVICES_ELSEWHERE)
_CONFLICTS = frozenset(
    (
        Code.NO_DEVICE_CLAIM_YET,
        Code.NO_DEVICE_SOURCE,
        Code.NO_DEVICE_CLAIM,
        Code.DEVICE_CLAIM_DELETED,
        Code.DEVICE_CLAIM_OF_OTHER,
        Code.DEVICE_CLAIM_OF_OTHER_POD,
    )
)


@dataclass(frozen=True, slots=True)
class DynamicResources:
    """Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go."""

    name: str = "DynamicResources"

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:
        """Find the pod's claims; then match the nodes of each allocation."""
        if pod.storage is None or _GATE not in release.gates or _has_unknown_objects(pod, snapshot):
            return NOTHING_TO_CHECK
        claims: list[ResourceClaim] = []
        for each in pod.storage.devices:
            claim = _find_claim(each, pod, snapshot.storage, release)
            if isinstance(claim, Rejection):
                return PreFilter(conflict=claim)
            claims.append(claim)
        reachable = [claim.nodes for claim in claims if claim.allocated and claim.nodes is not None]
        if not reachable:
            return NOTHING_TO_CHECK

        def rule(state: NodeState) -> Rejection | None:
            node = state.node
            fits = all(nodes.matches(node.name, node.labels) for nodes in reachable)
            return None if fits else _ELSEWHERE

        return PreFilter(NodeFilter(rule))


def cannot_evaluate(pod: Pod, snapshot: Snapshot, release: Release) -> bool:
    """Return whether a claim is not allocated or not ready yet, or is unknown."""
    if pod.storage is None or _GATE not in release.gates:
        return False
    if _has_unknown_objects(pod, snapshot):
        return True
    conditions = FeatureGate.DRA_DEVICE_BINDING_CONDITIONS in release.gates
    found = (
        snapshot.storage.devices.get(f"{pod.namespace}/{each.claim}")
        for each in pod.storage.devices
    )
    return any(
        claim is not None and (not claim.allocated or (claim.conditional and conditions))
        for claim in found
    )


def deallocation_result(filtering: FilterDecision, snapshot: Snapshot) -> str:
    """Return the result of the DynamicResources PostFilter, which runs before preemption.

    A claim whose allocation is not usable on some node, and that no other pod uses, is deallocated,
    so that other devices may be found for it. Source: DynamicResources.PostFilter.
    """
    pod, rejected = filtering.pod, filtering.rejected
    claims = [
        claim
        for each in (pod.storage or NO_POD_STORAGE).devices
        if (claim := snapshot.storage.devices.get(f"{pod.namespace}/{each.claim}")) is not None
    ]
    if not claims or filtering.conflict is not None:
        return "no new claims to deallocate"
    free = [claim.nodes for claim in claims if claim.nodes and claim.reserved_for <= {pod.uid}]
    nodes = [snapshot.nodes[name].node for name, why in rejected.items() if why == _ELSEWHERE]
    useless = any(not usable.matches(node.name, node.labels) for usable in free for node in nodes)
    return "deallocation of ResourceClaim completed" if useless else "still not schedulable"


def is_claim_conflict(conflict: Rejection) -> bool:
    """Return whether the PreFilter of DynamicResources has refused every node."""
    return conflict.reasons[0].code in _CONFLICTS


def _has_unknown_objects(pod: Pod, snapshot: Snapshot) -> bool:
    return any(
        each.claim is not None
        and not snapshot.storage.knows(StorageKind.DEVICES, f"{pod.namespace}/{each.claim}")
        for each in (pod.storage or NO_POD_STORAGE).devices
    )


def _find_claim(
    each: DeviceClaim, pod: Pod, storage: Storage, release: Release
) -> ResourceClaim | Rejection:
    """Return a claim, or why the pod cannot use it (foreachPodResourceClaim)."""
    if each.claim is None and each.templated:
        return unresolvable(Code.NO_DEVICE_CLAIM_YET, pod.key)
    if each.claim is None:
        return unresolvable(Code.NO_DEVICE_SOURCE, pod.key, each.reference)
    key = f"{pod.namespace}/{each.claim}"
    claim = storage.devices.get(key)
    if claim is None:
        return unresolvable(Code.NO_DEVICE_CLAIM, key)
    if claim.deleting:
        return unresolvable(Code.DEVICE_CLAIM_DELETED, claim.name)
    if each.templated and claim.owner != pod.uid:
        return _of_other(claim, pod, release)
    return claim


def _of_other(claim: ResourceClaim, pod: Pod, release: Release) -> Rejection:
    capitalised = release.claim_owner_is_capitalised
    code = Code.DEVICE_CLAIM_OF_OTHER_POD if capitalised else Code.DEVICE_CLAIM_OF_OTHER
    return unresolvable(code, claim.key, pod.key)
