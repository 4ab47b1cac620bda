"""One hollow node: its pods, its status, and the resource usage of both.

A node's own script begins when its kubelet starts, or when the script changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fakeapi.controlplane.kubelet.addresses import PodAddresses
from fakeapi.controlplane.kubelet.containers import ContainerLife, Running
from fakeapi.controlplane.kubelet.lives import PodLife
from fakeapi.controlplane.kubelet.rooms import Room, Tenant
from fakeapi.controlplane.kubelet.scripts import NodeScript, Steps, holds, next_turn
from fakeapi.controlplane.kubelet.shapes import Node, Pod
from fakeapi.controlplane.kubelet.statuses import Place, Report
from fakeapi.controlplane.kubelet.usage import NODE, amount, curve_of
from policies.eviction.filesystems import Reclaim
from policies.eviction.hysteresis import State
from policies.eviction.pods import EvictablePod
from policies.model import Node as Facts
from policies.quantity import units


@dataclass(slots=True)
class Guest:
    """A pod on a node: its lifecycle, the status that was written, and its allocation.

    ``version`` is its newest known version, ``phase`` the phase that was written, and
    ``written_hash`` the hash of the status that was written (0: write it again).
    ``reported_events`` are the keys of the events that were recorded, ``applied_grace`` the grace
    period of the deletion that was applied, in nanoseconds, ``delete_sent`` whether the final
    delete was sent, ``cleaned`` whether its dead containers were deleted. ``address`` is the one
    allocated to it; its status keeps it to the end, though another pod may have it by then.
    ``evictable`` is the pod as eviction reads it, kept so that a node can evict while the API
    server is down.
    """

    life: PodLife
    report: Report
    tenant: Tenant
    version: int = 0
    phase: str = ""
    shown: int = 0
    told: dict[str, None] = field(default_factory=dict)
    heeded: int = -1
    left: bool = False
    cleaned: bool = False
    address: str = ""
    evictable: EvictablePod | None = None

    @property
    def pod(self) -> Pod:
        """The pod as it was last observed."""
        return self.life.pod


@dataclass(slots=True)
class Host:
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

    node: Node
    facts: Facts
    script: NodeScript
    began: int
    address: str
    addresses: PodAddresses
    room: Room = field(default_factory=Room)
    guests: dict[str, Guest] = field(default_factory=dict)
    waiting: dict[str, None] = field(default_factory=dict)
    pressures: tuple[str, ...] = ()
    held: dict[str, bool] = field(default_factory=dict)
    version: int = 0
    quiet: bool = False
    problem: str = ""
    eviction: State = field(default_factory=State)
    restless_until: int = 0
    evicting: dict[str, int] = field(default_factory=dict)
    cleared: int = 0

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.metadata.name

    def play(self, script: NodeScript, now: int) -> None:
        """Start a script now."""
        self.script, self.began = script, now

    def silent(self, now: int) -> bool:
        """Return whether its kubelet is silent: it sends and receives nothing."""
        return holds(self.script.silence, now - self.began) is True

    def falls_silent(self, now: int) -> bool:
        """Return whether it is silent; if so, record that it misses something."""
        silent = self.silent(now)
        self.quiet = self.quiet or silent
        return silent

    def ready(self, now: int) -> bool:
        """Return whether its kubelet reports it as ready."""
        return holds(self.script.readiness, now - self.began) is not False

    def next_turn(self, now: int) -> int | None:
        """Return the time of its script's next change of silence or readiness."""
        turns = (self.script.silence, self.script.readiness)
        found = [t for each in turns if (t := next_turn(each, now - self.began)) is not None]
        return self.began + min(found) if found else None

    def place(self, guest: Guest) -> Place:
        """Return the IPs of a pod; it is assigned one once its sandbox is ready."""
        if guest.pod.spec.host_network:
            return Place(self.address, self.address)
        if guest.life.sandbox and not guest.address:
            guest.address = self.addresses.give(guest.pod.metadata.uid)
        return Place(self.address, guest.address)

    def use(self, name: str, now: int) -> int:
        """Return the node's own usage of a resource, without its pods."""
        used = curve_of(name, NODE[name], self.script.steps).at(now - self.began)
        return max(0, used - self.cleared) if name == "images" else used

    def clean_up(self, reclaim: Reclaim, now: int) -> None:
        """Reclaim node-level resources: delete dead containers or unused images."""
        if reclaim is Reclaim.CONTAINERS:
            for guest in self.guests.values():
                guest.cleaned = guest.cleaned or guest.life.ended is not None
        else:
            self.cleared += max(0, self.use("images", now) - NODE["images"])

    def note_unrest(self, now: int, guest: Guest | None = None) -> None:
        """Record that usage has changed, and until when it goes on changing."""
        moments = [now, *([] if guest is None else map(_settles, guest.life.containers))]
        if guest is None:
            moments.append(self.began + _last_step(self.script.steps))
        self.restless_until = max(self.restless_until, *moments)

    def capacity(self, name: str) -> int:
        """Return the node's capacity of a resource in whole units."""
        return units(amount(self.node.status.capacity, name))


def _settles(container: ContainerLife) -> int:
    """Return the time when a running container's usage is constant."""
    if not isinstance(container.state, Running):
        return 0
    run = container.run
    return container.origin + max(_last_step(run.steps), _last_step(run.volumes))


def _last_step(steps: Steps) -> int:
    return max((step.at + step.over for each in steps.values() for step in each), default=0)


def pods_use(guests: Iterable[Guest], name: str, now: int) -> int:
    """Return the sum of the pods' usage of a resource."""
    return sum(each.use(name, now) for guest in guests for each in guest.life.containers)


def volumes_use(guest: Guest, now: int) -> Mapping[str, int]:
    """Return the usage of a pod's volumes, in bytes."""
    used: dict[str, int] = {}
    for container in guest.life.containers:
        for name, steps in container.run.volumes.items():
            here = curve_of(name, 0, {name: steps}).at(now - container.origin)
            used[name] = used.get(name, 0) + (here if container.ever_started else 0)
    return used
