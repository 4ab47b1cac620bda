"""Workloads, their pod templates and their conditions, for partial decoding.

A template is kept as JSON values by field, because it is copied into pods with a few fields added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, ClassVar, Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from extender.controllers.replicaset.types import controller_reference
from extender.kube.controller_runtime.event_recorder import ObjectReference
from extender.kube.decoders.core_v1_types import AffinityV1, LabelSelectorV1
from extender.kube.decoders.object_meta import NS_PER_SECOND, ObjectMeta, format_time, parse_time
from extender.kube.decoders.typed_decoder import FieldError, label_selector_of
from extender.kube.rest.resources import PODS, Resource
from fakeapi.controlplane.controllers.types import (
    IntOrPercent,
    Pod,
    PodSpec,
    PodStatus,
    decode_tolerantly,
    parse_percentage,
)
from policies.kubernetes.selectors import LabelSelector

Fields = dict[str, Raw]
"""A JSON object whose values are not decoded."""

_SAFE_DIGITS: Final = "bcdfghjklmnpqrstvwxz2456789"
_HASH_LENGTH: Final = 10

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ObjectKind(Generic[T]):
    """A kind, the resource it is served as, and its decoder."""

    name: str
    resource: Resource
    decode: Callable[[Raw], T]


class TemplateMeta(Struct, omit_defaults=True):
    """The metadata of a pod template that is copied into pods."""

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None


class PodTemplate(Struct):
    """v1.PodTemplateSpec."""

    metadata: TemplateMeta = field(default_factory=TemplateMeta)
    spec: Fields = field(default_factory=dict)

    def with_label(self, key: str, value: str) -> PodTemplate:
        """Return the template with one more label."""
        return replace(
            self, metadata=replace(self.metadata, labels={**self.metadata.labels, key: value})
        )

    def without_label(self, key: str) -> PodTemplate:
        """Return the template without a label."""
        labels = {name: value for name, value in self.metadata.labels.items() if name != key}
        return replace(self, metadata=replace(self.metadata, labels=labels))


class RollingUpdate(Struct, rename="camel"):
    """The parameters of a rolling update."""

    max_surge: IntOrPercent | None = None
    max_unavailable: IntOrPercent | None = None
    partition: int = 0


class UpdateStrategy(Struct, rename="camel"):
    """How pods of an old template are replaced."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None

    @property
    def parameters(self) -> RollingUpdate:
        """The parameters of a rolling update, given or not."""
        return self.rolling_update or RollingUpdate()


class WorkloadSpec(Struct, rename="camel"):
    """The fields that the specs of workloads have in common."""

    replicas: int | None = None
    selector: LabelSelectorV1 | None = None
    template: PodTemplate = field(default_factory=PodTemplate)
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None

    @property
    def desired(self) -> int:
        """The number of replicas; 1 by default."""
        return 1 if self.replicas is None else self.replicas


class Workload(Struct):
    """An object that controls others by a selector."""

    KIND: ClassVar[str] = ""
    API_VERSION: ClassVar[str] = "apps/v1"

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: WorkloadSpec = field(default_factory=WorkloadSpec)

    @property
    def selector(self) -> LabelSelector | None:
        """The selector; None, which selects nothing, if it is absent or malformed."""
        try:
            return label_selector_of("spec.selector", self.spec.selector)
        except FieldError:
            return None

    @property
    def reference(self) -> ObjectReference:
        """The object reference of Events about it."""
        meta = self.metadata
        place = meta.namespace, meta.name, meta.uid
        return ObjectReference(self.API_VERSION, self.KIND, *place, meta.resource_version)


class ContainerStatus(Struct, rename="camel"):
    """v1.ContainerStatus."""

    restart_count: int = 0


class ContainerPort(Struct, rename="camel"):
    """v1.ContainerPort."""

    name: str = ""
    container_port: int = 0
    protocol: str = "TCP"


class Container(Struct):
    """v1.Container."""

    ports: list[ContainerPort] | None = None


class PodIP(Struct):
    """v1.PodIP."""

    ip: str = ""


class WorkloadPodSpec(PodSpec, rename="camel"):
    """v1.PodSpec."""

    affinity: AffinityV1 | None = None
    containers: list[Container] | None = None
    hostname: str = ""
    subdomain: str = ""


class WorkloadPodStatus(PodStatus, rename="camel"):
    """v1.PodStatus."""

    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    pod_ips: list[PodIP] | None = field(default=None, name="podIPs")


class WorkloadPod(Pod):
    """v1.Pod."""

    spec: WorkloadPodSpec = field(default_factory=WorkloadPodSpec)
    status: WorkloadPodStatus = field(default_factory=WorkloadPodStatus)

    @property
    def container_statuses(self) -> Sequence[ContainerStatus]:
        """The statuses of all containers."""
        status = self.status
        return (*(status.init_container_statuses or ()), *(status.container_statuses or ()))

    def seconds_until_available(self, min_ready_seconds: int, now_ns: int) -> float | None:
        """Return the seconds until it has been ready long enough; None if it is not ready."""
        ready = self.condition("Ready")
        if ready is None or ready.status != "True":
            return None
        age = (now_ns - parse_time(ready.last_transition_time)) / NS_PER_SECOND
        return max(0.0, min_ready_seconds - age) if min_ready_seconds else 0.0


WORKLOAD_PODS: Final = ObjectKind("Pod", PODS, decode_tolerantly(WorkloadPod))


def seconds_until_next_available(
    pods: Iterable[WorkloadPod], min_ready_seconds: int, now_ns: int
) -> float | None:
    """Return the seconds until the next ready pod is available; None if none is waited for."""
    waits = (pod.seconds_until_available(min_ready_seconds, now_ns) for pod in pods)
    return min((wait for wait in waits if wait), default=None)


def removal_order(pod: WorkloadPod) -> tuple[bool, int, bool, int]:
    """Return the order in which surplus pods are deleted: those that ran least come first.

    Source: controller_utils.go (ActivePods).
    """
    phase = {"Pending": 0, "Unknown": 1, "Running": 2}.get(pod.status.phase, 0)
    age = -parse_time(pod.metadata.creation_timestamp)
    return bool(pod.spec.node_name), phase, pod.ready, age


def pod_document(
    workload: Workload, template: PodTemplate, name: Mapping[str, str]
) -> dict[str, Any]:
    """Return a pod of a workload; ``name`` has its name or generateName."""
    meta = template.metadata
    metadata: dict[str, Any] = {
        **name,
        "labels": meta.labels,
        "annotations": meta.annotations,
        "finalizers": meta.finalizers,
        "ownerReferences": [controller_reference(workload)],
    }
    metadata = {key: value for key, value in metadata.items() if value}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.spec}


class WorkloadCondition(Struct, rename="camel", omit_defaults=True, frozen=True):
    """A condition of a workload."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_probe_time: str | None = None
    last_update_time: str | None = None
    last_transition_time: str | None = None


Conditions = tuple[WorkloadCondition, ...]


def get_condition(conditions: Conditions, type_: str) -> WorkloadCondition | None:
    """Return the condition of a type, or None."""
    return next((each for each in conditions if each.type == type_), None)


def without_condition(conditions: Conditions, type_: str) -> Conditions:
    """Return the conditions without those of a type."""
    return tuple(each for each in conditions if each.type != type_)


def with_condition(
    conditions: Conditions, type_: str, status: str, reason: str, message: str, now_ns: int
) -> Conditions:
    """Return the conditions with one set; one of equal status and reason is left unchanged."""
    old, now = get_condition(conditions, type_), format_time(now_ns)
    if old is not None and (old.status, old.reason) == (status, reason):
        return conditions
    since = old.last_transition_time if old is not None and old.status == status else now
    condition = WorkloadCondition(
        type_, status, reason, message, last_update_time=now, last_transition_time=since
    )
    return (*without_condition(conditions, type_), condition)


def raw(value: object) -> Raw:
    """Return a value as JSON."""
    return Raw(msgspec.json.encode(value))


def canonical(value: object) -> bytes:
    """Return a value as JSON that is equal for equal values."""
    document = msgspec.json.decode(msgspec.json.encode(value))
    return msgspec.json.encode(document, order="deterministic")


def compute_hash(value: object, collision_count: int | None = None) -> str:
    """Return a hash of a value for names and labels, another one for each collision.

    Upstream's hash is another one, of the same alphabet. Source: controller_utils.go (ComputeHash).
    """
    digest = sha256(canonical(value) + str(collision_count or "").encode()).digest()
    return "".join(_SAFE_DIGITS[byte % len(_SAFE_DIGITS)] for byte in digest[:_HASH_LENGTH])


def ceil_percent(value: IntOrPercent | None, total: int) -> int:
    """Return a number, or that percentage of ``total`` rounded up; 0 if absent or malformed."""
    return -floor_percent(value, -total) if isinstance(value, str) else value or 0


def floor_percent(value: IntOrPercent | None, total: int) -> int:
    """Return a number, or that percentage of ``total`` rounded down; 0 if absent or malformed."""
    if isinstance(value, str):
        return (parse_percentage(value) or 0) * total // 100
    return value or 0
