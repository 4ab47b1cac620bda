"""Explanations of the extender's decisions."""

from __future__ import annotations

from typing import Any

import pytest

from extender.protocol.verb_context import VerbResult
from fakeapi.demo.decisions import ExplainedDecision, ExplainedVictim, explain_decision
from policies.kubernetes.releases import NEWEST
from policies.kubernetes.snapshot import Pod
from policies.preemption.decision import Candidate, PreemptionDecision, VictimSet
from policies.preemption.filtering.status import FilterDecision
from tests.builders import budget, pod

VIP = pod("vip", priority=100)
VICTIM = pod("victim", priority=5, started=50, uid="m")
BUDGETS = (budget("db", match={"app": "db"}, allowed=1), budget("none", match={"app": "x"}))


def chosen(*spared: Pod, victims: tuple[Pod, ...] = (VICTIM,)) -> PreemptionDecision:
    candidate = Candidate("n", VictimSet(victims, 1), spared)
    candidates = {"n": candidate, "o": Candidate("o", VictimSet((pod("other"),)))}
    return decided(candidate, candidates=candidates, decided_by="fewest victims")


def decided(candidate: Candidate | None, **fields: Any) -> PreemptionDecision:
    return PreemptionDecision(VIP, eligible=True, reason="", chosen=candidate, **fields)


def explained(decision: PreemptionDecision) -> ExplainedDecision:
    result = VerbResult(bytes, decision, decision.chosen)
    found = explain_decision(result, BUDGETS, NEWEST, 0.5)
    assert found is not None
    return found


def test_an_explained_decision() -> None:
    victims = (ExplainedVictim("default/victim", 5),)
    assert explained(chosen()) == ExplainedDecision(
        *("vip", "default/vip", "n", victims, (), "fewest victims", 2, 1, 0.5)
    )


@pytest.mark.parametrize(
    ("spared", "why"),
    [
        (pod("p", priority=6), "ahead of the first victim by highest priority"),
        (pod("p", priority=5, started=9), "ahead of the first victim by earliest start"),
        (pod("p", priority=5, started=50, uid="a"), "ahead of the first victim by UID"),
        (pod("p", priority=4, started=1), "fits beside the preemptor"),
        (pod("p", priority=1, labels={"app": "x"}), "the budget default/none would be violated"),
        (pod("p", priority=1, labels={"app": "db"}), "fits beside the preemptor"),
    ],
)
def test_reasons_of_reprieves(spared: Pod, why: str) -> None:
    assert [each.reason for each in explained(chosen(spared)).reprieved] == [why]


def test_a_budget_is_spent_by_victims_that_are_more_important() -> None:
    first = pod("first", priority=5, labels={"app": "db"})
    second = pod("second", priority=1, labels={"app": "db"})
    [spared] = explained(chosen(second, victims=(first,))).reprieved
    assert spared.reason == "the budget default/db would be violated"


@pytest.mark.parametrize(
    "answer", [VerbResult(bytes, FilterDecision(VIP, [], {})), VerbResult(bytes, decided(None))]
)
def test_answers_without_nodes_have_no_explanation(answer: VerbResult) -> None:
    assert explain_decision(answer, (), NEWEST, 0.0) is None
