"""A pod's phase, and the conditions that the kubelet sets.

The rules are upstream's, also for containers that wait for a restart: those have terminated, but
not successfully.

Sources: getPhase in pkg/kubelet/kubelet_pods.go, pkg/kubelet/status/generate.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fakeapi.controlplane.kubelet.containers import ContainerLife, Exited, Role, Running, Waiting
from fakeapi.controlplane.kubelet.lives import PodLife

FINISHED: Final = ("Succeeded", "Failed")

_OVER: Final = {"Failed": "PodFailed", "Succeeded": "PodCompleted"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A condition's status, reason and message."""

    status: str
    reason: str = ""
    message: str = ""


TRUE: Final = Verdict("True")


@dataclass(slots=True)
class _Counts:
    """Numbers of containers by state: init containers that have not terminated, and the others."""

    uninitialized: int = 0
    failed: int = 0
    running: int = 0
    waiting: int = 0
    stopped: int = 0
    succeeded: int = 0


def phase_of(life: PodLife, now: int) -> str:
    """Return the pod's phase; a terminal phase that another client has written is kept."""
    if life.pod.finished:
        return life.pod.status.phase
    over = life.ended is not None
    if over and life.ending is not None and life.ending.reason:
        return "Failed"
    phase = _phase(life, _count(life, now))
    return "Failed" if over and phase not in FINISHED else phase


def _phase(life: PodLife, counts: _Counts) -> str:
    policy = life.pod.spec.restart_policy
    if counts.failed and policy == "Never":
        return "Failed"
    begun = any(container.ever_started for container in life.apps)
    if counts.waiting or (counts.uninitialized and not begun):
        return "Pending"
    if counts.running or not counts.stopped:
        return "Running" if counts.running else "Pending"
    well = counts.stopped == counts.succeeded
    if life.ended is not None:
        return "Succeeded" if well else "Failed"
    if policy == "Always":
        return "Running"
    if well or policy == "Never":
        return "Succeeded" if well else "Failed"
    return "Running"


def _count(life: PodLife, now: int) -> _Counts:
    counts = _Counts()
    for container in life.inits:
        if container.role is Role.INIT:
            _count_init(container, counts)
        else:
            _count_sidecar(container, counts, now)
    for container in life.apps:
        counts.running += isinstance(container.state, Running)
        counts.waiting += isinstance(container.state, Waiting)
        counts.stopped += isinstance(container.state, Exited)
        counts.succeeded += container.succeeded and container.retry is None
    return counts


def _count_init(container: ContainerLife, counts: _Counts) -> None:
    if isinstance(container.state, Exited):
        counts.failed += container.state.code != 0
    else:
        counts.uninitialized += 1


def _count_sidecar(container: ContainerLife, counts: _Counts, now: int) -> None:
    if isinstance(container.state, Running):
        counts.running += 1
        counts.uninitialized += not container.started(now)
    elif isinstance(container.state, Waiting):
        counts.uninitialized += 1
        counts.waiting += 1


def verdicts(life: PodLife, phase: str, gates: Mapping[str, str], now: int) -> dict[str, Verdict]:
    """Return the kubelet's conditions by type, in upstream's order.

    ``gates`` are the statuses of other conditions, to which readiness gates may refer.
    """
    containers_ready = _containers_ready(life, phase, now)
    return {
        "PodReadyToStartContainers": TRUE if _has_sandbox(life) else Verdict("False"),
        "Initialized": _initialized(life, phase, now),
        "Ready": _ready(life, containers_ready, gates),
        "ContainersReady": containers_ready,
        "PodScheduled": TRUE,
    }


def _has_sandbox(life: PodLife) -> bool:
    return life.sandbox and life.ended is None


def _initialized(life: PodLife, phase: str, now: int) -> Verdict:
    if phase == "Succeeded":
        return Verdict("True", "PodCompleted")
    if any(container.ever_started for container in life.apps):
        return TRUE
    missing = [
        container.spec.name
        for container in life.inits
        if not (container.succeeded if container.role is Role.INIT else container.started(now))
    ]
    if not missing:
        return TRUE
    return Verdict("False", "ContainersNotInitialized", _listed("incomplete", missing))


def _containers_ready(life: PodLife, phase: str, now: int) -> Verdict:
    if phase in FINISHED:
        return Verdict("False", _OVER[phase])
    unready = [
        container.spec.name
        for container in life.containers
        if container.role is not Role.INIT and not container.ready(now)
    ]
    return Verdict("False", "ContainersNotReady", _listed("unready", unready)) if unready else TRUE


def _ready(life: PodLife, containers: Verdict, gates: Mapping[str, str]) -> Verdict:
    if containers.status != "True":
        return containers
    asked = [gate.condition_type for gate in life.pod.spec.readiness_gates or ()]
    missing = [told for name in asked if (told := _gate(name, gates.get(name)))]
    return Verdict("False", "ReadinessGatesNotReady", ", ".join(missing)) if missing else TRUE


def _gate(name: str, status: str | None) -> str:
    if status is None:
        return f'corresponding condition of pod readiness gate "{name}" does not exist.'
    if status != "True":
        return f'the status of pod readiness gate "{name}" is not "True", but {status}'
    return ""


def _listed(how: str, names: Iterable[str]) -> str:
    return f"containers with {how} status: [{' '.join(names)}]"
