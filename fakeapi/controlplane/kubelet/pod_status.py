"""A pod's status as the kubelet writes it (a strategic merge patch), and its Events.

A condition keeps its transition time as long as its status stays; conditions of other clients are
unchanged. The patch has the pod's UID, so that it cannot modify another pod of the same name. Each
Event is recorded once.

Sources: convertToAPIContainerStatuses in pkg/kubelet/kubelet_pods.go, PatchPodStatus in
pkg/util/pod; pkg/kubelet/events/event.go, pkg/kubelet/kuberuntime/kuberuntime_container.go,
pkg/kubelet/images/image_manager.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

import orjson

from extender.kube.decoders.object_meta import format_time
from fakeapi.controlplane.controllers.types import ObjectCondition
from fakeapi.controlplane.kubelet.container_lifecycle import (
    ContainerLifecycle,
    ContainerRunning,
    ContainerTerminated,
    ContainerWaiting,
    Role,
)
from fakeapi.controlplane.kubelet.pod_lifecycle import PodLifecycle
from fakeapi.controlplane.kubelet.pod_phase import ConditionStatus, phase_of, pod_conditions
from fakeapi.controlplane.kubelet.script_parser import parse_pod_script
from fakeapi.controlplane.kubelet.scripts import script_error
from fakeapi.controlplane.kubelet.types import ContainerResources
from policies.kubernetes.duration import format_duration

Document = dict[str, Any]

KUBELET_CONDITIONS: Final = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
)
DISRUPTION_TARGET: Final = "DisruptionTarget"


@dataclass(slots=True)
class WrittenConditions:
    """The conditions that were written for a pod: by type, the status and its transition time."""

    conditions: dict[str, tuple[ConditionStatus, str]] = field(default_factory=dict)

    @classmethod
    def read(cls, conditions: Iterable[ObjectCondition] | None) -> WrittenConditions:
        """Return the conditions of a pod's status."""
        return cls(
            {
                each.type: (
                    ConditionStatus(each.status, each.reason, each.message),
                    each.last_transition_time or "",
                )
                for each in conditions or ()
            }
        )

    @property
    def statuses(self) -> Mapping[str, str]:
        """The statuses of all conditions by type."""
        return {type_: status.status for type_, (status, _) in self.conditions.items()}

    def record_foreign(self, conditions: Iterable[ObjectCondition] | None) -> bool:
        """Record conditions of other clients; return whether one of the kubelet's has changed."""
        contradicted = False
        for each in conditions or ():
            written = self.conditions.get(each.type)
            if each.type in KUBELET_CONDITIONS:
                contradicted |= written is not None and written[0].status != each.status
            else:
                status = ConditionStatus(each.status, each.reason, each.message)
                self.conditions[each.type] = status, each.last_transition_time or ""
        return contradicted

    def record(self, type_: str, status: ConditionStatus, now: str) -> str:
        """Record a condition, and return its transition time."""
        before = self.conditions.get(type_)
        same = before is not None and before[0].status == status.status and before[1]
        since = before[1] if before is not None and same else now
        self.conditions[type_] = (status, since)
        return since


@dataclass(frozen=True, slots=True)
class PodIPs:
    """The IPs of a pod: its node's, and its own ("" before it has one)."""

    host: str
    address: str


def status_patch(
    lifecycle: PodLifecycle, written: WrittenConditions, pod_ips: PodIPs, now: int
) -> Document:
    """Return the patch that updates a pod's status, and record its conditions in ``written``."""
    phase = phase_of(lifecycle, now)
    meta, moment = lifecycle.pod.metadata, format_time(now)
    statuses = pod_conditions(lifecycle, phase, written.statuses, now)
    over, ending = lifecycle.ended is not None, lifecycle.termination
    if over and ending is not None and ending.disruption:
        disruption = ConditionStatus("True", "TerminationByKubelet", ending.disruption)
        statuses = {DISRUPTION_TARGET: disruption, **statuses}
    conditions = [
        _condition(type_, each, written.record(type_, each, moment), meta.generation)
        for type_, each in statuses.items()
    ]
    status: Document = {
        "$setElementOrder/conditions": [{"type": type_} for type_ in statuses],
        "phase": phase,
        "conditions": conditions,
        "hostIP": pod_ips.host,
        "hostIPs": [{"ip": pod_ips.host}],
        "startTime": format_time(lifecycle.admitted),
        "containerStatuses": [_container(each, lifecycle, now) for each in lifecycle.apps],
    }
    if meta.generation:
        status["observedGeneration"] = meta.generation
    if lifecycle.inits:
        status["initContainerStatuses"] = [
            _container(each, lifecycle, now) for each in lifecycle.inits
        ]
    if pod_ips.address:
        status |= {"podIP": pod_ips.address, "podIPs": [{"ip": pod_ips.address}]}
    if over and ending is not None and ending.reason:
        status |= {"reason": ending.reason, "message": ending.message}
    return {"metadata": {"uid": meta.uid}, "status": status}


def is_status_written(raw: bytes, patch: Document) -> bool:
    """Return whether a pod, as JSON, has the status of a patch already."""
    status: Document = orjson.loads(raw).get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    written = {name: each for name, each in patch["status"].items() if not name.startswith("$")}
    return all(
        conditions.get(each["type"], {}).get(name) == value
        for each in written.pop("conditions")
        for name, value in each.items()
    ) and all(status.get(name) == value for name, value in written.items())


def rejection_patch(uid: str, generation: int, reason: str, message: str, now: int) -> Document:
    """Return the patch of a rejected pod: its status has only the reason."""
    status: Document = {
        "phase": "Failed",
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "startTime": format_time(now),
        "conditions": [{"type": "PodScheduled", "$patch": "delete"}],
    }
    if generation:
        status["observedGeneration"] = generation
    return {"metadata": {"uid": uid}, "status": status}


def _condition(type_: str, status: ConditionStatus, since: str, generation: int) -> Document:
    condition: Document = {
        "type": type_,
        "status": status.status,
        "lastTransitionTime": since,
        "reason": status.reason or None,
        "message": status.message or None,
    }
    return {**condition, "observedGeneration": generation} if generation else condition


def _container(container: ContainerLifecycle, lifecycle: PodLifecycle, now: int) -> Document:
    spec, state = container.spec, container.state
    again = isinstance(state, ContainerTerminated) and container.retry is not None
    last = state if again else container.last
    was_started = container.ever_started
    document: Document = {
        "name": spec.name,
        "image": spec.image,
        "imageID": image_id(spec.image) if was_started else "",
        "ready": container.ready(now),
        "started": container.started(now),
        "restartCount": container.restarts,
        "state": _waiting_again(container, lifecycle) if again else _state(state),
        "lastState": _state(last) if isinstance(last, ContainerTerminated) else {},
    }
    if was_started:
        document["containerID"] = (
            state.id if isinstance(state, ContainerTerminated) else container.id
        )
    if isinstance(state, ContainerRunning) and container.role is not Role.INIT:
        document |= _resources(spec.resources)
    return document


def _resources(resources: ContainerResources | None) -> Document:
    """Return the resources of a running container, as allocated at admission."""
    if resources is None or not (resources.requests or resources.limits):
        return {}
    amounts = {"requests": resources.requests, "limits": resources.limits}
    in_force = {name: found for name, found in amounts.items() if found}
    return {"resources": in_force, "allocatedResources": resources.requests or {}}


def _state(state: ContainerWaiting | ContainerRunning | ContainerTerminated) -> Document:
    if isinstance(state, ContainerRunning):
        return {"running": {"startedAt": format_time(state.since)}}
    if isinstance(state, ContainerWaiting):
        details = {"reason": state.reason, "message": state.message}
        return {"waiting": {name: text for name, text in details.items() if text}}
    details = {"reason": state.reason, "message": state.message, "containerID": state.id}
    if state.ended:
        details |= {"startedAt": format_time(state.began), "finishedAt": format_time(state.ended)}
    texts = {name: text for name, text in details.items() if text}
    return {"terminated": {"exitCode": state.code, **texts}}


def _waiting_again(container: ContainerLifecycle, lifecycle: PodLifecycle) -> Document:
    message = crash_message(container, lifecycle)
    return {"waiting": {"reason": "CrashLoopBackOff", "message": message}}


def crash_message(container: ContainerLifecycle, lifecycle: PodLifecycle) -> str:
    """Return the message of a container in CrashLoopBackOff."""
    delay, meta = format_duration(container.backoff.delay), lifecycle.pod.metadata
    pod = f"{meta.name}_{meta.namespace}({meta.uid})"
    return f"back-off {delay} restarting failed container={container.spec.name} pod={pod}"


def image_id(image: str) -> str:
    """Return the ID of a pulled image, by its digest."""
    name = image.partition("@")[0]
    repository = name if ":" not in name.rpartition("/")[2] else name.rpartition(":")[0]
    return f"{repository}@sha256:{sha256(image.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True)
class PodEvent:
    """An event to be recorded; ``key`` identifies it among the events of its pod."""

    key: str
    reason: str
    message: str
    warning: bool = False


def pod_events(lifecycle: PodLifecycle, now: int) -> Iterator[PodEvent]:
    """Return the events of a pod's present state."""
    problem = script_error(lifecycle.pod.metadata.annotations, parse_pod_script)
    if problem:
        yield PodEvent(f"script {problem}", "InvalidScript", problem, warning=True)
    ending = lifecycle.termination
    if ending is not None and ending.reason:
        yield PodEvent("ending", ending.reason, ending.message, warning=True)
    for container in lifecycle.containers:
        yield from _started(container)
        yield from _waiting(container, lifecycle)
        stopping = isinstance(container.state, ContainerRunning) and container.stop is not None
        if ending is not None and stopping:
            name = container.spec.name
            yield PodEvent(f"{name} stops", "Killing", f"Stopping container {name}")
        if isinstance(container.state, ContainerRunning) and not container.ready(now):
            yield from _unready(container, now)


def _started(container: ContainerLifecycle) -> Iterator[PodEvent]:
    if not isinstance(container.state, ContainerRunning):
        return
    name, image, key = container.spec.name, container.spec.image, f"{container.spec.name} runs"
    key = f"{key} {container.restarts}"
    message = f'Container image "{image}" already present on machine'
    yield PodEvent(f"{key} pulled", "Pulled", message)
    yield PodEvent(f"{key} created", "Created", f"Created container: {name}")
    yield PodEvent(f"{key} started", "Started", f"Started container {name}")


def _waiting(container: ContainerLifecycle, lifecycle: PodLifecycle) -> Iterator[PodEvent]:
    if container.retry is None:
        return
    name, image, meta = container.spec.name, container.spec.image, lifecycle.pod.metadata
    if isinstance(container.state, ContainerTerminated):
        pod = f"{meta.name}_{meta.namespace}({meta.uid})"
        message = f"Back-off restarting failed container {name} in pod {pod}"
        yield PodEvent(f"{name} waits {container.restarts}", "BackOff", message, warning=True)
        return
    key = f"{name} pull {container.failed_pulls}"
    yield PodEvent(f"{key} fails", "Failed", "Error: ErrImagePull", warning=True)
    yield PodEvent(f"{key} waits", "BackOff", f'Back-off pulling image "{image}"')


def _unready(container: ContainerLifecycle, now: int) -> Iterator[PodEvent]:
    """Return the event of a container that was ready, and is not, by its script."""
    transitions = [t for t in container.run.readiness if container.origin + t.after <= now]
    if transitions and not transitions[-1].state:
        key = f"{container.spec.name} unready {container.restarts} {len(transitions)}"
        yield PodEvent(key, "Unhealthy", "Readiness probe failed: as its script says", warning=True)
