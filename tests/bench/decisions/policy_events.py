"""One update of a pod into the columns of a policy with ten expressions, and into the default's.

Both follow equal clusters alternately, in which the restarts of a random pod change.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

from msgspec import structs

from extender.config.preemption_policy import PreemptionPolicy, find_policy
from policies.kubernetes.snapshot import Snapshot, build_node_state
from policies.preemption.policy import KUBE_SCHEDULER, SchedulerRules
from policies.preemption.vectorized import VectorizedEngine
from tests.bench.budgets import Figure, NamedFigures, untimed
from tests.bench.timing import Effort

TEN_EXPRESSIONS: Final = Path(__file__).with_name("ten_expressions.yaml")
_WARM_UP: Final = 50


def measure(snapshot: Snapshot, effort: Effort) -> dict[str, Figure]:
    """Measure the updates of pods of ``snapshot``."""
    default = PreemptionPolicy("default", KUBE_SCHEDULER)
    followers = [_Follower(each, snapshot) for each in (default, find_policy(str(TEN_EXPRESSIONS)))]
    for _ in range(_WARM_UP):
        for each in followers:
            each.seconds_of_update()
    taken = [[each.seconds_of_update() for each in followers] for _ in range(effort.events)]
    return dict(_figures(*map(median, zip(*taken, strict=True))))


def _figures(default: float, own: float) -> NamedFigures:
    shown = f"{own * 1e6:.0f} µs"
    yield "policy-event", Figure("update of a pod with ten expressions: p50", shown, own)
    shown = f"{own / default:.1f}: {(own - default) * 1e6:.0f} µs more than {default * 1e6:.1f} µs"
    what = "update of a pod with ten expressions, by the default"
    yield "policy-event-ratio", untimed(what, shown, own / default)


class _Follower:
    """An engine with a policy, and its own changing cluster."""

    def __init__(self, policy: PreemptionPolicy, snapshot: Snapshot) -> None:
        rules = SchedulerRules(policy=policy.default, policy_rules=policy.rules)
        self._engine = VectorizedEngine(rules)
        self._engine.follow(snapshot)
        self._snapshot = snapshot
        self._names = list(snapshot.nodes)
        self._rng = Random(7)

    def seconds_of_update(self) -> float:
        """Change a pod, and return the seconds in which the columns follow."""
        before = self._snapshot
        name = self._rng.choice(self._names)
        state = before.nodes[name]
        pods = list(state.pods)
        place = self._rng.randrange(len(pods))
        pods[place] = structs.replace(pods[place], restarts=pods[place].restarts + 1)
        nodes = {**before.nodes, name: build_node_state(state.node, pods)}
        self._snapshot = replace(before, nodes=nodes, generation=before.generation + 1)
        begun = time.perf_counter()
        self._engine.follow(self._snapshot, [name])
        return time.perf_counter() - begun
