"""Checks of clusters whose pods leak.

Expected results are computed from the leaks alone, for each node and each second, without the code
under test.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from extender.kube.rest.resources import NODES
from fakeapi import VirtualCluster
from tests.fakeapi.controlplane.kubelet.leaks.memory_leaks import (
    CAPACITY,
    NODES_OWN,
    SECOND,
    THRESHOLD,
    TRANSITION,
    LeakingCluster,
    PodRun,
    leak_script,
)

RUN = "replicaset,nodelifecycle"
ROUND = 10 * SECOND


def by_node(runs: Sequence[PodRun]) -> Mapping[str, list[PodRun]]:
    found = defaultdict(list)
    for each in runs:
        found[each.node].append(each)
    return found


def present(runs: Sequence[PodRun], at: int) -> list[PodRun]:
    """Return the pods that ran at a time, including those that ended then."""
    return [each for each in runs if each.began <= at and (each.ended is None or at <= each.ended)]


def evictions(runs: Sequence[PodRun]) -> list[PodRun]:
    """Return the evicted pods, in the order of their eviction."""
    return sorted((each for each in runs if each.evicted), key=lambda it: it.ended or 0)


def available(runs: Sequence[PodRun], resource: str, at: int) -> int:
    """Return what is available on a node; the files of evicted pods remain until cleanup."""
    used = sum(each.uses(resource, at) for each in present(runs, at))
    return CAPACITY[resource] - NODES_OWN[resource] - used


def check_order(runs: Sequence[PodRun], resource: str, tolerance: int) -> None:
    """Check that pods were evicted one at a time, in order, and no critical ones.

    The order may be off by ``tolerance`` bytes of usage.
    """
    for victim in evictions(runs):
        at = victim.ended
        assert at is not None
        assert victim.leak.app != "agent"
        candidates = [each for each in present(runs, at) if each.leak.app != "agent"]
        first = min(candidates, key=lambda it: it.rank(resource, at))
        close = first.rank(resource, at)[:2] == victim.rank(resource, at)[:2]
        behind = first.above(resource, at) - victim.above(resource, at)
        assert first is victim or (close and behind <= tolerance), (victim, first)
        assert [each for each in candidates if each.evicted and each.ended == at] == [victim]
        assert available(runs, resource, at) < THRESHOLD[resource] + tolerance


async def live_an_hour(resource: str, count: int) -> None:
    """Run so many nodes for an hour, and check evictions, conditions, taints and replicas."""
    script = leak_script(resource, count)
    async with VirtualCluster(run=f"{RUN},kubelet", kubelet=script) as cluster:
        stage = LeakingCluster(cluster, resource, count)
        began = cluster.clock.now_ns()
        await stage.run(3600)
        nodes = by_node(stage.pod_runs())
        assert len(nodes) == count
        evicted = 0
        for name, runs in nodes.items():
            check_order(runs, resource, tolerance=0)
            evicted += len(evictions(runs))
            now = cluster.clock.now_ns()
            times = range(began, now, SECOND)
            short = [at for at in times if available(runs, resource, at) < THRESHOLD[resource]]
            check_conditions(stage.pressed(name), short, now)
        assert evicted > 2 * count  # so that something was checked
        await check_taints(stage)
        await stage.passes(5)
        await stage.check_replicas()


def check_conditions(
    pressed: Sequence[tuple[int, int | None]], short: Sequence[int], now: int
) -> None:
    """Check that pressure was reported within a round, and cleared after its transition period."""
    expected: list[tuple[int, int]] = []
    for at in short:
        if expected and at - expected[-1][1] < TRANSITION:
            expected[-1] = expected[-1][0], at
        else:
            expected.append((at, at))
    assert len(pressed) == len(expected)
    for (set_at, cleared_at), (first, last) in zip(pressed, expected, strict=True):
        assert 0 <= set_at - first <= ROUND
        if cleared_at is None:
            assert now - last <= TRANSITION + ROUND
        else:
            assert 0 <= cleared_at - last - TRANSITION <= ROUND


async def check_taints(stage: LeakingCluster) -> None:
    """Check that nodes have a taint while they report pressure, and no longer."""
    for each in await stage.all(NODES):
        holds = [c["type"] for c in each["status"]["conditions"] if c["status"] == "True"]
        keys = [taint["key"] for taint in each["spec"].get("taints", ())]
        pressure = f"node.kubernetes.io/{stage.resource}-pressure"
        assert keys == ([pressure] if len(holds) > 1 else []), each["metadata"]["name"]
