"""The cost of worlds without sockets, as JSON: ``python -m tests.bench.apiserver.virtual``."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time

from extender.terminal.log_output import log_to_stderr
from fakeapi import VirtualCluster
from tests.builders import thing
from tests.fakeapi.controlplane.kubelet.stages import pod

HOUR_SECONDS = 3600.0
NODES = 100
OBJECTS = 50_000
MANY_NODES = 5_000
MINUTE_SECONDS = 60.0
_LEARNED_SECONDS = 310.0
"""By when each node has written a heartbeat of every kind: what is measured is what lasts."""


async def idle_hour() -> float:
    """Let an hour pass in which nothing happens but what the control plane does by itself."""
    async with VirtualCluster(run="all") as cluster:
        await cluster.clock.advance(60)
        begun = time.perf_counter()
        await cluster.clock.advance(HOUR_SECONDS)
        return time.perf_counter() - begun


async def hour_of_nodes() -> float:
    """Let an hour pass for nodes with a pod each, all parts of the control plane running."""
    register = {"register": [{"name": "node-{:03}", "count": NODES}]}
    async with VirtualCluster(run="all", kubelet=register) as cluster:
        await cluster.clock.advance(1)
        cluster.load(pod(f"pod-{index:03}", f"node-{index:03}") for index in range(NODES))
        await cluster.clock.advance(60)
        begun = time.perf_counter()
        await cluster.clock.advance(HOUR_SECONDS)
        return time.perf_counter() - begun


async def minute_of_many_nodes(run: str) -> float:
    """Let a minute pass for 5,000 nodes that kubelets keep alive, beside other parts."""
    register = {"register": [{"name": "node-{:04}", "count": MANY_NODES}], "events": False}
    async with VirtualCluster(run=run, kubelet=register) as cluster:
        await cluster.clock.advance(_LEARNED_SECONDS)
        begun = time.perf_counter()
        await cluster.clock.advance(MINUTE_SECONDS)
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
    log_to_stderr()  # floods of events are cut off, and warned of
    told = {
        "idle": await idle_hour(),
        "nodes": await hour_of_nodes(),
        "kept": await minute_of_many_nodes("kubelet"),
        "watched": await minute_of_many_nodes("all"),
        "fork": await fork(),
    }
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
