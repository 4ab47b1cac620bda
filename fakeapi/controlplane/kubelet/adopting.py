"""Restoring a pod that was admitted before: after a restart of the kubelet, in a fork, from a dump.

The pod's status is taken as its state. A container that was started by a simulated kubelet (by its
ID) continues in its script where it was; other containers begin their scripts now.
"""

from __future__ import annotations

from extender.kube.times import moment
from fakeapi.controlplane.kubelet.backoffs import FIRST, LONGEST, Backoff
from fakeapi.controlplane.kubelet.containers import ContainerLife, Exited, Role, Running
from fakeapi.controlplane.kubelet.lives import PodLife
from fakeapi.controlplane.kubelet.scripts import PodScript
from fakeapi.controlplane.kubelet.shapes import ContainerStatus, Pod, TerminatedState


def adopt(pod: Pod, script: PodScript, now: int) -> PodLife:
    """Restore the lifecycle of a pod that has a start time, or is running."""
    admitted = moment(pod.status.start_time) or now
    life = PodLife.admit(pod, script, min(admitted, now))
    listed = (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
    known = {status.name: status for status in listed}
    for container in life.containers:
        status = known.get(container.spec.name)
        if status is not None:
            _take_over(container, status, now)
        elif pod.status.phase == "Running":
            _suppose(container, life.admitted, now)
    life.sandbox = any(container.ever_started for container in life.containers)
    life.initialized = any(container.ever_started for container in life.apps)
    life.advance(now)
    life.settle(now)
    return life


def _take_over(container: ContainerLife, status: ContainerStatus, now: int) -> None:
    container.restarts = status.restart_count
    before = _exited(status.last_state.terminated)
    state = status.state
    if state.running is not None:
        since = moment(state.running.started_at) or now
        container.state = Running(since)
        container.origin = since if status.container_id == container.id else now
        container.last = before
    elif state.terminated is not None:
        container.state = _exited(state.terminated) or container.state
        container.last = before
    elif before is not None:
        container.state = before
    if container.restarts:
        delay = min(FIRST << min(container.restarts - 1, 10), LONGEST)
        container.backoff = Backoff(delay, _began(container, now))


def _suppose(container: ContainerLife, admitted: int, now: int) -> None:
    """Assume that a running pod's container without a status is running, or has completed."""
    if container.role is Role.INIT:
        container.state = Exited(0, "Completed", admitted, admitted, container.id)
    else:
        container.state, container.origin = Running(admitted), now


def _exited(state: TerminatedState | None) -> Exited | None:
    if state is None:
        return None
    began, ended = moment(state.started_at), moment(state.finished_at)
    return Exited(state.exit_code, state.reason, began, ended, state.container_id, state.message)


def _began(container: ContainerLife, now: int) -> int:
    state = container.state
    if isinstance(state, Running):
        return state.since
    return state.began if isinstance(state, Exited) else now
