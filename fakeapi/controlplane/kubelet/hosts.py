"""One node: the pods on it, what it says of itself, and what it and they use.

A node's own script begins when its kubelet does, or when the script is changed.
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
    """A pod on a node: its life, what has been written of it, and what it takes.

    ``version`` is the newest that is known of it, ``phase`` the one that was written, and ``shown``
    the hash of all that was written (0: it is to be written again). ``told`` are the things that
    events have been written about, ``heeded`` the grace period of the delete that has been heeded,
    in nanoseconds, ``left`` whether the last delete has been sent, ``cleaned`` whether what was
    left of its containers has been deleted. ``address`` is the one that it was given; it is told to
    the end, though somebody else may have it by then. ``evictable`` is what eviction reads of it,
    once that was asked for, so that a node can evict while the API server is not to be had.
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
        """The pod as it was last seen."""
        return self.life.pod


@dataclass(slots=True)
class Host:
    """A node whose kubelet is simulated; ``facts`` are what admission reads of it.

    ``guests`` are its pods by UID, ``waiting`` the UIDs of those that have not been let in yet.
    ``pressures`` are the conditions of pressure that it reports, ``held`` all conditions as they
    were written last (empty: it has not registered), ``version`` the newest that is known of it.
    ``address`` is "" before it registers, unless it was told.
    ``quiet`` tells that it has missed something while silent, ``problem`` what is wrong with its
    script.

    ``eviction`` is what its kubelet remembers of pressure, ``restless_until`` when what it and its
    pods use will have come to rest, ``evicting`` the UIDs of pods that it evicts, and since when,
    ``cleared`` how many bytes of images it has deleted.
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
        """Have it play a script from now on."""
        self.script, self.began = script, now

    def silent(self, now: int) -> bool:
        """Return whether its kubelet says nothing, and hears nothing."""
        return holds(self.script.silence, now - self.began) is True

    def falls_silent(self, now: int) -> bool:
        """Return whether it is silent; if so, note that it misses something."""
        silent = self.silent(now)
        self.quiet = self.quiet or silent
        return silent

    def ready(self, now: int) -> bool:
        """Return whether it says that it is ready."""
        return holds(self.script.readiness, now - self.began) is not False

    def next_turn(self, now: int) -> int | None:
        """Return when it falls silent, speaks again, or changes its mind about being ready."""
        turns = (self.script.silence, self.script.readiness)
        found = [t for each in turns if (t := next_turn(each, now - self.began)) is not None]
        return self.began + min(found) if found else None

    def place(self, guest: Guest) -> Place:
        """Return where a pod is; it has an address once its containers may be started."""
        if guest.pod.spec.host_network:
            return Place(self.address, self.address)
        if guest.life.sandbox and not guest.address:
            guest.address = self.addresses.give(guest.pod.metadata.uid)
        return Place(self.address, guest.address)

    def use(self, name: str, now: int) -> int:
        """Return how much the node itself uses of something, beside its pods."""
        used = curve_of(name, NODE[name], self.script.steps).at(now - self.began)
        return max(0, used - self.cleared) if name == "images" else used

    def clean_up(self, reclaim: Reclaim, now: int) -> None:
        """Delete what nobody uses: what is left of pods that have ended, or images."""
        if reclaim is Reclaim.CONTAINERS:
            for guest in self.guests.values():
                guest.cleaned = guest.cleaned or guest.life.ended is not None
        else:
            self.cleared += max(0, self.use("images", now) - NODE["images"])

    def note_unrest(self, now: int, guest: Guest | None = None) -> None:
        """Note that what is used has changed, and until when it goes on changing."""
        moments = [now, *([] if guest is None else map(_settles, guest.life.containers))]
        if guest is None:
            moments.append(self.began + _last_step(self.script.steps))
        self.restless_until = max(self.restless_until, *moments)

    def capacity(self, name: str) -> int:
        """Return the node's capacity of a resource in whole units."""
        return units(amount(self.node.status.capacity, name))


def _settles(container: ContainerLife) -> int:
    """Return when what a running container uses stops changing."""
    if not isinstance(container.state, Running):
        return 0
    run = container.run
    return container.origin + max(_last_step(run.steps), _last_step(run.volumes))


def _last_step(steps: Steps) -> int:
    return max((step.at + step.over for each in steps.values() for step in each), default=0)


def pods_use(guests: Iterable[Guest], name: str, now: int) -> int:
    """Add up what pods use of something."""
    return sum(each.use(name, now) for guest in guests for each in guest.life.containers)


def volumes_use(guest: Guest, now: int) -> Mapping[str, int]:
    """Return what is in a pod's volumes, in bytes."""
    used: dict[str, int] = {}
    for container in guest.life.containers:
        for name, steps in container.run.volumes.items():
            here = curve_of(name, 0, {name: steps}).at(now - container.origin)
            used[name] = used.get(name, 0) + (here if container.ever_started else 0)
    return used
