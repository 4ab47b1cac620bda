"""ReplicaSets and pods as the controller caches them: only the fields that it reads.

There may be fifty thousand pods, so only a few fields of each are kept. A ReplicaSet is also kept
as the JSON that was received, because its template is copied into pods and its status is written
back with everything else unchanged.

Objects are stored as clients wrote them, so a field may have the wrong type. Of such a pod only the
metadata is kept; such a ReplicaSet has the error in ``problem``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct, field

from extender.kube.controller_runtime.event_recorder import ObjectReference
from extender.kube.decoders.core_v1_types import LabelSelectorV1
from extender.kube.decoders.object_meta import ObjectMeta, decode_partial, parse_time
from extender.kube.decoders.typed_decoder import FieldError, label_selector_of
from policies.kubernetes.selectors import LabelSelector
from policies.replicaset import DELETION_COST

KIND: Final = "ReplicaSet"
API_VERSION: Final = "apps/v1"

_NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})
_ZERO_TIME_NS: Final = -62_135_596_800 * 10**9


class PodOwner(Protocol):
    """A workload: an object that controls pods, or other objects; without a selector, none."""

    @property
    def metadata(self) -> ObjectMeta:
        """The metadata of the workload."""
        ...

    @property
    def selector(self) -> LabelSelector | None:
        """Its selector; None selects nothing."""
        ...

    @property
    def reference(self) -> ObjectReference:
        """The object reference of Events about it."""
        ...


class OwnedPod(Struct, frozen=True):
    """A pod; ``restarts`` are those of the container with the most restarts.

    ``ready_since_ns`` is None if the pod is not ready or has no transition time; ``deletion_cost``
    is the annotation's unparsed value.
    """

    metadata: ObjectMeta
    phase: str = ""
    node: str = ""
    ready: bool = False
    ready_since_ns: int | None = None
    restarts: int = 0
    sidecar_restarts: int = 0
    deletion_cost: str | None = None

    @property
    def uid(self) -> str:
        """The pod's UID."""
        return self.metadata.uid

    @property
    def labels(self) -> Mapping[str, str]:
        """The pod's labels; empty if it has none."""
        return self.metadata.labels or _NO_LABELS

    @property
    def active(self) -> bool:
        """Whether the pod counts as a replica: it has not finished and is not being deleted."""
        return not self.finished and not self.metadata.deleting

    @property
    def terminating(self) -> bool:
        """Whether the pod is being deleted and has not finished."""
        return not self.finished and self.metadata.deleting

    @property
    def finished(self) -> bool:
        """Whether the pod has succeeded or failed."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def created_ns(self) -> int | None:
        """The creation time; None if it is unset."""
        return _known_time(self.metadata.creation_timestamp)


class ReplicaSetCondition(Struct, rename="camel", omit_defaults=True, frozen=True):
    """apps/v1.ReplicaSetCondition."""

    type: str = ""
    status: str = ""
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class ReplicaSetStatus(Struct, rename="camel", frozen=True):
    """apps/v1.ReplicaSetStatus; absent conditions equal an empty list."""

    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    terminating_replicas: int | None = None
    observed_generation: int = 0
    conditions: tuple[ReplicaSetCondition, ...] | None = None


class ReplicaSet(Struct, frozen=True):
    """A ReplicaSet; ``document`` is the whole object as JSON, as it was read.

    A ``selector`` of None selects nothing. A ReplicaSet with a ``problem`` is not reconciled.
    """

    metadata: ObjectMeta
    document: bytes
    replicas: int = 1
    min_ready_seconds: int = 0
    selector: LabelSelector | None = None
    template_labels: Mapping[str, str] = field(default_factory=dict)
    status: ReplicaSetStatus = ReplicaSetStatus()
    problem: str = ""

    @property
    def reference(self) -> ObjectReference:
        """The object reference of Events about it."""
        meta = self.metadata
        place = meta.namespace, meta.name, meta.uid
        return ObjectReference(API_VERSION, KIND, *place, meta.resource_version)


class _ContainerStatus(Struct, rename="camel"):
    name: str = ""
    restart_count: int = 0


class _InitContainer(Struct, rename="camel"):
    name: str = ""
    restart_policy: str | None = None


class _OwnedPodCondition(Struct, rename="camel"):
    type: str = ""
    status: str = ""
    last_transition_time: str | None = None


class _OwnedPodSpec(Struct, rename="camel"):
    node_name: str = ""
    init_containers: list[_InitContainer] | None = None


class _OwnedPodStatus(Struct, rename="camel"):
    phase: str = ""
    conditions: list[_OwnedPodCondition] | None = None
    container_statuses: list[_ContainerStatus] | None = None
    init_container_statuses: list[_ContainerStatus] | None = None


class _OwnedPodFields(Struct):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: _OwnedPodSpec | None = None
    status: _OwnedPodStatus | None = None


class _PodTemplateMeta(Struct):
    labels: dict[str, str] | None = None


class _PodTemplate(Struct):
    metadata: _PodTemplateMeta | None = None


class _ReplicaSetSpec(Struct, rename="camel"):
    replicas: int | None = None
    min_ready_seconds: int = 0
    selector: LabelSelectorV1 | None = None
    template: _PodTemplate | None = None


class _ReplicaSetFields(Struct):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: _ReplicaSetSpec | None = None
    status: ReplicaSetStatus | None = None


_pods = msgspec.json.Decoder(_OwnedPodFields)
_replica_sets = msgspec.json.Decoder(_ReplicaSetFields)


def decode_pod(raw: msgspec.Raw | bytes) -> OwnedPod:
    """Decode a pod."""
    try:
        shape = _pods.decode(raw)
    except msgspec.ValidationError:
        meta = decode_partial(raw).metadata
        return OwnedPod(meta, deletion_cost=_extract_deletion_cost(meta))
    meta = shape.metadata
    spec, status = shape.spec or _OwnedPodSpec(), shape.status or _OwnedPodStatus()
    ready = _ready_condition(status)
    return OwnedPod(
        meta,
        status.phase,
        spec.node_name,
        ready is not None,
        _known_time(ready.last_transition_time) if ready else None,
        _max_restarts(status.container_statuses),
        _max_restarts(_sidecars(spec, status)),
        _extract_deletion_cost(meta),
    )


def _extract_deletion_cost(meta: ObjectMeta) -> str | None:
    """Return the deletion cost annotation, and drop annotations and finalizers from memory."""
    cost = (meta.annotations or {}).get(DELETION_COST)
    meta.annotations = meta.finalizers = None
    return cost


def _ready_condition(status: _OwnedPodStatus) -> _OwnedPodCondition | None:
    found = next((each for each in status.conditions or () if each.type == "Ready"), None)
    return found if found is not None and found.status == "True" else None


def _sidecars(spec: _OwnedPodSpec, status: _OwnedPodStatus) -> list[_ContainerStatus]:
    names = [each.name for each in spec.init_containers or () if each.restart_policy == "Always"]
    return [each for each in status.init_container_statuses or () if each.name in names]


def _max_restarts(statuses: list[_ContainerStatus] | None) -> int:
    return max((each.restart_count for each in statuses or ()), default=0)


def _known_time(timestamp: str | None) -> int | None:
    """Return a time in epoch nanoseconds; None for Go's zero time or a missing time."""
    found = parse_time(timestamp)
    return found if found > _ZERO_TIME_NS and found else None


def decode_replica_set(raw: msgspec.Raw | bytes) -> ReplicaSet:
    """Decode a ReplicaSet; an error is returned in its ``problem``."""
    document = bytes(raw)
    try:
        shape = _replica_sets.decode(document)
    except msgspec.ValidationError as error:
        return ReplicaSet(decode_partial(document).metadata, document, problem=str(error))
    spec = shape.spec or _ReplicaSetSpec()
    template = (spec.template and spec.template.metadata) or _PodTemplateMeta()
    selector, problem = _parse_selector(spec.selector)
    return ReplicaSet(
        shape.metadata,
        document,
        1 if spec.replicas is None else spec.replicas,
        spec.min_ready_seconds,
        selector,
        template.labels or {},
        shape.status or ReplicaSetStatus(),
        problem,
    )


def _parse_selector(selector: LabelSelectorV1 | None) -> tuple[LabelSelector | None, str]:
    try:
        return label_selector_of("spec.selector", selector), ""
    except FieldError as error:
        return None, str(error)


def controller_reference(owner: PodOwner) -> dict[str, Any]:
    """Return the owner reference of the objects that a workload controls."""
    reference = owner.reference
    return {
        "apiVersion": reference.api_version,
        "kind": reference.kind,
        "name": reference.name,
        "uid": reference.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
