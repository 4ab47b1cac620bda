"""The watched kinds: how each is decoded, and which store of the scheduler cache it fills.

This is upstream's addAllEventHandlers (pkg/scheduler/eventhandlers.go). Services and controllers
are watched only if a configured filter reads them. Objects behind volumes and device claims are
watched as far as the release's filters read them, and only if the server permits it: without them,
the pods that they concern are not evaluated.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from extender.cluster import LiveCluster
from extender.kube import resources, storage
from extender.kube.client import Client
from extender.kube.clock import Clock
from extender.kube.decoding import Decode, Unreadable, tolerant
from extender.kube.informer import Informer, OptionalInformer, Sink
from extender.kube.objects import decode_budget, decode_namespace, decode_node
from extender.kube.pods import decode_pod
from extender.kube.resources import Resource
from extender.kube.workloads import WORKLOAD_DECODERS
from extender.readiness import Feed
from policies.filtering import reads_workloads
from policies.model import Pod
from policies.rules import Rules
from policies.upstream import Release
from policies.workloads import REPLICA_SET, REPLICATION_CONTROLLER, SERVICE, STATEFUL_SET

T = TypeVar("T")

_WORKLOADS = {
    SERVICE: resources.SERVICES,
    REPLICATION_CONTROLLER: resources.REPLICATION_CONTROLLERS,
    REPLICA_SET: resources.REPLICA_SETS,
    STATEFUL_SET: resources.STATEFUL_SETS,
}


@dataclass(frozen=True, slots=True)
class _Source:
    """Builds reflectors of one client and one clock."""

    client: Client
    clock: Clock
    rng: random.Random
    silence_seconds: float | None
    log: Any = None

    def follow(
        self, resource: Resource, kind: str, decode: Decode[T], sink: Sink[T | Unreadable]
    ) -> tuple[str, Feed]:
        read = tolerant(kind, decode)
        of = (self.client, resource, read, sink, self.clock, self.rng)
        feed = Informer(*of, log=self.log, silence_seconds=self.silence_seconds)
        return resource.plural, feed

    def follow_if_served(
        self, resource: Resource, kind: str, decode: Decode[T], sink: Sink[T | Unreadable]
    ) -> tuple[str, Feed]:
        read = tolerant(kind, decode)
        of = (self.client, resource, read, sink, self.clock, self.rng)
        feed = OptionalInformer(*of, log=self.log, silence_seconds=self.silence_seconds)
        return resource.plural, feed


def informers(
    cluster: LiveCluster,
    client: Client,
    rules: Rules,
    clock: Clock,
    rng: random.Random,
    *,
    silence_seconds: float | None = None,
    log: Any = None,
) -> dict[str, Feed]:
    """Return the reflectors that keep ``cluster`` current, by the plural of their resource.

    A watch that is silent for ``silence_seconds`` is restarted (None: never). The reflectors log to
    ``log``, by default to structlog's logger.
    """
    source = _Source(client, clock, rng, silence_seconds, log)

    def read_pod(raw: bytes) -> Pod:
        return decode_pod(raw, rules.release)

    return dict(
        [
            source.follow(resources.NODES, "Node", decode_node, cluster.nodes),
            source.follow(resources.PODS, "Pod", read_pod, cluster.pods),
            source.follow(
                resources.POD_DISRUPTION_BUDGETS,
                "PodDisruptionBudget",
                decode_budget,
                cluster.budgets,
            ),
            source.follow(resources.NAMESPACES, "Namespace", decode_namespace, cluster.namespaces),
            *(_workloads(source, cluster) if reads_workloads(rules.filters) else ()),
            *_storage(source, cluster, rules.release),
        ]
    )


def _workloads(source: _Source, cluster: LiveCluster) -> Iterator[tuple[str, Feed]]:
    for kind, resource in _WORKLOADS.items():
        yield source.follow(resource, kind, WORKLOAD_DECODERS[kind], cluster.workloads[kind])


def _storage(source: _Source, cluster: LiveCluster, release: Release) -> Iterator[tuple[str, Feed]]:
    follow, into = source.follow_if_served, cluster.storage
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
            storage.decode_attachment,
            into.attachments,
        )
    if release.driver_may_be_required:
        yield follow(resources.CSI_DRIVERS, "CSIDriver", storage.decode_csi_driver, into.drivers)
    if release.device_claims:
        yield follow(
            resources.RESOURCE_CLAIMS, "ResourceClaim", storage.decode_resource_claim, into.devices
        )
