"""Pods that leak: which are evicted, when, and the nodes and other pods afterwards."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from random import Random

import pytest

from fakeapi import VirtualCluster
from fakeapi.testing.faults import fault
from tests.fakeapi.controlplane.kubelet.faulty_kubelets import hindered_kubelets
from tests.fakeapi.controlplane.kubelet.memory_leak_checks import (
    RUN,
    by_node,
    check_order,
    check_taints,
    evictions,
    live_an_hour,
)
from tests.fakeapi.controlplane.kubelet.memory_leaks import MI, LeakingCluster, book


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
async def test_with_faults_and_kubelets_that_start_anew(resource: str, seed: int) -> None:
    count, rng = 6, Random(seed)
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(VirtualCluster(run=RUN, seed=seed))
        stage = LeakingCluster(cluster, resource, count)
        script = book(resource, count)
        kubelets = await stack.enter_async_context(hindered_kubelets(cluster, script, seed))
        cluster.faults.plan(*(each.by("kubelet*") for each in PLAN), seed=seed)
        for _ in range(30):
            await stage.live(60)
            if rng.random() < 0.3:
                stopping = asyncio.create_task(kubelets.stop())  # its last events may be late
                while not stopping.done():
                    await stage.passes(rng.uniform(0.1, 5))
                kubelets.start()
        assert all(cluster.faults.injected)
        stays = stage.stays()
        for each in by_node(stays).values():
            check_order(each, resource, tolerance=16 * MI)
        assert len(evictions(stays)) > count
        cluster.faults.end()
        await stage.live(1200)
        await check_taints(stage)
        await stage.passes(5)
        await stage.check_replicas()
