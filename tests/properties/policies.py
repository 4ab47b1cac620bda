"""Random policies with guards, costs and limits, and clusters with what these read."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from policies.kubernetes.default_selector import PodOwner
from policies.kubernetes.snapshot import PastPreemption, Pod, Snapshot
from policies.preemption.costs.candidate_criteria import (
    CandidateCriterion,
    CostCriterion,
    GroupCriterion,
)
from policies.preemption.costs.catalog import (
    DELETION_COST,
    cheapest_criteria,
    deletion_cost,
    lost_work,
    restarts,
)
from policies.preemption.costs.groupings import CLUSTER, GANGS, NAMESPACES, OWNERS
from policies.preemption.costs.pod_cost import EvaluationError, Unreadable
from policies.preemption.guards.allowance import (
    loop_breaker,
    min_available,
    victim_cooldown,
    window_limit,
)
from policies.preemption.guards.attempt_guard import preemption_delay, preemptor_cooldown
from policies.preemption.guards.candidate_limit import CandidateLimit
from policies.preemption.guards.victim_guard import (
    min_runtime,
    protected_by_expression,
    protected_pods,
    unreadable_cost,
)
from policies.preemption.policy import CANDIDATE_CRITERIA, POD_CRITERIA, Policy, pod_order
from policies.testing.strategies import NODES, Cluster
from tests.builders import SECOND, node, pod

LOST_WORK = lost_work({"cpu": 1000, "memory": 10})
DELETION = deletion_cost()
CRITERIA: tuple[CandidateCriterion, ...] = (
    *CANDIDATE_CRITERIA.values(),
    CostCriterion("least lost work", LOST_WORK),
    CostCriterion("least lost work of gangs", LOST_WORK, GANGS),
    CostCriterion("most restarts", restarts()),
    CostCriterion("lowest deletion cost", DELETION, OWNERS),
    GroupCriterion("fewest owners", OWNERS),
    GroupCriterion("fewest gangs", GANGS),
    GroupCriterion("fewest namespaces", NAMESPACES),
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
)


ATTEMPTS = (preemption_delay(2 * SECOND), preemptor_cooldown(3 * SECOND))
ALLOWANCES = (
    victim_cooldown(4 * SECOND),
    loop_breaker(4 * SECOND),
    window_limit("per namespace", NAMESPACES, 2, 5 * SECOND),
    window_limit("in all", CLUSTER, 3, 5 * SECOND),
    min_available("web", lambda pod: pod.labels.get("app") == "web", 1),
)


@st.composite
def shaped_policies(draw: st.DrawFn) -> Policy:
    """Draw a policy with any of what policies have."""
    drawn = st.lists(st.sampled_from(CRITERIA), max_size=4, unique_by=id)
    limits = st.tuples(st.sampled_from(CRITERIA), st.integers(0, 5))
    by = draw(st.sampled_from([None, None, *CHEAPEST]))
    candidates = draw(drawn)
    return Policy(
        "drawn",
        pod_order(tuple(draw(st.permutations(list(POD_CRITERIA.values()))))),
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


@st.composite
def worked_pods(draw: st.DrawFn, pod: Pod) -> Pod:
    """Draw what policies read of a pod."""
    owner = draw(st.sampled_from([None, PodOwner("Job", "a"), PodOwner("ReplicaSet", "web-1")]))
    written = draw(st.sampled_from([None, None, "5", "-3", "much"]))
    return replace(
        pod,
        owner=owner,
        annotations={} if written is None else {DELETION_COST: written},
        ready=draw(st.booleans()),
        restarts=draw(st.integers(0, 3)),
        waiting_since_ns=draw(st.integers(0, 5)) * SECOND,
    )


@st.composite
def worked_snapshots(draw: st.DrawFn, cluster: Cluster) -> Snapshot:
    """Draw a moment of a cluster, and what policies read of its pods and budgets."""
    worked = replace(
        cluster,
        pods=tuple(draw(worked_pods(each)) for each in cluster.pods),
        budgets=tuple(
            replace(each, desired_healthy=draw(st.integers(0, 3))) for each in cluster.budgets
        ),
    )
    of_cluster = [*worked.pods, worked.preemptor]
    past = st.builds(
        PastPreemption,
        st.integers(0, 9).map(lambda seconds: seconds * SECOND),
        st.sampled_from(of_cluster),
        st.sampled_from([None, *of_cluster]),
    )
    return replace(
        worked.snapshot,
        now_ns=draw(st.integers(0, 9)) * SECOND + 1,
        preemptions=tuple(draw(st.lists(past, max_size=4))),
    )


@st.composite
def full_clusters(draw: st.DrawFn) -> Cluster:
    """Draw full nodes with pods of various sizes, whose cheapest victims are often not the last."""
    sizes = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=3, max_size=6)
    names = NODES[: draw(st.integers(1, 3))]
    pods = [
        pod(
            f"{name}-{n}",
            on=name,
            cpu=str(cpu),
            memory=f"{memory}Gi",
            priority=draw(st.integers(0, 2)),
            started=draw(st.integers(0, 9)),
            ports=draw(st.sampled_from([(), (), (), (80,)])) if n == 0 else (),
        )
        for name in names
        for n, (cpu, memory) in enumerate(draw(sizes))
    ]
    nodes = [
        node(
            name,
            cpu=str(
                sum(each.requests.milli_cpu // 1000 for each in pods if each.node_name == name)
            ),
            memory=f"{sum(each.requests.memory for each in pods if each.node_name == name)}",
        )
        for name in names
    ]
    preemptor = pod(
        "preemptor",
        cpu=str(draw(st.integers(1, 10))),
        memory=f"{draw(st.integers(0, 6))}Gi",
        priority=9,
        ports=draw(st.sampled_from([(), (), (80,)])),
    )
    return Cluster(tuple(nodes), tuple(pods), (), preemptor)
