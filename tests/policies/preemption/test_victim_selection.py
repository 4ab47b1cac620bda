"""The pods that are evicted and reprieved on one node."""

from __future__ import annotations

from policies.kubernetes.criteria import Criterion
from policies.kubernetes.releases import NEWEST
from policies.kubernetes.snapshot import DisruptionBudget, NodeState, Pod, Snapshot
from policies.preemption.decision import Candidate
from policies.preemption.disruption_budgets import BudgetCoverage
from policies.preemption.filtering import IN_TREE, run_pre_filters
from policies.preemption.filtering.status import Code, Rejection, refused, unresolvable
from policies.preemption.policy import KUBE_SCHEDULER, Policy, ProtectedPods, pod_order
from policies.preemption.victim_selection import select_victims
from tests.builders import budget, holding, node, pod

WEB = {"app": "web"}
NO_BUDGETS: tuple[DisruptionBudget, ...] = ()


def tried(
    state: NodeState,
    preemptor: Pod,
    budgets: tuple[DisruptionBudget, ...] = NO_BUDGETS,
    policy: Policy = KUBE_SCHEDULER,
) -> Candidate | Rejection:
    pipeline = run_pre_filters(preemptor, Snapshot({state.node.name: state}), NEWEST, IN_TREE)
    return select_victims(pipeline, state, BudgetCoverage(budgets, NEWEST), policy)


def sacrificed(
    state: NodeState,
    preemptor: Pod,
    budgets: tuple[DisruptionBudget, ...] = NO_BUDGETS,
    policy: Policy = KUBE_SCHEDULER,
) -> list[str]:
    found = tried(state, preemptor, budgets, policy)
    assert isinstance(found, Candidate)
    return [each.name for each in found.victims.pods]


FOUR_CORES = node("node-1", cpu="4")


def test_the_important_pods_are_reprieved_first_even_if_that_costs_more() -> None:
    state = holding(
        FOUR_CORES,
        pod("low", cpu="1", priority=1),
        pod("mid", cpu="2", priority=2),
        pod("high", cpu="1", priority=3),
    )
    found = tried(state, pod(cpu="1", priority=100))
    assert isinstance(found, Candidate)
    assert [each.name for each in found.victims.pods] == ["low"]
    assert [each.name for each in found.spared] == ["high", "mid"]


def test_a_more_important_pod_is_evicted_if_only_the_lesser_one_fits() -> None:
    state = holding(FOUR_CORES, pod("big", cpu="3", priority=2), pod("small", cpu="1", priority=1))
    assert sacrificed(state, pod(cpu="2", priority=100)) == ["big"]


def test_pods_of_the_preemptors_own_priority_are_no_victims() -> None:
    state = holding(FOUR_CORES, pod("equal", cpu="4", priority=100))
    assert tried(state, pod(cpu="1", priority=100)) == unresolvable(Code.NO_VICTIMS)


def test_a_node_without_pods_has_no_victims() -> None:
    assert tried(holding(FOUR_CORES), pod(cpu="9", priority=1)) == unresolvable(Code.NO_VICTIMS)


def test_a_pod_without_priority_counts_as_zero() -> None:
    state = holding(FOUR_CORES, pod("plain", cpu="4"), pod("negative", priority=-1))
    assert tried(state, pod(cpu="1", priority=0)) == refused(Code.INSUFFICIENT, "cpu")
    assert sacrificed(state, pod(cpu="1", priority=1)) == ["plain"]


def test_a_node_that_stays_too_full_has_the_reason() -> None:
    state = holding(FOUR_CORES, pod("low", cpu="1", priority=1), pod("high", cpu="3", priority=200))
    assert tried(state, pod(cpu="2", priority=100)) == refused(Code.INSUFFICIENT, "cpu")


def test_a_node_that_needs_no_victim_is_no_candidate() -> None:
    state = holding(FOUR_CORES, pod("low", cpu="1", priority=1))
    found = tried(state, pod(cpu="1", priority=100))
    assert found == unresolvable(Code.NO_VICTIM_NEEDED, "node-1")


def test_pods_that_a_budget_protects_are_reprieved_first() -> None:
    state = holding(
        FOUR_CORES,
        pod("protected", cpu="2", priority=1, labels=WEB),
        pod("important", cpu="2", priority=50),
    )
    protecting = (budget(match=WEB),)
    assert sacrificed(state, pod(cpu="2", priority=100), protecting) == ["important"]
    assert sacrificed(state, pod(cpu="2", priority=100)) == ["protected"]


def test_a_budget_never_forbids_a_victim_and_violations_are_counted() -> None:
    state = holding(
        FOUR_CORES,
        pod("a", cpu="2", priority=1, labels=WEB),
        pod("b", cpu="2", priority=2, labels=WEB),
    )
    found = tried(state, pod(cpu="4", priority=100), (budget(match=WEB, allowed=1),))
    assert isinstance(found, Candidate)
    assert [each.name for each in found.victims.pods] == ["b", "a"]
    assert found.victims.violations == 1


def test_only_victims_count_as_violations_and_not_the_reprieved() -> None:
    state = holding(
        FOUR_CORES,
        pod("a", cpu="1", priority=1, labels=WEB),
        pod("b", cpu="3", priority=2, labels=WEB),
    )
    found = tried(state, pod(cpu="1", priority=100), (budget(match=WEB),))
    assert isinstance(found, Candidate)
    assert ([each.name for each in found.victims.pods], found.victims.violations) == (["a"], 1)


def test_victims_of_both_groups_are_listed_most_important_first() -> None:
    state = holding(
        FOUR_CORES,
        pod("protected", cpu="2", priority=1, labels=WEB),
        pod("important", cpu="2", priority=50),
    )
    everyone = pod(cpu="4", priority=100)
    assert sacrificed(state, everyone, (budget(match=WEB),)) == ["important", "protected"]


def test_the_budget_is_counted_anew_on_every_node() -> None:
    state = holding(FOUR_CORES, pod("a", cpu="4", priority=1, labels=WEB))
    enough_for_one = (budget(match=WEB, allowed=1),)
    for _ in range(2):
        found = tried(state, pod(cpu="4", priority=100), enough_for_one)
        assert isinstance(found, Candidate)
        assert found.victims.violations == 0


def test_among_equals_the_latest_start_is_evicted_and_unstarted_pods_first() -> None:
    state = holding(
        FOUR_CORES,
        pod("old", cpu="2", started=1),
        pod("new", cpu="1", started=2),
        pod("unstarted", cpu="1"),
    )
    assert sacrificed(state, pod(cpu="1", priority=1)) == ["unstarted"]
    assert sacrificed(state, pod(cpu="2", priority=1)) == ["new", "unstarted"]
    assert sacrificed(state, pod(cpu="4", priority=1)) == ["old", "new", "unstarted"]


def test_among_pods_equal_in_everything_the_uid_decides() -> None:
    state = holding(FOUR_CORES, pod("b", cpu="2"), pod("a", cpu="2"))
    assert sacrificed(state, pod(cpu="2", priority=1)) == ["b"]


def test_a_terminating_pod_uses_resources_and_may_be_a_victim() -> None:
    state = holding(FOUR_CORES, pod("leaving", cpu="4", terminating=True))
    assert sacrificed(state, pod(cpu="1", priority=1)) == ["leaving"]


def test_a_pod_may_be_a_victim_for_its_port_alone() -> None:
    state = holding(FOUR_CORES, pod("web", cpu="1", ports=[80]), pod("other", cpu="1", ports=[81]))
    assert sacrificed(state, pod(priority=1, ports=[80])) == ["web"]


def test_a_pod_may_be_a_victim_for_the_pod_count_alone() -> None:
    state = holding(node("node-1", pods=2), pod("a", priority=2), pod("b", priority=1))
    assert sacrificed(state, pod(priority=100)) == ["b"]


def test_a_node_with_a_pod_that_could_not_be_read_is_never_a_candidate() -> None:
    state = holding(FOUR_CORES, pod("low", cpu="4"), unreadable=["default/odd", "default/odder"])
    found = tried(state, pod(cpu="1", priority=1))
    assert found == unresolvable(Code.UNREADABLE_POD, "default/odd, default/odder")


# Pods nominated to the node


def test_resources_of_a_nominated_pod_of_at_least_equal_priority_are_kept() -> None:
    for priority in (100, 101):
        promised = pod("promised", cpu="2", priority=priority)
        state = holding(FOUR_CORES, pod("low", cpu="4"), nominated=[promised])
        assert tried(state, pod(cpu="3", priority=100)) == refused(Code.INSUFFICIENT, "cpu")
        assert sacrificed(state, pod(cpu="2", priority=100)) == ["low"]


def test_a_nominated_pod_makes_more_victims_necessary() -> None:
    promised = pod("promised", cpu="2", priority=100)
    residents = [pod("a", cpu="2", priority=2), pod("b", cpu="2", priority=1)]
    preemptor = pod(cpu="2", priority=100)
    assert sacrificed(holding(FOUR_CORES, *residents), preemptor) == ["b"]
    state = holding(FOUR_CORES, *residents, nominated=[promised])
    assert sacrificed(state, preemptor) == ["a", "b"]


def test_a_nominated_pod_of_lower_priority_is_ignored() -> None:
    promised = pod("promised", cpu="4", priority=99)
    state = holding(FOUR_CORES, pod("low", cpu="4"), nominated=[promised])
    assert sacrificed(state, pod(cpu="4", priority=100)) == ["low"]


def test_a_pods_own_nomination_does_not_count_against_it() -> None:
    preemptor = pod("preemptor", cpu="4", priority=100)
    state = holding(FOUR_CORES, pod("low", cpu="4"), nominated=[preemptor])
    assert sacrificed(state, preemptor) == ["low"]


def test_ports_of_nominated_pods_are_used() -> None:
    promised = pod("promised", priority=100, ports=[80])
    state = holding(FOUR_CORES, pod("low"), nominated=[promised])
    assert tried(state, pod(priority=100, ports=[80])) == refused(Code.HOST_PORTS)


# Policies


def test_a_protected_pod_is_no_potential_victim() -> None:
    careful = Policy(
        "careful", protected_pods=(ProtectedPods("web pods", lambda each: each.labels == WEB),)
    )
    state = holding(FOUR_CORES, pod("web", cpu="2", labels=WEB), pod("job", cpu="2"))
    assert sacrificed(state, pod(cpu="2", priority=1), policy=careful) == ["job"]
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
    assert sacrificed(state, pod(cpu="2", priority=100)) == ["middling", "small"]
    assert sacrificed(state, pod(cpu="2", priority=100), policy=smallest_first) == ["big"]
    everyone = sacrificed(state, pod(cpu="4", priority=100), policy=smallest_first)
    assert everyone == ["big", "middling", "small"]
