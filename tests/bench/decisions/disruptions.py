"""How many pods policies evict until nothing changes.

``python -m tests.bench.decisions.disruptions`` prints the table of docs/policies.md.
Random clusters are almost full. Pods of higher priority arrive, one after another. The replacements
of their victims are scheduled, too, and preempt in turn, until no pending pod fits or may preempt.
The pending pod with the highest priority is always the next one, and goes to the node with the
largest free share of CPU and memory (NodeResourcesFit, LeastAllocated). The criteria over
consequences assume other nodes and another order, so they can be wrong here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from statistics import fmean, stdev
from typing import Final, NamedTuple

from msgspec import structs

from extender.config.preemption_policy import find_policy
from policies.kubernetes.default_selector import PodOwner
from policies.kubernetes.selectors import equals_all
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.preemption.policy import KUBE_SCHEDULER, Policy, SchedulerRules
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import SECOND, node, pod, snapshot
from tests.commands import ROOT

SEEDS: Final = range(50)
NODES: Final = 20
ARRIVALS: Final = 10
_FULL: Final = 0.98
_STUDENT: Final = 2.01  # 97.5 % of Student's t distribution with 49 degrees of freedom
_MILLI: Final = 1000


class Outcome(NamedTuple):
    """What a policy leads to in one cluster: evicted pods, and pods that are pending in the end."""

    evicted: int
    pending: int


def policies() -> Mapping[str, Policy]:
    """Return the policies that are compared, by name."""
    recipes = ("victims-that-run-elsewhere", "least-cascade")
    return {
        "default": KUBE_SCHEDULER,
        **{
            each: find_policy(str(ROOT / "deploy" / "policies" / f"{each}.yaml")).default
            for each in recipes
        },
    }


def outcomes(policy: Policy, seeds: Sequence[int] = SEEDS) -> list[Outcome]:
    """Return the outcomes of a policy in the clusters of some seeds."""
    return [_LiveCluster(policy, Random(seed)).outcome() for seed in seeds]


class _LiveCluster:
    """A cluster in which pods are scheduled and preempted; the random numbers define it."""

    def __init__(self, policy: Policy, rng: Random) -> None:
        self._engine = VectorizedEngine(SchedulerRules(policy=policy))
        self._snapshot = _loaded(rng)
        self._arrivals = list(_arrivals(rng))
        self._pending: list[Pod] = []
        self._created = 0
        self._evicted = 0

    def outcome(self) -> Outcome:
        """Return the outcome when nothing changes any more after the last arrival."""
        for arriving in self._arrivals:
            self._pending.append(arriving)
            while any(map(self._is_scheduled, sorted(self._pending, key=_queue_order))):
                pass
        return Outcome(self._evicted, len(self._pending))

    def _is_scheduled(self, waiting: Pod) -> bool:
        """Place a pod, if need be by preemption; return whether it was possible."""
        states = self._snapshot.nodes
        feasible = self._engine.filter_nodes(waiting, self._snapshot).feasible
        name = max(feasible, key=lambda each: (_score(states[each], waiting), each), default="")
        if not name:
            chosen = self._engine.preempt(waiting, self._snapshot).chosen
            if chosen is None:
                return False
            self._evict(chosen.victims.pods)
            name = chosen.node
        self._created += 1
        self._pending.remove(waiting)
        started = structs.replace(waiting, started_ns=self._created * SECOND)
        self._snapshot = self._snapshot.with_assumed(started, name)
        return True

    def _evict(self, victims: Sequence[Pod]) -> None:
        nodes = dict(self._snapshot.nodes)
        for victim in victims:
            name = victim.node_name or ""
            nodes[name] = nodes[name].without_pods([victim])
            self._evicted += 1
            if victim.owner is not None:
                fresh = f"{victim.owner.name}-{self._created}-{self._evicted}"
                self._pending.append(
                    structs.replace(victim, name=fresh, uid=fresh, node_name=None, started_ns=None)
                )
        self._snapshot = replace(self._snapshot, nodes=nodes)


def _queue_order(waiting: Pod) -> tuple[int, str]:
    return -waiting.priority, waiting.name


def _score(state: NodeState, waiting: Pod) -> int:
    """Return the sum of the free shares of CPU and memory, in thousandths, with the pod placed."""
    free, requests = state.node.allocatable - state.requested, waiting.requests
    whole = state.node.allocatable
    cpu = (free.milli_cpu - requests.milli_cpu) * _MILLI // whole.milli_cpu
    return cpu + (free.memory - requests.memory) * _MILLI // whole.memory


def _loaded(rng: Random) -> Snapshot:
    """Return nodes of two pools and three sizes, full of the pods of workloads."""
    nodes = [
        node(f"node-{n:02}", cpu=cpu, memory=f"{4 * int(cpu)}Gi", labels={"pool": pool})
        for n in range(NODES)
        for cpu, pool in [(rng.choice(["8", "16", "32"]), rng.choice(["general", "batch"]))]
    ]
    states = dict(snapshot(*nodes).nodes)
    size = sum(each.allocatable.milli_cpu for each in nodes)
    used = number = 0
    while used < _FULL * size and number < NODES * 20:
        number += 1
        for replica in _replicas(rng, number):
            fitting = [name for name, state in sorted(states.items()) if _has_room(state, replica)]
            if fitting:
                name = rng.choice(fitting)
                states[name] = states[name].with_pod(structs.replace(replica, node_name=name))
                used += replica.requests.milli_cpu
    return replace(snapshot(*nodes), nodes=states)


def _replicas(rng: Random, number: int) -> Iterator[Pod]:
    """Yield the pods of a workload; one in ten has no controller, one in four needs a pool."""
    owner = PodOwner("ReplicaSet", f"app-{number}") if rng.random() < 0.9 else None
    pool = equals_all({"pool": rng.choice(["general", "batch"])}) if rng.random() < 0.25 else ()
    cpu = rng.choice([1, 1, 2, 2, 3, 4, 6, 8])
    memory, priority = cpu * rng.choice([1, 2, 4, 6]), rng.choice([0, 100, 200, 300, 500])
    for replica in range(rng.randint(1, 6)):
        yield pod(
            f"app-{number}-{replica}",
            cpu=f"{cpu}",
            memory=f"{memory}Gi",
            priority=priority,
            owner=owner,
            node_selector=tuple(pool),
            started=-rng.randint(1, 10_000),
        )


def _arrivals(rng: Random) -> Iterator[Pod]:
    for number in range(ARRIVALS):
        cpu = rng.choice([2, 4, 6, 8])
        yield pod(f"new-{number}", cpu=f"{cpu}", memory=f"{2 * cpu}Gi", priority=1000)


def _has_room(state: NodeState, waiting: Pod) -> bool:
    free, requests = state.node.allocatable - state.requested, waiting.requests
    selected = all(each.matches(state.node.labels) for each in waiting.node_selector)
    return selected and free.milli_cpu >= requests.milli_cpu and free.memory >= requests.memory


def main() -> None:
    """Print the means of each policy, and of its differences to the default one."""
    found = {name: outcomes(policy) for name, policy in policies().items()}
    for name, own in found.items():
        cells = " | ".join(_compared(own, found["default"]))
        sys.stdout.write(f"| {name} | {cells} |\n")


def _compared(own: Sequence[Outcome], default: Sequence[Outcome]) -> Iterator[str]:
    """Yield the mean of each number, and of its differences with half their 95 % interval."""
    for place in range(len(Outcome._fields)):
        numbers = [each[place] for each in own]
        less = [each[place] - its[place] for each, its in zip(own, default, strict=True)]
        half = _STUDENT * stdev(less) / len(less) ** 0.5
        yield f"{fmean(numbers):.2f}"
        yield f"{fmean(less):+.2f} ± {half:.2f}"


if __name__ == "__main__":
    main()
