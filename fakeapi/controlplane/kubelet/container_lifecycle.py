"""The lifecycle of one container: its state, its next transition, and the backoff of restarts.

A container is waiting, running, or terminated; its script determines when it exits by itself. Usage
of memory above its limit kills it at once. After a stop request it exits after its preStop hook and
its script's delay, and is killed (137) at the end of its grace period.

The first failure (of a container or an image pull) has no delay; then 10 s, 20 s, … at most 5 min,
counted from the failure. The backoff is reset when a container has not failed for ten minutes.

    runs     5 s      5 s      5 s      11 min    5 s
    waits        0 s      10 s     20 s       0 s      10 s

Sources: doBackOff in pkg/kubelet/kuberuntime/kuberuntime_manager.go,
k8s.io/client-go/util/flowcontrol/backoff.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from typing import Final

from fakeapi.controlplane.kubelet.scripts import (
    ContainerScript,
    Exit,
    Run,
    default_usage,
    is_persistent,
    next_transition,
    parse_amount,
    state_at,
    usage_curve,
)
from fakeapi.controlplane.kubelet.types import Container
from fakeapi.controlplane.kubelet.usage_curves import SECOND, Curve
from policies.kubernetes.quantity import units

INITIAL_BACKOFF: Final = 10 * SECOND
MAX_BACKOFF: Final = 300 * SECOND
BACKOFF_RESET_AFTER: Final = 2 * MAX_BACKOFF


@dataclass(frozen=True, slots=True)
class ContainerBackoff:
    """The delay after the next failure, set at ``since``; 0 before the first failure."""

    delay: int = 0
    since: int = 0

    def retry_at(self, failed: int) -> int:
        """Return the time of the retry after a failure."""
        return failed if self._forgotten(failed) else failed + self.delay

    def next_backoff(self, failed: int, now: int) -> ContainerBackoff:
        """Return the backoff after a retry at ``now``."""
        if self._forgotten(failed):
            return ContainerBackoff(INITIAL_BACKOFF, now)
        return ContainerBackoff(min(2 * self.delay, MAX_BACKOFF), now)

    def _forgotten(self, failed: int) -> bool:
        return not self.delay or failed - self.since > BACKOFF_RESET_AFTER


KILLED: Final = 137


class Role(Enum):
    """The role of a container in its pod."""

    INIT = "init"
    SIDECAR = "sidecar"
    APP = "app"


@dataclass(frozen=True, slots=True)
class ContainerWaiting:
    """The container has not been started, or its image cannot be pulled."""

    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class ContainerRunning:
    """The container has been running since some time."""

    since: int


@dataclass(frozen=True, slots=True)
class ContainerTerminated:
    """The container ran from ``began`` to ``ended`` (0: unknown), as the container ``id``."""

    code: int
    reason: str
    began: int
    ended: int
    id: str = ""
    message: str = ""


State = ContainerWaiting | ContainerRunning | ContainerTerminated
CREATING: Final = ContainerWaiting("ContainerCreating")
INITIALIZING: Final = ContainerWaiting("PodInitializing")
STATUS_UNKNOWN: Final = ContainerTerminated(
    KILLED,
    "ContainerStatusUnknown",
    0,
    0,
    message="The container could not be located when the pod was terminated",
)


@dataclass(slots=True)
class ContainerLifecycle:
    """A container; times are nanoseconds.

    ``last`` is its previous termination, ``origin`` the start of its run's stages, ``stop`` the
    time and the code of its requested end, ``retry`` the time of its next start or image pull.
    """

    spec: Container
    role: Role
    script: ContainerScript
    uid: str
    state: State = CREATING
    last: ContainerTerminated | None = None
    restarts: int = 0
    origin: int = 0
    stop: tuple[int, int] | None = None
    retry: int | None = None
    failed_pulls: int = 0
    backoff: ContainerBackoff = field(default_factory=ContainerBackoff)

    @property
    def id(self) -> str:
        """The container ID; it changes with each restart."""
        digest = sha256(f"{self.uid}/{self.spec.name}/{self.restarts}".encode())
        return f"containerd://{digest.hexdigest()}"

    @property
    def run(self) -> Run:
        """The script's current run."""
        return self.script.run(self.restarts)

    @property
    def succeeded(self) -> bool:
        """Whether it has terminated with exit code 0."""
        return isinstance(self.state, ContainerTerminated) and self.state.code == 0

    @property
    def ever_started(self) -> bool:
        """Whether it is running or has run."""
        return not isinstance(self.state, ContainerWaiting) or self.last is not None

    def start(self, now: int) -> None:
        """Start or restart the container."""
        if isinstance(self.state, ContainerTerminated):
            self.last = self.state
            self.restarts += 1
            self.backoff = self.backoff.next_backoff(self.state.ended, now)
        self.state, self.origin = ContainerRunning(now), now
        self.stop = self.retry = None

    def pull_fails(self, now: int) -> bool:
        """Return whether an image pull fails now; if so, schedule the next one."""
        if self.ever_started or self.failed_pulls >= self.script.failed_pulls:
            return False
        self.failed_pulls += 1
        self.backoff = self.backoff.next_backoff(now, now)
        self.retry = now + self.backoff.delay
        if self.failed_pulls == self.script.failed_pulls:
            self.backoff = ContainerBackoff()
        image = self.spec.image
        self.state = ContainerWaiting("ImagePullBackOff", f'Back-off pulling image "{image}"')
        return True

    def request_stop(self, now: int, deadline: int) -> None:
        """Request a running container to stop; of several deadlines the earliest counts."""
        pre_stop = self.spec.lifecycle.pre_stop if self.spec.lifecycle else None
        waits = pre_stop.sleep.seconds * SECOND if pre_stop and pre_stop.sleep else 0
        done = now + waits + self.script.stop.after
        end = (done, self.script.stop.code) if done <= deadline else (deadline, KILLED)
        self.stop = end if self.stop is None else min(self.stop, end)

    def next_end(self) -> Exit | None:
        """Return how a running container will end; ``after`` is the time of its end."""
        if not isinstance(self.state, ContainerRunning):
            return None
        ends = [each for each in (self._own_end(), self._requested_end()) if each is not None]
        return min(ends, key=_after, default=None)

    def exit(self, how: Exit) -> None:
        """Terminate a running container at ``how.after``."""
        assert isinstance(self.state, ContainerRunning)
        reason = how.reason or ("Error" if how.code else "Completed")
        began = self.state.since
        self.state = ContainerTerminated(
            how.code, reason, began, max(began, how.after), self.id, how.message
        )
        self.stop = None

    def next_change(self, now: int) -> int | None:
        """Return when a running container, or its status, changes next after ``now``."""
        if not isinstance(self.state, ContainerRunning):
            return None
        since, end = self.state.since, self.next_end()
        turn = next_transition(self.run.readiness, now - self.origin)
        moments = [
            since + each for each in (self.startup, self._probed_after()) if since + each > now
        ]
        moments += [self.origin + turn] if turn is not None else []
        return min([*moments, end.after] if end is not None else moments, default=None)

    @property
    def startup(self) -> int:
        """The time until it has started up."""
        probe = self.spec.startup_probe
        return probe.initial_delay_seconds * SECOND if probe else 0

    def started(self, now: int) -> bool:
        """Return whether it has started up."""
        return isinstance(self.state, ContainerRunning) and now >= self.state.since + self.startup

    def ready(self, now: int) -> bool:
        """Return whether it is ready; an init container is ready when it has succeeded."""
        if self.role is Role.INIT:
            return self.succeeded
        if not isinstance(self.state, ContainerRunning) or not self.started(now):
            return False
        readiness = state_at(self.run.readiness, now - self.origin)
        if readiness is None and self.run.readiness:
            readiness = False if self.run.readiness[0].state else None
        return now >= self.state.since + self._probed_after() if readiness is None else readiness

    def usage(self, name: str, now: int) -> int:
        """Return its usage of one of AMOUNTS."""
        if isinstance(self.state, ContainerWaiting):
            return 0
        if isinstance(self.state, ContainerTerminated):
            return self.curve(name).at(self.state.ended - self.origin) if is_persistent(name) else 0
        return self.curve(name).at(now - self.origin)

    def curve(self, name: str) -> Curve:
        """Return the curve of its usage in this run, from ``origin`` on."""
        return usage_curve(name, default_usage(name, self.spec.resources), self.run.steps)

    def _probed_after(self) -> int:
        probe = self.spec.readiness_probe
        delay = probe.initial_delay_seconds * SECOND if probe else 0
        return max(delay, self.startup)

    def _own_end(self) -> Exit | None:
        own, run = None, self.run
        if run.exit is not None:
            exit_ = run.exit
            own = Exit(self.origin + exit_.after, exit_.code, exit_.reason, exit_.message)
        limits = self.spec.resources.limits if self.spec.resources else None
        if limits and "memory" in limits and "memory" in run.steps:
            over = self.curve("memory").exceeds(units(parse_amount(limits, "memory")))
            if over is not None and (own is None or self.origin + over <= own.after):
                return Exit(self.origin + over, KILLED, "OOMKilled")
        return own

    def _requested_end(self) -> Exit | None:
        return Exit(*self.stop) if self.stop is not None else None


def _after(end: Exit) -> int:
    return end.after
