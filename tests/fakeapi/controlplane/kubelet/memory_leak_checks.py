"""What must have happened where pods leaked.

All that is expected is reckoned from the leaks themselves, for each node and each moment; the
simulated kubelets, and the rules that they play, are not asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from extender.kube.rest.resources import NODES
from fakeapi import VirtualCluster
from tests.fakeapi.controlplane.kubelet.memory_leaks import (
    CAPACITY,
    NODES_OWN,
    SECOND,
    THRESHOLD,
    TRANSITION,
    LeakingCluster,
    Stay,
    book,
)

RUN = "replicaset,nodelifecycle"
ROUND = 10 * SECOND


def by_node(stays: Sequence[Stay]) -> Mapping[str, list[Stay]]:
    found = defaultdict(list)
    for each in stays:
        found[each.node].append(each)
    return found


def present(stays: Sequence[Stay], at: int) -> list[Stay]:
    """Return the pods that ran at a time, including those that ended then."""
    return [each for each in stays if each.began <= at and (each.ended is None or at <= each.ended)]


def evictions(stays: Sequence[Stay]) -> list[Stay]:
    """Return the evicted pods, in the order of their eviction."""
    return sorted((each for each in stays if each.evicted), key=lambda it: it.ended or 0)


def available(stays: Sequence[Stay], resource: str, at: int) -> int:
    """Return what is available on a node; the files of evicted pods remain until cleanup."""
    used = sum(each.uses(resource, at) for each in present(stays, at))
    return CAPACITY[resource] - NODES_OWN[resource] - used


def check_order(stays: Sequence[Stay], resource: str, tolerance: int) -> None:
    """Check that each time the right one went, no critical one did, and one at a time.

    ``tolerance`` is by how many bytes of usage the order may be off.
    """
    for victim in evictions(stays):
        at = victim.ended
        assert at is not None
        assert victim.leak.app != "agent"
        rivals = [each for each in present(stays, at) if each.leak.app != "agent"]
        first = min(rivals, key=lambda it: it.rank(resource, at))
        close = first.rank(resource, at)[:2] == victim.rank(resource, at)[:2]
        behind = first.above(resource, at) - victim.above(resource, at)
        assert first is victim or (close and behind <= tolerance), (victim, first)
        assert [each for each in rivals if each.evicted and each.ended == at] == [victim]
        assert available(stays, resource, at) < THRESHOLD[resource] + tolerance


def shortages(stays: Sequence[Stay], resource: str, seconds: Sequence[int]) -> Iterator[int]:
    """List the times at which a node is short."""
    for at in seconds:
        if available(stays, resource, at) < THRESHOLD[resource]:
            yield at


async def live_an_hour(resource: str, count: int) -> None:
    """Let an hour pass on so many nodes, and check all that there is to be checked."""
    async with VirtualCluster(run=f"{RUN},kubelet", kubelet=book(resource, count)) as cluster:
        stage = LeakingCluster(cluster, resource, count)
        began = cluster.clock.now_ns()
        await stage.live(3600)
        nodes = by_node(stage.stays())
        assert len(nodes) == count
        gone = 0
        for name, stays in nodes.items():
            check_order(stays, resource, tolerance=0)
            gone += len(evictions(stays))
            short = list(shortages(stays, resource, range(began, cluster.clock.now_ns(), SECOND)))
            check_conditions(stage.pressed(name), short, cluster.clock.now_ns())
        assert gone > 2 * count  # so that something was checked
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
    for (told, taken_back), (first, last) in zip(pressed, expected, strict=True):
        assert 0 <= told - first <= ROUND
        if taken_back is None:
            assert now - last <= TRANSITION + ROUND
        else:
            assert 0 <= taken_back - last - TRANSITION <= ROUND


async def check_taints(stage: LeakingCluster) -> None:
    """Check that nodes have a taint while they report pressure, and no longer."""
    for each in await stage.all(NODES):
        holds = [c["type"] for c in each["status"]["conditions"] if c["status"] == "True"]
        keys = [taint["key"] for taint in each["spec"].get("taints", ())]
        pressure = f"node.kubernetes.io/{stage.resource}-pressure"
        assert keys == ([pressure] if len(holds) > 1 else []), each["metadata"]["name"]
