"""Random policies with guards, costs and limits, and clusters with what these read."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from policies.kubernetes.criteria import Criterion
from policies.kubernetes.releases import RELEASES
from policies.kubernetes.snapshot import Pod
from policies.plugins import victim_cost, victim_guard
from policies.preemption.consequences.criteria import CONSEQUENCE_CRITERIA
from policies.preemption.costs.candidate_criteria import (
    CandidateCriterion,
    CostCriterion,
    GroupCriterion,
    GroupValueCriterion,
)
from policies.preemption.costs.catalog import (
    DELETION_COST,
    cheapest_criteria,
    cost_criteria,
    deletion_cost,
    lost_work,
    pod_cost_criteria,
    restarts,
)
from policies.preemption.costs.fragmentation import FragmentationCriterion
from policies.preemption.costs.groupings import CLUSTER, GANGS, NAMESPACES, OWNERS
from policies.preemption.costs.pod_cost import EvaluationError, Unreadable
from policies.preemption.guards.allowance import (
    loop_breaker,
    min_available,
    victim_cooldown,
    window_limit,
)
from policies.preemption.guards.attempt_guard import (
    preemption_delay,
    preemptor_cooldown,
    wait_for_autoscaler,
)
from policies.preemption.guards.candidate_limit import CandidateLimit
from policies.preemption.guards.victim_guard import (
    min_runtime,
    protected_by_expression,
    protected_pods,
    unreadable_cost,
)
from policies.preemption.policy import (
    CANDIDATE_CRITERIA,
    POD_CRITERIA,
    Policy,
    SchedulerRules,
    pod_order,
)
from policies.testing.strategies import DEVICE
from tests.builders import SECOND

LOST_WORK = lost_work({"cpu": 1000, "memory": 10})
DELETION = deletion_cost()


@victim_cost(unit="as annotated", annotations=(DELETION_COST,))
def annotated(pod: Pod) -> int:
    """Fail for pods without the annotation, and for those whose annotation is no integer."""
    return int(pod.annotations[DELETION_COST])


@victim_guard(annotations=(DELETION_COST,))
def is_cheap(pod: Pod) -> bool:
    """Fail for the same pods as the cost."""
    return annotated(pod) < 0


ANNOTATED = annotated.cost("annotated")
CRITERIA: tuple[CandidateCriterion, ...] = (
    *CANDIDATE_CRITERIA.values(),
    CostCriterion("least lost work", LOST_WORK),
    CostCriterion("least lost work of gangs", LOST_WORK, GANGS),
    CostCriterion("most restarts", restarts()),
    CostCriterion("lowest deletion cost", DELETION, OWNERS),
    CostCriterion("annotated", ANNOTATED),
    GroupCriterion("fewest owners", OWNERS),
    GroupCriterion("fewest gangs", GANGS),
    GroupCriterion("fewest namespaces", NAMESPACES),
    *(each for each in cost_criteria(LOST_WORK).values() if isinstance(each, GroupValueCriterion)),
    FragmentationCriterion(resource=DEVICE),
)
POD_ORDER: tuple[Criterion[Pod], ...] = (
    *POD_CRITERIA.values(),
    *pod_cost_criteria(DELETION).values(),
)
CHEAPEST = tuple(cheapest_criteria(LOST_WORK, DELETION).values())


def _is_dear(pod: Pod) -> bool:
    cost = DELETION.of(pod)
    if isinstance(cost, Unreadable):
        raise EvaluationError(cost.reason)
    return cost.fixed > 0


GUARDS = (
    protected_pods("web pods", lambda pod: pod.labels.get("app") == "web"),
    min_runtime("young pods", lambda pod: pod.namespace == "default", 3 * SECOND),
    unreadable_cost(DELETION),
    protected_by_expression("dear pods", _is_dear, DELETION.annotations),
    unreadable_cost(ANNOTATED),
    is_cheap.guard("cheap pods"),
)


ATTEMPTS = (
    preemption_delay(2 * SECOND),
    preemptor_cooldown(3 * SECOND),
    wait_for_autoscaler(SECOND),
)
ALLOWANCES = (
    victim_cooldown(4 * SECOND),
    loop_breaker(4 * SECOND),
    window_limit("per namespace", NAMESPACES, 2, 5 * SECOND),
    window_limit("in all", CLUSTER, 3, 5 * SECOND),
    window_limit("lost work", NAMESPACES, 6000, 5 * SECOND, LOST_WORK),
    min_available("web", lambda pod: pod.labels.get("app") == "web", 1),
)


def shaped_rules() -> st.SearchStrategy[SchedulerRules]:
    """Return the strategy of rules with any policy and any release."""
    releases = st.sampled_from(list(RELEASES.values()))
    return st.builds(SchedulerRules, releases, policy=shaped_policies())


@st.composite
def shaped_policies(draw: st.DrawFn) -> Policy:
    """Draw a policy with any of what policies have."""
    shortlisted = st.sampled_from(list(CONSEQUENCE_CRITERIA.values())).flatmap(
        lambda each: st.sampled_from([1, 2, 16]).map(lambda most: replace(each, shortlist=most))
    )
    drawn = st.lists(
        st.one_of(st.sampled_from(CRITERIA), shortlisted), max_size=4, unique_by=lambda c: c.name
    )
    limits = st.tuples(st.sampled_from(CRITERIA), st.integers(0, 5))
    by = draw(st.sampled_from([None, None, *CHEAPEST]))
    candidates = draw(drawn)
    return Policy(
        "drawn",
        pod_order(tuple(draw(st.permutations(POD_ORDER))[: draw(st.integers(2, len(POD_ORDER)))])),
        candidates=tuple(candidates) if by is None else (by, *candidates),
        victim_guards=tuple(draw(st.lists(st.sampled_from(GUARDS), max_size=2, unique_by=id))),
        candidate_limits=tuple(
            CandidateLimit(f"limit {n}", *each)
            for n, each in enumerate(draw(st.lists(limits, max_size=2)))
        ),
        attempt_guards=draw(st.sampled_from([(), (), ATTEMPTS])),
        allowance_guards=tuple(
            draw(st.lists(st.sampled_from(ALLOWANCES), max_size=2, unique_by=id))
        ),
        priority_gap=draw(st.sampled_from([1, 1, 2, 5])),
        strict_budgets=draw(st.booleans()),
        cheapest_by=by,
    )
