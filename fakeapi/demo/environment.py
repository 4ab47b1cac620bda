"""The demo environment: a cluster with all its controllers, and the extender of its scheduler.

The extender is the server of ``reprieve serve``, on a free port of the loopback interface, and is
called over HTTP like any other extender. Cluster and extender need each other's address: the
extender starts first, and follows the cluster once that is running.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from extender.config.component_config import Config, Deadlines
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock, SystemClock
from extender.kube.rest.transport import Request, Response, Stream, Transport
from extender.protocol.verb_context import Search
from extender.server.process import run_server
from fakeapi.controlplane.scheduler.extender_trace import ExtenderCallTrace
from fakeapi.demo.decisions import DecisionCollector
from fakeapi.demo.scenarios.preemption_story import LoopScenario
from fakeapi.testing.fake_cluster import FakeCluster

COMPONENTS: Final = (
    "gc,namespaces,disruption,nodelifecycle,replicaset,workloadspread,kubelet,scheduler"
)
"""The control-plane components that the scenario needs."""


@dataclass(frozen=True, slots=True)
class DemoCluster:
    """A running demo cluster: a client, the clock, the scheduler's trace and the decisions.

    ``step_timeout_seconds`` is the time limit of a step, on that clock.
    """

    client: Client
    clock: Clock
    trace: ExtenderCallTrace
    collector: DecisionCollector
    step_timeout_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class DemoAddresses:
    """The URLs of the API server and the extender."""

    server: str
    extender: str


def scheduler_configuration(extender: str) -> dict[str, Any]:
    """Return the KubeSchedulerConfiguration of the README, for an extender at a URL.

    The only difference is ``httpTimeout``: 30 seconds, for a machine under load.
    """
    preemption = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 1}
    return {
        "profiles": [{"pluginConfig": [{"name": "DefaultPreemption", "args": preemption}]}],
        "extenders": [
            {
                "urlPrefix": extender,
                "preemptVerb": "preempt",
                "nodeCacheCapable": True,
                "ignorable": False,
                "httpTimeout": "30s",
            }
        ],
    }


@asynccontextmanager
async def run_demo_cluster(
    scenario: LoopScenario, seed: int, pace: float
) -> AsyncIterator[tuple[DemoCluster, DemoAddresses]]:
    """Run a demo cluster until the block ends; its clock runs ``pace`` times as fast as ours."""
    transport, collector = DeferredTransport(), DecisionCollector()
    rng = Random(seed)  # noqa: S311 - jitter of reconnects
    config = Config(port=0, search=Search.CLUSTER, deadline_milliseconds=Deadlines(preempt=10_000))
    async with run_server(config, transport, SystemClock(), rng, collector) as extender:
        collector.service = extender.service
        async with FakeCluster(
            run=COMPONENTS,
            seed=seed,
            kubelet=scenario.kubelet,
            scheduler=scheduler_configuration(extender.url),
        ) as cluster:
            cluster.clock.run(pace)
            transport.set_target(cluster.local_transport("reprieve"))
            await extender.wait_synced()
            demo = DemoCluster(
                cluster.client,
                cluster.clock,
                cluster.scheduler.trace,
                collector,
                step_timeout_seconds=60.0 * max(pace, 1.0),
            )
            yield demo, DemoAddresses(cluster.url, extender.url)


class DeferredTransport:
    """A transport whose target is set later; requests wait until then."""

    def __init__(self) -> None:
        self._target: asyncio.Future[Transport] = asyncio.get_running_loop().create_future()

    def set_target(self, target: Transport) -> None:
        """Set the target."""
        self._target.set_result(target)

    async def request(self, request: Request) -> Response:
        """Send a request and return the whole response. Raises TransportError."""
        return await (await asyncio.shield(self._target)).request(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        """Send a request and stream the response. Raises TransportError on entering."""
        target = await asyncio.shield(self._target)
        async with target.stream(request) as stream:
            yield stream

    async def close(self) -> None:
        """Close the target, if it is set."""
        if self._target.done():
            await self._target.result().close()
