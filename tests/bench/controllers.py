"""The cost of the ReplicaSet controller, compared with a real kube-controller-manager's.

Both do the same in turns: each time in a new process, against a new fakeapi, without a rate limit.
Compared are the wall time until the status shows the result, and the processor time and the memory
of the controller's process.

- One ReplicaSet is scaled from 0 to 1,000 pods and back.
- 2,000 ReplicaSets with a pod each are *behind* when the controller starts: each needs a status.
  Then they are *idle*, and each pod is changed: a sync that writes nothing.
- 50,000 pods of 2,000 ReplicaSets are in the cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from tests.bench.budgets import Figure, untimed
from tests.bench.clusters import average_container
from tests.bench.servers.controller_comparison import PODS_PATH, SETS_PATH, Bench, Costs, bench
from tests.bench.servers.processes import resident_bytes
from tests.bench.timing import milliseconds
from tests.builders import Document, manifest
from tests.conformance.build import program
from tests.conformance.clusters.controller_processes import OURS, Controllers, real
from tests.conformance.objects import (
    NAMESPACE,
    NAMESPACE_DOCUMENT,
    owned,
    replica_set,
    with_metadata,
)

PODS: Final = 1_000
SETS: Final = 2_000
CACHED: Final = 50_000

_MIB: Final = 2**20
_CLIENTS: Final = 16


def measure(rounds: int) -> dict[str, Figure]:
    """Measure ours and the real one in turns, so many times."""
    return asyncio.run(_measure(real(program("controllers")), rounds))


async def _measure(theirs: Controllers, rounds: int) -> dict[str, Figure]:
    costs = {controllers.name: Costs() for controllers in (OURS, theirs)}
    for controllers in (OURS, theirs) * rounds:
        await _scale(controllers, costs[controllers.name])
        await _sync(controllers, costs[controllers.name])
    for controllers in (OURS, theirs):
        await _fill_cache(controllers, costs[controllers.name])
    return _figures(costs[OURS.name], costs[theirs.name])


async def _scale(controllers: Controllers, costs: Costs) -> None:
    async with bench(controllers, _sets(1, 0)) as running:
        await running.until(_is_observed)
        for direction, replicas in (("up", PODS), ("down", 0)):
            async with running.measured(costs, direction):
                await running.patch(f"{SETS_PATH}/set-0", {"spec": {"replicas": replicas}})
                await running.until(partial(_has_replicas, replicas))
    for what in ("wall", "controller"):
        total = costs.rounds[f"up {what}"][-1] + costs.rounds[f"down {what}"][-1]
        costs.record(f"both {what}", total)


async def _sync(controllers: Controllers, costs: Costs) -> None:
    async with bench(controllers, _sets(SETS, 1)) as running:
        first, last = await running.until(_is_observed, SETS)
        costs.record("behind wall", last - first)
        async with running.measured(costs, "idle"):
            await _touch(running)
            await running.create(SETS_PATH, replica_set("last", 0))
            await running.until(lambda s: _is_observed(s) and s["metadata"]["name"] == "last")


async def _touch(running: Bench) -> None:
    """Change each pod in a way that its ReplicaSet ignores, several at a time."""
    numbers = iter(range(SETS))
    change = {"metadata": {"annotations": {"touched": "yes"}}}

    async def work() -> None:
        for number in numbers:
            await running.patch(f"{PODS_PATH}/set-{number}-0", change)

    await asyncio.gather(*(work() for _ in range(_CLIENTS)))


async def _fill_cache(controllers: Controllers, costs: Costs) -> None:
    async with bench(controllers, _sets(SETS, CACHED // SETS)) as running:
        await running.until(_is_observed, SETS)
        costs.record("memory", resident_bytes(running.controller) / _MIB)


def _sets(count: int, pods: int) -> Iterator[Document]:
    """Return ReplicaSets with their pods, whose status has not been written yet."""
    yield NAMESPACE_DOCUMENT
    container = average_container()
    for number in range(count):
        name, uid = f"set-{number}", f"00000000-0000-4000-8000-{number:012d}"
        yield with_metadata(replica_set(name, pods), uid=uid, generation=1)
        for index in range(pods):
            pod = manifest(
                "Pod",
                f"{name}-{index}",
                namespace=NAMESPACE,
                metadata={"labels": {"app": name}},
                spec={"containers": [container], "nodeName": "n"},
                status={"phase": "Running"},
            )
            yield owned(pod, "ReplicaSet", name, uid)


def _has_replicas(replicas: int, replica_set: Document) -> bool:
    observed = replica_set.get("status", {}).get("replicas", 0)
    return _is_observed(replica_set) and bool(observed == replicas)


def _is_observed(thing: Document) -> bool:
    observed = thing.get("status", {}).get("observedGeneration")
    return bool(observed == thing["metadata"]["generation"])


def _figures(ours: Costs, theirs: Costs) -> dict[str, Figure]:
    pods, sets = f"{PODS:,} pods", f"{SETS:,} ReplicaSets"
    compared = Compared(ours, theirs)
    return {
        "up": compared.wall(f"0 to {pods}, until its status shows it", "up"),
        "down": compared.wall(f"{pods} to 0", "down"),
        "both": compared.wall(f"0 to {pods} and back", "both"),
        "pod": compared.processor("processor time for a pod, made and deleted", "both", PODS),
        "look": compared.processor(f"processor time for a look at one of {sets}", "idle", SETS),
        "looks": compared.wall(f"{sets}, idle, one after the other looked at", "idle"),
        "statuses": compared.wall(f"{sets}, the status of each to be written", "behind"),
        "memory": compared.memory(f"resident memory with {CACHED:,} pods", "memory"),
    }


@dataclass(frozen=True, slots=True)
class Compared:
    """Figures of ours next to the real one's; the ratio of times is checked."""

    ours: Costs
    theirs: Costs

    def wall(self, what: str, name: str) -> Figure:
        """Compare wall time."""
        one, other = (each.least(f"{name} wall") for each in (self.ours, self.theirs))
        return _ratio(what, milliseconds(one), milliseconds(other), one / other)

    def processor(self, what: str, name: str, count: int) -> Figure:
        """Compare processor time of so many things."""
        one, other = (each.least(f"{name} controller") / count for each in (self.ours, self.theirs))
        return _ratio(what, f"{one * 1e6:.0f} µs", f"{other * 1e6:.0f} µs", one / other)

    def memory(self, what: str, name: str) -> Figure:
        """Show both amounts of memory; ours is checked."""
        one, other = (each.least(name) for each in (self.ours, self.theirs))
        return _ratio(what, f"{one:.0f} MiB", f"{other:.0f} MiB", one)


def _ratio(what: str, ours: str, theirs: str, cost: float) -> Figure:
    return untimed(what, f"{ours}; the real one {theirs}", cost)
