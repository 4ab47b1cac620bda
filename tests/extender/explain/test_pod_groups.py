"""The explanation of a preemption whose victims are units of pod groups."""

from __future__ import annotations

import pytest

from extender.explain.decisions import explain_preempt, preempt_document
from policies import SchedulerRules
from policies.preemption.explanation import PreemptionExplanation
from tests.builders import node, pod, pod_group, snapshot


@pytest.fixture
def explanation() -> PreemptionExplanation:
    moment = snapshot(
        node("n1", cpu="4"),
        node("n2", cpu="4"),
        pod("g1", on="n1", cpu="4", priority=10, group="g"),
        pod("g2", on="n2", cpu="4", priority=10, group="g"),
        groups=[pod_group("g", priority=5)],
    )
    return explain_preempt(pod("p", cpu="2", priority=100), moment, SchedulerRules(), None)


def test_the_document_has_the_units_and_marks_what_no_extender_can_confirm(
    explanation: PreemptionExplanation,
) -> None:
    candidate = preempt_document(explanation)["candidates"]["n1"]
    assert candidate["units"] == [{"pods": ["default/g1", "default/g2"], "priority": 5}]
    assert candidate["confirmable"] is False


def test_the_description_names_the_nodes_of_victims_elsewhere(
    explanation: PreemptionExplanation,
) -> None:
    lines = [line.strip() for line in explanation.decision.describe()]
    assert "no extender can confirm it: a unit of a pod group has pods on other nodes" in lines
    assert "victim    default/g2 (priority 10) on node n2" in lines
