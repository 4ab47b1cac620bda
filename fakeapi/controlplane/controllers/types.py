"""Typed parts of the objects that the control plane reads, for partial decoding.

Objects are stored as clients wrote them, so a field may have the wrong type. Decoding then returns
the object with its metadata only: a controller sees all other fields unset, and other objects are
not affected.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from extender.kube.controller_runtime.event_recorder import ObjectReference
from extender.kube.decoders.object_meta import ObjectMeta, decode_partial

IntOrPercent = int | str


class Toleration(Struct, rename="camel"):
    """v1.Toleration."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class PodSpec(Struct, rename="camel"):
    """v1.PodSpec."""

    node_name: str = ""
    termination_grace_period_seconds: int | None = None
    tolerations: list[Toleration] | None = None


class ObjectCondition(Struct, rename="camel"):
    """A condition of any object."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_heartbeat_time: str | None = None


class PodStatus(Struct, rename="camel"):
    """v1.PodStatus."""

    phase: str = ""
    reason: str = ""
    conditions: list[ObjectCondition] | None = None


class Pod(Struct):
    """v1.Pod."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)

    def condition(self, type_: str) -> ObjectCondition | None:
        """Return the condition of a type, or None."""
        return find_condition(self.status.conditions, type_)

    @property
    def ready(self) -> bool:
        """Whether its Ready condition is true."""
        found = self.condition("Ready")
        return found is not None and found.status == "True"

    @property
    def finished(self) -> bool:
        """Whether it has succeeded or failed."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def reference(self) -> ObjectReference:
        """The object reference of Events about it."""
        meta = self.metadata
        return ObjectReference("v1", "Pod", meta.namespace, meta.name, meta.uid)


class NamespaceSpec(Struct):
    """v1.NamespaceSpec."""

    finalizers: list[str] | None = None


class NamespaceStatus(Struct):
    """v1.NamespaceStatus; conditions are written back as they were read."""

    phase: str = ""
    conditions: list[dict[str, Any]] | None = None


class Namespace(Struct):
    """v1.Namespace."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: NamespaceSpec = field(default_factory=NamespaceSpec)
    status: NamespaceStatus = field(default_factory=NamespaceStatus)


class Taint(Struct, rename="camel", omit_defaults=True):
    """v1.Taint."""

    key: str = ""
    value: str | None = None
    effect: str = ""
    time_added: str | None = None


class NodeSpec(Struct):
    """v1.NodeSpec."""

    taints: list[Taint] | None = None
    unschedulable: bool = False


class NodeStatus(Struct):
    """v1.NodeStatus."""

    conditions: list[ObjectCondition] | None = None


class Node(Struct):
    """v1.Node."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)

    def condition(self, type_: str) -> ObjectCondition | None:
        """Return the condition of a type, or None."""
        return find_condition(self.status.conditions, type_)

    @property
    def reference(self) -> ObjectReference:
        """The object reference of Events about it: by name, as kubelets do."""
        return ObjectReference("", "Node", "", self.metadata.name, self.metadata.uid)


class LeaseSpec(Struct, rename="camel"):
    """coordination.k8s.io/v1.LeaseSpec."""

    renew_time: str | None = None


class Lease(Struct):
    """coordination.k8s.io/v1.Lease."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: LeaseSpec = field(default_factory=LeaseSpec)


S = TypeVar("S", bound=Struct)
Decode = Callable[[msgspec.Raw], S]


def decode_tolerantly(type_: type[S]) -> Decode[S]:
    """Return a decoder of a type that tolerates wrong field types as the module describes."""
    decoder = msgspec.json.Decoder(type_)

    def decode(raw: msgspec.Raw) -> S:
        try:
            return decoder.decode(raw)
        except msgspec.ValidationError:
            return type_(metadata=decode_partial(raw).metadata)

    return decode


decode_pod = decode_tolerantly(Pod)
decode_namespace = decode_tolerantly(Namespace)
decode_node = decode_tolerantly(Node)
decode_lease = decode_tolerantly(Lease)


def find_condition(conditions: list[ObjectCondition] | None, type_: str) -> ObjectCondition | None:
    """Return the condition of a type, or None."""
    for each in conditions or ():
        if each.type == type_:
            return each
    return None


def parse_percentage(text: str) -> int | None:
    """Return the number of a percentage such as ``30%``; None if the text is none."""
    found = re.fullmatch(r"([0-9]{1,18})%", text)
    return int(found[1]) if found else None
