"""What policies cost: a decision by each recipe, over one by the default policy.

Both decide alternately about equal clusters of 5,000 nodes with 30 pods each and 100 PDBs, in which
one pod changes before each decision. Its pods have owners and have restarted; a third is in gangs.
The preemptor needs three victims on any node, which is as many as any recipe allows.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Final

from msgspec import structs

from extender.config.preemption_policy import PreemptionPolicy, find_policy
from policies.kubernetes.default_selector import PodOwner
from policies.kubernetes.policy_objects import PolicyObjects, ResourceQuota
from policies.kubernetes.snapshot import PastPreemption, Pod, Snapshot
from policies.preemption.policy import DEFAULT_RULES, SchedulerRules
from policies.preemption.vectorized import VectorizedEngine
from tests.bench.budgets import Figure, NamedFigures, untimed
from tests.bench.clusters import cluster, pending, snapshot_of
from tests.bench.decisions import policy_events
from tests.bench.decisions.events import ChangingCluster
from tests.bench.decisions.questions import decide_once, kinds_of
from tests.bench.timing import Effort, milliseconds

NODES: Final = 5_000
RECIPES: Final = Path("deploy/policies")
_WARM_UP: Final = 3
_LEAST_ROUNDS: Final = 30
_MINUTE: Final = 60 * 10**9
_LABELS: Final = {"tier": "interactive"}
"""The labels of the preemptor, which one of the recipes reads."""


def measure(effort: Effort) -> dict[str, Figure]:
    """Measure each recipe beside the default policy, and the updates of pods."""
    snapshot = _worked(snapshot_of(cluster(NODES)))
    gc.collect()
    gc.freeze()
    pod = structs.replace(pending("medium", NODES), labels=_LABELS)
    decisions = (
        figure
        for path in sorted(RECIPES.glob("*.yaml"))
        for figure in _beside(find_policy(str(path)), snapshot, pod, effort)
    )
    return dict(decisions) | policy_events.measure(snapshot, effort)


def _beside(policy: PreemptionPolicy, snapshot: Snapshot, pod: Pod, effort: Effort) -> NamedFigures:
    own_rules = SchedulerRules(policy=policy.default, policy_rules=policy.rules)
    engines = [VectorizedEngine(each) for each in (DEFAULT_RULES, own_rules)]
    moving = [ChangingCluster(snapshot) for _ in engines]
    taken: tuple[list[float], list[float]] = ([], [])
    for engine in engines:
        engine.follow(snapshot)
    rounds = _WARM_UP + max(effort.rounds, _LEAST_ROUNDS)
    for round_, kind in enumerate(islice(kinds_of(pod), rounds)):
        for engine, changing, seconds in zip(engines, moving, taken, strict=True):
            once = decide_once(engine.for_preemptor(kind), kind, changing)
            if round_ >= _WARM_UP:
                seconds.append(once)
    default, own = map(median, taken)
    shown = f"{own / default:.2f}: {milliseconds(own)} by {milliseconds(default)}"
    what = f"decision by `{policy.name}.yaml`, by the default"
    yield f"policy-{policy.name}", untimed(what, shown, own / default)


def _worked(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with what policies read; victims of another namespace are in its past."""
    namespaces = {pod.namespace for state in snapshot.nodes.values() for pod in state.pods}
    hard = {"cpu": 10**6, "memory": 2**40, "nvidia.com/gpu": 10}
    quotas = {name: (ResourceQuota(name, "quota", hard),) for name in namespaces}
    past = (PastPreemption(_NOW_NS - _MINUTE // 2, pod, None) for pod in _first_pods(snapshot))
    return replace(
        snapshot,
        nodes={
            name: structs.replace(
                state,
                pods=tuple(_with_owner(pod, 31 * row + n) for n, pod in enumerate(state.pods)),
            )
            for row, (name, state) in enumerate(snapshot.nodes.items())
        },
        now_ns=_NOW_NS,
        preemptions=tuple(past),
        policy_objects=PolicyObjects(quotas),
    )


_NOW_NS: Final = 1_800_000_000 * 10**9


def _first_pods(snapshot: Snapshot) -> Iterator[Pod]:
    for state in list(snapshot.nodes.values())[:100]:
        yield from (structs.replace(pod, namespace="other") for pod in state.pods[:1])


def _with_owner(pod: Pod, number: int) -> Pod:
    owner = PodOwner("Job" if number % 3 == 0 else "ReplicaSet", f"owner-{number * 7 % 9_000}")
    return structs.replace(pod, owner=owner, ready=True, restarts=number % 3)
