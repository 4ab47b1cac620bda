"""Node registration and node status, as a kubelet writes them.

Every five minutes the heartbeat times of the conditions are written, and on any change at once. The
capacity of a node that already has one is kept.

Sources: pkg/kubelet/kubelet_node_status.go, pkg/kubelet/nodestatus/setters.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import NAMESPACE_DNS, uuid5

import orjson

from extender.kube.decoders.object_meta import format_time
from extender.kube.rest.api_errors import ApiError, MalformedError
from extender.kube.rest.client import PatchType, Selection
from extender.kube.rest.resources import NODES, PODS, ObjectPath
from extender.kube.rest.transport import TransportError
from fakeapi.controlplane.controllers.types import find_condition
from fakeapi.controlplane.kubelet.hollow_node import HollowNode
from fakeapi.controlplane.kubelet.hollow_nodes import KubeletWorker
from fakeapi.controlplane.kubelet.script_parser import parse_node_script
from fakeapi.controlplane.kubelet.scripts import NodeRegistration, parse_amount, script_error
from fakeapi.controlplane.kubelet.types import KubeletNode, ResourceAmounts, decode_node, decode_pod
from fakeapi.controlplane.kubelet.usage_curves import SECOND
from policies.eviction.node_conditions import pressure_conditions
from policies.eviction.signals import Pressure
from policies.kubernetes.quantity import NANOS

Document = dict[str, Any]

VERSION: Final = "v1.37.0"
DEFAULT_CAPACITY: Final[Mapping[str, str]] = {
    "cpu": "16",
    "memory": "64Gi",
    "pods": "110",
    "ephemeral-storage": "100Gi",
    "hugepages-1Gi": "0",
    "hugepages-2Mi": "0",
}
"""The default capacity of a node, where neither its status nor a script defines it."""

PRESSURES: Final = tuple(map(str, (Pressure.MEMORY, Pressure.DISK, Pressure.PID)))

_READY: Final = {
    True: ("KubeletReady", "kubelet is posting ready status"),
    False: ("KubeletNotReady", "container runtime is down"),
}
CONDITION_EVENTS: Final[Mapping[str, Mapping[bool, str]]] = {
    "MemoryPressure": {True: "NodeHasInsufficientMemory", False: "NodeHasSufficientMemory"},
    "DiskPressure": {True: "NodeHasDiskPressure", False: "NodeHasNoDiskPressure"},
    "PIDPressure": {True: "NodeHasInsufficientPID", False: "NodeHasSufficientPID"},
    "Ready": {True: "NodeReady", False: "NodeNotReady"},
}
"""The reasons of the events about conditions."""


def node_object(registration: NodeRegistration, index: int) -> Document:
    """Return the node object that registers as the ``index``-th of a registration."""
    name = registration.names[index]
    own_labels = {key: values[index % len(values)] for key, values in registration.labels.items()}
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        **own_labels,
    }
    capacity = {**DEFAULT_CAPACITY, **registration.capacity}
    node: Document = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": dict(registration.annotations)},
        "spec": {"taints": [dict(taint) for taint in registration.taints]},
        "status": {
            "capacity": capacity,
            "allocatable": {
                resource: _subtract(total, registration.reserved.get(resource, "0"))
                for resource, total in capacity.items()
            },
        },
    }
    return node


def full_status(node: KubeletNode, address: str) -> Document:
    """Return the status that a starting kubelet writes, without the conditions."""
    name, status = node.metadata.name, node.status
    capacity: ResourceAmounts = {**DEFAULT_CAPACITY, **(status.capacity or {})}
    machine = uuid5(NAMESPACE_DNS, name)
    return {
        "capacity": capacity,
        "allocatable": {**capacity, **(status.allocatable or {})},
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": str(uuid5(machine, "boot")),
            "containerRuntimeVersion": "containerd://2.1.0",
            "kernelVersion": "6.12.0",
            "kubeProxyVersion": "",
            "kubeletVersion": VERSION,
            "machineID": machine.hex,
            "operatingSystem": "linux",
            "osImage": "fakeapi",
            "systemUUID": str(machine),
        },
    }


def conditions(node: KubeletNode, values: Mapping[str, bool], now: int) -> list[Document]:
    """Return all conditions of a node; ``values`` are their statuses by type."""
    moment, found = format_time(now), []
    pressures = pressure_conditions([Pressure(each) for each in PRESSURES if values[each]])
    messages = {str(each.type): (each.reason, each.message) for each in pressures}
    messages["Ready"] = _READY[values["Ready"]]
    for type_, holds in values.items():
        status = "True" if holds else "False"
        old = find_condition(node.status.conditions, type_)
        same = old is not None and old.status == status
        since = old.last_transition_time if old is not None and same else None
        reason, message = messages[type_]
        found.append(
            {
                "type": type_,
                "status": status,
                "reason": reason,
                "message": message,
                "lastHeartbeatTime": moment,
                "lastTransitionTime": since or moment,
            }
        )
    return found


def heartbeat_patch(types: Iterable[str], now: int) -> Document:
    """Return the patch with new heartbeat times of a node's conditions."""
    moment, listed = format_time(now), list(types)
    return {
        "status": {
            "$setElementOrder/conditions": [{"type": type_} for type_ in listed],
            "conditions": [{"type": type_, "lastHeartbeatTime": moment} for type_ in listed],
        }
    }


def _subtract(total: str, reserved: str) -> str:
    """Subtract a quantity; keep the format of the total if nothing is reserved."""
    kept = parse_amount({"": reserved}, "")
    if not kept:
        return total
    left = max(0, parse_amount({"": total}, "") - kept)
    return str(left // NANOS) if left % NANOS == 0 else f"{left // 10**6}m"


_TYPES: Final = (*PRESSURES, "Ready")


class NodeStatusWorker(KubeletWorker):
    """Syncs hollow nodes."""

    async def register(self) -> None:
        """Create the node objects of the script, unless they exist."""
        for registration in self._hollow_nodes.script.register:
            for index in range(len(registration.names)):
                body = orjson.dumps(node_object(registration, index))
                try:
                    await self._client.create(NODES.collection(), body, bytes)
                except ApiError as error:
                    if error.reason != "AlreadyExists":
                        raise

    async def sync(self, name: str) -> float | None:
        """Sync a node; return the seconds until the next sync."""
        hollow = self._hollow_nodes.nodes_by_name.get(name)
        if hollow is None:
            return None
        now = self._clock.now_ns()
        if not hollow.record_if_silent(now):
            await self._write_status(hollow, now)
            if hollow.missed_events:
                hollow.missed_events = False
                self._hollow_nodes.enqueue_pods(hollow)
        moment = hollow.next_transition(now)
        return None if moment is None else max(moment - now, 1) / SECOND

    async def write_heartbeat(self, name: str) -> None:
        """Write a node's heartbeat, if it has registered and is not silent."""
        hollow, now = self._hollow_nodes.nodes_by_name.get(name), self._clock.now_ns()
        if hollow is None or not hollow.written_conditions or hollow.is_silent(now):
            return
        # The next heartbeat is in five minutes; the watch reports a deleted node.
        with suppress(ApiError, MalformedError, TransportError):
            path, body = _status_of(name), orjson.dumps(heartbeat_patch(_TYPES, now))
            observed = await self._client.patch(path, PatchType.STRATEGIC, body, decode_node)
            self._hollow_nodes.update_node(hollow, observed)  # with earlier writes of other clients

    async def _write_status(self, hollow: HollowNode, now: int) -> None:
        """Write the changed conditions of a node; the whole status of a new one."""
        values = {
            **{type_: type_ in hollow.pressures for type_ in PRESSURES},
            "Ready": hollow.is_ready(now),
        }
        if not hollow.written_conditions:
            await self._start(hollow, values, now)
        elif hollow.missed_events or values != hollow.written_conditions or _contradicted(hollow):
            before = hollow.written_conditions
            await self._patch(
                hollow, {"status": {"conditions": conditions(hollow.node, values, now)}}
            )
            hollow.written_conditions = values
            for type_ in [each for each in _TYPES if values[each] != before[each]]:
                self._record_event(hollow, CONDITION_EVENTS[type_][values[type_]])
        problem = script_error(hollow.node.metadata.annotations, parse_node_script)
        if problem and problem != hollow.problem:
            self._record_warning(hollow, "InvalidScript", problem)
        hollow.problem = problem

    async def _start(self, hollow: HollowNode, values: dict[str, bool], now: int) -> None:
        """Register a node: write its whole status, as a starting kubelet does."""
        if hollow.name in self._hollow_nodes.deleted_nodes:
            await self._list_pods(hollow)
            del self._hollow_nodes.deleted_nodes[hollow.name]
        self._hollow_nodes.assign_address(hollow)
        listed = conditions(hollow.node, values, now)
        status = {**full_status(hollow.node, hollow.address), "conditions": listed}
        await self._patch(hollow, {"status": status})
        hollow.written_conditions = values
        self._record_event(hollow, "Starting", "Starting kubelet.")
        self._record_event(hollow, CONDITION_EVENTS["Ready"][values["Ready"]])
        self._hollow_nodes.enqueue_pods(hollow)  # those that existed before the kubelet
        self._hollow_nodes.enqueue_eviction_round(hollow)

    async def _list_pods(self, hollow: HollowNode) -> None:
        """List the pods that a node had when it was deleted."""
        selection = Selection(field_selector=f"spec.nodeName={hollow.name}")
        for observed in (await self._client.list(PODS, decode_pod, selection)).items:
            self._hollow_nodes.observe_pod(observed)

    async def _patch(self, hollow: HollowNode, patch: Document) -> None:
        """Patch a node's status, and update the node by the response. Raise ApiError."""
        path, body = _status_of(hollow.name), orjson.dumps(patch)
        observed = await self._client.patch(path, PatchType.STRATEGIC, body, decode_node)
        self._hollow_nodes.update_node(hollow, observed)

    def _record_event(self, hollow: HollowNode, reason: str, message: str = "") -> None:
        if self._recorder is not None:
            text = message or f"Node {hollow.name} status is now: {reason}"
            self._recorder.normal(hollow.node.reference, reason, text)

    def _record_warning(self, hollow: HollowNode, reason: str, message: str) -> None:
        if self._recorder is not None:
            self._recorder.warning(hollow.node.reference, reason, message)


def _status_of(name: str) -> ObjectPath:
    return NODES.object(name).subresource("status")


def _contradicted(hollow: HollowNode) -> bool:
    """Return whether another client has written a different status of a condition."""
    reported = {each.type: each.status for each in hollow.node.status.conditions or ()}
    return any(
        reported.get(type_) != str(value) for type_, value in hollow.written_conditions.items()
    )
