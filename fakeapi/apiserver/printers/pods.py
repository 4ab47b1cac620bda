"""The printer of pods, which computes READY, STATUS and RESTARTS.

STATUS is the last of these that applies: the phase, or the pod's own reason; SchedulingGated; the
progress of the init containers (``Init:1/3``, ``Init:Error``); the reason why a container is
waiting or terminated, where the first container takes precedence; Terminating. RESTARTS includes
init containers only while they run, and sidecars always.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fakeapi.apiserver.printers.human_readable import (
    NONE,
    Cell,
    RowPrinter,
    age,
    at,
    conditions,
    containers,
    deleted,
    flag,
    human_duration,
    labels,
    name,
    number,
    objects,
    parse_time,
    text,
    true_conditions,
)

Status = Mapping[str, Any]


@dataclass(slots=True)
class _Restarts:
    """The number of restarts, and the time of the last one."""

    count: int = 0
    last: int | None = None

    def add(self, status: Status) -> None:
        self.count += number(status, "restartCount")
        finished = parse_time(at(status, "lastState", "terminated", "finishedAt"))
        if finished is not None and (self.last is None or self.last < finished):
            self.last = finished

    def cell(self, now: int) -> str:
        if self.count and self.last is not None:
            return f"{self.count} ({human_duration(now - self.last)} ago)"
        return str(self.count)


@dataclass(slots=True)
class _PodSummary:
    """The reason, ready containers and restarts of a pod, while they are computed."""

    reason: str
    ready: int
    restarts: _Restarts
    initializing: bool = False


def pod(document: Mapping[str, Any], now: int) -> list[Cell]:
    """Return a pod's cells."""
    summary = _initialization(document)
    if not summary.initializing or "Initialized" in true_conditions(document):
        _add_containers(summary, document)
    return [
        name(document),
        f"{summary.ready}/{_expected(document)}",
        _deletion_status(document) or summary.reason,
        summary.restarts.cell(now),
        age(document, now),
        next((text(ip, "ip") for ip in objects(document, "status", "podIPs")), "") or NONE,
        text(document, "spec", "nodeName", absent=NONE),
        text(document, "status", "nominatedNodeName", absent=NONE),
        _readiness_gates(document),
    ]


def row_conditions(document: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the conditions of a pod's TableRow: Completed, if the pod has ended."""
    phase = text(document, "status", "phase")
    messages = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}
    if phase not in messages:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": messages[phase]}]


def _expected(document: Mapping[str, Any]) -> int:
    return len(objects(document, "spec", "containers")) + len(_sidecars(document))


def _sidecars(document: Mapping[str, Any]) -> frozenset[str]:
    initial = objects(document, "spec", "initContainers")
    return frozenset(text(c, "name") for c in initial if text(c, "restartPolicy") == "Always")


def _first_reason(document: Mapping[str, Any]) -> str:
    if text(conditions(document).get("PodScheduled"), "reason") == "SchedulingGated":
        return "SchedulingGated"
    phase = text(document, "status", "phase")
    return text(document, "status", "reason", absent=phase)


def _initialization(document: Mapping[str, Any]) -> _PodSummary:
    """Summarize the init containers up to the first that has not completed.

    If all have completed, only the restarts of sidecars are counted.
    """
    sidecars = _sidecars(document)
    total = len(objects(document, "spec", "initContainers"))
    all_restarts, sidecar_restarts = _Restarts(), _Restarts()
    summary = _PodSummary(_first_reason(document), 0, all_restarts)
    for index, status in enumerate(objects(document, "status", "initContainerStatuses")):
        all_restarts.add(status)
        is_sidecar = text(status, "name") in sidecars
        if is_sidecar:
            sidecar_restarts.add(status)
        if _has_ended_well(status):
            continue
        if is_sidecar and flag(status, "started"):
            summary.ready += flag(status, "ready")
            continue
        summary.reason = f"Init:{_init_reason(status) or f'{index}/{total}'}"
        summary.initializing = True
        break
    if not summary.initializing or "Initialized" in true_conditions(document):
        summary.restarts = sidecar_restarts
    return summary


def _has_ended_well(status: Status) -> bool:
    ended = at(status, "state", "terminated")
    return isinstance(ended, dict) and number(ended, "exitCode") == 0


def _init_reason(status: Status) -> str:
    if at(status, "state", "terminated") is not None:
        return _end_reason(status)
    waiting = text(status, "state", "waiting", "reason")
    return "" if waiting == "PodInitializing" else waiting


def _end_reason(status: Status) -> str:
    ended = at(status, "state", "terminated")
    signal = number(ended, "signal")
    by_number = f"Signal:{signal}" if signal else f"ExitCode:{number(ended, 'exitCode')}"
    return text(ended, "reason", absent=by_number)


def _add_containers(summary: _PodSummary, document: Mapping[str, Any]) -> None:
    running, failure = 0, ""
    for status in reversed(objects(document, "status", "containerStatuses")):
        summary.restarts.add(status)
        if waiting := text(status, "state", "waiting", "reason"):
            summary.reason = waiting
        elif at(status, "state", "terminated") is not None:
            summary.reason = _end_reason(status)
            failure = failure if _has_ended_well(status) else summary.reason
        elif flag(status, "ready") and at(status, "state", "running") is not None:
            running += 1
            summary.ready += 1
    if summary.reason == "Completed":
        summary.reason = _completed_status(document, running, failure)


def _completed_status(document: Mapping[str, Any], running: int, failure: str) -> str:
    """Return the status of a pod with completed containers, of which ``running`` still run."""
    if running and "Ready" in true_conditions(document):
        return "Running"
    return failure or ("NotReady" if running else "Completed")


def _deletion_status(document: Mapping[str, Any]) -> str:
    if not deleted(document):
        return ""
    if text(document, "status", "reason") == "NodeLost":
        return "Unknown"
    finished = text(document, "status", "phase") in ("Succeeded", "Failed")
    return "" if finished else "Terminating"


def _readiness_gates(document: Mapping[str, Any]) -> str:
    gates: Sequence[Mapping[str, Any]] = objects(document, "spec", "readinessGates")
    if not gates:
        return NONE
    holding = true_conditions(document)
    return f"{sum(text(gate, 'conditionType') in holding for gate in gates)}/{len(gates)}"


def _pod_template(document: Mapping[str, Any], _now: int) -> list[Cell]:
    return [
        name(document),
        *containers(document, "template", "spec"),
        labels(document, "template", "metadata", "labels"),
    ]


PRINTERS: Mapping[str, RowPrinter] = {"Pod": pod, "PodTemplate": _pod_template}
