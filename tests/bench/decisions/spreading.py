"""One sync of a WorkloadSpread of 5,000 pods in three subsets, in this process.

*Settled*: every pod has its subset and its cost, and the status is up to date. *Adopted*: no pod
has been admitted by a webhook, so each is matched with the subsets. The last is a whole sync of the
controller for a settled one, in a world without sockets, including the reads from the caches.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from extender.kube.workloadspread.spread_pods import MATCHED_WORKLOADSPREAD, write_injection
from fakeapi import VirtualCluster
from policies.kubernetes.snapshot import Node, Resources
from policies.replicaset import DELETION_COST
from policies.workloadspread.model import SpreadPod, Subset, SubsetInjection, WorkloadSpread
from policies.workloadspread.pod_groups import GroupingContext
from policies.workloadspread.reconcile import reconcile
from policies.workloadspread.targets import Target
from tests.bench.budgets import Figure
from tests.bench.timing import Effort, latency, milliseconds, repeated
from tests.builders.replicas import a_pod, a_replica_set
from tests.builders.workloadspread import (
    NOW_NS,
    REPLICA_SET,
    Document,
    at,
    in_zone,
    member,
    spread,
    spread_json,
    subset,
    target_json,
    term,
    workload,
)
from tests.extender.controllers.workloadspread.zones import ZONES, zone_node
from tests.stage import SPREADS, decode

PODS: Final = 5_000
LIMITS: Final = (2_000, 2_000, None)

_SIZES: Final = (2_000, 2_000, 1_000)
_COSTS: Final = ("300", "200", "100")
_WHAT: Final = f"WorkloadSpread: {PODS:,} pods in 3 subsets"


def measure(effort: Effort) -> dict[str, Figure]:
    """Measure the rules by themselves, and the controller around them."""
    settled = tuple(_settled())
    strangers = tuple(replace(pod, injection=None, deletion_cost=None) for pod in settled)
    return {
        "spread-settled": _ruled(effort, settled, f"{_WHAT}, all settled, p50"),
        "spread-adopted": _ruled(effort, strangers, f"{_WHAT}, all adopted, p50"),
        "spread-look": asyncio.run(_synced(effort)),
    }


def _ruled(effort: Effort, pods: tuple[SpreadPod, ...], what: str) -> Figure:
    written, around = _spread(), GroupingContext({f"node-{z}": _node(z) for z in ZONES}, _never)
    target = Target(workload(REPLICA_SET, replicas=PODS), pods=pods)

    def once() -> float:
        begun = time.perf_counter()
        outcome = reconcile(written, target, around, NOW_NS)
        taken = time.perf_counter() - begun
        placed = tuple(len(outcome.groups.subsets[zone]) for zone in ZONES)
        if placed != _SIZES or len(outcome.costs) != PODS:
            raise RuntimeError(f"the benchmark's pods are not where they belong: {placed}")
        return taken

    once()
    taken = latency(repeated(effort, once))
    return Figure(what, milliseconds(taken.p50), taken.p50)


async def _synced(effort: Effort) -> Figure:
    """Measure syncs of a controller, step by step."""
    async with VirtualCluster(run="workloadspread") as cluster:
        part = cluster.control_plane["workloadspread"]
        await cluster.clock.advance(1)
        cluster.load([*map(zone_node, ZONES), a_replica_set(replicas=PODS), *_documents()])
        subsets = [in_zone(zone, limit) for zone, limit in zip(ZONES, LIMITS, strict=True)]
        document = spread_json(*subsets, targetRef=target_json("ReplicaSet"))
        cluster.load([document])
        await cluster.clock.advance(60)
        part.pause()
        taken: list[float] = []
        for round_ in range(effort.rounds):
            document["metadata"]["labels"] = {"round": str(round_)}
            cluster.load([{**document, "status": await _status(cluster)}])
            await cluster.clock.advance(1)
            version = cluster.api.store.version
            begun = time.perf_counter()
            key = await part.step()
            taken.append(time.perf_counter() - begun)
            if (key, cluster.api.store.version) != ("default/web", version):
                raise RuntimeError(f"the benchmark's sync of {key!r} did nothing, or wrote")
        found = latency(taken)
        return Figure(f"{_WHAT}, the controller's look, p50", milliseconds(found.p50), found.p50)


async def _status(cluster: VirtualCluster) -> Document:
    found = await cluster.client.get(SPREADS.object("web", "default"), decode)
    status: Document = found["status"]
    return status


def _spread() -> WorkloadSpread:
    subsets: list[Subset] = [
        subset(zone, limit, required=term("zone", zone))
        for zone, limit in zip(ZONES, LIMITS, strict=True)
    ]
    return spread(*subsets, target=REPLICA_SET)


def _places() -> Iterator[tuple[int, str, str]]:
    """Return the number, the zone and the cost of each pod."""
    number = 0
    for zone, size, cost in zip(ZONES, _SIZES, _COSTS, strict=True):
        for _ in range(size):
            yield number, zone, cost
            number += 1


def _settled() -> Iterator[SpreadPod]:
    for number, zone, cost in _places():
        yield member(
            f"web-{number:05}",
            zone,
            controller=REPLICA_SET,
            node=f"node-{zone}",
            labels={"app": "web"},
            created_ns=at(-number),
            ready=True,
            ready_since=at(-number),
            deletion_cost=cost,
        )


def _documents() -> Iterator[Document]:
    for number, zone, cost in _places():
        matched = write_injection(SubsetInjection("web", zone))
        yield a_pod(
            f"web-{number:05}",
            "web",
            node=f"node-{zone}",
            ready_since="2026-01-01T00:00:00Z",
            annotations={MATCHED_WORKLOADSPREAD: matched, DELETION_COST: cost},
        )


def _node(zone: str) -> Node:
    return Node(
        name=f"node-{zone}",
        labels={"zone": zone},
        taints=(),
        unschedulable=False,
        allocatable=Resources(),
        allowed_pods=PODS,
    )


def _never(_pod: SpreadPod, _subset: Subset) -> bool:
    return False
