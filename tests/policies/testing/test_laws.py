"""Each law finds a decision that breaks it, and the builders' clusters break none."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from policies.kubernetes.snapshot import Snapshot
from policies.preemption.costs.candidate_criteria import CostCriterion
from policies.preemption.costs.catalog import restarts
from policies.preemption.decision import Candidate, PreemptionDecision, VictimSet
from policies.preemption.guards.candidate_limit import CandidateLimit
from policies.preemption.guards.victim_guard import protected_pods
from policies.preemption.policy import CANDIDATE_CRITERIA, Policy, SchedulerRules
from policies.preemption.reference_engine import preempt
from policies.testing import node, pod, snapshot
from policies.testing.laws import PLAIN_LAWS, Case

PREEMPTOR: Final = pod("new", cpu="1", priority=5)
KEPT: Final = pod("kept", on="node-1", cpu="1", priority=1)
LOW: Final = pod("low", on="node-1", cpu="1", priority=2, restarts=1)
OTHER: Final = pod("other", on="node-2", cpu="2", priority=3)
HIGH: Final = pod("high", on="node-2", priority=5)
CLUSTER: Final = snapshot(node("node-1", cpu="2"), node("node-2", cpu="2"), KEPT, LOW, OTHER, HIGH)
RULES: Final = SchedulerRules(
    policy=Policy(
        "own",
        candidates=(CostCriterion("restarts", restarts()),),
        victim_guards=(protected_pods("kept", lambda pod: pod.name == "kept"),),
        candidate_limits=(CandidateLimit("few", CANDIDATE_CRITERIA["fewest victims"], 1),),
    )
)
RIGHT: Final = preempt(PREEMPTOR, CLUSTER, RULES)


def with_victims(name: str, *names: str) -> PreemptionDecision:
    """Return the decision with other victims on a node."""
    state = CLUSTER.nodes[name]
    victims = tuple(pod for pod in state.pods if pod.name in names)
    candidates = {**RIGHT.candidates, name: Candidate(name, VictimSet(victims, 0))}
    return replace(RIGHT, candidates=candidates, chosen=candidates["node-1"])


def broken(decision: PreemptionDecision, shuffled: Snapshot = CLUSTER) -> dict[str, list[str]]:
    """Return the violations of a decision by law."""
    case = Case(PREEMPTOR, CLUSTER, RULES, shuffled)
    vars(case)["decision"] = decision
    found = {law.__name__: list(law(case)) for law in PLAIN_LAWS}
    return {name: lines for name, lines in found.items() if lines}


def test_a_right_decision_breaks_no_law() -> None:
    assert list(RIGHT.candidates) == ["node-1", "node-2"]
    assert broken(RIGHT) == {}


@pytest.mark.parametrize(
    ("decision", "law", "violation"),
    [
        (
            with_victims("node-1", "kept"),
            "victims_may_be_evicted",
            "default/kept is protected by kept",
        ),
        (
            with_victims("node-2", "high", "other"),
            "victims_may_be_evicted",
            "default/high has priority 5",
        ),
        (
            with_victims("node-1", "kept", "low"),
            "candidates_are_within_limits",
            "node-1 exceeds few",
        ),
        (
            replace(RIGHT, decided_by="node name"),
            "the_best_candidate_is_chosen",
            "decided by node name; expected restarts",
        ),
        (
            with_victims("node-2", "high"),
            "the_pod_does_not_fit_beside_a_victim",
            "the preemptor does not fit node-2 without the victims",
        ),
        (
            with_victims("node-2", "high", "other"),
            "the_pod_does_not_fit_beside_a_victim",
            "the preemptor fits node-2 beside default/high",
        ),
        (
            with_victims("node-1", "kept"),
            "the_engines_agree",
            (
                "node-1 of {'node-1': 'default/low', 'node-2': 'default/other'} by restarts by the "
                "vectorized engine; expected node-1 of {'node-1': 'default/kept', 'node-2': "
                "'default/other'} by restarts"
            ),
        ),
    ],
)
def test_a_wrong_decision_breaks_a_law(
    decision: PreemptionDecision, law: str, violation: str
) -> None:
    assert violation in broken(decision)[law]


def test_another_decision_on_the_shuffled_snapshot_breaks_a_law() -> None:
    fewer = snapshot(node("node-2", cpu="2"), OTHER, HIGH)
    assert list(broken(RIGHT, fewer)) == ["the_order_of_the_input_does_not_matter"]
