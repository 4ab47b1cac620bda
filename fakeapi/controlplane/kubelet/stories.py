"""The Events about a pod's lifecycle, each recorded once.

Sources: pkg/kubelet/events/event.go, pkg/kubelet/kuberuntime/kuberuntime_container.go,
pkg/kubelet/images/image_manager.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fakeapi.controlplane.kubelet.containers import (
    ContainerLifecycle,
    ContainerRunning,
    ContainerTerminated,
)
from fakeapi.controlplane.kubelet.lives import PodLifecycle
from fakeapi.controlplane.kubelet.parsing import parse_pod_script, script_error


@dataclass(frozen=True, slots=True)
class PodEvent:
    """An event to be recorded; ``key`` identifies it among the events of its pod."""

    key: str
    reason: str
    message: str
    warning: bool = False


def pod_events(life: PodLifecycle, now: int) -> Iterator[PodEvent]:
    """Return the events of a pod's present state."""
    problem = script_error(life.pod.metadata.annotations, parse_pod_script)
    if problem:
        yield PodEvent(f"script {problem}", "InvalidScript", problem, warning=True)
    ending = life.termination
    if ending is not None and ending.reason:
        yield PodEvent("ending", ending.reason, ending.message, warning=True)
    for container in life.containers:
        yield from _started(container)
        yield from _waiting(container, life)
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
    told = f'Container image "{image}" already present on machine'
    yield PodEvent(f"{key} pulled", "Pulled", told)
    yield PodEvent(f"{key} created", "Created", f"Created container: {name}")
    yield PodEvent(f"{key} started", "Started", f"Started container {name}")


def _waiting(container: ContainerLifecycle, life: PodLifecycle) -> Iterator[PodEvent]:
    if container.retry is None:
        return
    name, image, meta = container.spec.name, container.spec.image, life.pod.metadata
    if isinstance(container.state, ContainerTerminated):
        pod = f"{meta.name}_{meta.namespace}({meta.uid})"
        told = f"Back-off restarting failed container {name} in pod {pod}"
        yield PodEvent(f"{name} waits {container.restarts}", "BackOff", told, warning=True)
        return
    key = f"{name} pull {container.failed_pulls}"
    yield PodEvent(f"{key} fails", "Failed", "Error: ErrImagePull", warning=True)
    yield PodEvent(f"{key} waits", "BackOff", f'Back-off pulling image "{image}"')


def _unready(container: ContainerLifecycle, now: int) -> Iterator[PodEvent]:
    """Return the event of a container that was ready, and is not, by its script."""
    turns = [turn for turn in container.run.readiness if container.origin + turn.after <= now]
    if turns and not turns[-1].state:
        key = f"{container.spec.name} unready {container.restarts} {len(turns)}"
        yield PodEvent(key, "Unhealthy", "Readiness probe failed: as its script says", warning=True)
