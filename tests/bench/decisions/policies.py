"""What policies cost: a decision by each, over one by the default policy on the same snapshots.

Both decide alternately about equal clusters of 5,000 nodes with 30 pods each and 100 PDBs, in which
one pod changes before each decision. Its pods have owners and have restarted; a third is in gangs.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import median
from typing import Final

from policies.kubernetes.default_selector import PodOwner
from policies.kubernetes.snapshot import PastPreemption, Pod, Snapshot
from policies.preemption.costs.candidate_criteria import CostCriterion, GroupCriterion
from policies.preemption.costs.catalog import cheapest_criteria, lost_work
from policies.preemption.costs.groupings import GANGS, NAMESPACES
from policies.preemption.guards.allowance import loop_breaker, min_available, window_limit
from policies.preemption.guards.candidate_limit import CandidateLimit
from policies.preemption.guards.victim_guard import min_runtime
from policies.preemption.policy import CANDIDATE_CRITERIA, KUBE_SCHEDULER, Policy, SchedulerRules
from policies.preemption.vectorized import VectorizedEngine
from tests.bench.budgets import Figure, NamedFigures, untimed
from tests.bench.clusters import cluster, pending, snapshot_of
from tests.bench.decisions.events import ChangingCluster
from tests.bench.decisions.preemption_decisions import decide_once
from tests.bench.timing import Effort, milliseconds

NODES: Final = 5_000
_WARM_UP: Final = 3
_LEAST_ROUNDS: Final = 30
_MINUTE: Final = 60 * 10**9
_LOST_WORK: Final = CostCriterion("least lost work", lost_work({"cpu": 1000}))
_LOST_GANGS: Final = CostCriterion("least lost work of gangs", _LOST_WORK.cost, GANGS)
_UPSTREAM: Final = tuple(CANDIDATE_CRITERIA.values())


def _cheapest(criterion: str) -> Policy:
    by = cheapest_criteria(_LOST_WORK.cost)[criterion]
    return Policy("", candidates=(by, *_UPSTREAM), cheapest_by=by)


POLICIES: Final[Mapping[str, Policy]] = {
    "lost work": Policy("", candidates=(_LOST_WORK, *_UPSTREAM)),
    "lost work of gangs": Policy("", candidates=(_LOST_GANGS, *_UPSTREAM)),
    "fewest gangs": Policy("", candidates=(GroupCriterion("fewest gangs", GANGS), *_UPSTREAM)),
    "minimum run time": Policy("", victim_guards=(min_runtime("", lambda _: True, _MINUTE),)),
    "strict budgets": Policy("", strict_budgets=True),
    "cheapest lost work": _cheapest("least lost work"),
    "cheapest gangs": _cheapest("least lost work of gangs"),
    "cheapest number": _cheapest("fewest victims"),
    "limits": Policy(
        "",
        candidate_limits=(
            CandidateLimit("", CANDIDATE_CRITERIA["fewest victims"], 50),
            CandidateLimit("", _LOST_WORK, 2**50),
        ),
    ),
    "limits in a window": Policy(
        "", allowance_guards=(window_limit("", NAMESPACES, 1_000, _MINUTE), loop_breaker(_MINUTE))
    ),
    "ready pods kept": Policy(
        "", allowance_guards=(min_available("", lambda pod: pod.namespace == "default", 1),)
    ),
}


def measure(effort: Effort) -> dict[str, Figure]:
    """Measure each policy beside the default one."""
    snapshot = _worked(snapshot_of(cluster(NODES)))
    gc.collect()
    gc.freeze()
    pod = pending("plain", NODES)
    return dict(
        figure
        for name, each in POLICIES.items()
        for figure in _beside(name, each, snapshot, pod, effort)
    )


def _beside(
    name: str, policy: Policy, snapshot: Snapshot, pod: Pod, effort: Effort
) -> NamedFigures:
    engines = [VectorizedEngine(SchedulerRules(policy=each)) for each in (KUBE_SCHEDULER, policy)]
    moving = [ChangingCluster(snapshot) for _ in engines]
    taken: tuple[list[float], list[float]] = ([], [])
    for engine in engines:
        engine.follow(snapshot)
    for round_ in range(_WARM_UP + max(effort.rounds, _LEAST_ROUNDS)):
        for engine, changing, seconds in zip(engines, moving, taken, strict=True):
            once = decide_once(engine, pod, changing)
            if round_ >= _WARM_UP:
                seconds.append(once)
    default, own = map(median, taken)
    shown = f"{own / default:.2f}: {milliseconds(own)} by {milliseconds(default)}"
    key = f"policy-{name.replace(' ', '-')}"
    yield key, untimed(f"decision by the policy {name!r}, by the default", shown, own / default)


def _worked(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with what policies read."""
    past = (PastPreemption(_NOW_NS - _MINUTE // 2, pod, None) for pod in _first_pods(snapshot))
    return replace(
        snapshot,
        nodes={
            name: replace(
                state,
                pods=tuple(_with_owner(pod, 31 * row + n) for n, pod in enumerate(state.pods)),
            )
            for row, (name, state) in enumerate(snapshot.nodes.items())
        },
        now_ns=_NOW_NS,
        preemptions=tuple(past),
    )


_NOW_NS: Final = 1_800_000_000 * 10**9


def _first_pods(snapshot: Snapshot) -> Iterator[Pod]:
    for state in list(snapshot.nodes.values())[:100]:
        yield from state.pods[:1]


def _with_owner(pod: Pod, number: int) -> Pod:
    owner = PodOwner("Job" if number % 3 == 0 else "ReplicaSet", f"owner-{number * 7 % 9_000}")
    return replace(pod, owner=owner, ready=True, restarts=number % 3)
