"""The pods that are evicted and reprieved on one node."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from policies.kubernetes.criteria import Criterion
from policies.kubernetes.releases import NEWEST
from policies.kubernetes.snapshot import DisruptionBudget, NodeState, Pod, Snapshot
from policies.preemption.decision import Candidate
from policies.preemption.disruption_budgets import BudgetCoverage
from policies.preemption.filtering import IN_TREE, run_pre_filters
from policies.preemption.filtering.status import Code, Rejection, refused, unresolvable
from policies.preemption.guards.victim_guard import protected_pods
from policies.preemption.policy import KUBE_SCHEDULER, Policy, pod_order
from policies.preemption.victim_units import victim_units
from policies.preemption.victims.victim_selection import select_victims
from tests.builders import budget, holding, node, pod

WEB = {"app": "web"}
NO_BUDGETS: tuple[DisruptionBudget, ...] = ()


def tried(
    state: NodeState,
    preemptor: Pod,
    budgets: tuple[DisruptionBudget, ...] = NO_BUDGETS,
    policy: Policy = KUBE_SCHEDULER,
) -> Candidate | Rejection:
    alone = Snapshot({state.node.name: state})
    pipeline = run_pre_filters(preemptor, alone, NEWEST, IN_TREE)
    units = victim_units(alone, NEWEST)
    return select_victims(pipeline, state, units, BudgetCoverage(budgets, NEWEST), policy)


def names(pods: Iterable[Pod]) -> list[str]:
    return [each.name for each in pods]


def victims(
    state: NodeState,
    preemptor: Pod,
    budgets: tuple[DisruptionBudget, ...] = NO_BUDGETS,
    policy: Policy = KUBE_SCHEDULER,
) -> list[str]:
    found = tried(state, preemptor, budgets, policy)
    assert isinstance(found, Candidate)
    return names(found.victims.pods)


FOUR_CORES = node("node-1", cpu="4")
PREEMPTOR = pod("preemptor", cpu="4", priority=100)
NOMINATED = pod("nominated", cpu="2", priority=100)
TOO_FULL = refused(Code.INSUFFICIENT, "cpu")
STARTED = (
    pod("old", cpu="2", started=1),
    pod("new", cpu="1", started=2),
    pod("unstarted", cpu="1"),
)
TWO = (pod("a", cpu="2", priority=2), pod("b", cpu="2", priority=1))

CASES: dict[str, tuple[NodeState, Pod, list[str] | Rejection]] = {
    "a more important pod is evicted if only the lesser one fits": (
        holding(FOUR_CORES, pod("big", cpu="3", priority=2), pod("small", cpu="1", priority=1)),
        pod(cpu="2", priority=100),
        ["big"],
    ),
    "pods of the preemptor's own priority are no victims": (
        holding(FOUR_CORES, pod("equal", cpu="4", priority=100)),
        pod(cpu="1", priority=100),
        unresolvable(Code.NO_VICTIMS),
    ),
    "a node without pods has no victims": (
        holding(FOUR_CORES),
        pod(cpu="9", priority=1),
        unresolvable(Code.NO_VICTIMS),
    ),
    "a pod without priority has priority 0": (
        holding(FOUR_CORES, pod("plain", cpu="4"), pod("negative", priority=-1)),
        pod(cpu="1", priority=0),
        TOO_FULL,
    ),
    "a pod without priority is below 1": (
        holding(FOUR_CORES, pod("plain", cpu="4"), pod("negative", priority=-1)),
        pod(cpu="1", priority=1),
        ["plain"],
    ),
    "a node that stays too full has the reason": (
        holding(FOUR_CORES, pod("low", cpu="1", priority=1), pod("high", cpu="3", priority=200)),
        pod(cpu="2", priority=100),
        TOO_FULL,
    ),
    "a node that needs no victim is no candidate": (
        holding(FOUR_CORES, pod("low", cpu="1", priority=1)),
        pod(cpu="1", priority=100),
        unresolvable(Code.NO_VICTIM_NEEDED, "node-1"),
    ),
    "among equals, a pod that has not started comes first": (
        holding(FOUR_CORES, *STARTED),
        pod(cpu="1", priority=1),
        ["unstarted"],
    ),
    "among equals, the latest start comes next": (
        holding(FOUR_CORES, *STARTED),
        pod(cpu="2", priority=1),
        ["new", "unstarted"],
    ),
    "among equals, the earliest start comes last": (
        holding(FOUR_CORES, *STARTED),
        pod(cpu="4", priority=1),
        ["old", "new", "unstarted"],
    ),
    "among pods that are equal in everything, the UID decides": (
        holding(FOUR_CORES, pod("b", cpu="2"), pod("a", cpu="2")),
        pod(cpu="2", priority=1),
        ["b"],
    ),
    "a terminating pod uses resources and may be a victim": (
        holding(FOUR_CORES, pod("terminating", cpu="4", terminating=True)),
        pod(cpu="1", priority=1),
        ["terminating"],
    ),
    "a pod may be a victim for its port alone": (
        holding(FOUR_CORES, pod("web", cpu="1", ports=[80]), pod("other", cpu="1", ports=[81])),
        pod(priority=1, ports=[80]),
        ["web"],
    ),
    "a pod may be a victim for the pod count alone": (
        holding(node("node-1", pods=2), pod("a", priority=2), pod("b", priority=1)),
        pod(priority=100),
        ["b"],
    ),
    "a node with an unreadable pod is never a candidate": (
        holding(FOUR_CORES, pod("low", cpu="4"), unreadable=["default/odd", "default/odder"]),
        pod(cpu="1", priority=1),
        unresolvable(Code.UNREADABLE_POD, "default/odd, default/odder"),
    ),
    "resources of a nominated pod of equal priority are kept": (
        holding(FOUR_CORES, pod("low", cpu="4"), nominated=[NOMINATED]),
        pod(cpu="3", priority=100),
        TOO_FULL,
    ),
    "resources of a nominated pod of higher priority are kept": (
        holding(FOUR_CORES, pod("low", cpu="4"), nominated=[replace(NOMINATED, priority=101)]),
        pod(cpu="3", priority=100),
        TOO_FULL,
    ),
    "resources beside a nominated pod of equal priority are free": (
        holding(FOUR_CORES, pod("low", cpu="4"), nominated=[NOMINATED]),
        pod(cpu="2", priority=100),
        ["low"],
    ),
    "resources beside a nominated pod of higher priority are free": (
        holding(FOUR_CORES, pod("low", cpu="4"), nominated=[replace(NOMINATED, priority=101)]),
        pod(cpu="2", priority=100),
        ["low"],
    ),
    "without a nominated pod one victim is enough": (
        holding(FOUR_CORES, *TWO),
        pod(cpu="2", priority=100),
        ["b"],
    ),
    "a nominated pod makes more victims necessary": (
        holding(FOUR_CORES, *TWO, nominated=[NOMINATED]),
        pod(cpu="2", priority=100),
        ["a", "b"],
    ),
    "a nominated pod of lower priority is ignored": (
        holding(FOUR_CORES, pod("low", cpu="4"), nominated=[pod("other", cpu="4", priority=99)]),
        PREEMPTOR,
        ["low"],
    ),
    "a pod's own nomination does not count against it": (
        holding(FOUR_CORES, pod("low", cpu="4"), nominated=[PREEMPTOR]),
        PREEMPTOR,
        ["low"],
    ),
    "ports of nominated pods are used": (
        holding(FOUR_CORES, pod("low"), nominated=[pod("other", priority=100, ports=[80])]),
        pod(priority=100, ports=[80]),
        refused(Code.HOST_PORTS),
    ),
}


@pytest.mark.parametrize(("state", "preemptor", "expected"), CASES.values(), ids=CASES)
def test_victims_are_selected(
    state: NodeState, preemptor: Pod, expected: list[str] | Rejection
) -> None:
    found = tried(state, preemptor)
    assert (names(found.victims.pods) if isinstance(found, Candidate) else found) == expected


def test_the_important_pods_are_reprieved_first_even_if_that_costs_more() -> None:
    low, mid = pod("low", cpu="1", priority=1), pod("mid", cpu="2", priority=2)
    state = holding(FOUR_CORES, low, mid, pod("high", cpu="1", priority=3))
    found = tried(state, pod(cpu="1", priority=100))
    assert isinstance(found, Candidate)
    assert (names(found.victims.pods), names(found.spared)) == (["low"], ["high", "mid"])


# Budgets

PROTECTED = holding(
    FOUR_CORES,
    pod("protected", cpu="2", priority=1, labels=WEB),
    pod("important", cpu="2", priority=50),
)


def test_pods_that_a_budget_protects_are_reprieved_first() -> None:
    preemptor = pod(cpu="2", priority=100)
    assert victims(PROTECTED, preemptor, (budget(match=WEB),)) == ["important"]
    assert victims(PROTECTED, preemptor) == ["protected"]


def test_victims_of_both_groups_are_listed_most_important_first() -> None:
    assert victims(PROTECTED, PREEMPTOR, (budget(match=WEB),)) == ["important", "protected"]


@pytest.mark.parametrize(
    ("cpus", "requested", "allowed", "expected", "violations"),
    [
        (("2", "2"), "4", 1, ["b", "a"], 1),  # a budget never forbids a victim
        (("1", "3"), "1", 0, ["a"], 1),  # reprieved pods do not count
    ],
)
def test_victims_count_as_violations(
    cpus: tuple[str, str], requested: str, allowed: int, expected: list[str], violations: int
) -> None:
    first = pod("a", cpu=cpus[0], priority=1, labels=WEB)
    state = holding(FOUR_CORES, first, pod("b", cpu=cpus[1], priority=2, labels=WEB))
    found = tried(state, pod(cpu=requested, priority=100), (budget(match=WEB, allowed=allowed),))
    assert isinstance(found, Candidate)
    assert (names(found.victims.pods), found.victims.violations) == (expected, violations)


def test_the_budget_is_counted_anew_on_every_node() -> None:
    state = holding(FOUR_CORES, pod("a", cpu="4", priority=1, labels=WEB))
    enough_for_one = (budget(match=WEB, allowed=1),)
    for _ in range(2):
        found = tried(state, PREEMPTOR, enough_for_one)
        assert isinstance(found, Candidate)
        assert found.victims.violations == 0


# Policies


def test_a_protected_pod_is_no_potential_victim() -> None:
    careful = Policy(
        "careful", victim_guards=(protected_pods("web pods", lambda each: each.labels == WEB),)
    )
    state = holding(FOUR_CORES, pod("web", cpu="2", labels=WEB), pod("job", cpu="2"))
    assert victims(state, pod(cpu="2", priority=1), policy=careful) == ["job"]
    full = tried(state, pod(cpu="4", priority=1), policy=careful)
    assert full == refused(Code.INSUFFICIENT, "cpu")
    only_web = holding(FOUR_CORES, pod("web", cpu="2", labels=WEB))
    assert tried(only_web, pod(cpu="4", priority=1), policy=careful) == unresolvable(
        Code.NO_VICTIMS
    )


def test_a_policy_reprieves_in_its_order_and_the_answer_has_kube_schedulers() -> None:
    smallest_first = Policy(
        "smallest first",
        victims=pod_order((Criterion("smallest", lambda each: each.requests.milli_cpu),)),
    )
    state = holding(
        FOUR_CORES,
        pod("big", cpu="2", priority=3),
        pod("small", cpu="1", priority=1),
        pod("middling", cpu="1", priority=2),
    )
    assert victims(state, pod(cpu="2", priority=100)) == ["middling", "small"]
    assert victims(state, pod(cpu="2", priority=100), policy=smallest_first) == ["big"]
    all_pods = victims(state, pod(cpu="4", priority=100), policy=smallest_first)
    assert all_pods == ["big", "middling", "small"]
