"""The extender as a process: informers that feed it, and a socket that serves it."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from aiohttp import web

from extender.app import build_app
from extender.cluster import LiveCluster
from extender.config import Config, filters_of, find_policy
from extender.journal import Journal
from extender.kube.client import Client
from extender.kube.clock import Clock
from extender.kube.decoding import Decode, Unreadable, tolerant
from extender.kube.informer import Informer, Sink
from extender.kube.objects import decode_budget, decode_namespace, decode_node
from extender.kube.pods import decode_pod
from extender.kube.resources import (
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from extender.kube.transport import Transport
from extender.kube.workloads import WORKLOAD_DECODERS
from extender.service import Feed, Service
from policies.filtering import reads_workloads
from policies.model import Pod
from policies.reference import Rules
from policies.upstream import release
from policies.workloads import REPLICA_SET, REPLICATION_CONTROLLER, SERVICE, STATEFUL_SET

T = TypeVar("T")

_WORKLOADS = {
    SERVICE: SERVICES,
    REPLICATION_CONTROLLER: REPLICATION_CONTROLLERS,
    REPLICA_SET: REPLICA_SETS,
    STATEFUL_SET: STATEFUL_SETS,
}


@dataclass(frozen=True, slots=True)
class Running:
    """A served extender: its base URL, and the service behind it."""

    url: str
    service: Service

    async def wait_synced(self) -> None:
        """Return once every cache has had its first list."""
        for feed in self.service.feeds.values():
            await feed.wait_synced()


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
    informers = _informers(cluster, Client(transport), rules, clock, rng)
    service = Service(
        cluster,
        rules,
        clock,
        config.search,
        config.promise_seconds,
        informers,
        journal=journal or Journal(),
    )
    app = build_app(service, config.path_prefixes, config.body_limit_mib * 2**20)
    async with _listening(app, config) as url, asyncio.TaskGroup() as following:
        tasks = [following.create_task(informer.run()) for informer in informers.values()]
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


def _informers(
    cluster: LiveCluster, client: Client, rules: Rules, clock: Clock, rng: random.Random
) -> dict[str, Feed]:
    def follow(
        resource: Resource, kind: str, decode: Decode[T], sink: Sink[T | Unreadable]
    ) -> Feed:
        return Informer(client, resource, tolerant(kind, decode), sink, clock, rng)

    def read_pod(raw: bytes) -> Pod:
        return decode_pod(raw, rules.release)

    feeds = {
        "nodes": follow(NODES, "Node", decode_node, cluster.nodes),
        "pods": follow(PODS, "Pod", read_pod, cluster.pods),
        "poddisruptionbudgets": follow(
            POD_DISRUPTION_BUDGETS, "PodDisruptionBudget", decode_budget, cluster.budgets
        ),
        "namespaces": follow(NAMESPACES, "Namespace", decode_namespace, cluster.namespaces),
    }
    if reads_workloads(rules.filters):
        for kind, resource in _WORKLOADS.items():
            table = cluster.workloads[kind]
            feeds[resource.plural] = follow(resource, kind, WORKLOAD_DECODERS[kind], table)
    return feeds
