"""The Events about a pod's lifecycle, each recorded once.

Sources: pkg/kubelet/events/event.go, pkg/kubelet/kuberuntime/kuberuntime_container.go,
pkg/kubelet/images/image_manager.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fakeapi.controlplane.kubelet.containers import ContainerLife, Exited, Running
from fakeapi.controlplane.kubelet.lives import PodLife
from fakeapi.controlplane.kubelet.parsing import parse_pod_script, wrong_script


@dataclass(frozen=True, slots=True)
class Story:
    """An event to be recorded; ``key`` identifies it among the events of its pod."""

    key: str
    reason: str
    message: str
    warning: bool = False


def stories(life: PodLife, now: int) -> Iterator[Story]:
    """Return the events of a pod's present state."""
    problem = wrong_script(life.pod.metadata.annotations, parse_pod_script)
    if problem:
        yield Story(f"script {problem}", "InvalidScript", problem, warning=True)
    ending = life.ending
    if ending is not None and ending.reason:
        yield Story("ending", ending.reason, ending.message, warning=True)
    for container in life.containers:
        yield from _started(container)
        yield from _waiting(container, life)
        stopping = isinstance(container.state, Running) and container.stop is not None
        if ending is not None and stopping:
            name = container.spec.name
            yield Story(f"{name} stops", "Killing", f"Stopping container {name}")
        if isinstance(container.state, Running) and not container.ready(now):
            yield from _unready(container, now)


def _started(container: ContainerLife) -> Iterator[Story]:
    if not isinstance(container.state, Running):
        return
    name, image, key = container.spec.name, container.spec.image, f"{container.spec.name} runs"
    key = f"{key} {container.restarts}"
    told = f'Container image "{image}" already present on machine'
    yield Story(f"{key} pulled", "Pulled", told)
    yield Story(f"{key} created", "Created", f"Created container: {name}")
    yield Story(f"{key} started", "Started", f"Started container {name}")


def _waiting(container: ContainerLife, life: PodLife) -> Iterator[Story]:
    if container.retry is None:
        return
    name, image, meta = container.spec.name, container.spec.image, life.pod.metadata
    if isinstance(container.state, Exited):
        pod = f"{meta.name}_{meta.namespace}({meta.uid})"
        told = f"Back-off restarting failed container {name} in pod {pod}"
        yield Story(f"{name} waits {container.restarts}", "BackOff", told, warning=True)
        return
    key = f"{name} pull {container.failed_pulls}"
    yield Story(f"{key} fails", "Failed", "Error: ErrImagePull", warning=True)
    yield Story(f"{key} waits", "BackOff", f'Back-off pulling image "{image}"')


def _unready(container: ContainerLife, now: int) -> Iterator[Story]:
    """Return the event of a container that was ready, and is not, by its script."""
    turns = [turn for turn in container.run.readiness if container.origin + turn.after <= now]
    if turns and not turns[-1].to:
        key = f"{container.spec.name} unready {container.restarts} {len(turns)}"
        yield Story(key, "Unhealthy", "Readiness probe failed: as its script says", warning=True)
