"""A world: an API over a store, the clock and the dice it lives by, and its past.

Everything that would differ from run to run, but for the clock, comes from the seed: UIDs,
generated names, the timeouts of watches. A fork has dice of its own that lie as its origin's lay,
so that the same acts in both have the same outcome; a restored world's dice roll on, so that no
UID is ever given twice in one world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import orjson

from extender.kube.clock import Clock
from extender.kube.events import rfc3339
from fakeapi.api import Api, Sources
from fakeapi.api.changes import History, find_kind, read_history
from fakeapi.api.exporting import export
from fakeapi.api.loading import flatten
from fakeapi.api.management import Management
from fakeapi.api.release import DEFAULT_RELEASE, Release
from fakeapi.api.requestlog import RequestRecord
from fakeapi.controlplane.scheduler.outfits import SchedulerOutfit
from fakeapi.store import DEFAULT_HISTORY, Store
from fakeapi.transport import LocalTransport
from policies.spreading.quirks import FIXED, Quirks

if TYPE_CHECKING:
    from fakeapi.controlplane.kubelet.scripts import Playbook  # who needs it, loads it

_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5


@dataclass(frozen=True, slots=True)
class World:
    """An API and what it lives by. ``management`` holds its snapshots and its log of requests.

    ``playbook`` says what happens to pods and nodes where kubelets are simulated, ``scheduler``
    what the scheduler goes by, if there is one; ``quirks`` are the oddities of OpenKruise's that
    are followed.
    """

    api: Api
    clock: Clock
    rng: Random
    management: Management
    playbook: Playbook | None = None
    quirks: Quirks = FIXED
    scheduler: SchedulerOutfit = field(default_factory=SchedulerOutfit)

    def load(self, objects: Iterable[Mapping[str, Any]]) -> int:
        """Store objects (or lists of them) as they are given, and count them.

        The arguments stay the caller's. Raises StatusError (400, 422) naming the fault.
        """
        copies = orjson.loads(orjson.dumps([dict(thing) for thing in objects]))
        return self.api.load(flatten(copies))

    def history(self, kind: str, namespace: str = "", name: str = "") -> History:
        """Return what has happened to the objects of a kind (``pods``, ``Pod``, ``deploy``)."""
        return read_history(self.api.store, find_kind(self.api.kinds, kind), namespace, name)

    @property
    def requests(self) -> Sequence[RequestRecord]:
        """The newest requests, oldest first."""
        return tuple(self.management.requests)

    def transport(self, agent: str = "") -> LocalTransport:
        """Return a transport to the API without sockets; ``agent`` is the User-Agent it bears."""
        record, faults = self.management.requests.append, self.management.faults
        return LocalTransport(self.api, self.clock, self.rng, record, faults, agent)

    def inner_transport(self, agent: str = "") -> LocalTransport:
        """Return a transport for what belongs to the world itself: its requests are not recorded."""
        return LocalTransport(self.api, self.clock, self.rng, agent=agent)

    def export(self) -> list[dict[str, Any]]:
        """Return every object there is as a manifest; :meth:`load` brings them back."""
        return export(self.api.store, self.api.kinds)

    def fork(self, snapshot: str = "", clock: Clock | None = None) -> World:
        """Return a world that goes on from a snapshot, or from now; raises StatusError (404).

        It lives by ``clock``, or by this world's.
        """
        rng, clock = copy_dice(self.rng), clock or self.clock
        store = self.management.snapshots.fork(snapshot)
        api = Api(store, _sources(clock, rng), self.api.builtin, self.api.release)
        api.services.update(self.api.services)
        api.converters.update(self.api.converters)
        api.webhooks.hooks.update(self.api.webhooks.hooks)
        api.tokens.adopt(self.api.tokens)
        if self.api.enforces_rbac:
            api.enforce_rbac()
        scheduler = self.scheduler.for_fork()
        management = Management(api, clock.now_ns, exchanges=scheduler.trace)
        management.faults.adopt(self.management.faults)
        return World(api, clock, rng, management, self.playbook, self.quirks, scheduler)


def create_world(
    clock: Clock,
    seed: int = 0,
    history: int = DEFAULT_HISTORY,
    release: Release = DEFAULT_RELEASE,
    playbook: Playbook | None = None,
    quirks: Quirks = FIXED,
    scheduler: SchedulerOutfit | None = None,
) -> World:
    """Return an empty world; ``history`` is how many events of a resource it replays."""
    rng = Random(seed)  # noqa: S311 - repeatable, and nothing here is secret
    api = create_api(clock, rng, history, release)
    scheduler = scheduler or SchedulerOutfit()
    management = Management(api, clock.now_ns, seed, scheduler.trace)
    return World(api, clock, rng, management, playbook, quirks, scheduler)


def create_api(
    clock: Clock,
    rng: Random,
    history: int = DEFAULT_HISTORY,
    release: Release = DEFAULT_RELEASE,
) -> Api:
    """Return an API over an empty store; ``history`` is how many events of a resource it replays."""
    return Api(Store(history), _sources(clock, rng), release=release)


def copy_dice(rng: Random) -> Random:
    """Return dice that will fall as ``rng`` will."""
    copy = Random()  # noqa: S311 - repeatable, and nothing here is secret
    copy.setstate(rng.getstate())
    return copy


def _sources(clock: Clock, rng: Random) -> Sources:
    return Sources(_timestamps(clock), _uids(rng), _suffixes(rng), lambda: clock.now_ns() // 10**9)


def _timestamps(clock: Clock) -> Callable[[int], str]:
    def timestamp(offset: int) -> str:
        return rfc3339(clock.now_ns() + offset * 10**9)

    return timestamp


def _uids(rng: Random) -> Callable[[], str]:
    return lambda: str(UUID(int=rng.getrandbits(128), version=4))


def _suffixes(rng: Random) -> Callable[[], str]:
    return lambda: "".join(rng.choices(_SUFFIX_ALPHABET, k=_SUFFIX_LENGTH))
