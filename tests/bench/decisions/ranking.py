"""Choosing the pods that a ReplicaSet of 5,000 pods deletes, in this process.

The pods differ in all that they are ranked by. Their times are whole seconds of the last two weeks,
so that many share one; and since ages are compared roughly, the UID alone decides between many.
"""

from __future__ import annotations

import time
from random import Random
from typing import Final

from policies.replicaset import RankedPod, ReplicaSetPod, pods_to_delete, related_pods_per_node
from tests.bench.budgets import Figure
from tests.bench.timing import Effort, latency, milliseconds, repeated

PODS: Final = 5_000
DELETED: Final = 500
"""As many as a controller deletes at once."""

_NODES = 5_000
_SECOND = 10**9
_NOW_NS = 1_700_000_000 * _SECOND
_TWO_WEEKS = 14 * 86_400


def measure(effort: Effort) -> dict[str, Figure]:
    """Measure the choice; the pods per node are counted before."""
    draw = Random(42)
    replicas = [_replica(draw, index) for index in range(PODS)]
    crowded = related_pods_per_node(ReplicaSetPod(each, {}, None, active=True) for each in replicas)

    def once() -> float:
        begun = time.perf_counter()
        victims = pods_to_delete(replicas, crowded, DELETED, _NOW_NS)
        taken = time.perf_counter() - begun
        if len(victims) != DELETED:
            raise RuntimeError(f"the benchmark has chosen {len(victims)} pods")
        return taken

    once()
    taken = latency(repeated(effort, once))
    what = f"{DELETED} victims among a ReplicaSet's {PODS:,} pods: p50"
    shown = f"{milliseconds(taken.p50)} of {taken.rounds}"
    return {f"scaledown-{PODS}": Figure(what, shown, taken.p50)}


def _replica(draw: Random, index: int) -> RankedPod:
    created = _NOW_NS - draw.randrange(_TWO_WEEKS) * _SECOND
    return RankedPod(
        namespace="default",
        name=f"web-{index}",
        uid=f"{draw.getrandbits(128):032x}",
        node=f"node-{draw.randrange(_NODES)}" if draw.random() < 0.99 else "",
        phase=draw.choices(("Running", "Pending", "Unknown"), (97, 2, 1))[0],
        ready=draw.random() < 0.95,
        ready_since_ns=created + draw.randrange(60) * _SECOND,
        deletion_cost=draw.choices((0, -1, 100), (90, 5, 5))[0],
        restarts=draw.choices((0, 1, 7), (80, 15, 5))[0],
        sidecar_restarts=draw.choices((0, 1), (95, 5))[0],
        created_ns=created,
    )
