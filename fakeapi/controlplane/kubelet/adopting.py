"""Restoring a pod that was admitted before: after a restart of the kubelet, in a fork, from a dump.

The pod's status is taken as its state. A container that was started by a simulated kubelet (by its
ID) continues in its script where it was; other containers begin their scripts now.
"""

from __future__ import annotations

from extender.kube.times import parse_time
from fakeapi.controlplane.kubelet.backoffs import INITIAL_BACKOFF, MAX_BACKOFF, ContainerBackoff
from fakeapi.controlplane.kubelet.containers import (
    ContainerLifecycle,
    ContainerRunning,
    ContainerTerminated,
    Role,
)
from fakeapi.controlplane.kubelet.lives import PodLifecycle
from fakeapi.controlplane.kubelet.scripts import PodScript
from fakeapi.controlplane.kubelet.shapes import ContainerStatus, KubeletPod, TerminatedState


def restore_pod(pod: KubeletPod, script: PodScript, now: int) -> PodLifecycle:
    """Restore the lifecycle of a pod that has a start time, or is running."""
    admitted = parse_time(pod.status.start_time) or now
    life = PodLifecycle.admit(pod, script, min(admitted, now))
    listed = (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
    known = {status.name: status for status in listed}
    for container in life.containers:
        status = known.get(container.spec.name)
        if status is not None:
            _restore_container(container, status, now)
        elif pod.status.phase == "Running":
            _assume_state(container, life.admitted, now)
    life.sandbox = any(container.ever_started for container in life.containers)
    life.initialized = any(container.ever_started for container in life.apps)
    life.advance(now)
    life.sync_containers(now)
    return life


def _restore_container(container: ContainerLifecycle, status: ContainerStatus, now: int) -> None:
    container.restarts = status.restart_count
    before = _exited(status.last_state.terminated)
    state = status.state
    if state.running is not None:
        since = parse_time(state.running.started_at) or now
        container.state = ContainerRunning(since)
        container.origin = since if status.container_id == container.id else now
        container.last = before
    elif state.terminated is not None:
        container.state = _exited(state.terminated) or container.state
        container.last = before
    elif before is not None:
        container.state = before
    if container.restarts:
        delay = min(INITIAL_BACKOFF << min(container.restarts - 1, 10), MAX_BACKOFF)
        container.backoff = ContainerBackoff(delay, _began(container, now))


def _assume_state(container: ContainerLifecycle, admitted: int, now: int) -> None:
    """Assume that a running pod's container without a status is running, or has completed."""
    if container.role is Role.INIT:
        container.state = ContainerTerminated(0, "Completed", admitted, admitted, container.id)
    else:
        container.state, container.origin = ContainerRunning(admitted), now


def _exited(state: TerminatedState | None) -> ContainerTerminated | None:
    if state is None:
        return None
    began, ended = parse_time(state.started_at), parse_time(state.finished_at)
    return ContainerTerminated(
        state.exit_code, state.reason, began, ended, state.container_id, state.message
    )


def _began(container: ContainerLifecycle, now: int) -> int:
    state = container.state
    if isinstance(state, ContainerRunning):
        return state.since
    return state.began if isinstance(state, ContainerTerminated) else now
