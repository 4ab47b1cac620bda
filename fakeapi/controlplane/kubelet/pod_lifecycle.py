"""The lifecycle of one pod, from its admission until its last container has terminated.

    admitted ── start ──> init containers, one after another ──> all others, together ──> ended
                              │                                      │
                              └── restarted by the restart policy, with backoff ─────────┘

A termination (by a delete, an eviction, the active deadline, a critical pod) has a grace period:
the containers are requested to stop, sidecars after all others, and are killed at its end. Of
several deadlines the earliest counts.

:meth:`PodLifecycle.advance` processes every transition that is due, each at its own time; so a
kubelet that was down catches up with what has happened meanwhile.

Sources: computePodActions in pkg/kubelet/kuberuntime/kuberuntime_manager.go, SyncTerminatingPod in
pkg/kubelet/kubelet.go, calculateEffectiveGracePeriod in pkg/kubelet/pod_workers.go, TerminatePod in
pkg/kubelet/status/status_manager.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from fakeapi.controlplane.kubelet.container_lifecycle import (
    INITIALIZING,
    STATUS_UNKNOWN,
    ContainerLifecycle,
    ContainerRunning,
    ContainerTerminated,
    ContainerWaiting,
    Role,
)
from fakeapi.controlplane.kubelet.scripts import ContainerScript, PodScript
from fakeapi.controlplane.kubelet.types import Container, KubeletPod
from fakeapi.controlplane.kubelet.usage_curves import SECOND

DEFAULT_GRACE_SECONDS: Final = 30
_OVERDUE: Final = "Pod was active on the node longer than the specified deadline"


@dataclass(frozen=True, slots=True)
class Termination:
    """The termination of a pod: requested at ``at``, with kill at ``deadline``.

    ``reason`` and ``message`` become those of its status, if set; ``disruption`` is the message of
    its condition DisruptionTarget, "" for none.
    """

    at: int
    deadline: int
    reason: str = ""
    message: str = ""
    disruption: str = ""


@dataclass(slots=True)
class PodLifecycle:
    """A pod that was admitted at ``admitted``; ``ended`` is when all containers had stopped.

    ``sandbox`` is set once its containers may be started, ``initialized`` once its init containers
    have completed. Transitions up to ``advanced_to`` are processed.
    """

    pod: KubeletPod
    script: PodScript
    admitted: int
    inits: tuple[ContainerLifecycle, ...]
    apps: tuple[ContainerLifecycle, ...]
    sandbox: bool = False
    initialized: bool = False
    termination: Termination | None = None
    ended: int | None = None
    advanced_to: int = 0

    @classmethod
    def admit(cls, pod: KubeletPod, script: PodScript, now: int) -> PodLifecycle:
        """Return the lifecycle of a pod that has just been admitted."""
        spec, uid = pod.spec, pod.metadata.uid
        inits = tuple(
            _container(each, Role.SIDECAR if each.restart_policy == "Always" else Role.INIT, uid)
            for each in spec.init_containers or ()
        )
        apps = tuple(_container(each, Role.APP, uid) for each in spec.containers or ())
        for container in (*inits, *apps) if inits else ():
            container.state = INITIALIZING
        lifecycle = cls(pod, script, now, inits, apps, advanced_to=now)
        lifecycle.start_script(script, now)
        return lifecycle

    @property
    def containers(self) -> Iterator[ContainerLifecycle]:
        """All containers, init containers first."""
        yield from self.inits
        yield from self.apps

    @property
    def grace(self) -> int:
        """The pod's own termination grace period, in nanoseconds."""
        seconds = self.pod.spec.termination_grace_period_seconds
        return SECOND * max(0, DEFAULT_GRACE_SECONDS if seconds is None else seconds)

    def start_script(self, script: PodScript, now: int) -> None:
        """Start a script now."""
        self.script = script
        for container in self.containers:
            ends = container.role is Role.INIT
            container.script = script.of(container.spec.name, ends=ends)
            container.origin = now

    def advance(self, now: int) -> None:
        """Process every transition that is due."""
        while (moment := self.next_event()) is not None and moment <= now:
            self._process_due(moment)
        self.advanced_to = max(self.advanced_to, now)

    def terminate(self, termination: Termination) -> None:
        """Terminate the pod; if it already terminates, the earlier deadline counts.

        The minimum grace period is one second.
        """
        if self.ended is not None:
            return
        current = self.termination
        termination = replace(
            termination, deadline=max(termination.deadline, termination.at + SECOND)
        )
        if current is not None:
            termination = replace(current, deadline=min(current.deadline, termination.deadline))
        self.termination = termination
        self._stop_containers(max(termination.at, self.admitted))

    def next_event(self) -> int | None:
        """Return the time of its next transition."""
        if self.ended is not None:
            return None
        moments = [m for each in self.containers if (m := self._event_of(each)) is not None]
        if not self.sandbox and self.termination is None:
            moments.append(self._starts)
        deadline = self._deadline
        if deadline is not None and self.termination is None:
            moments.append(deadline)
        return min(moments, default=None)

    def next_change(self, now: int) -> int | None:
        """Return the time of its next transition, or change of its status, after ``now``."""
        if self.ended is not None:
            return None
        changes = (each.next_change(now) for each in self.containers)
        moments = [moment for moment in (*changes, self.next_event()) if moment is not None]
        return min(moments, default=None)

    @property
    def _starts(self) -> int:
        return self.admitted + self.script.start

    @property
    def _deadline(self) -> int | None:
        seconds = self.pod.spec.active_deadline_seconds
        return None if seconds is None else self.admitted + seconds * SECOND

    def _event_of(self, container: ContainerLifecycle) -> int | None:
        """Return when a container terminates, is to be started again, or has started up."""
        if not isinstance(container.state, ContainerRunning):
            return container.retry if self.termination is None else None
        end = container.next_end()
        up = container.state.since + container.startup
        waited_for = (
            container.role is Role.SIDECAR and not self.initialized and up > self.advanced_to
        )
        if waited_for and (end is None or up < end.after):
            return up
        return end.after if end is not None else None

    def _process_due(self, moment: int) -> None:
        self.advanced_to = max(self.advanced_to, moment)
        for container in self.containers:
            how = container.next_end()
            if how is not None and how.after <= moment:
                container.exit(how)
        deadline = self._deadline
        if self.termination is None and deadline is not None and deadline <= moment:
            self.terminate(Termination(moment, moment + self.grace, "DeadlineExceeded", _OVERDUE))
        self.sync_containers(moment)

    def sync_containers(self, now: int) -> None:
        """Start the containers that are due, or stop them if the pod terminates."""
        if self.ended is not None:
            return
        if self.termination is not None:
            self._stop_containers(now)
        elif now >= self._starts or self.sandbox:
            self.sandbox = True
            self._sync_running(now)

    def _sync_running(self, now: int) -> None:
        self.initialized = self.initialized or self._initialize(now)
        if self.termination is not None or not self.initialized:
            return
        for container in self.containers:
            if container.role is not Role.INIT:
                self._start_if_due(container, now)
        if not any(self._may_run(container) for container in self.apps):
            self.terminate(Termination(now, now + self.grace))

    def _initialize(self, now: int) -> bool:
        """Start the init containers in their order; return whether they have completed."""
        for container in self.inits:
            if container.role is Role.INIT and container.succeeded:
                continue
            if not self._may_run(container):
                self.terminate(Termination(now, now + self.grace))
                return False
            self._start_if_due(container, now)
            if container.role is Role.INIT or not container.started(now):
                return False
        return True

    def _may_run(self, container: ContainerLifecycle) -> bool:
        """Return whether a container runs, or is to be started or restarted."""
        if not isinstance(container.state, ContainerTerminated):
            return True
        policy = container.spec.restart_policy or self.pod.spec.restart_policy
        if container.role is Role.INIT:
            return container.state.code != 0 and policy != "Never"
        return policy == "Always" or (policy == "OnFailure" and container.state.code != 0)

    def _start_if_due(self, container: ContainerLifecycle, now: int) -> None:
        """Start a container if it is to be started and its backoff has passed."""
        if isinstance(container.state, ContainerRunning) or not self._may_run(container):
            return
        if isinstance(container.state, ContainerTerminated) and container.retry is None:
            container.retry = max(now, container.backoff.retry_at(container.state.ended))
        if container.retry is None or container.retry <= now:
            container.retry = None
            if not container.pull_fails(now):
                container.start(now)

    def _stop_containers(self, now: int) -> None:
        """Stop the running containers, sidecars last; once none runs, the pod has ended."""
        assert self.termination is not None
        running = [each for each in self.containers if isinstance(each.state, ContainerRunning)]
        first = [each for each in running if each.role is not Role.SIDECAR] or running
        for container in first:
            container.request_stop(now, max(now, self.termination.deadline))
        if not running:
            self.ended = now
            self._set_unstarted_states()

    def _set_unstarted_states(self) -> None:
        """Set the final state of containers that have never been started."""
        began = [index for index, each in enumerate(self.inits) if each.ever_started]
        lost = [*self.inits[: max([*began, 0]) + 1], *(self.apps if self._had_initialized else ())]
        for container in self.containers:
            container.retry = None
            if container in lost and isinstance(container.state, ContainerWaiting):
                container.state = STATUS_UNKNOWN

    @property
    def _had_initialized(self) -> bool:
        started = any(container.ever_started for container in self.apps)
        return not self.inits or started or self.inits[-1].succeeded


def _container(spec: Container, role: Role, uid: str) -> ContainerLifecycle:
    return ContainerLifecycle(spec, role, _NO_SCRIPT, uid)


_NO_SCRIPT: Final = ContainerScript()
