"""DynamicResources: the pod's claims must be allocated for the node, or the node has the devices.

The allocation of a claim states the nodes on which its devices can be used. For a claim that is not
allocated, the devices of each node are searched (see policies.devices). Devices are in use if any
claim has them allocated, also claims of pods that preemption would evict: in kube-scheduler,
victims free no devices. With ``frees_victims``, the devices of a claim are free while all pods that
use it are removed (see policies.devices.allocations). Filtering removes no pods, so only a dry run
is different, and nodes that lack devices are tried.

For extended resources that devices back, kube-scheduler creates a claim when it binds the pod. It
is evaluated here before it exists.

A node is undecided if its devices, or the requests, have features that are not evaluated, or if
objects are unknown. It passes filtering, and preemption does not choose it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Self

from policies.devices.allocations import DevicesInUse
from policies.devices.allocator import Outcome
from policies.devices.extended_resources import delegated_resources, is_delegated
from policies.devices.inventory import DeviceSearch, inventory
from policies.devices.pod_devices import PodDevices
from policies.kubernetes.devices import PoolId, PoolUse
from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.pod_requests import is_backed_by_devices
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import Node, NodeState, Pod, Snapshot
from policies.kubernetes.storage import (
    NO_POD_STORAGE,
    DeviceClaim,
    ResourceClaim,
    Storage,
    StorageKind,
)
from policies.preemption.filtering.framework import (
    NOTHING_TO_CHECK,
    NodeOnlyPlugin,
    Pipeline,
    PreFilter,
)
from policies.preemption.filtering.status import (
    Code,
    FilterDecision,
    Reason,
    Rejection,
    unresolvable,
)

_GATE = FeatureGate.DYNAMIC_RESOURCE_ALLOCATION
_MOST_CONSUMERS = 256
_CONFLICTS = frozenset(
    (
        Code.NO_DEVICE_CLAIM_YET,
        Code.NO_DEVICE_SOURCE,
        Code.NO_DEVICE_CLAIM,
        Code.DEVICE_CLAIM_DELETED,
        Code.DEVICE_CLAIM_OF_OTHER,
        Code.DEVICE_CLAIM_OF_OTHER_POD,
        Code.DEVICE_CLAIM_IN_USE,
        Code.NO_DEVICE_CLASS,
    )
)


@dataclass(frozen=True, slots=True)
class DynamicResources:
    """Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go."""

    name: str = "DynamicResources"
    frees_victims: bool = False

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:
        """Find the pod's claims, and the claims that are to be allocated."""
        if _GATE not in release.gates or _has_unknown_objects(pod, snapshot):
            return NOTHING_TO_CHECK
        delegated = delegated_resources(pod, snapshot, release)
        claims: list[ResourceClaim] = []
        for each in (pod.storage or NO_POD_STORAGE).devices:
            claim = _find_claim(each, pod, snapshot.storage, release)
            if isinstance(claim, Rejection):
                return PreFilter(conflict=claim)
            claims.append(claim)
        for claim in claims:
            conflict = _conflict(claim, pod, snapshot.storage)
            if conflict is not None:
                return PreFilter(conflict=conflict)
        if not delegated and not claims:
            return NOTHING_TO_CHECK
        devices = PodDevices(pod, tuple(claims), delegated, snapshot.storage, release)
        held = DevicesInUse()
        if self.frees_victims:
            held = inventory(snapshot.storage, release.gates).in_use
        return PreFilter(DevicesFilter(devices, held))


class DevicesFilter(NodeOnlyPlugin):
    """The filter for one pod; searches are kept by the resources that they are for."""

    def __init__(self, devices: PodDevices, held: DevicesInUse) -> None:
        self._devices, self._held = devices, held
        self._own = frozenset(claim.key for claim in devices.claims)
        self._gone: frozenset[str] = frozenset()
        self._uses: dict[frozenset[str], Mapping[PoolId, PoolUse]] = {self._gone: {}}
        self._reachable = [
            (claim.key, claim.nodes)
            for claim in devices.claims
            if claim.allocated and claim.nodes is not None
        ]
        self._allocates = any(not claim.allocated for claim in devices.claims)
        self._left_over = devices.left_over()
        self._unknown_use = devices.unknown_use()
        self._searches: dict[frozenset[str], DeviceSearch | str] = {}

    @property
    def holders(self) -> frozenset[str]:
        """The UIDs of the pods that free devices when they are gone."""
        return frozenset(self._held.by_user)

    def removing(self, pod: Pod, node: NodeState) -> Self:  # noqa: ARG002 - see FilterPlugin
        """Free the devices that only ``pod`` and other removed pods use."""
        return self.without(self._gone | {pod.uid}) if pod.uid in self._held.by_user else self

    def adding(self, pod: Pod, node: NodeState) -> Self:  # noqa: ARG002 - see FilterPlugin
        """Take the devices that ``pod`` uses."""
        return self.without(self._gone - {pod.uid}) if pod.uid in self._gone else self

    def without(self, gone: frozenset[str]) -> Self:
        """Return the filter with the devices free that only the pods with UIDs ``gone`` use."""
        changed = copy(self)
        changed._gone = gone  # noqa: SLF001 - a copy of itself
        return changed

    def freed(self) -> Mapping[str, ResourceClaim]:
        """Return by key the claims that are freed; a claim of the pod itself stays allocated."""
        freed = self._held.freed(self._gone)
        return {key: claim for key, claim in freed.items() if key not in self._own}

    def refuse(self, node: NodeState) -> Rejection | None:
        """Return why the pod's devices cannot be used on ``node``."""
        return self._refuse(node.node)

    def _refuse(self, node: Node) -> Rejection | None:
        extended: frozenset[str] = frozenset()
        if self._devices.delegated:
            if self._left_over:
                return unresolvable(Code.EXTENDED_CLAIM_LEFT, f"claim {self._left_over}")
            extended = frozenset(n for n in self._devices.delegated if is_delegated(n, node))
            unknown = next(self._unknown_resources(node), "")
            if unknown:
                return unresolvable(Code.NO_SUCH_RESOURCE, unknown)
        if not self._allocates and not extended:
            return self._elsewhere(node)
        search = self._search(extended)
        if isinstance(search, str):
            return self._elsewhere(node) or _undecided(search)
        if self._gone not in self._uses:
            self._uses[self._gone] = self._held.uses_without(self.freed())
        verdict = search.verdict(node, self._uses[self._gone])
        if verdict.outcome is Outcome.REFUSED:
            reasons = (Reason(Code.NO_DEVICES, verdict.detail),)
            return Rejection(reasons, resolvable=bool(self._held.by_user))
        if verdict.outcome is Outcome.ERROR:
            return self._elsewhere(node) or unresolvable(Code.DEVICES_ERROR, verdict.detail)
        missing = verdict.detail or self._unknown_use
        return self._elsewhere(node) or (_undecided(missing) if missing else None)

    @property
    def delegated(self) -> frozenset[str]:
        """The extended resources that devices may back."""
        return self._devices.delegated

    def groups(self, nodes: Sequence[Node]) -> Sequence[int] | None:
        """Return for each node the number of a group; None if each node has to be evaluated.

        Nodes of a group that lack the same delegated resources have the same result.
        """
        requested = self._devices.pod.requests.scalars
        others = {name for name, amount in requested.items() if amount} - self.delegated
        if self._reachable or any(is_backed_by_devices(name) for name in others):
            return None
        search = self._search(self.delegated)
        return [0] * len(nodes) if isinstance(search, str) else search.groups(nodes)

    def _search(self, extended: frozenset[str]) -> DeviceSearch | str:
        if extended not in self._searches:
            self._searches[extended] = self._devices.search(extended)
        return self._searches[extended]

    def _unknown_resources(self, node: Node) -> Iterator[str]:
        """Yield the extended resources that neither devices nor the node have at all."""
        known = node.allocatable.scalars.keys() | self._devices.delegated
        for name, amount in self._devices.pod.requests.scalars.items():
            if amount and is_backed_by_devices(name) and name not in known:
                yield name

    def _elsewhere(self, node: Node) -> Rejection | None:
        for claim, nodes in self._reachable:
            if not nodes.matches(node.name, node.labels):
                return unresolvable(Code.DEVICES_ELSEWHERE, f"claim {claim}")
        return None


def freed_claims(pipeline: Pipeline, node: NodeState) -> tuple[str, ...]:
    """Return the claims that removed pods free, if the pod does not fit ``node`` without them."""
    for plugin in pipeline.plugins:
        if isinstance(plugin, DevicesFilter) and plugin.freed():
            is_needed = plugin.without(frozenset()).refuse(node) is not None
            return tuple(sorted(plugin.freed())) if is_needed else ()
    return ()


def node_releasing_devices(
    pipeline: Pipeline, snapshot: Snapshot, rejected: Mapping[str, Rejection]
) -> str | None:
    """Return the first node that the pod fits once pods that are terminating or gone free devices.

    Their claims stay allocated for a moment after they are gone. Until then, evictions elsewhere
    would be in vain.
    """
    later, leaving = list(pipeline.plugins), False
    for place, plugin in enumerate(pipeline.plugins):
        if isinstance(plugin, DevicesFilter) and plugin.holders:
            gone = plugin.holders - _staying(snapshot)
            later[place], leaving = plugin.without(gone), bool(gone)
    if not leaving:
        return None
    released = replace(pipeline, plugins=tuple(later))
    lacking = sorted(name for name, why in rejected.items() if why.awaits_devices)
    fitting = (name for name in lacking if released.refuse(snapshot.nodes[name]) is None)
    return next(fitting, None)


def _staying(snapshot: Snapshot) -> frozenset[str]:
    """Return the UIDs of the pods that are on a node, or nominated to one, and not departing."""
    return frozenset(
        pod.uid
        for state in snapshot.nodes.values()
        for pod in (*state.pods, *state.nominated)
        if not pod.departing
    )


def _undecided(detail: str) -> Rejection:
    return unresolvable(Code.DEVICES_UNKNOWN, detail)


def _conflict(claim: ResourceClaim, pod: Pod, storage: Storage) -> Rejection | None:
    """Return why no node can have the claim."""
    if claim.allocated:
        full = len(claim.reserved_for) >= _MOST_CONSUMERS and pod.uid not in claim.reserved_for
        return unresolvable(Code.DEVICE_CLAIM_IN_USE, f"claim {claim.key}") if full else None
    for request in claim.requests:
        for each in request.alternatives():
            name = each.name if each is request else f"{request.name}/{each.name}"
            known = storage.device_classes
            if each.device_class not in known and storage.knows(
                StorageKind.DEVICE_CLASSES, each.device_class
            ):
                return unresolvable(Code.NO_DEVICE_CLASS, name, each.device_class)
    return None


def cannot_evaluate(pod: Pod, snapshot: Snapshot, release: Release) -> bool:
    """Return whether a claim is unknown, or allocated devices have binding conditions."""
    if pod.storage is None or _GATE not in release.gates:
        return False
    if _has_unknown_objects(pod, snapshot):
        return True
    conditions = FeatureGate.DRA_DEVICE_BINDING_CONDITIONS in release.gates
    found = (
        snapshot.storage.devices.get(f"{pod.namespace}/{each.claim}")
        for each in pod.storage.devices
    )
    return conditions and any(
        claim is not None and claim.allocated and claim.conditional for claim in found
    )


def deallocation_result(filtering: FilterDecision, snapshot: Snapshot, release: Release) -> str:
    """Return the result of the DynamicResources PostFilter, which runs before preemption.

    A claim whose allocation is not usable on some node, and that no other pod uses, is deallocated,
    so that other devices may be found for it. A claim that an earlier attempt has left for extended
    resources is deleted. Source: DynamicResources.PostFilter.
    """
    pod, rejected = filtering.pod, filtering.rejected
    claims = [
        claim
        for each in (pod.storage or NO_POD_STORAGE).devices
        if (claim := snapshot.storage.devices.get(f"{pod.namespace}/{each.claim}")) is not None
    ]
    delegated = delegated_resources(pod, snapshot, release)
    if not (claims or delegated) or filtering.conflict is not None:
        return "no new claims to deallocate"
    free = [claim.nodes for claim in claims if claim.nodes and claim.reserved_for <= {pod.uid}]
    nodes = [
        snapshot.nodes[name].node
        for name, why in rejected.items()
        if why.reasons[0].code is Code.DEVICES_ELSEWHERE
    ]
    useless = any(not usable.matches(node.name, node.labels) for usable in free for node in nodes)
    if useless:
        return "deallocation of ResourceClaim completed"
    left = PodDevices(pod, tuple(claims), delegated, snapshot.storage, release).left_over()
    return "deletion of ResourceClaim completed" if left else "still not schedulable"


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
