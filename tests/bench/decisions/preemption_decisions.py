"""One preemption decision over all nodes, in this process: how long, and how that grows.

Each decision is made on a snapshot that differs from the last one by one pod event, which the
engine has followed already, and about a pod of another kind, so that nothing is known of any node
(``next_questions.py`` measures the others). It is read as far as the extender reads it. Garbage is
collected as in production: modules are frozen, the cluster is not.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from policies.preemption.policy import DEFAULT_RULES
from tests.bench.budgets import Figure, NamedFigures, untimed
from tests.bench.clusters import cluster, pending, snapshot_of
from tests.bench.decisions import devices, events, next_questions, volumes
from tests.bench.decisions.events import ChangingCluster
from tests.bench.decisions.next_questions import PREEMPTORS
from tests.bench.decisions.questions import WARM_UP, decide_once, kinds_of
from tests.bench.timing import Effort, Latency, latency, milliseconds, repeated, slope
from tests.properties.engines import ENGINES, able

VARIANTS: Final[Mapping[str, tuple[str, str]]] = {
    **{f"{each}-no-pdb": (each, f"{each}, no PDB") for each in PREEMPTORS},
    **{each: (each, f"{each}, 100 PDBs") for each in PREEMPTORS},
}
"""Variant → its preemptor and its name in tables."""

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
        figures |= next_questions.of_known_kinds(moving.snapshot, effort)
        if nodes == _CLAIMS_ON:
            figures |= devices.measure(moving.snapshot, effort)
            figures |= volumes.measure(moving.snapshot, effort)
            figures |= next_questions.beside_others(moving.snapshot, effort)
    return figures | dict(_growth(medians)) | dict(events.growth(figures, effort))


def _decisions(name: str, variant: str, moving: ChangingCluster, effort: Effort) -> Latency:
    engine = ENGINES[name](DEFAULT_RULES)
    pod = pending(VARIANTS[variant][0], len(moving.snapshot.nodes))
    budgets = () if variant.endswith("no-pdb") else moving.snapshot.budgets
    moved = ChangingCluster(replace(moving.snapshot, budgets=budgets))
    engine.follow(moved.snapshot, None)
    kinds = kinds_of(pod)
    for _ in range(WARM_UP):
        decide_once(engine, next(kinds), moved)
    return latency(repeated(effort, lambda: decide_once(engine, next(kinds), moved)))


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
