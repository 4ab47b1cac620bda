"""Pods that leak: which are evicted, when, and the nodes and other pods afterwards."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from random import Random

import pytest

from fakeapi import VirtualCluster
from fakeapi.testing.faults import fault
from tests.fakeapi.controlplane.kubelet.leaks.memory_leak_checks import (
    RUN,
    by_node,
    check_order,
    check_taints,
    evictions,
    live_an_hour,
)
from tests.fakeapi.controlplane.kubelet.leaks.memory_leaks import MI, LeakingCluster, leak_script
from tests.fakeapi.controlplane.kubelet.stages import kubelets_of_a_client


@pytest.mark.parametrize("resource", ["memory", "disk"])
async def test_an_hour_of_leaks_on_five_nodes(resource: str) -> None:
    await live_an_hour(resource, 5)


PLAN = (
    fault(500).probability(0.1),
    fault(429, retry_after=1).probability(0.1),
    fault("drop").probability(0.05),
    fault("drop", when="after").probability(0.05),
    fault("latency", least=0, most=2).probability(0.1),
    fault("cut", after_frames=5).on("watch").probability(0.3),
    fault("expire", after_frames=5).on("watch").probability(0.3),
    fault("lag", seconds=3).on("watch").probability(0.3),
    fault("compact").on("watch").probability(0.1),
)


@pytest.mark.slow
@pytest.mark.parametrize(("resource", "seed"), [("memory", 1), ("disk", 2)])
async def test_evictions_despite_faults_and_restarts_of_kubelets(resource: str, seed: int) -> None:
    count, rng = 6, Random(seed)
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(VirtualCluster(run=RUN, seed=seed))
        stage = LeakingCluster(cluster, resource, count)
        running = kubelets_of_a_client(cluster, leak_script(resource, count), seed)
        kubelets = await stack.enter_async_context(running)
        cluster.faults.plan(*(each.by("kubelet*") for each in PLAN), seed=seed)
        for _ in range(30):
            await stage.run(60)
            if rng.random() < 0.3:
                stopping = asyncio.create_task(kubelets.stop())  # its last events may be late
                while not stopping.done():
                    await stage.passes(rng.uniform(0.1, 5))
                kubelets.start()
        assert all(cluster.faults.injected)
        runs = stage.pod_runs()
        for each in by_node(runs).values():
            check_order(each, resource, tolerance=16 * MI)
        assert len(evictions(runs)) > count
        cluster.faults.end()
        await stage.run(1200)
        await check_taints(stage)
        await stage.passes(5)
        await stage.check_replicas()
