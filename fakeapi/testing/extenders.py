"""Extenders of fake clusters: Reprieve in the same process, and extenders in other processes.

:class:`InProcessReprieve` is Reprieve's service and its informers, without sockets. Enter the
cluster, then :meth:`InProcessReprieve.following`:

    reprieve = InProcessReprieve(Search.CLUSTER)
    async with VirtualCluster(run="scheduler", extenders={REPRIEVE_URL: reprieve}) as cluster:
        async with reprieve.following(cluster):
            ...

A replay with extenders in other processes starts once all of them are ready, since recorded events
are due at fixed times, and the world's clock is paused during each call. The latency of an extender
then does not affect the comparison.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from extender.cluster.event_handlers import build_reflectors
from extender.cluster.scheduler_cache import SchedulerCache
from extender.config.component_config import Mode
from extender.kube.informers.reflector import ReflectorContext
from extender.kube.informers.shared_informer import cancel_tasks
from extender.kube.rest.client import Client
from extender.kube.rest.clock import SystemClock
from extender.kube.rest.http_transport import describe_error
from extender.kube.rest.rate_limited_log import quiet_log
from extender.observability.decision_history import DecisionHistory
from extender.observability.decision_log import DecisionLog
from extender.protocol.verb_context import Search
from extender.server.fallback_policy import FallbackPolicy
from extender.server.http_handlers import handle_verb
from extender.server.service import Service, VerbCall
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.controlplane.scheduler.options import Call, ExtenderWait, Reply
from fakeapi.testing.cluster import Cluster
from policies.engine_selection import build_engine
from policies.preemption.policy import SchedulerRules

REPRIEVE_URL: Final = "http://reprieve"
"""URL of the in-process extender in a scheduler's configuration; no server listens there."""


class InProcessReprieve:
    """The service of ``reprieve serve`` in this process; enter :meth:`following` before a call."""

    def __init__(
        self,
        search: Search = Search.CLUSTER,
        rules: SchedulerRules | None = None,
        journal: DecisionLog | None = None,
        history: DecisionHistory | None = None,
        fallback_policy: FallbackPolicy | None = None,
        mode: Mode = Mode.ENFORCE,
    ) -> None:
        self._search = search
        self._mode = mode
        self.rules = rules or SchedulerRules()
        self._journal = journal or DecisionLog()
        self._history = history or DecisionHistory()
        self._fallback_policy = fallback_policy or FallbackPolicy()
        self.service: Service

    async def __call__(self, call: Call) -> Reply:
        """Answer a call as the HTTP server does."""
        arrived = self.service.clock.monotonic()
        response = await handle_verb(self.service, VerbCall(call.verb, call.body, arrived))
        if not isinstance(response.body, bytes):
            raise TypeError(f"an answer of the service is not bytes: {response.body!r}")
        return Reply(response.status, response.body)

    @asynccontextmanager
    async def following(self, cluster: Cluster) -> AsyncIterator[None]:
        """Run the service and its informers on a cluster until the block ends."""
        transport, clock = cluster.local_transport("reprieve"), cluster.world.clock
        engine = build_engine(self.rules)
        live = SchedulerCache(clock.monotonic, engine.follow)
        rng = Random(1)  # noqa: S311 - jitter
        context = ReflectorContext(Client(transport), clock, rng, quiet_log())
        feeds = build_reflectors(context, live, self.rules)
        self.service = Service(
            live,
            engine,
            clock,
            self._search,
            informers=feeds,
            decision_log=self._journal,
            fallback_policy=self._fallback_policy,
            decision_history=self._history,
            mode=self._mode,
        )
        tasks = [asyncio.create_task(feed.run()) for feed in feeds.values()]
        for feed in feeds.values():
            await feed.wait_settled()
        try:
            yield
        finally:
            await cancel_tasks(tasks)
            await transport.close()


READY_TIMEOUT_SECONDS: Final = 60.0

_POLL_SECONDS: Final = 0.2
_NOT_READY_STATUS: Final = 503


class ExtenderNotReadyError(Exception):
    """An extender cannot be reached or is not ready; the text names it and the reason."""


def pause_during_calls(clock: VirtualClock) -> ExtenderWait:
    """Return the wait that pauses ``clock`` during calls; their timeouts use the host's clock."""
    return ExtenderWait(SystemClock(), clock.paused)


async def wait_extenders_ready(
    urls: Sequence[str], timeout_seconds: float = READY_TIMEOUT_SECONDS
) -> None:
    """Wait until each ``/readyz`` answers with another status than 503.

    Raises ExtenderNotReadyError after ``timeout_seconds``.
    """
    clock = SystemClock()
    deadline = clock.monotonic() + timeout_seconds
    timeout = aiohttp.ClientTimeout(total=timeout_seconds)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for url in urls:
            while error := await _readiness_error(session, url):
                if clock.monotonic() > deadline:
                    raise ExtenderNotReadyError(f"{url}: {error}, for {timeout_seconds:g} s")
                await clock.sleep(_POLL_SECONDS)


async def _readiness_error(session: aiohttp.ClientSession, url: str) -> str:
    """Return why an extender is not ready, "" if it is."""
    place = urlsplit(url)
    try:
        async with session.get(f"{place.scheme}://{place.netloc}/readyz", ssl=False) as answer:
            return "is not ready" if answer.status == _NOT_READY_STATUS else ""
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return f"does not respond ({describe_error(error)})"
