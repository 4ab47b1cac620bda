"""ReplicaSets and their pods to the model that scaling down reads."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec
from msgspec import Struct, field

from extender.kube import shapes
from extender.kube.decoding import FINISHED, decoded, label_selector_of
from extender.kube.pods import epoch_ns
from policies.scaledown import DELETION_COST, Member, Replica, ReplicaSet, parse_deletion_cost
from policies.workloads import REPLICA_SET

_ZERO_YEAR = 1
"""Of the time that Go writes where there is none: 0001-01-01T00:00:00Z."""


class _Meta(shapes.Meta):
    annotations: dict[str, str] | None = None
    creationTimestamp: datetime | None = None  # noqa: N815 - the key as Kubernetes writes it


class _Container(Struct):
    name: str = ""
    restartPolicy: str | None = None  # noqa: N815


class _Spec(Struct):
    nodeName: str | None = None  # noqa: N815
    initContainers: list[_Container] | None = None  # noqa: N815


class _Condition(Struct):
    type: str = ""
    status: str = ""
    lastTransitionTime: datetime | None = None  # noqa: N815


class _ContainerStatus(Struct):
    name: str = ""
    restartCount: shapes.Int32 | None = None  # noqa: N815


class _Status(Struct):
    phase: str | None = None
    conditions: list[_Condition] | None = None
    containerStatuses: list[_ContainerStatus] | None = None  # noqa: N815
    initContainerStatuses: list[_ContainerStatus] | None = None  # noqa: N815


class _PodShape(Struct):
    metadata: _Meta
    spec: _Spec = field(default_factory=_Spec)
    status: _Status | None = None


_NOT_READY = _Condition()
_pods = msgspec.json.Decoder(_PodShape)
_replica_sets = msgspec.json.Decoder(shapes.SelectingShape)


def decode_member(raw: bytes) -> Member:
    """Read a v1.Pod. Raises ObjectError.

    A pod written by hand has no UID, and as pods are told apart by it, its key stands in.
    """
    return decoded("Pod", _pods, raw, _member)


def decode_replica_set(raw: bytes) -> ReplicaSet:
    """Read an apps/v1.ReplicaSet. Raises ObjectError."""
    return decoded(REPLICA_SET, _replica_sets, raw, _replica_set)


def _member(shape: _PodShape) -> Member:
    meta, spec, status = shape.metadata, shape.spec, shape.status or _Status()
    namespace = meta.namespace or "default"
    ready = _ready_condition(status)
    return Member(
        Replica(
            namespace=namespace,
            name=meta.name,
            uid=meta.uid or f"{namespace}/{meta.name}",
            node=spec.nodeName or "",
            phase=status.phase or "",
            ready=ready.status == "True",
            ready_since_ns=_moment(ready.lastTransitionTime),
            deletion_cost=parse_deletion_cost((meta.annotations or {}).get(DELETION_COST)),
            restarts=_most_restarts(status.containerStatuses),
            sidecar_restarts=_most_restarts(_of_sidecars(spec, status)),
            created_ns=_moment(meta.creationTimestamp),
        ),
        labels=meta.labels or {},
        owner=_controller(namespace, meta),
        active=status.phase not in FINISHED and meta.deletionTimestamp is None,
    )


def _replica_set(shape: shapes.SelectingShape) -> ReplicaSet:
    meta = shape.metadata
    namespace = meta.namespace or "default"
    written = None if shape.spec is None else shape.spec.selector
    return ReplicaSet(
        namespace=namespace,
        name=meta.name,
        uid=meta.uid or _stand_in(REPLICA_SET, namespace, meta.name),
        owner=_controller(namespace, meta),
        selector=label_selector_of("spec.selector", written),
    )


def _controller(namespace: str, meta: shapes.Meta) -> str | None:
    """Give the UID of the first owner that controls an object."""
    for each in meta.ownerReferences or ():
        if each.controller:
            return each.uid or _stand_in(each.kind, namespace, each.name)
    return None


def _stand_in(kind: str, namespace: str, name: str) -> str:
    # Written by hand, neither an owner nor the reference to it may have a UID.
    return f"{kind}/{namespace}/{name}"


def _ready_condition(status: _Status) -> _Condition:
    return next((each for each in status.conditions or () if each.type == "Ready"), _NOT_READY)


def _of_sidecars(spec: _Spec, status: _Status) -> Iterable[_ContainerStatus]:
    sidecars = {each.name for each in spec.initContainers or () if each.restartPolicy == "Always"}
    return [each for each in status.initContainerStatuses or () if each.name in sidecars]


def _most_restarts(statuses: Iterable[_ContainerStatus] | None) -> int:
    return max([0, *(each.restartCount or 0 for each in statuses or ())])


def _moment(moment: datetime | None) -> int | None:
    return None if moment is None or moment.year == _ZERO_YEAR else epoch_ns(moment)
