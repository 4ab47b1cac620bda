"""Node registration and node status, as a kubelet writes them.

Every five minutes the heartbeat times of the conditions are written, and on any change at once. The
capacity of a node that already has one is kept.

Sources: pkg/kubelet/kubelet_node_status.go, pkg/kubelet/nodestatus/setters.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import NAMESPACE_DNS, uuid5

from extender.kube.events import format_time
from fakeapi.controlplane.kubelet.scripts import NodeRegistration
from fakeapi.controlplane.kubelet.shapes import KubeletNode, ResourceAmounts
from fakeapi.controlplane.kubelet.usage import parse_amount
from fakeapi.controlplane.shapes import find_condition
from policies.eviction.conditions import pressure_conditions
from policies.eviction.signals import Pressure
from policies.quantity import NANOS

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
    given = {key: values[index % len(values)] for key, values in registration.labels.items()}
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        **given,
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


def conditions(node: KubeletNode, held: Mapping[str, bool], now: int) -> list[Document]:
    """Return all conditions of a node; ``held`` are their statuses by type."""
    moment, found = format_time(now), []
    said = pressure_conditions([Pressure(each) for each in PRESSURES if held[each]])
    words = {str(each.type): (each.reason, each.message) for each in said}
    words["Ready"] = _READY[held["Ready"]]
    for type_, holds in held.items():
        status = "True" if holds else "False"
        old = find_condition(node.status.conditions, type_)
        same = old is not None and old.status == status
        since = old.last_transition_time if old is not None and same else None
        reason, message = words[type_]
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
