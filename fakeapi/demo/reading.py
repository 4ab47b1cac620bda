"""Decodes pods, nodes and Events of an API server into observed objects.

Decoding is partial: only the fields that the demo shows are read. Pure.
"""

from __future__ import annotations

from typing import Final

import msgspec

from extender.kube.metadata import ObjectMeta
from extender.kube.workloadspread.pods import MATCHED_WORKLOADSPREAD, read_injection
from fakeapi.controlplane.shapes import ObjectCondition, Taint, find_condition
from fakeapi.demo.sights import ObservedEvent, ObservedNode, ObservedPod

MEMORY_PRESSURE: Final = "MemoryPressure"


class DemoPodSpec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    priority: int = 0


class DemoPodStatus(msgspec.Struct, rename="camel"):
    phase: str = ""
    reason: str = ""
    message: str = ""
    nominated_node_name: str = ""
    conditions: list[ObjectCondition] | None = None


class DemoPodFields(msgspec.Struct):
    metadata: ObjectMeta
    spec: DemoPodSpec
    status: DemoPodStatus


class DemoNodeSpec(msgspec.Struct):
    taints: list[Taint] | None = None


class DemoNodeStatus(msgspec.Struct):
    conditions: list[ObjectCondition] | None = None


class DemoNodeFields(msgspec.Struct):
    metadata: ObjectMeta
    spec: DemoNodeSpec
    status: DemoNodeStatus


class InvolvedObject(msgspec.Struct):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class DemoEventFields(msgspec.Struct, rename="camel"):
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
