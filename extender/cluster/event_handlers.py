"""The watched kinds: how each is decoded, and which store of the scheduler cache it fills.

This is upstream's addAllEventHandlers (pkg/scheduler/eventhandlers.go). Services and controllers
are watched only if a configured filter reads them, pod groups only if the release's preemption
reads them. Objects behind volumes and device claims are watched as far as the release's filters
read them. Pod groups and these objects are watched only if the server permits it, in the newest
version that it serves: without them, the pods that they concern are not evaluated, and nodes with
pods of pod groups are not chosen. ResourceQuotas and the events of autoscalers are watched only if
a policy reads them, and the server permits it: without them, no namespace uses a quota, and no node
is announced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from extender.cluster.optional_kinds import OptionalKindReflector, OptionalStore
from extender.cluster.pod_groups import PodGroupStores
from extender.cluster.policy_objects import PolicyObjectStores, events_of_pods
from extender.cluster.scheduler_cache import SchedulerCache
from extender.cluster.storage_stores import StorageStores
from extender.kube.decoders import devices, storage
from extender.kube.decoders.autoscaler_events import decode_autoscaler_event
from extender.kube.decoders.cluster_objects import (
    WORKLOAD_DECODERS,
    decode_budget,
    decode_namespace,
    decode_node,
)
from extender.kube.decoders.pod_groups import decode_composite_pod_group, decode_pod_group
from extender.kube.decoders.pods import decode_pod
from extender.kube.decoders.resource_quotas import decode_resource_quota
from extender.kube.decoders.typed_decoder import Decode, Unreadable, tolerant_decoder
from extender.kube.informers.reflector import Reflector, ReflectorContext, ReflectorStore
from extender.kube.rest import resources
from extender.kube.rest.resources import Resource
from policies.kubernetes.default_selector import (
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SERVICE,
    STATEFUL_SET,
)
from policies.kubernetes.feature_gates import FeatureGate
from policies.kubernetes.policy_objects import EVENT, RESOURCE_QUOTA
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import Pod
from policies.preemption.filtering import reads_workloads
from policies.preemption.policy import SchedulerRules

T = TypeVar("T")

_WORKLOAD_RESOURCES = {
    SERVICE: resources.SERVICES,
    REPLICATION_CONTROLLER: resources.REPLICATION_CONTROLLERS,
    REPLICA_SET: resources.REPLICA_SETS,
    STATEFUL_SET: resources.STATEFUL_SETS,
}


@dataclass(frozen=True, slots=True)
class _ReflectorBuilder:
    """Builds reflectors that share one context."""

    context: ReflectorContext

    def build(
        self,
        resource: Resource,
        kind: str,
        decode: Decode[T],
        store: ReflectorStore[T | Unreadable],
    ) -> tuple[str, Reflector[Any]]:
        read = tolerant_decoder(kind, decode)
        return resource.plural, Reflector(self.context, resource, read, store)

    def optional(
        self, resource: Resource, kind: str, decode: Decode[T], store: OptionalStore[T | Unreadable]
    ) -> tuple[str, Reflector[Any]]:
        read = tolerant_decoder(kind, decode)
        return resource.plural, OptionalKindReflector(self.context, resource, kind, read, store)


def build_reflectors(
    context: ReflectorContext, cluster: SchedulerCache, rules: SchedulerRules
) -> dict[str, Reflector[Any]]:
    """Return the reflectors that keep ``cluster`` current, by the plural of their resource."""
    builder = _ReflectorBuilder(context)

    read_pod = _pod_decoder(rules.release, rules.annotations)
    budgets = resources.POD_DISRUPTION_BUDGETS, "PodDisruptionBudget"
    reflectors = [
        builder.build(resources.NODES, "Node", decode_node, cluster.nodes),
        builder.build(resources.PODS, "Pod", read_pod, cluster.pods),
        builder.build(*budgets, decode_budget, cluster.budgets),
        builder.build(resources.NAMESPACES, "Namespace", decode_namespace, cluster.namespaces),
    ]
    if reads_workloads(rules.filters):
        for kind, resource in _WORKLOAD_RESOURCES.items():
            decode = WORKLOAD_DECODERS[kind]
            reflectors.append(builder.build(resource, kind, decode, cluster.workloads[kind]))
    return dict(
        [
            *reflectors,
            *_storage_reflectors(builder, cluster.storage, rules.release),
            *_pod_group_reflectors(builder, cluster.pod_groups, rules.release),
            *build_policy_reflectors(context, cluster.policy_objects, rules).items(),
        ]
    )


def build_policy_reflectors(
    context: ReflectorContext, stores: PolicyObjectStores, rules: SchedulerRules
) -> dict[str, Reflector[Any]]:
    """Return the reflectors of the kinds that only policies read, and one of the rules does."""
    build, read = _ReflectorBuilder(context).optional, rules.objects_read
    found = []
    if RESOURCE_QUOTA in read:
        decode = decode_resource_quota
        found.append(build(resources.RESOURCE_QUOTAS, RESOURCE_QUOTA, decode, stores.quotas))
    if EVENT in read:
        found += _event_reflectors(context, stores)
    return dict(found)


def _event_reflectors(
    context: ReflectorContext, stores: PolicyObjectStores
) -> Iterator[tuple[str, Reflector[Any]]]:
    """Yield a reflector for each reason: a field selector has no alternatives."""
    decode = tolerant_decoder(EVENT, decode_autoscaler_event)
    for reason, store in stores.events.items():
        selection = events_of_pods(reason)
        yield (
            f"{resources.EVENTS.plural} ({reason})",
            OptionalKindReflector(context, resources.EVENTS, EVENT, decode, store, selection),
        )


async def relist_pods(
    reflectors: Mapping[str, Reflector[Any]], release: Release, annotations: frozenset[str]
) -> None:
    """Decode all pods anew; they keep ``annotations``. Return when the cluster has them."""
    decode = tolerant_decoder("Pod", _pod_decoder(release, annotations))
    await reflectors[resources.PODS.plural].relist(decode)


def _pod_decoder(release: Release, annotations: frozenset[str]) -> Decode[Pod]:
    return lambda raw: decode_pod(raw, release, annotations)


def _pod_group_reflectors(
    builder: _ReflectorBuilder, stores: PodGroupStores, release: Release
) -> Iterator[tuple[str, Reflector[Any]]]:
    build = builder.optional
    if release.evicts_units or release.simulates_pod_groups:
        yield build(resources.POD_GROUPS, "PodGroup", decode_pod_group, stores.groups)
        if FeatureGate.COMPOSITE_POD_GROUP in release.gates:
            composite = resources.COMPOSITE_POD_GROUPS, "CompositePodGroup"
            yield build(*composite, decode_composite_pod_group, stores.composites)


def _storage_reflectors(
    builder: _ReflectorBuilder, stores: StorageStores, release: Release
) -> Iterator[tuple[str, Reflector[Any]]]:
    build = builder.optional
    claims, volumes = resources.PERSISTENT_VOLUME_CLAIMS, resources.PERSISTENT_VOLUMES
    classes, attachments = resources.STORAGE_CLASSES, resources.VOLUME_ATTACHMENTS
    yield build(claims, "PersistentVolumeClaim", storage.decode_claim, stores.claims)
    yield build(volumes, "PersistentVolume", storage.decode_volume, stores.volumes)
    yield build(classes, "StorageClass", storage.decode_storage_class, stores.classes)
    yield build(resources.CSI_NODES, "CSINode", storage.decode_csi_node, stores.csi_nodes)
    yield build(resources.CSI_DRIVERS, "CSIDriver", storage.decode_csi_driver, stores.drivers)
    capacities = resources.CSI_STORAGE_CAPACITIES, "CSIStorageCapacity"
    yield build(*capacities, storage.decode_storage_capacity, stores.capacities)
    if release.attachments_count:
        decode = storage.decode_volume_attachment
        yield build(attachments, "VolumeAttachment", decode, stores.attachments)
    yield from _device_reflectors(builder, stores, release)


def _device_reflectors(
    builder: _ReflectorBuilder, stores: StorageStores, release: Release
) -> Iterator[tuple[str, Reflector[Any]]]:
    build = builder.optional
    if FeatureGate.DYNAMIC_RESOURCE_ALLOCATION not in release.gates:
        return
    claims, classes = resources.RESOURCE_CLAIMS, resources.DEVICE_CLASSES
    slices, rules = resources.RESOURCE_SLICES, resources.DEVICE_TAINT_RULES
    yield build(claims, "ResourceClaim", devices.decode_resource_claim, stores.devices)
    yield build(classes, "DeviceClass", devices.decode_device_class, stores.device_classes)
    yield build(slices, "ResourceSlice", devices.decode_resource_slice, stores.slices)
    if FeatureGate.DRA_DEVICE_TAINT_RULES in release.gates:
        decode = devices.decode_device_taint_rule
        yield build(rules, "DeviceTaintRule", decode, stores.taint_rules)
