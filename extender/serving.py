"""The extender as a process: informers that feed it, and a socket that serves it."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from extender.app import build_app
from extender.cluster import LiveCluster
from extender.config import Config, filters_of, find_policy
from extender.feeds import informers
from extender.journal import Journal
from extender.kube.client import Client
from extender.kube.clock import Clock
from extender.kube.transport import Transport
from extender.service import Service
from policies.reference import Rules
from policies.upstream import release


@dataclass(frozen=True, slots=True)
class Running:
    """A served extender: its base URL, and the service behind it."""

    url: str
    service: Service

    async def wait_synced(self) -> None:
        """Return once every cache has had its first list, or can do without."""
        for feed in self.service.feeds.values():
            await feed.wait_settled()


@asynccontextmanager
async def running(
    config: Config,
    transport: Transport,
    clock: Clock,
    rng: random.Random,
    journal: Journal | None = None,
) -> AsyncIterator[Running]:
    """Serve while the block runs. Raises ConfigError, UnknownReleaseError, OSError for the socket.

    The caches fill in the background; until they have, calls are answered with 503.
    """
    rules = Rules(release(config.upstream), filters_of(config), find_policy(config.policy))
    cluster = LiveCluster(clock.monotonic)
    feeds = informers(cluster, Client(transport), rules, clock, rng)
    service = Service(
        cluster,
        rules,
        clock,
        config.search,
        config.promise_seconds,
        feeds,
        journal=journal or Journal(),
    )
    app = build_app(service, config.path_prefixes, config.body_limit_mib * 2**20)
    async with _listening(app, config) as url, asyncio.TaskGroup() as following:
        tasks = [following.create_task(feed.run()) for feed in feeds.values()]
        try:
            yield Running(url, service)
        finally:
            for task in tasks:
                task.cancel()


def told_to_stop() -> asyncio.Event:
    """Give an event that SIGINT and SIGTERM set from now on."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop


@asynccontextmanager
async def _listening(app: web.Application, config: Config) -> AsyncIterator[str]:
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, config.host, config.port)
        await site.start()
        port = runner.addresses[0][1]
        host = f"[{config.host}]" if ":" in config.host else config.host
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()
