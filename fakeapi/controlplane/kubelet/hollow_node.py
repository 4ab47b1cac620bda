"""One hollow node: its pods, its status, and the resource usage of both.

A node's own script begins when its kubelet starts, or when the script changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fakeapi.controlplane.kubelet.container_lifecycle import ContainerLifecycle, ContainerRunning
from fakeapi.controlplane.kubelet.ip_allocator import PodIPAllocator
from fakeapi.controlplane.kubelet.pod_admission import AllocatedPod, NodeAllocation
from fakeapi.controlplane.kubelet.pod_lifecycle import PodLifecycle
from fakeapi.controlplane.kubelet.pod_status import PodIPs, WrittenConditions
from fakeapi.controlplane.kubelet.scripts import (
    NODE_USAGE,
    NodeScript,
    Steps,
    next_transition,
    parse_amount,
    state_at,
    usage_curve,
)
from fakeapi.controlplane.kubelet.types import KubeletNode, KubeletPod
from policies.eviction.filesystems import ReclaimAction
from policies.eviction.manager_state import ManagerState
from policies.eviction.pods import EvictablePod
from policies.kubernetes.quantity import units
from policies.kubernetes.snapshot import Node as Facts


@dataclass(slots=True)
class RunningPod:
    """A pod on a node: its lifecycle, the status that was written, and its allocation.

    ``version`` is its newest known version, ``phase`` the phase that was written, and
    ``written_hash`` the hash of the status that was written (0: write it again).
    ``reported_events`` are the keys of the events that were recorded, ``applied_grace`` the grace
    period of the deletion that was applied, in nanoseconds, ``delete_sent`` whether the final
    delete was sent, ``cleaned`` whether its dead containers were deleted. ``address`` is the one
    allocated to it; its status keeps it to the end, though another pod may have it by then.
    ``evictable`` is the pod as eviction reads it, kept so that a node can evict while the API
    server is down. ``restored_from`` is the JSON that it was restored from, until its first status.
    """

    lifecycle: PodLifecycle
    written_conditions: WrittenConditions
    allocation: AllocatedPod
    version: int = 0
    phase: str = ""
    written_hash: int = 0
    reported_events: dict[str, None] = field(default_factory=dict)
    applied_grace: int = -1
    delete_sent: bool = False
    cleaned: bool = False
    address: str = ""
    evictable: EvictablePod | None = None
    restored_from: bytes = b""

    @property
    def pod(self) -> KubeletPod:
        """The pod as it was last observed."""
        return self.lifecycle.pod


@dataclass(slots=True)
class HollowNode:
    """A node whose kubelet is simulated.

    ``model`` is the node as admission reads it. ``pods`` are those it has admitted, by UID,
    ``waiting`` the UIDs of those it has not yet. ``pressures`` are the pressure conditions that it
    reports, ``written_conditions`` all conditions that were written last (empty before it
    registers), ``version`` is its newest known version. ``address`` is "" before it
    registers, unless its status has one. ``missed_events`` is set when it misses something while
    silent, ``problem`` is the error of its script.

    ``eviction`` is the state of its eviction manager, ``usage_changes_until`` the time when its
    usage and that of its pods is constant, ``evicting`` the UIDs of pods that it evicts, and since
    when, ``deleted_image_bytes`` the size of the images that it has deleted.
    """

    node: KubeletNode
    model: Facts
    script: NodeScript
    began: int
    address: str
    addresses: PodIPAllocator
    allocation: NodeAllocation = field(default_factory=NodeAllocation)
    pods: dict[str, RunningPod] = field(default_factory=dict)
    waiting: dict[str, None] = field(default_factory=dict)
    pressures: tuple[str, ...] = ()
    written_conditions: dict[str, bool] = field(default_factory=dict)
    version: int = 0
    missed_events: bool = False
    problem: str = ""
    eviction: ManagerState = field(default_factory=ManagerState)
    usage_changes_until: int = 0
    evicting: dict[str, int] = field(default_factory=dict)
    deleted_image_bytes: int = 0

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name

    def start_script(self, script: NodeScript, now: int) -> None:
        """Start a script now."""
        self.script, self.began = script, now

    def is_silent(self, now: int) -> bool:
        """Return whether its kubelet is silent: it sends and receives nothing."""
        return state_at(self.script.silence, now - self.began) is True

    def record_if_silent(self, now: int) -> bool:
        """Return whether it is silent; if so, record that it misses something."""
        silent = self.is_silent(now)
        self.missed_events = self.missed_events or silent
        return silent

    def is_ready(self, now: int) -> bool:
        """Return whether its kubelet reports it as ready."""
        return state_at(self.script.readiness, now - self.began) is not False

    def next_transition(self, now: int) -> int | None:
        """Return the time of its script's next change of silence or readiness."""
        transitions = (self.script.silence, self.script.readiness)
        changes = (next_transition(each, now - self.began) for each in transitions)
        next_change = min((change for change in changes if change is not None), default=None)
        return None if next_change is None else self.began + next_change

    def pod_ips(self, running: RunningPod) -> PodIPs:
        """Return the IPs of a pod; it is assigned one once its sandbox is ready."""
        if running.pod.spec.host_network:
            return PodIPs(self.address, self.address)
        if running.lifecycle.sandbox and not running.address:
            running.address = self.addresses.allocate(running.pod.metadata.uid)
        return PodIPs(self.address, running.address)

    def usage(self, name: str, now: int) -> int:
        """Return the node's own usage of a resource, without its pods."""
        used = usage_curve(name, NODE_USAGE[name], self.script.steps).at(now - self.began)
        return max(0, used - self.deleted_image_bytes) if name == "images" else used

    def reclaim(self, reclaim: ReclaimAction, now: int) -> None:
        """Reclaim node-level resources: delete dead containers or unused images."""
        if reclaim is ReclaimAction.CONTAINERS:
            for running in self.pods.values():
                running.cleaned = running.cleaned or running.lifecycle.ended is not None
        else:
            self.deleted_image_bytes += max(0, self.usage("images", now) - NODE_USAGE["images"])

    def record_usage_change(self, now: int, running: RunningPod | None = None) -> None:
        """Record that usage has changed, and until when it goes on changing."""
        moments = [
            now,
            *([] if running is None else map(_usage_constant_at, running.lifecycle.containers)),
        ]
        if running is None:
            moments.append(self.began + _last_step(self.script.steps))
        self.usage_changes_until = max(self.usage_changes_until, *moments)

    def capacity(self, name: str) -> int:
        """Return the node's capacity of a resource in whole units."""
        return units(parse_amount(self.node.status.capacity, name))


def _usage_constant_at(container: ContainerLifecycle) -> int:
    """Return the time when a running container's usage is constant."""
    if not isinstance(container.state, ContainerRunning):
        return 0
    run = container.run
    return container.origin + max(_last_step(run.steps), _last_step(run.volumes))


def _last_step(steps: Steps) -> int:
    return max((step.at + step.over for each in steps.values() for step in each), default=0)


def pod_usage(pods: Iterable[RunningPod], name: str, now: int) -> int:
    """Return the sum of the pods' usage of a resource."""
    return sum(each.usage(name, now) for running in pods for each in running.lifecycle.containers)


def volume_usage(running: RunningPod, now: int) -> Mapping[str, int]:
    """Return the usage of a pod's volumes, in bytes."""
    used: dict[str, int] = {}
    for container in running.lifecycle.containers:
        for name, steps in container.run.volumes.items():
            amount = usage_curve(name, 0, {name: steps}).at(now - container.origin)
            used[name] = used.get(name, 0) + (amount if container.ever_started else 0)
    return used
