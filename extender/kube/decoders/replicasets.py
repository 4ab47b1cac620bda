"""ReplicaSets and their pods, decoded to the model of scale-down.

Pods are identified by UID; for a pod from a file, which has none, the key is used. Every decoder
raises ObjectError.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct, field

from extender.kube.decoders import core_v1_types
from extender.kube.decoders.pods import epoch_ns
from extender.kube.decoders.typed_decoder import FINISHED, label_selector_of, object_decoder
from policies.kubernetes.default_selector import REPLICA_SET
from policies.replicaset import (
    DELETION_COST,
    RankedPod,
    ReplicaSet,
    ReplicaSetPod,
    parse_deletion_cost,
)


class ReplicaMetaV1(core_v1_types.ObjectMetaV1):
    """metadata, with the fields that controllers read."""

    annotations: dict[str, str] | None = None
    creationTimestamp: datetime | None = None


class SidecarContainerV1(Struct):
    """v1.Container, as far as it may be a sidecar."""

    name: str = ""
    restartPolicy: str | None = None


class ReplicaPodSpecV1(Struct):
    """v1.PodSpec."""

    nodeName: str | None = None
    initContainers: list[SidecarContainerV1] | None = None


class ReplicaPodConditionV1(Struct):
    """v1.PodCondition."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    lastTransitionTime: datetime | None = None


class ContainerRestartsV1(Struct):
    """v1.ContainerStatus."""

    name: str = ""
    restartCount: core_v1_types.Int32 | None = None


class ReplicaPodStatusV1(Struct):
    """v1.PodStatus."""

    phase: str | None = None
    conditions: list[ReplicaPodConditionV1] | None = None
    containerStatuses: list[ContainerRestartsV1] | None = None
    initContainerStatuses: list[ContainerRestartsV1] | None = None


class _ReplicaPodV1(Struct):
    """v1.Pod."""

    metadata: ReplicaMetaV1
    spec: ReplicaPodSpecV1 = field(default_factory=ReplicaPodSpecV1)
    status: ReplicaPodStatusV1 | None = None


_NOT_READY = ReplicaPodConditionV1()


def _member(shape: _ReplicaPodV1) -> ReplicaSetPod:
    meta, spec, status = shape.metadata, shape.spec, shape.status or ReplicaPodStatusV1()
    namespace = meta.namespace or "default"
    ready = ready_condition(status)
    return ReplicaSetPod(
        RankedPod(
            namespace=namespace,
            name=meta.name,
            uid=meta.uid or f"{namespace}/{meta.name}",
            node=spec.nodeName or "",
            phase=status.phase or "",
            ready=ready.status == "True",
            ready_since_ns=time_to_ns(ready.lastTransitionTime),
            deletion_cost=parse_deletion_cost((meta.annotations or {}).get(DELETION_COST)),
            restarts=max_restarts(status.containerStatuses),
            sidecar_restarts=max_restarts(sidecar_statuses(spec, status)),
            created_ns=time_to_ns(meta.creationTimestamp),
        ),
        labels=meta.labels or {},
        owner=_controller(namespace, meta),
        active=status.phase not in FINISHED and meta.deletionTimestamp is None,
    )


def _replica_set(shape: core_v1_types.LabelSelectorWorkloadV1) -> ReplicaSet:
    meta = shape.metadata
    namespace = meta.namespace or "default"
    written = None if shape.spec is None else shape.spec.selector
    return ReplicaSet(
        namespace=namespace,
        name=meta.name,
        uid=meta.uid or _placeholder_uid(REPLICA_SET, namespace, meta.name),
        owner=_controller(namespace, meta),
        selector=label_selector_of("spec.selector", written),
    )


decode_member = object_decoder("Pod", _ReplicaPodV1, _member)
decode_replica_set = object_decoder(
    REPLICA_SET, core_v1_types.LabelSelectorWorkloadV1, _replica_set
)


def _controller(namespace: str, meta: core_v1_types.ObjectMetaV1) -> str | None:
    """Return the UID of an object's controller."""
    for each in meta.ownerReferences or ():
        if each.controller:
            return each.uid or _placeholder_uid(each.kind, namespace, each.name)
    return None


def _placeholder_uid(kind: str, namespace: str, name: str) -> str:
    # In a file, an owner and the reference to it may have no UID.
    return f"{kind}/{namespace}/{name}"


def ready_condition(status: ReplicaPodStatusV1) -> ReplicaPodConditionV1:
    """Return the Ready condition of a pod; an empty one if there is none."""
    return next((each for each in status.conditions or () if each.type == "Ready"), _NOT_READY)


def sidecar_statuses(
    spec: ReplicaPodSpecV1, status: ReplicaPodStatusV1
) -> Iterable[ContainerRestartsV1]:
    """Return the statuses of the sidecar containers."""
    sidecars = {each.name for each in spec.initContainers or () if each.restartPolicy == "Always"}
    return [each for each in status.initContainerStatuses or () if each.name in sidecars]


def max_restarts(statuses: Iterable[ContainerRestartsV1] | None) -> int:
    """Return the largest restart count of the containers."""
    return max([0, *(each.restartCount or 0 for each in statuses or ())])


def time_to_ns(time: datetime | None) -> int | None:
    """Return a time in nanoseconds since the epoch; None for Go's zero time, in the year 1."""
    return None if time is None or time.year == 1 else epoch_ns(time)
