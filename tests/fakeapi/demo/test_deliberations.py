"""Why the extender spared whom it spared."""

from __future__ import annotations

from typing import Any

import pytest

from extender.verdict import Answer
from fakeapi.demo.deliberations import Deliberation, Victim, deliberation_of
from policies.decision import Candidate, FilterDecision, PreemptionDecision, VictimSet
from policies.model import Pod
from policies.upstream import NEWEST
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


def told_of(decision: PreemptionDecision) -> Deliberation:
    told = deliberation_of(Answer(bytes, decision, decision.chosen), BUDGETS, NEWEST, 0.5)
    assert told is not None
    return told


def test_what_is_told_of_an_answer() -> None:
    assert told_of(chosen()) == Deliberation(
        "vip",
        "default/vip",
        "n",
        (Victim("default/victim", 5),),
        (),
        "fewest victims",
        2,
        1,
        0.5,
    )


@pytest.mark.parametrize(
    ("spared", "why"),
    [
        (pod("p", priority=6), "ahead of who goes by highest priority"),
        (pod("p", priority=5, started=9), "ahead of who goes by earliest start"),
        (pod("p", priority=5, started=50, uid="a"), "ahead of who goes by UID"),
        (pod("p", priority=4, started=1), "small enough to stay"),
        (
            pod("p", priority=1, labels={"app": "x"}),
            "the budget default/none would be broken",
        ),
        (pod("p", priority=1, labels={"app": "db"}), "small enough to stay"),
    ],
)
def test_why_a_pod_is_spared(spared: Pod, why: str) -> None:
    assert [each.why for each in told_of(chosen(spared)).spared] == [why]


def test_a_budget_is_spent_by_victims_that_are_more_important() -> None:
    first = pod("first", priority=5, labels={"app": "db"})
    second = pod("second", priority=1, labels={"app": "db"})
    [spared] = told_of(chosen(second, victims=(first,))).spared
    assert spared.why == "the budget default/db would be broken"


@pytest.mark.parametrize(
    "answer",
    [
        Answer(bytes, FilterDecision(VIP, [], {})),
        Answer(bytes, decided(None)),
    ],
)
def test_answers_that_name_no_node_are_not_told_of(answer: Answer) -> None:
    assert deliberation_of(answer, (), NEWEST, 0.0) is None
