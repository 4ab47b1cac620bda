"""The observed state of the cluster at one moment, as far as the demo shows it.

It consists of pods, nodes and Events of the API server, and the calls between scheduler and
extender. Decoding is partial: only the fields that the demo shows are read. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from extender.kube.decoders.object_meta import ObjectMeta
from extender.kube.workloadspread.spread_pods import MATCHED_WORKLOADSPREAD, read_injection
from fakeapi.controlplane.controllers.types import ObjectCondition, Taint, find_condition
from fakeapi.controlplane.scheduler.extender_trace import ExtenderCall
from fakeapi.demo.decisions import ExplainedDecision

PRESSURE_TAINT: Final = "node.kubernetes.io/memory-pressure"

_PREEMPTED: Final = re.compile(r"Preempted by pod (\S+) on node (\S+)")


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """A pod. ``workload`` is ``namespace/name`` of its controller, "" if it has none."""

    uid: str
    key: str
    workload: str = ""
    subset: str = ""
    priority: int = 0
    node: str = ""
    nominated: str = ""
    phase: str = "Pending"
    ready: bool = False
    deleting: bool = False
    reason: str = ""
    message: str = ""

    @property
    def active(self) -> bool:
        """Whether it is neither being deleted nor finished."""
        return not self.deleting and self.phase not in ("Succeeded", "Failed")

    @property
    def evicted(self) -> bool:
        """Whether its kubelet evicted it."""
        return self.phase == "Failed" and self.reason == "Evicted"


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """A node; ``taints`` have the format ``key:effect``."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    ready: bool = True
    memory_pressure: bool = False
    taints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ObservedEvent:
    """An Event about the object ``key``."""

    key: str
    uid: str
    reason: str
    message: str
    order: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class PreemptedPod:
    """A pod that the scheduler preempted, from the Event about it."""

    uid: str
    pod: str
    preemptor: str
    node: str


@dataclass(frozen=True, slots=True)
class ObservedState:
    """The state ``seconds`` after the start of the demo, on the cluster's clock.

    ``pods_before_burst`` are the UIDs of the pods that existed when the burst was created; empty
    until then. ``webhooks_registered``: the webhooks of WorkloadSpreads are registered.
    """

    seconds: float = 0.0
    pods: tuple[ObservedPod, ...] = ()
    nodes: tuple[ObservedNode, ...] = ()
    events: tuple[ObservedEvent, ...] = ()
    decisions: tuple[ExplainedDecision, ...] = ()
    exchanges: tuple[ExtenderCall, ...] = ()
    pods_before_burst: frozenset[str] = frozenset()
    webhooks_registered: bool = False

    def pods_of(self, workload: str) -> list[ObservedPod]:
        """Return the active pods of a workload."""
        return [pod for pod in self.pods if pod.workload == workload and pod.active]

    def pod(self, key: str) -> ObservedPod | None:
        """Return the pod with the key, or None."""
        return next((pod for pod in self.pods if pod.key == key), None)

    def replacements(self) -> list[ObservedPod]:
        """Return the pods that ReplicaSets created since the burst."""
        if not self.pods_before_burst:
            return []
        return [pod for pod in self.pods if pod.workload and pod.uid not in self.pods_before_burst]

    def preempted(self) -> list[PreemptedPod]:
        """Return the pods that the scheduler preempted, in the order of their Events."""
        found: dict[str, PreemptedPod] = {}
        for event in sorted(self.events, key=lambda each: each.order):
            matched = _PREEMPTED.fullmatch(event.message) if event.reason == "Preempted" else None
            if matched is not None:
                found.setdefault(
                    event.uid, PreemptedPod(event.uid, event.key, matched[1], matched[2])
                )
        return list(found.values())

    def decision_for(self, gone: PreemptedPod) -> ExplainedDecision | None:
        """Return the extender's decision by which a pod was preempted, or None."""
        return next(
            (
                each
                for each in reversed(self.decisions)
                if each.preemptor == gone.preemptor
                and each.node == gone.node
                and gone.pod in [victim.pod for victim in each.victims]
            ),
            None,
        )

    def scheduling_failure(self, pod: ObservedPod) -> str:
        """Return the message of a pod's last FailedScheduling Event; "" if there is none."""
        events = [e for e in self.events if e.uid == pod.uid and e.reason == "FailedScheduling"]
        return max(events, key=lambda each: each.order).message if events else ""

    def evicted(self) -> list[ObservedPod]:
        """Return the pods that kubelets evicted."""
        return [pod for pod in self.pods if pod.evicted]


MEMORY_PRESSURE: Final = "MemoryPressure"


class DemoPodSpec(msgspec.Struct, rename="camel"):
    """The fields of a Pod's spec that the demo reads."""

    node_name: str = ""
    priority: int = 0


class DemoPodStatus(msgspec.Struct, rename="camel"):
    """The fields of a Pod's status that the demo reads."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    nominated_node_name: str = ""
    conditions: list[ObjectCondition] | None = None


class DemoPodFields(msgspec.Struct):
    """The fields of a Pod that the demo reads."""

    metadata: ObjectMeta
    spec: DemoPodSpec
    status: DemoPodStatus


class DemoNodeSpec(msgspec.Struct):
    """The fields of a Node's spec that the demo reads."""

    taints: list[Taint] | None = None


class DemoNodeStatus(msgspec.Struct):
    """The fields of a Node's status that the demo reads."""

    conditions: list[ObjectCondition] | None = None


class DemoNodeFields(msgspec.Struct):
    """The fields of a Node that the demo reads."""

    metadata: ObjectMeta
    spec: DemoNodeSpec
    status: DemoNodeStatus


class InvolvedObject(msgspec.Struct):
    """The object that an Event is about."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class DemoEventFields(msgspec.Struct, rename="camel"):
    """The fields of an Event that the demo reads."""

    metadata: ObjectMeta
    involved_object: InvolvedObject
    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None


_pods = msgspec.json.Decoder(DemoPodFields)
_nodes = msgspec.json.Decoder(DemoNodeFields)
_events = msgspec.json.Decoder(DemoEventFields)


def read_pod(raw: msgspec.Raw | bytes) -> ObservedPod:
    """Decode a pod."""
    pod = _pods.decode(raw)
    meta, status = pod.metadata, pod.status
    owner = meta.controller
    injected = read_injection((meta.annotations or {}).get(MATCHED_WORKLOADSPREAD))
    return ObservedPod(
        meta.uid,
        meta.key,
        f"{meta.namespace}/{owner.name}" if owner else "",
        injected.subset if injected else "",
        pod.spec.priority,
        pod.spec.node_name,
        status.nominated_node_name,
        status.phase,
        _is_true(status.conditions, "Ready"),
        meta.deleting,
        status.reason,
        status.message,
    )


def read_node(raw: msgspec.Raw | bytes) -> ObservedNode:
    """Decode a node."""
    node = _nodes.decode(raw)
    conditions = node.status.conditions
    return ObservedNode(
        node.metadata.name,
        node.metadata.labels or {},
        _is_true(conditions, "Ready"),
        _is_true(conditions, MEMORY_PRESSURE),
        tuple(f"{taint.key}:{taint.effect}" for taint in node.spec.taints or ()),
    )


def read_event(raw: msgspec.Raw | bytes) -> ObservedEvent:
    """Decode an Event; ``order`` sorts Events by second, then by the suffix of their names."""
    event = _events.decode(raw)
    about = event.involved_object
    key = f"{about.namespace}/{about.name}" if about.namespace else about.name
    # The suffix of the name is the Event's time in nanoseconds.
    order = event.last_timestamp or "", event.metadata.name.rpartition(".")[2]
    return ObservedEvent(key, about.uid, event.reason, event.message, order)


def _is_true(conditions: list[ObjectCondition] | None, type_: str) -> bool:
    found = find_condition(conditions, type_)
    return found is not None and found.status == "True"
