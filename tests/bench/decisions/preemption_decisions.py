"""One preemption decision over all nodes, in this process: how long, and how that grows.

Each decision is made on a snapshot that differs from the last one by one pod event, which the
engine has followed already, so that no decision is cached; and it is read as far as the extender
reads it. Garbage is collected as in production: modules are frozen, the cluster is not.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from policies.kubernetes.snapshot import Pod
from policies.preemption.decision import PreemptionDecision
from policies.preemption.engine import Engine
from policies.preemption.policy import DEFAULT_RULES
from tests.bench.budgets import Figure, NamedFigures, untimed
from tests.bench.clusters import cluster, pending, snapshot_of
from tests.bench.decisions import devices, events, volumes
from tests.bench.decisions.events import ChangingCluster
from tests.bench.timing import Effort, Latency, latency, milliseconds, repeated, slope
from tests.properties.engines import ENGINES, able

PREEMPTORS: Final = ("plain", "constrained", "large")
VARIANTS: Final[Mapping[str, tuple[str, str]]] = {
    **{f"{each}-no-pdb": (each, f"{each}, no PDB") for each in PREEMPTORS},
    **{each: (each, f"{each}, 100 PDBs") for each in PREEMPTORS},
}
"""Variant → its preemptor and its name in tables."""

WARM_UP: Final = 2
_CLAIMS_ON: Final = 5_000
"""The number of nodes of the cluster with devices and volumes."""


def measure(effort: Effort) -> dict[str, Figure]:
    """Measure every engine, preemptor and size, and one pod event on the same clusters."""
    gc.collect()
    gc.freeze()
    medians: dict[tuple[str, str], dict[int, float]] = {}
    figures: dict[str, Figure] = {}
    for nodes in effort.nodes:
        moving = ChangingCluster(snapshot_of(cluster(nodes)))
        for engine in able(nodes):
            for variant in VARIANTS:
                taken = _decisions(engine, variant, moving, effort)
                medians.setdefault((engine, variant), {})[nodes] = taken.p50
                figures |= _figures(engine, nodes, variant, taken)
        figures |= events.measure(moving, effort)
        if nodes == _CLAIMS_ON:
            figures |= devices.measure(moving.snapshot, effort)
            figures |= volumes.measure(moving.snapshot, effort)
    return figures | dict(_growth(medians))


def _decisions(name: str, variant: str, moving: ChangingCluster, effort: Effort) -> Latency:
    engine = ENGINES[name](DEFAULT_RULES)
    pod = pending(VARIANTS[variant][0], len(moving.snapshot.nodes))
    budgets = () if variant.endswith("no-pdb") else moving.snapshot.budgets
    moved = ChangingCluster(replace(moving.snapshot, budgets=budgets))
    engine.follow(moved.snapshot, None)
    for _ in range(WARM_UP):
        decide_once(engine, pod, moved)
    return latency(repeated(effort, lambda: decide_once(engine, pod, moved)))


def decide_once(engine: Engine, pod: Pod, moving: ChangingCluster) -> float:
    """Change one pod, and return the seconds of the decision that follows."""
    event = moving.step()
    engine.follow(moving.snapshot, [event.node])
    begun = time.perf_counter()
    _use(engine.preempt(pod, moving.snapshot))
    return time.perf_counter() - begun


def _use(decision: PreemptionDecision) -> None:
    """Read what the extender reads of a decision, and check that there is one."""
    read = (len(decision.candidates), len(decision.rejected), decision.message)
    if decision.chosen is None or decision.decided_by is None:
        raise RuntimeError(f"the benchmark's decision is none: {read}")


def _figures(engine: str, nodes: int, variant: str, taken: Latency) -> NamedFigures:
    what = f"{engine}, {nodes:,} nodes, {VARIANTS[variant][1]}"
    for name, seconds in (("", taken.p50), ("-p99", taken.p99)):
        shown = f"{milliseconds(seconds)} of {taken.rounds}"
        title = f"{what}: {name.removeprefix('-') or 'p50'}"
        yield f"{engine}-{nodes}-{variant}{name}", Figure(title, shown, seconds)


def _growth(medians: Mapping[tuple[str, str], Mapping[int, float]]) -> NamedFigures:
    for (engine, variant), costs in medians.items():
        if len(costs) > 1:
            exponent = slope(costs)
            what = f"{engine}, growth with nodes, {VARIANTS[variant][1]}"
            shown = f"nodes^{exponent:.2f}"
            yield f"{engine}-slope-{variant}", untimed(what, shown, exponent)
