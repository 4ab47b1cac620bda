"""A world: an API over a store, with its clock, its randomness and its history.

Everything else that could differ between runs is derived from the seed: UIDs, generated names, the
timeouts of watches. A fork copies the state of the random generator, so that the same operations
have the same results in both worlds. Restoring a snapshot does not reset the generator, so that no
UID is assigned twice in one world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from random import Random
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import orjson

from extender.kube.controller_runtime.event_recorder import EventCallback
from extender.kube.decoders.object_meta import format_time
from extender.kube.rest.clock import Clock
from fakeapi.apiserver.discovery.version_and_health import DEFAULT_SERVER_VERSION, ServerVersion
from fakeapi.apiserver.endpoints import Api, IdAndTimeSources
from fakeapi.apiserver.registry.manifests import export, flatten_lists
from fakeapi.apiserver.registry.unattributed_registry import UnattributedRegistry
from fakeapi.apiserver.serving.local_transport import LocalTransport, WatchTiming
from fakeapi.apiserver.store.object_store import DEFAULT_HISTORY, Store
from fakeapi.apiserver.testing.management_api import ManagementApi
from fakeapi.apiserver.testing.object_history import ObjectHistory, find_kind, read_history
from fakeapi.apiserver.testing.request_log import RequestRecord
from fakeapi.controlplane.scheduler.options import SchedulerOptions
from policies.workloadspread.quirks import FIXED, Quirks

if TYPE_CHECKING:
    from fakeapi.controlplane.kubelet.scripts import SimulationScript

_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5


class Upkeep(Enum):
    """What a world keeps up beside the objects that its components ask for.

    FULL is what a cluster does. With NONE, kubelets send no heartbeats, watches without sockets
    have neither bookmarks nor an end, and managed fields are not recorded, so that months of
    virtual time cost what happens in them. A component that reads heartbeats (``nodelifecycle``)
    must not run then.
    """

    FULL = auto()
    NONE = auto()

    def apply(self, api: Api) -> None:
        """Let a new API keep up no more than this."""
        if self is Upkeep.NONE:
            api.registry = UnattributedRegistry(api.objects, api.registry.sources)

    @property
    def watch_timing(self) -> WatchTiming:
        """The timing of watches without sockets."""
        return WatchTiming.SERVER if self is Upkeep.FULL else WatchTiming.ENDLESS


@dataclass(frozen=True, slots=True)
class ComponentOptions:
    """The options of control plane components.

    ``simulation_script`` is the script of hollow kubelets, ``scheduler`` are the scheduler's
    options; ``quirks`` are the quirks of OpenKruise that are enabled. ``on_event`` is called with
    each Event of controllers and the scheduler, in place of writing it.
    """

    simulation_script: SimulationScript | None = None
    scheduler: SchedulerOptions = field(default_factory=SchedulerOptions)
    quirks: Quirks = FIXED
    upkeep: Upkeep = Upkeep.FULL
    on_event: EventCallback | None = None


@dataclass(frozen=True, slots=True)
class World:
    """An API with its clock and randomness; ``management`` holds snapshots and the request log."""

    api: Api
    clock: Clock
    rng: Random
    management: ManagementApi
    component_options: ComponentOptions

    def put_all(self, objects: Iterable[Mapping[str, Any]]) -> int:
        """Store recorded objects (or lists of them) as they are, and return their number.

        The arguments are not modified. Raises StatusError (400, 422) with a line for each problem.
        """
        copies = orjson.loads(orjson.dumps([dict(thing) for thing in objects]))
        return self.api.put_all(list(flatten_lists(copies)))

    def history(self, kind: str, namespace: str = "", name: str = "") -> ObjectHistory:
        """Return the changes to the objects of a kind (``pods``, ``Pod``, ``deploy``)."""
        return read_history(self.api.store, find_kind(self.api.kinds, kind), namespace, name)

    @property
    def requests(self) -> Sequence[RequestRecord]:
        """The most recent requests, oldest first."""
        return tuple(self.management.requests)

    def transport(self, agent: str = "") -> LocalTransport:
        """Return a transport to the API without sockets; ``agent`` is its User-Agent."""
        record, faults = self.management.requests.append, self.management.faults
        timing = self.component_options.upkeep.watch_timing
        return LocalTransport(self.api, self.clock, self.rng, record, faults, agent, timing)

    def internal_transport(self, agent: str = "") -> LocalTransport:
        """Return a transport for the world's own components: its requests are not logged."""
        timing = self.component_options.upkeep.watch_timing
        return LocalTransport(self.api, self.clock, self.rng, agent=agent, watch_timing=timing)

    def export(self) -> list[dict[str, Any]]:
        """Return all objects as manifests that a cluster can load."""
        return export(self.api.store, self.api.kinds)

    def fork(self, snapshot: str = "", clock: Clock | None = None) -> World:
        """Return a new world with the state of a snapshot or the current one.

        It uses ``clock``, or this world's. Raises StatusError (404).
        """
        rng, clock = copy_random(self.rng), clock or self.clock
        store = self.management.snapshots.fork(snapshot)
        api = Api(store, _sources(clock, rng), self.api.builtin, self.api.release)
        api.services.update(self.api.services)
        api.converters.update(self.api.converters)
        api.webhooks.handlers.update(self.api.webhooks.handlers)
        api.tokens.add_all(self.api.tokens)
        if self.api.enforces_rbac:
            api.enforce_rbac()
        options = self.component_options
        options.upkeep.apply(api)
        options = replace(options, scheduler=options.scheduler.for_fork())
        management = ManagementApi(api, clock.now_ns, exchanges=options.scheduler.trace)
        management.faults.copy_progress(self.management.faults)
        return World(api, clock, rng, management, options)


def create_world(
    clock: Clock,
    seed: int = 0,
    history: int = DEFAULT_HISTORY,
    release: ServerVersion = DEFAULT_SERVER_VERSION,
    component_options: ComponentOptions | None = None,
) -> World:
    """Return an empty world; ``history`` is how many events of a resource can be replayed."""
    rng = Random(seed)  # noqa: S311 - repeatable, and nothing here is secret
    api = create_api(clock, rng, history, release)
    options = component_options or ComponentOptions()
    options.upkeep.apply(api)
    management = ManagementApi(api, clock.now_ns, seed, options.scheduler.trace)
    return World(api, clock, rng, management, options)


def create_api(
    clock: Clock,
    rng: Random,
    history: int = DEFAULT_HISTORY,
    release: ServerVersion = DEFAULT_SERVER_VERSION,
) -> Api:
    """Return an API over an empty store that replays ``history`` events of each resource."""
    return Api(Store(history), _sources(clock, rng), release=release)


def copy_random(rng: Random) -> Random:
    """Return a random generator with the state of ``rng``."""
    copy = Random()  # noqa: S311 - repeatable, and nothing here is secret
    copy.setstate(rng.getstate())
    return copy


def _sources(clock: Clock, rng: Random) -> IdAndTimeSources:
    return IdAndTimeSources(
        _timestamps(clock), _uids(rng), _suffixes(rng), lambda: clock.now_ns() // 10**9
    )


def _timestamps(clock: Clock) -> Callable[[int], str]:
    def timestamp(offset: int) -> str:
        return format_time(clock.now_ns() + offset * 10**9)

    return timestamp


def _uids(rng: Random) -> Callable[[], str]:
    return lambda: str(UUID(int=rng.getrandbits(128), version=4))


def _suffixes(rng: Random) -> Callable[[], str]:
    return lambda: "".join(rng.choices(_SUFFIX_ALPHABET, k=_SUFFIX_LENGTH))
