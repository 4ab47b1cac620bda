"""The extender as a process: reflectors that fill its cache, and the server of its API."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from extender.announcing import COMPONENT, Announcer
from extender.app import build_app
from extender.cluster import LiveCluster
from extender.config import Config, filters_of, find_policy
from extender.degrading import degradation_of
from extender.feeds import informers
from extender.front.admitting import Doorkeeper
from extender.front.connections import Visits
from extender.front.gauges import watch_front
from extender.front.listening import listening
from extender.front.rotation import Rotation
from extender.journal import Journal
from extender.kube.client import Client
from extender.kube.clock import Clock
from extender.kube.events import EventWriter
from extender.kube.transport import Transport
from extender.recent import Recent
from extender.service import Service
from extender.turns import Turns
from policies.rules import Rules
from policies.upstream import release
from policies.vectorized import Vectorized

_FOLDING_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Running:
    """A served extender: its base URL, its service, and its open connections."""

    url: str
    service: Service
    visits: Visits

    async def wait_synced(self) -> None:
        """Return when every informer has its first list, or the server refuses its kind."""
        for feed in self.service.feeds.values():
            await feed.wait_settled()

    def is_idle(self) -> bool:
        """Return whether no call is in progress."""
        return self.visits.idle


@asynccontextmanager
async def running(
    config: Config,
    transport: Transport,
    clock: Clock,
    rng: random.Random,
    journal: Journal | None = None,
) -> AsyncIterator[Running]:
    """Serve while the block runs; then become not ready, finish calls in progress, and stop.

    Raise ConfigError, UnknownReleaseError, CertificateError, and OSError for the socket. The caches
    are filled in the background; until they are, calls are answered with 503.
    """
    rules = Rules(release(config.upstream), filters_of(config), find_policy(config.policy))
    engine = Vectorized(rules)
    cluster = LiveCluster(clock.monotonic, engine.follow)
    client = Client(transport)
    events = EventWriter(client, clock, rng)
    service = Service(
        cluster,
        engine,
        clock,
        config.search,
        config.promise_seconds,
        informers(cluster, client, rules, clock, rng, silence_seconds=config.watch_silence_seconds),
        journal=journal or Journal(),
        degradation=degradation_of(config),
        turns=Turns(config.queue_limit, clock.monotonic),
        recent=Recent(config.decisions_kept),
        announcer=Announcer(events.recorder(COMPONENT)) if config.events else None,
    )
    visits = Visits(config.limits, clock)
    rotation = None if config.tls is None else Rotation(config.tls, clock)
    watch_front(service, visits, rotation)
    doorkeeper = (
        Doorkeeper(config.tls.allowed_client_names)
        if config.tls is not None and config.tls.client_ca
        else None
    )
    app = build_app(
        service,
        config.path_prefixes,
        config.body_limit_mib * 2**20,
        doorkeeper,
        f"{rng.getrandbits(32):08x}",
    )
    context = None if rotation is None else lambda: rotation.context
    async with (
        _traced(service, config, clock),
        listening(app, config, visits, context) as socket,
        asyncio.TaskGroup() as following,
    ):
        beside = [feed.run() for feed in service.feeds.values()]
        beside += [_keep_current(cluster, clock), visits.keep_swept()]
        if rotation is not None:
            beside.append(rotation.follow())
        tasks = [following.create_task(work) for work in beside]
        try:
            yield Running(socket.url, service, visits)
        finally:
            service.readiness.stopping = True
            await clock.sleep(config.shutdown_delay_seconds)
            await socket.finish()
            await events.flush()
            for task in tasks:
                task.cancel()


@asynccontextmanager
async def _traced(service: Service, config: Config, clock: Clock) -> AsyncIterator[None]:
    """Export traces of calls while the block runs, if tracing is configured."""
    if config.tracing is None:
        yield
        return
    from extender.telemetry import telemetry  # needs the extra "otel"

    async with telemetry(config.tracing, clock) as service.tracer:
        yield


async def _keep_current(cluster: LiveCluster, clock: Clock) -> None:
    """Rebuild the snapshot regularly, so that no call has many watch events to apply."""
    while True:
        cluster.snapshot()
        await clock.sleep(_FOLDING_SECONDS)
