"""The engines by name, their agreement, and their decisions in short forms.

An engine follows the snapshots of one cluster and decides on the one that it followed last. A new
engine is one more line in :data:`ENGINES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.decision import PreemptionDecision
from policies.preemption.engine import Engine
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine, filter_nodes, preempt
from policies.preemption.vectorized import VectorizedEngine

ENGINES: Final[Mapping[str, Callable[[SchedulerRules], Engine]]] = {
    "reference": ReferenceEngine,
    "vectorized": VectorizedEngine,
}

_MAX_NODES: Final = {"reference": 1_000}
"""The most nodes that an engine decides on in about a second; others take any number."""


def able(nodes: int) -> list[str]:
    """Return the names of the engines for repeated decisions on so many nodes."""
    return [name for name in ENGINES if nodes <= _MAX_NODES.get(name, nodes)]


def assert_agreement(
    pod: Pod,
    snapshot: Snapshot,
    rules: SchedulerRules | None = None,
    engine: Engine | None = None,
) -> PreemptionDecision:
    """Assert that an engine, by default a new vectorized one, decides as the reference engine."""
    rules = rules or SchedulerRules()
    engine = engine or VectorizedEngine(rules)
    decision = preempt(pod, snapshot, rules)
    assert engine.filter_nodes(pod, snapshot) == filter_nodes(pod, snapshot, rules)
    assert engine.preempt(pod, snapshot) == decision
    return decision


def fit_by_node(pod: Pod, snapshot: Snapshot, rules: SchedulerRules) -> dict[str, str]:
    """Return "fits" or the reason against it for each node."""
    decision = filter_nodes(pod, snapshot, rules)
    reasons = {name: str(rejection) for name, rejection in decision.rejected.items()}
    return dict.fromkeys(decision.feasible, "fits") | reasons


def victims_by_node(decision: PreemptionDecision) -> dict[str, list[str]]:
    """Return the names of the victims on each candidate."""
    return {
        name: [each.name for each in candidate.victims.pods]
        for name, candidate in decision.candidates.items()
    }
