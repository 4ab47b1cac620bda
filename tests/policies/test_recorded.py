"""Decisions of a real kube-scheduler 1.30.12 on whole clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from extender.kube.decoders.pods import decode_pod
from policies import PreemptionDecision, SchedulerRules, decide_preemption, release
from policies.preemption.policy import DEFAULT_CANDIDATE_ORDER
from tests.builders import encoded
from tests.builders.recorded import decode_cluster, read_recorded

RECORDED = read_recorded("decisions.jsonl.gz")


@pytest.fixture(scope="module")
def decisions() -> dict[str, PreemptionDecision]:
    return {name: decide(recorded) for name, recorded in RECORDED.items()}


def decide(recorded: Mapping[str, Any]) -> PreemptionDecision:
    rules = SchedulerRules(release(recorded["upstream"]))
    cluster = decode_cluster(recorded["cluster"]["items"], rules.release)
    return decide_preemption(decode_pod(encoded(recorded["pod"]), rules.release), cluster, rules)


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
