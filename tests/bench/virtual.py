"""What worlds without sockets cost, as JSON in seconds: ``python -m tests.bench.virtual``."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time

from fakeapi import VirtualCluster
from tests.fakeapi.controlplane.heartbeats import Kubelets
from tests.fakeapi.controlplane.stage import Stage, running_pod, thing

HOUR_SECONDS = 3600.0
NODES = 100
OBJECTS = 50_000


async def idle_hour() -> float:
    """Let an hour pass in which nothing happens but what the control plane does by itself."""
    async with VirtualCluster(run="all") as cluster:
        await cluster.clock.advance(60)
        begun = time.perf_counter()
        await cluster.clock.advance(HOUR_SECONDS)
        return time.perf_counter() - begun


async def hour_of_nodes() -> float:
    """Let an hour pass for nodes that renew their leases every ten seconds."""
    async with VirtualCluster(run="all") as cluster:
        stage = Stage(cluster)
        names = [f"node-{index:03}" for index in range(NODES)]
        async with Kubelets(stage, names):
            stage.load(*(running_pod(f"pod-{name}", name) for name in names))
            await stage.passes(60)
            begun = time.perf_counter()
            await stage.passes(HOUR_SECONDS)
            return time.perf_counter() - begun


async def fork() -> float:
    """Fork a world of many objects, as it is when it has just been written to."""
    async with VirtualCluster(run="none") as cluster:
        cluster.load(thing(f"map-{index:05}") for index in range(OBJECTS))
        taken = []
        for index in range(15):
            cluster.load([thing(f"map-{index:05}")])
            begun = time.perf_counter()
            cluster.fork()
            taken.append(time.perf_counter() - begun)
        return statistics.median(taken)


async def main() -> None:
    """Measure everything."""
    told = {"idle": await idle_hour(), "nodes": await hour_of_nodes(), "fork": await fork()}
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
