"""On the benchmark clusters every engine decides as kube-scheduler's own plugins on all nodes.

Go's side is DryRunPreemption and SelectCandidate of v1.30.12 with the default profile, so 1.30 is
the release to decide by. (No pod here matches two budgets, and no budget is without a selector, so
every other release gives the same candidates.)
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.kube.decoders.pods import decode_pod
from policies import PreemptionDecision, SchedulerRules, Snapshot, assemble, release
from policies.kubernetes.snapshot import Pod
from tests.bench.clusters import cluster, encoded, pending, preemptor, snapshot_of
from tests.properties.engines import ENGINES, able

RECORDED = Path(__file__).parents[1] / "recorded"
RULES = SchedulerRules(release("1.30"))
VARIANTS = ("plain", "constrained", "large")
SMALL = (100, pytest.param(1000, marks=pytest.mark.slow))
"""Clusters of which whole decisions are recorded."""

BEST = {
    (500, "plain"): "node-00164",
    (500, "constrained"): "node-00164",
    (500, "large"): "node-00442",
    (5000, "plain"): "node-00491",
    (5000, "constrained"): "node-00107",
    (5000, "large"): "node-00442",
}
"""The node that Go picked on the clusters of which nothing else is recorded."""

LARGER = [(engine, nodes, variant) for nodes, variant in BEST for engine in able(nodes)]


@cache
def generated(nodes: int) -> Snapshot:
    return snapshot_of(cluster(nodes), RULES.release)


@cache
def decided(engine: str, nodes: int, variant: str) -> PreemptionDecision:
    snapshot = generated(nodes)
    asked = ENGINES[engine](RULES)
    asked.follow(snapshot, None)
    return asked.preempt(pending(variant, nodes, RULES.release), snapshot)


@cache
def by_go(nodes: int, variant: str) -> dict[str, Any]:
    path = RECORDED / f"decision-{nodes}-{variant}.json.gz"
    document: dict[str, Any] = msgspec.json.decode(gzip.decompress(path.read_bytes()))
    return document


def documents(nodes: int) -> Iterator[dict[str, Any]]:
    raw = gzip.decompress((RECORDED / f"cluster-{nodes}.jsonl.gz").read_bytes())
    yield from msgspec.json.Decoder().decode_lines(raw)


def wanting(nodes: int) -> dict[str, Pod]:
    """Return the preemptors at the end of a cluster file, by name."""
    tail = [each for each in documents(nodes) if each["kind"] == "Pod"][-len(VARIANTS) :]
    return {each["metadata"]["name"]: decode_pod(encoded(each), RULES.release) for each in tail}


@pytest.mark.parametrize("nodes", SMALL)
def test_our_generator_builds_the_cluster_that_go_decided_on(nodes: int) -> None:
    """Compare the fields that decisions read."""
    recorded = snapshot_of(documents(nodes), RULES.release)
    ours = generated(nodes)
    assert list(recorded.nodes.items()) == list(ours.nodes.items())
    assert recorded.budgets == ours.budgets


@pytest.mark.parametrize("nodes", SMALL)
@pytest.mark.parametrize("variant", VARIANTS)
def test_our_generator_builds_the_pods_that_go_asked_for(nodes: int, variant: str) -> None:
    pod = pending(variant, nodes, RULES.release)
    assert wanting(nodes)[f"preemptor-{variant}"] == pod


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("nodes", SMALL)
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_candidate_has_gos_victims_in_gos_order(
    engine: str, nodes: int, variant: str
) -> None:
    assert {
        node: ([pod.name for pod in candidate.victims.pods], candidate.victims.violations)
        for node, candidate in decided(engine, nodes, variant).candidates.items()
    } == {
        candidate["node"]: (candidate["victims"], candidate["numPDBViolations"])
        for candidate in by_go(nodes, variant)["candidates"]
    }


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("nodes", SMALL)
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_best_candidate_is_gos(engine: str, nodes: int, variant: str) -> None:
    chosen, best = decided(engine, nodes, variant).chosen, by_go(nodes, variant)["best"]
    assert chosen is not None
    assert chosen.node == best["node"]
    assert [pod.name for pod in chosen.victims.pods] == best["victims"]
    assert chosen.victims.violations == best["numPDBViolations"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("nodes", SMALL)
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_other_node_is_refused_for_gos_reason(engine: str, nodes: int, variant: str) -> None:
    refused: dict[str, int] = {}
    for rejection in decided(engine, nodes, variant).rejected.values():
        refused[str(rejection)] = refused.get(str(rejection), 0) + 1
    assert refused == by_go(nodes, variant)["rejectedReasons"]


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "nodes", "variant"), LARGER)
def test_the_best_node_of_larger_clusters_is_gos(engine: str, nodes: int, variant: str) -> None:
    chosen = decided(engine, nodes, variant).chosen
    assert chosen is not None
    assert chosen.node == BEST[nodes, variant]


@pytest.mark.parametrize("engine", ENGINES)
def test_without_budgets_the_victims_are_those_of_the_importance_order_alone(engine: str) -> None:
    """Go's decisions without budgets are not recorded, but they keep the more important pods."""
    snapshot = assemble(
        [state.node for state in generated(100).nodes.values()],
        [pod for state in generated(100).nodes.values() for pod in state.pods],
    )
    asked = ENGINES[engine](RULES)
    asked.follow(snapshot, None)
    decision = asked.preempt(pending("plain", 100, RULES.release), snapshot)
    assert len(decision.candidates) == 100
    for candidate in decision.candidates.values():
        assert candidate.victims.violations == 0
        least = min(pod.priority for pod in candidate.spared)
        assert all(pod.priority <= least for pod in candidate.victims.pods)


def test_the_preemptors_differ_in_what_they_ask() -> None:
    """Assert that one has constraints, and the other requests as much as a whole node."""
    assert "affinity" in preemptor("constrained", 100)["spec"]
    assert "affinity" not in preemptor("plain", 100)["spec"]
    assert pending("large", 100).requests.milli_cpu == 30_000
