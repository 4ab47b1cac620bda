"""The cost of the ReplicaSet controller, compared with a real kube-controller-manager's.

Both do the same in the same run, by turns: each time in a process of its own, against a fakeapi of
its own, without a rate limit. Compared are the wall time until the status shows the result, and the
processor time and the memory of the controller's process.

- One ReplicaSet goes from 0 to 1,000 pods and back.
- 2,000 ReplicaSets with a pod each are *behind* when the controller starts: the status of each is
  to be written. Then they are *idle*, and each pod is touched: a sync that writes nothing.
- 50,000 pods of 2,000 ReplicaSets are in the cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.bench.budgets import Figure
from tests.bench.controller_comparison import SETS_PATH, Bench, Costs, bench, patched, pods_path
from tests.bench.processes import resident_bytes
from tests.bench.timing import milliseconds
from tests.conformance.build import program
from tests.conformance.controller_processes import OURS, Contender, real
from tests.conformance.objects import NAMESPACE, Document, owned, replica_set, with_metadata

PODS: Final = 1_000
SETS: Final = 2_000
CACHED: Final = 50_000

_MIB: Final = 2**20
_HANDS: Final = 16
_WAYS: Final = ("up", "down")


def measure(rounds: int) -> dict[str, Figure]:
    """Measure ours and the real one by turns, so many times."""
    return asyncio.run(_measure(real(program("controllers")), rounds))


async def _measure(theirs: Contender, rounds: int) -> dict[str, Figure]:
    costs = {contender.name: Costs() for contender in (OURS, theirs)}
    for contender in (OURS, theirs) * rounds:
        await _scale(contender, costs[contender.name])
        await _look(contender, costs[contender.name])
    for contender in (OURS, theirs):
        await _remember(contender, costs[contender.name])
    return _figures(costs[OURS.name], costs[theirs.name])


async def _scale(contender: Contender, costs: Costs) -> None:
    async with bench(contender, _sets(1, 0)) as running:
        await running.until(_is_observed)
        for way, replicas in zip(_WAYS, (PODS, 0), strict=True):
            async with running.measured(costs, way):
                await _ask_for(running, replicas)
    for what in ("wall", "controller"):
        costs.note(f"both {what}", sum(costs.rounds[f"{way} {what}"][-1] for way in _WAYS))


async def _ask_for(running: Bench, replicas: int) -> None:
    await patched(running, f"{SETS_PATH}/set-0", {"spec": {"replicas": replicas}})
    await running.until(
        lambda thing: _is_observed(thing) and thing["status"].get("replicas", 0) == replicas
    )


async def _look(contender: Contender, costs: Costs) -> None:
    async with bench(contender, _sets(SETS, 1)) as running:
        first, last = await running.until(_is_observed, SETS)
        costs.note("behind wall", last - first)
        async with running.measured(costs, "idle"):
            await _touch(running)
            await running.create(SETS_PATH, replica_set("last", 0))
            await running.until(lambda thing: _is_observed(thing) and _is_called(thing, "last"))


async def _touch(running: Bench) -> None:
    """Change each pod in a way that means nothing to its ReplicaSet, several at a time."""
    left = iter(range(SETS))
    change = {"metadata": {"annotations": {"touched": "yes"}}}

    async def work() -> None:
        for number in left:
            await patched(running, pods_path(f"set-{number}-0"), change)

    await asyncio.gather(*(work() for _ in range(_HANDS)))


async def _remember(contender: Contender, costs: Costs) -> None:
    async with bench(contender, _sets(SETS, CACHED // SETS)) as running:
        await running.until(_is_observed, SETS)
        costs.note("memory", resident_bytes(running.controller) / _MIB)


def _sets(count: int, pods: int) -> Iterator[Document]:
    """Return ReplicaSets with their pods, whose status has not been written yet."""
    yield {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": NAMESPACE}}
    for number in range(count):
        name, uid = f"set-{number}", f"00000000-0000-4000-8000-{number:012d}"
        yield with_metadata(replica_set(name, pods), uid=uid, generation=1)
        for index in range(pods):
            yield owned(_pod(f"{name}-{index}", name), "ReplicaSet", name, uid)


def _pod(name: str, app: str) -> Document:
    """Return a pod of the size that pods have."""
    environment = [{"name": f"SETTING_{n}", "value": f"a value that says {n}"} for n in range(20)]
    container = {"name": "c", "image": "registry.example/c:1", "env": environment}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": app}},
        "spec": {"containers": [container], "nodeName": "n"},
        "status": {"phase": "Running"},
    }


def _is_observed(thing: Document) -> bool:
    observed = thing.get("status", {}).get("observedGeneration")
    return bool(observed == thing["metadata"]["generation"])


def _is_called(thing: Document, name: str) -> bool:
    return bool(thing["metadata"]["name"] == name)


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
    """Figures of ours beside the real one's: what is checked of times is their ratio."""

    ours: Costs
    theirs: Costs

    def wall(self, what: str, name: str) -> Figure:
        """Compare wall time."""
        one, other = (each.least(f"{name} wall") for each in (self.ours, self.theirs))
        return _ratio(what, milliseconds(one), milliseconds(other), one / other)

    def processor(self, what: str, name: str, count: int) -> Figure:
        """Compare processor time of so many things."""
        both = (each.least(f"{name} controller") / count for each in (self.ours, self.theirs))
        one, other = both
        return _ratio(what, f"{one * 1e6:.0f} µs", f"{other * 1e6:.0f} µs", one / other)

    def memory(self, what: str, name: str) -> Figure:
        """Show memory beside each other; ours is what is checked."""
        one, other = (each.least(name) for each in (self.ours, self.theirs))
        return _ratio(what, f"{one:.0f} MiB", f"{other:.0f} MiB", one)


def _ratio(what: str, ours: str, theirs: str, cost: float) -> Figure:
    return Figure(what, f"{ours}; the real one {theirs}", cost, timed=False)
