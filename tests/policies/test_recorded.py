"""Decisions of a real kube-scheduler 1.30.12 on whole clusters."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from extender.kube.decoders.cluster_objects import decode_budget, decode_namespace, decode_node
from extender.kube.decoders.pods import decode_pod
from policies import PreemptionDecision, SchedulerRules, assemble, decide_preemption, release
from policies.preemption.policy import DEFAULT_CANDIDATE_ORDER
from tests.builders import encoded

RECORDED: dict[str, dict[str, Any]] = {
    each["name"]: each
    for each in msgspec.json.Decoder().decode_lines(
        gzip.decompress((Path(__file__).parents[1] / "recorded/decisions.jsonl.gz").read_bytes())
    )
}


@pytest.fixture(scope="module")
def decisions() -> dict[str, PreemptionDecision]:
    return {name: decide(recorded) for name, recorded in RECORDED.items()}


def decide(recorded: dict[str, Any]) -> PreemptionDecision:
    rules = SchedulerRules(release(recorded["upstream"]))
    cluster = assemble(
        nodes=map(decode_node, objects(recorded, "Node")),
        pods=(decode_pod(raw, rules.release) for raw in objects(recorded, "Pod")),
        budgets=map(decode_budget, objects(recorded, "PodDisruptionBudget")),
        namespaces={
            n.name: n.labels for n in map(decode_namespace, objects(recorded, "Namespace"))
        },
    )
    return decide_preemption(decode_pod(encoded(recorded["pod"]), rules.release), cluster, rules)


def objects(recorded: dict[str, Any], kind: str) -> Iterator[bytes]:
    return (encoded(item) for item in recorded["cluster"]["items"] if item["kind"] == kind)


def test_every_decision_is_compared(decisions: dict[str, PreemptionDecision]) -> None:
    assert [name for name, decision in decisions.items() if decision.not_evaluated] == []


@pytest.mark.parametrize("name", RECORDED)
def test_the_candidates_and_their_victims_are_the_same(
    name: str, decisions: dict[str, PreemptionDecision]
) -> None:
    requests = RECORDED[name]["preemptRequests"]
    offered = requests[0]["NodeNameToMetaVictims"] if requests else {}
    assert {
        node: ([pod.uid for pod in candidate.victims.pods], candidate.victims.violations)
        for node, candidate in decisions[name].candidates.items()
    } == {
        node: ([pod["UID"] for pod in victims["Pods"]], victims["NumPDBViolations"])
        for node, victims in offered.items()
    }


@pytest.mark.parametrize("name", RECORDED)
def test_the_chosen_node_is_as_good_by_every_criterion(
    name: str, decisions: dict[str, PreemptionDecision]
) -> None:
    """kube-scheduler breaks full ties at random, so the nodes may differ but not their keys."""
    decision = decisions[name]
    nominated = RECORDED[name]["result"]["nominatedNode"]
    if decision.chosen is None:
        assert nominated is None
        return
    keys, _ = DEFAULT_CANDIDATE_ORDER.key(decision.chosen)
    assert DEFAULT_CANDIDATE_ORDER.key(decision.candidates[nominated])[0] == keys


@pytest.mark.parametrize("name", RECORDED)
def test_the_message_is_the_same(name: str, decisions: dict[str, PreemptionDecision]) -> None:
    assert decisions[name].message == RECORDED[name]["result"]["message"]


def test_the_recorded_decisions_cover_different_cases(
    decisions: dict[str, PreemptionDecision],
) -> None:
    """Assert that several criteria decided, and that some decisions have no candidate."""
    by = {decisions[name].decided_by for name in RECORDED}
    assert len(by - {None}) >= 3
    assert any(not decisions[name].candidates for name in RECORDED)
