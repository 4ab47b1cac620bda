"""A pod's phase, and the conditions that the kubelet sets.

The rules are upstream's, also for containers that wait for a restart: those have terminated, but
not successfully.

Sources: getPhase in pkg/kubelet/kubelet_pods.go, pkg/kubelet/status/generate.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fakeapi.controlplane.kubelet.container_lifecycle import (
    ContainerLifecycle,
    ContainerRunning,
    ContainerTerminated,
    ContainerWaiting,
    Role,
)
from fakeapi.controlplane.kubelet.pod_lifecycle import PodLifecycle

FINISHED: Final = ("Succeeded", "Failed")

_TERMINAL_REASONS: Final = {"Failed": "PodFailed", "Succeeded": "PodCompleted"}


@dataclass(frozen=True, slots=True)
class ConditionStatus:
    """A condition's status, reason and message."""

    status: str
    reason: str = ""
    message: str = ""


TRUE: Final = ConditionStatus("True")


@dataclass(slots=True)
class _Counts:
    """Numbers of containers by state: init containers that have not terminated, and the others."""

    uninitialized: int = 0
    failed: int = 0
    running: int = 0
    waiting: int = 0
    stopped: int = 0
    succeeded: int = 0


def phase_of(lifecycle: PodLifecycle, now: int) -> str:
    """Return the pod's phase; a terminal phase that another client has written is kept."""
    if lifecycle.pod.finished:
        return lifecycle.pod.status.phase
    over = lifecycle.ended is not None
    if over and lifecycle.termination is not None and lifecycle.termination.reason:
        return "Failed"
    phase = _phase(lifecycle, _count(lifecycle, now))
    return "Failed" if over and phase not in FINISHED else phase


def _phase(lifecycle: PodLifecycle, counts: _Counts) -> str:
    policy = lifecycle.pod.spec.restart_policy
    if counts.failed and policy == "Never":
        return "Failed"
    was_started = any(container.ever_started for container in lifecycle.apps)
    if counts.waiting or (counts.uninitialized and not was_started):
        return "Pending"
    if counts.running or not counts.stopped:
        return "Running" if counts.running else "Pending"
    well = counts.stopped == counts.succeeded
    if lifecycle.ended is not None:
        return "Succeeded" if well else "Failed"
    if policy == "Always":
        return "Running"
    if well or policy == "Never":
        return "Succeeded" if well else "Failed"
    return "Running"


def _count(lifecycle: PodLifecycle, now: int) -> _Counts:
    counts = _Counts()
    for container in lifecycle.inits:
        if container.role is Role.INIT:
            _count_init(container, counts)
        else:
            _count_sidecar(container, counts, now)
    for container in lifecycle.apps:
        counts.running += isinstance(container.state, ContainerRunning)
        counts.waiting += isinstance(container.state, ContainerWaiting)
        counts.stopped += isinstance(container.state, ContainerTerminated)
        counts.succeeded += container.succeeded and container.retry is None
    return counts


def _count_init(container: ContainerLifecycle, counts: _Counts) -> None:
    if isinstance(container.state, ContainerTerminated):
        counts.failed += container.state.code != 0
    else:
        counts.uninitialized += 1


def _count_sidecar(container: ContainerLifecycle, counts: _Counts, now: int) -> None:
    if isinstance(container.state, ContainerRunning):
        counts.running += 1
        counts.uninitialized += not container.started(now)
    elif isinstance(container.state, ContainerWaiting):
        counts.uninitialized += 1
        counts.waiting += 1


def pod_conditions(
    lifecycle: PodLifecycle, phase: str, gates: Mapping[str, str], now: int
) -> dict[str, ConditionStatus]:
    """Return the kubelet's conditions by type, in upstream's order.

    ``gates`` are the statuses of other conditions, to which readiness gates may refer.
    """
    containers_ready = _containers_ready(lifecycle, phase, now)
    return {
        "PodReadyToStartContainers": TRUE if _has_sandbox(lifecycle) else ConditionStatus("False"),
        "Initialized": _initialized(lifecycle, phase, now),
        "Ready": _ready(lifecycle, containers_ready, gates),
        "ContainersReady": containers_ready,
        "PodScheduled": TRUE,
    }


def _has_sandbox(lifecycle: PodLifecycle) -> bool:
    return lifecycle.sandbox and lifecycle.ended is None


def _initialized(lifecycle: PodLifecycle, phase: str, now: int) -> ConditionStatus:
    if phase == "Succeeded":
        return ConditionStatus("True", "PodCompleted")
    if any(container.ever_started for container in lifecycle.apps):
        return TRUE
    missing = [
        container.spec.name
        for container in lifecycle.inits
        if not (container.succeeded if container.role is Role.INIT else container.started(now))
    ]
    if not missing:
        return TRUE
    return ConditionStatus(
        "False", "ContainersNotInitialized", _containers_message("incomplete", missing)
    )


def _containers_ready(lifecycle: PodLifecycle, phase: str, now: int) -> ConditionStatus:
    if phase in FINISHED:
        return ConditionStatus("False", _TERMINAL_REASONS[phase])
    unready = [
        container.spec.name
        for container in lifecycle.containers
        if container.role is not Role.INIT and not container.ready(now)
    ]
    return (
        ConditionStatus("False", "ContainersNotReady", _containers_message("unready", unready))
        if unready
        else TRUE
    )


def _ready(
    lifecycle: PodLifecycle, containers: ConditionStatus, gates: Mapping[str, str]
) -> ConditionStatus:
    if containers.status != "True":
        return containers
    types = [gate.condition_type for gate in lifecycle.pod.spec.readiness_gates or ()]
    missing = [message for name in types if (message := _gate(name, gates.get(name)))]
    return (
        ConditionStatus("False", "ReadinessGatesNotReady", ", ".join(missing)) if missing else TRUE
    )


def _gate(name: str, status: str | None) -> str:
    if status is None:
        return f'corresponding condition of pod readiness gate "{name}" does not exist.'
    if status != "True":
        return f'the status of pod readiness gate "{name}" is not "True", but {status}'
    return ""


def _containers_message(how: str, names: Iterable[str]) -> str:
    return f"containers with {how} status: [{' '.join(names)}]"
