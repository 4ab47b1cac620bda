"""How pressure on a node shows in the cluster: node conditions, taints and pod admission.

Sources: MemoryPressureCondition, DiskPressureCondition and PIDPressureCondition in
pkg/kubelet/nodestatus/setters.go; Admit in pkg/kubelet/eviction/eviction_manager.go; the table of
taints of the node-lifecycle controller.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from policies.eviction.messages import REASON
from policies.eviction.pods import EvictablePod
from policies.eviction.signals import Pressure
from policies.kubernetes.selectors import Taint


@dataclass(frozen=True, slots=True)
class NodeCondition:
    """A condition of a node's status with the kubelet's reason and message."""

    type: Pressure
    status: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PodAdmitResult:
    """Whether the kubelet admits a pod; if not, the reason and message of its status."""

    admitted: bool
    reason: str = ""
    message: str = ""


PRESSURE_TAINTS: Final[Mapping[Pressure, Taint]] = {
    Pressure.MEMORY: Taint("node.kubernetes.io/memory-pressure", "", "NoSchedule"),
    Pressure.DISK: Taint("node.kubernetes.io/disk-pressure", "", "NoSchedule"),
    Pressure.PID: Taint("node.kubernetes.io/pid-pressure", "", "NoSchedule"),
}
"""The taint of a node for each pressure."""

_CONDITION_TEXTS: Final[Mapping[Pressure, tuple[tuple[str, str], tuple[str, str]]]] = {
    Pressure.MEMORY: (
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    ),
    Pressure.DISK: (
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
    ),
    Pressure.PID: (
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
    ),
}


def pressure_conditions(pressures: Collection[Pressure]) -> tuple[NodeCondition, ...]:
    """Return the three conditions that a node reports under these pressures."""
    return tuple(
        NodeCondition(pressure, pressure in pressures, *texts[pressure in pressures])
        for pressure, texts in _CONDITION_TEXTS.items()
    )


def pressure_taints(pressures: Collection[Pressure]) -> tuple[Taint, ...]:
    """Return the taints that a node has under these pressures."""
    return tuple(taint for pressure, taint in PRESSURE_TAINTS.items() if pressure in pressures)


def admit(pod: EvictablePod, pressures: Collection[Pressure]) -> PodAdmitResult:
    """Decide whether a kubelet under these pressures admits a pod.

    Critical pods are always admitted. Under memory pressure alone, all pods are admitted except
    best-effort pods that do not tolerate the taint.
    """
    if not pressures or pod.critical:
        return PodAdmitResult(admitted=True)
    if set(pressures) == {Pressure.MEMORY}:
        taint = PRESSURE_TAINTS[Pressure.MEMORY]
        if not pod.best_effort or any(each.tolerates(taint) for each in pod.tolerations):
            return PodAdmitResult(admitted=True)
    listed = " ".join(sorted(pressures))
    message = f"The node had condition: [{listed}]. "
    return PodAdmitResult(admitted=False, reason=REASON, message=message)
