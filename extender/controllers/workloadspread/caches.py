"""Cached objects that WorkloadSpreads depend on.

Pods are found by their owners, so that no method iterates over all of them. There is one cache per
workload kind that is watched or targeted, as long as the server serves that kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec

from extender.controllers.workloadspread.types import (
    CONFIG_MAPS,
    CONFIGURATION_KEY,
    CONFIGURATION_SELECTION,
    REPLICA_SET,
    WORKLOAD_SPREAD,
    CachedObject,
    Kind,
    SpreadPodDocument,
    decode_configuration,
    decode_node,
    decode_pod,
    decode_spread,
    workload_decoder,
)
from extender.kube.informers.indexer import Indexer, ResourceEventHandler
from extender.kube.informers.shared_informer import SharedInformer, SharedInformerFactory
from extender.kube.rest.client import Decode
from extender.kube.rest.resources import NODES, PODS, Resource
from extender.kube.workloadspread.pod_injection import is_as_patched
from extender.kube.workloadspread.spreads import StoredWorkloadSpread
from extender.kube.workloadspread.workloads import ScaledKind
from policies.kubernetes.snapshot import Node
from policies.workloadspread.model import SpreadPod, Subset, WorkloadSpread
from policies.workloadspread.object_references import DEPLOYMENT, NATIVE_KINDS
from policies.workloadspread.pod_groups import GroupingContext
from policies.workloadspread.targets import Target
from policies.workloadspread.workloads import NO_ALLOWED_KINDS, AllowedKinds, TargetWorkload

BY_OWNER: Final = "workloadspread/owner"
BY_NAMESPACE: Final = "workloadspread/namespace"


@dataclass(frozen=True, slots=True)
class _FollowedKind:
    """The informer of a workload kind, with what identifies it."""

    resource: Resource
    scaled: tuple[ScaledKind, ...]
    decode: Decode[CachedObject[TargetWorkload]]
    handler: ResourceEventHandler[CachedObject[TargetWorkload]]
    shared: SharedInformer[CachedObject[TargetWorkload]]


class WorkloadSpreadCaches:
    """Caches the objects of a cluster that WorkloadSpreads depend on."""

    def __init__(self, informers: SharedInformerFactory) -> None:
        self._informers = informers
        self.pods = informers.of(PODS, decode_pod)
        self.pods.objects.add_index(BY_OWNER, _owner_uids)
        self.pods.objects.add_index(BY_NAMESPACE, _namespace)
        self.nodes = informers.of(NODES, decode_node)
        self.configuration = informers.join(
            CONFIG_MAPS, decode_configuration, CONFIGURATION_SELECTION
        )
        self.spreads: SharedInformer[CachedObject[StoredWorkloadSpread]] | None = None
        self.spread_resource: Resource | None = None
        self._spread_handlers: list[ResourceEventHandler[CachedObject[StoredWorkloadSpread]]] = []
        self._configuration_handlers: list[ResourceEventHandler[CachedObject[AllowedKinds]]] = []
        self._workloads: dict[Kind, _FollowedKind] = {}

    async def wait_synced(self) -> None:
        """Wait until the informers of pods, nodes and the configuration have synced."""
        shared = (self.pods, self.nodes, self.configuration)
        await asyncio.gather(*(each.wait_synced() for each in shared))

    def stop(self) -> None:
        """Stop all informers."""
        for kind in (*self._workloads, WORKLOAD_SPREAD):
            self.unfollow(kind)
        self._informers.drop(PODS, decode_pod)
        self._informers.drop(NODES, decode_node)
        of = CONFIG_MAPS, decode_configuration, CONFIGURATION_SELECTION
        self._informers.leave(*of, handlers=self._configuration_handlers)

    def watch_configuration(
        self, handler: ResourceEventHandler[CachedObject[AllowedKinds]]
    ) -> None:
        """Add an event handler for the configuration."""
        self._configuration_handlers.append(handler)
        self.configuration.objects.add_handler(handler)

    def follow_spreads(
        self, resource: Resource, handler: ResourceEventHandler[CachedObject[StoredWorkloadSpread]]
    ) -> bool:
        """Start the informer of WorkloadSpreads; return False if it is already running."""
        if self.spread_resource == resource:
            return False
        self.unfollow(WORKLOAD_SPREAD)
        self.spread_resource = resource
        self.spreads = self._informers.join(resource, decode_spread)
        self.spreads.objects.add_index(BY_NAMESPACE, _namespace)
        self._spread_handlers = [handler]
        self.spreads.objects.add_handler(handler)
        return True

    def follow(
        self,
        kind: Kind,
        resource: Resource,
        scaled: tuple[ScaledKind, ...],
        handler: ResourceEventHandler[CachedObject[TargetWorkload]],
    ) -> bool:
        """Start the informer of a workload kind; return False if it is already running."""
        if kind[0] in NATIVE_KINDS.get(kind[1], ()):
            scaled = ()  # native kinds state their replicas themselves
        known = self._workloads.get(kind)
        if known is not None and (known.resource, known.scaled) == (resource, scaled):
            return False
        self.unfollow(kind)
        decode = workload_decoder(kind[1], scaled)
        shared = self._informers.join(resource, decode)
        shared.objects.add_index(BY_OWNER, _controller_uid)
        self._workloads[kind] = _FollowedKind(resource, scaled, decode, handler, shared)
        shared.objects.add_handler(handler)
        return True

    def unfollow(self, kind: Kind) -> None:
        """Stop the informer of a kind, if any; its objects are delivered as deleted."""
        if kind == WORKLOAD_SPREAD and self.spread_resource is not None:
            resource, self.spread_resource, self.spreads = self.spread_resource, None, None
            self._informers.leave(resource, decode_spread, handlers=self._spread_handlers)
        elif known := self._workloads.pop(kind, None):
            self._informers.leave(known.resource, known.decode, handlers=(known.handler,))

    async def wait_kind_synced(self, kind: Kind) -> None:
        """Wait until a workload kind has synced. Raises KeyError if it is not followed."""
        await self._workloads[kind].shared.wait_synced()

    def has_kind_synced(self, kind: Kind) -> bool:
        """Return whether a workload kind has synced."""
        known = self._workloads.get(kind)
        return known is not None and known.shared.reflector.synced

    def spread(self, key: str) -> CachedObject[StoredWorkloadSpread] | None:
        """Return the WorkloadSpread under ``namespace/name``, or None."""
        return None if self.spreads is None else self.spreads.objects.get(key)

    def all_spreads(self) -> Iterator[WorkloadSpread]:
        """Return all WorkloadSpreads that can be decoded."""
        if self.spreads is not None:
            yield from (each.value.spread for each in self.spreads.objects.values() if each.value)

    def spreads_of(self, namespace: str) -> list[WorkloadSpread]:
        """Return the WorkloadSpreads of a namespace, by name."""
        if self.spreads is None:
            return []
        found = self.spreads.objects.by(BY_NAMESPACE, namespace)
        return sorted(
            (each.value.spread for each in found if each.value), key=lambda each: each.name
        )

    @property
    def allowed_kinds(self) -> AllowedKinds:
        """The kinds that OpenKruise's configuration allows; none if it cannot be decoded."""
        found = self.configuration.objects.get(CONFIGURATION_KEY)
        return NO_ALLOWED_KINDS if found is None or found.value is None else found.value

    def workload(self, kind: Kind, key: str) -> TargetWorkload | None:
        """Return the workload of a kind under ``namespace/name``, or None."""
        known = self._workloads.get(kind)
        found = None if known is None else known.shared.objects.get(key)
        return None if found is None else found.value

    def target(self, spread: WorkloadSpread) -> Target:
        """Return a WorkloadSpread's target: its workload, ReplicaSets and pods."""
        if spread.target is None:
            return Target(allowed_kinds=self.allowed_kinds)
        group, kind, name = spread.target.lenient_identity
        workload = self.workload((group, kind), f"{spread.namespace}/{name}")
        if workload is None:
            return Target(allowed_kinds=self.allowed_kinds)
        sets = self._replica_sets_of(workload) if kind == DEPLOYMENT else ()
        return Target(workload, sets, self._pods_of(workload, sets), self.allowed_kinds)

    def grouping_context(self, written: StoredWorkloadSpread) -> GroupingContext:
        """Return the grouping context: the nodes, and whether pods match a subset's patch."""

        @lru_cache(maxsize=1)
        def document(key: str) -> Any:
            item = self.pods.objects.get(key)
            return msgspec.json.decode(item.value.document) if item and item.value else {}

        def patched(pod: SpreadPod, subset: Subset) -> bool:
            return is_as_patched(
                document(f"{pod.namespace}/{pod.name}"), written.subset(subset.name)
            )

        return GroupingContext(_DecodedNodes(self.nodes.objects), patched)

    def _replica_sets_of(self, workload: TargetWorkload) -> tuple[TargetWorkload, ...]:
        known = self._workloads.get(REPLICA_SET)
        found = () if known is None else known.shared.objects.by(BY_OWNER, workload.uid)
        return tuple(each.value for each in found if each.value is not None)

    def _pods_of(
        self, workload: TargetWorkload, replica_sets: Iterable[TargetWorkload]
    ) -> tuple[SpreadPod, ...]:
        """Return the pods that a workload owns; those of its namespace if it owns none.

        Only in the latter case is the scale's selector consulted.
        """
        pods = self.pods.objects
        owners = (workload.uid, *(each.uid for each in replica_sets))
        owned = [item for uid in owners for item in pods.by(BY_OWNER, uid)]
        found = owned or pods.by(BY_NAMESPACE, workload.namespace)
        unique = {each.value.pod.name: each.value.pod for each in found if each.value is not None}
        return tuple(unique.values())


class _DecodedNodes(Mapping[str, Node]):
    """Nodes by name, as far as they can be decoded."""

    def __init__(self, items: Indexer[CachedObject[Node]]) -> None:
        self._items = items

    def __getitem__(self, name: str) -> Node:
        item = self._items.get(name)
        if item is None or item.value is None:
            raise KeyError(name)
        return item.value

    def __iter__(self) -> Iterator[str]:
        return (each.metadata.name for each in self._items.values() if each.value is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _owner_uids(item: CachedObject[SpreadPodDocument]) -> Iterable[str]:
    return () if item.value is None else item.value.pod.owners


def _controller_uid(item: CachedObject[TargetWorkload]) -> tuple[str, ...]:
    controller = None if item.value is None else item.value.controller
    return () if controller is None else (controller.uid,)


def _namespace(item: CachedObject[Any]) -> tuple[str]:
    return (item.metadata.namespace,)
