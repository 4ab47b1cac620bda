"""The watched kinds: how each is decoded, and which store of the scheduler cache it fills.

This is upstream's addAllEventHandlers (pkg/scheduler/eventhandlers.go). Services and controllers
are watched only if a configured filter reads them. Objects behind volumes and device claims are
watched as far as the release's filters read them, and only if the server permits it: without them,
the pods that they concern are not evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from extender.cluster.readiness import InformerState
from extender.cluster.scheduler_cache import SchedulerCache
from extender.kube.decoders import storage
from extender.kube.decoders.cluster_objects import (
    WORKLOAD_DECODERS,
    decode_budget,
    decode_namespace,
    decode_node,
)
from extender.kube.decoders.pods import decode_pod
from extender.kube.decoders.typed_decoder import Decode, Unreadable, tolerant_decoder
from extender.kube.informers.reflector import (
    OptionalReflector,
    Reflector,
    ReflectorContext,
    ReflectorStore,
)
from extender.kube.rest import resources
from extender.kube.rest.resources import Resource
from policies.kubernetes.default_selector import (
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SERVICE,
    STATEFUL_SET,
)
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

    def reflector(
        self,
        resource: Resource,
        kind: str,
        decode: Decode[T],
        store: ReflectorStore[T | Unreadable],
    ) -> tuple[str, InformerState]:
        read = tolerant_decoder(kind, decode)
        return resource.plural, Reflector(self.context, resource, read, store)

    def optional_reflector(
        self,
        resource: Resource,
        kind: str,
        decode: Decode[T],
        store: ReflectorStore[T | Unreadable],
    ) -> tuple[str, InformerState]:
        read = tolerant_decoder(kind, decode)
        return resource.plural, OptionalReflector(self.context, resource, read, store)


def build_reflectors(
    context: ReflectorContext, cluster: SchedulerCache, rules: SchedulerRules
) -> dict[str, InformerState]:
    """Return the reflectors that keep ``cluster`` current, by the plural of their resource."""
    builder = _ReflectorBuilder(context)

    def read_pod(raw: bytes) -> Pod:
        return decode_pod(raw, rules.release)

    return dict(
        [
            builder.reflector(resources.NODES, "Node", decode_node, cluster.nodes),
            builder.reflector(resources.PODS, "Pod", read_pod, cluster.pods),
            builder.reflector(
                resources.POD_DISRUPTION_BUDGETS,
                "PodDisruptionBudget",
                decode_budget,
                cluster.budgets,
            ),
            builder.reflector(
                resources.NAMESPACES, "Namespace", decode_namespace, cluster.namespaces
            ),
            *(_workload_reflectors(builder, cluster) if reads_workloads(rules.filters) else ()),
            *_storage_reflectors(builder, cluster, rules.release),
        ]
    )


def _workload_reflectors(
    builder: _ReflectorBuilder, cluster: SchedulerCache
) -> Iterator[tuple[str, InformerState]]:
    for kind, resource in _WORKLOAD_RESOURCES.items():
        yield builder.reflector(resource, kind, WORKLOAD_DECODERS[kind], cluster.workloads[kind])


def _storage_reflectors(
    builder: _ReflectorBuilder, cluster: SchedulerCache, release: Release
) -> Iterator[tuple[str, InformerState]]:
    follow, into = builder.optional_reflector, cluster.storage
    yield follow(
        resources.PERSISTENT_VOLUME_CLAIMS,
        "PersistentVolumeClaim",
        storage.decode_claim,
        into.claims,
    )
    yield follow(
        resources.PERSISTENT_VOLUMES, "PersistentVolume", storage.decode_volume, into.volumes
    )
    yield follow(
        resources.STORAGE_CLASSES, "StorageClass", storage.decode_storage_class, into.classes
    )
    yield follow(resources.CSI_NODES, "CSINode", storage.decode_csi_node, into.csi_nodes)
    if release.attachments_count:
        yield follow(
            resources.VOLUME_ATTACHMENTS,
            "VolumeAttachment",
            storage.decode_volume_attachment,
            into.attachments,
        )
    if release.driver_may_be_required:
        yield follow(resources.CSI_DRIVERS, "CSIDriver", storage.decode_csi_driver, into.drivers)
    if release.device_claims:
        yield follow(
            resources.RESOURCE_CLAIMS, "ResourceClaim", storage.decode_resource_claim, into.devices
        )
