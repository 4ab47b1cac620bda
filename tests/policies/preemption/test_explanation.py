"""What explains a decision afterwards: protected pods, violated budgets, nodes that were tried."""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest

from policies import SchedulerRules, Snapshot, decide_preemption
from policies.kubernetes.releases import release
from policies.preemption.costs.candidate_criteria import GroupCriterion
from policies.preemption.costs.groupings import OWNERS
from policies.preemption.explanation import (
    MOST_NODES,
    NO_ACTIONS,
    GuardActions,
    PreemptionExplanation,
    explain_decision,
    guard_actions,
)
from policies.preemption.guards.attempt_guard import preemption_delay
from policies.preemption.guards.candidate_limit import CandidateLimit
from policies.preemption.guards.victim_guard import protected_pods
from policies.preemption.policy import KUBE_SCHEDULER, Policy, PolicyRule
from tests.builders import budget, node, pod, snapshot

VIP = pod("vip", cpu="2", priority=10)
APP = {"app": "web", "tier": "front"}


def explained(cluster: Snapshot, rules: SchedulerRules) -> PreemptionExplanation:
    return explain_decision(decide_preemption(VIP, cluster, rules), cluster, rules)


@pytest.mark.parametrize(
    ("allowed", "violated"),
    [((0, 0), ("default/app",)), ((1, 0), ("default/tier",)), ((1, 1), ())],
)
def test_the_first_budget_that_a_victim_violates_is_named(
    allowed: tuple[int, int], violated: tuple[str, ...]
) -> None:
    cluster = snapshot(
        node("node-1", cpu="2"),
        pod("web", on="node-1", cpu="2", priority=1, labels=APP),
        budget("app", match={"app": "web"}, allowed=allowed[0]),
        budget("tier", match={"tier": "front"}, allowed=allowed[1]),
    )
    found = explained(cluster, SchedulerRules()).violated
    assert found == ({"node-1": violated} if violated else {})


def test_a_budget_of_a_reprieved_pod_is_not_violated() -> None:
    cluster = snapshot(
        node("node-1", cpu="3"),
        pod("web", on="node-1", cpu="1", priority=1, labels=APP),
        pod("other", on="node-1", cpu="2", priority=1),
        budget("app", match={"app": "web"}),
    )
    explanation = explained(cluster, SchedulerRules())
    assert [each.name for each in explanation.decision.candidates["node-1"].spared] == ["web"]
    assert explanation.violated == {}


def test_protected_pods_are_those_of_lower_priority_where_victims_were_searched() -> None:
    cluster = snapshot(
        node("full", cpu="2"),
        pod("kept", on="full", cpu="2", priority=1, labels={"keep": ""}),
        node("mixed", cpu="2"),
        pod("free", on="mixed", cpu="2", priority=1),
        pod("held", on="mixed", cpu="0", priority=1, labels={"keep": ""}),
        pod("equal", on="mixed", cpu="0", priority=10, labels={"keep": ""}),
        node("small", cpu="1"),
        pod("idle", on="small", cpu="0", priority=1, labels={"keep": ""}),
    )
    keep = protected_pods("keep", lambda each: "keep" in each.labels)
    rules = SchedulerRules(policy=Policy("keeping", victim_guards=(keep,)))
    explanation = explained(cluster, rules)
    assert [(each.pod.name, each.because) for each in explanation.protected] == [
        ("kept", "protected by keep"),
        ("held", "protected by keep"),
    ]
    assert explanation.tried == {"full", "mixed"}


@pytest.mark.parametrize("version", ["1.30", "1.34", "1.37", "1.38"])
def test_every_violation_that_a_decision_counts_has_its_budget(version: str) -> None:
    cluster = snapshot(
        node("node-1", cpu="4"),
        *(pod(f"web-{n}", on="node-1", cpu="1", priority=n, labels=APP) for n in range(4)),
        budget("app", match={"app": "web"}, allowed=1),
        budget("tier", match={"tier": "front"}, allowed=2),
    )
    explanation = explained(cluster, SchedulerRules(release(version)))
    chosen = explanation.decision.chosen
    assert chosen is not None
    assert bool(chosen.victims.violations) == bool(explanation.violated)


WEB: Final = protected_pods("web pods", lambda each: each.name.startswith("web"))
ALL: Final = protected_pods("all pods", lambda _: True)
ACTIONS: Final = {
    "without a choice, on all nodes": (
        Policy("p", victim_guards=(WEB, ALL)),
        GuardActions({"web pods": 2, "all pods": 2}),
    ),
    "with a choice, on its node": (
        Policy("p", victim_guards=(WEB,)),
        GuardActions({"web pods": 1}),
    ),
    "limits": (
        Policy(
            "p",
            candidate_limits=(CandidateLimit("no owner", GroupCriterion("owners", OWNERS), 0),),
        ),
        GuardActions(refused_nodes={"no owner": 2}),
    ),
    "attempts": (
        Policy("p", victim_guards=(WEB,), attempt_guards=(preemption_delay(1),)),
        GuardActions(refused_attempt="preemptionDelay"),
    ),
    "none": (KUBE_SCHEDULER, NO_ACTIONS),
}


@pytest.mark.parametrize(("policy", "actions"), ACTIONS.values(), ids=ACTIONS)
def test_guards_that_acted_are_named(policy: Policy, actions: GuardActions) -> None:
    cluster = snapshot(
        node("node-1", cpu="2"),
        pod("web-1", on="node-1", cpu="0", priority=0),
        pod("other", on="node-1", cpu="2", priority=0),
        node("node-2", cpu="3"),
        pod("web-2", on="node-2", cpu="0", priority=0),
        pod("old", on="node-2", cpu="3", priority=0),
        pod("web-3", on="node-2", cpu="0", priority=20),
    )
    for rules in (
        SchedulerRules(policy=policy),
        SchedulerRules(policy_rules=(PolicyRule("vip", lambda each: each.name == "vip", policy),)),
    ):
        assert actions_of(cluster, rules) == actions


def test_a_decision_without_a_choice_counts_the_pods_of_few_nodes() -> None:
    names = [f"node-{number}" for number in range(MOST_NODES + 50)]
    pods = (pod(f"web-{name}", on=name, cpu="2", priority=0) for name in names)
    cluster = snapshot(*(node(name, cpu="2") for name in names), *pods)
    rules = SchedulerRules(policy=Policy("p", victim_guards=(WEB,)))
    assert actions_of(cluster, rules).protected == {"web pods": MOST_NODES}


def actions_of(cluster: Snapshot, rules: SchedulerRules) -> GuardActions:
    decision = decide_preemption(VIP, cluster, rules)
    reasons = Counter(
        reason for rejection in decision.rejected.values() for reason in rejection.reasons
    )
    return guard_actions(decision, reasons, cluster, rules)
