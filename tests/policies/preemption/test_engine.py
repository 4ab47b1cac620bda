"""Searches that end at a deadline: their results are valid and count the untried nodes."""

from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from policies.kubernetes.releases import NEWEST
from policies.kubernetes.selectors import Requirement
from policies.preemption.engine import Engine
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.time_limit import DeadlineExceededError, HasTimeLeft
from policies.preemption.vectorized import VectorizedEngine
from policies.testing.strategies import Cluster, clusters
from tests.builders import node, pod, snapshot


def time_for(count: int) -> HasTimeLeft:
    """Return whether there is time left, for so many nodes."""
    left = iter(range(count))
    return lambda: next(left, None) is not None


@given(clusters(), st.integers(0, 12), st.sampled_from([ReferenceEngine, VectorizedEngine]))
def test_a_decision_within_its_deadline_equals_one_without(
    cluster: Cluster, count: int, kind: type[ReferenceEngine | VectorizedEngine]
) -> None:
    rules = SchedulerRules(NEWEST)
    engine: Engine = kind(rules)
    whole = engine.preempt(cluster.preemptor, cluster.snapshot)
    try:
        found = engine.preempt(cluster.preemptor, cluster.snapshot, has_time_left=time_for(count))
    except DeadlineExceededError:
        event("broken off while filtering")
        return
    event(f"broken off while trying nodes: {found.untried > 0}")
    if not found.untried:
        assert found == whole
    assert dict(found.candidates) == {name: whole.candidates[name] for name in found.candidates}
    order = rules.policy.order_of_candidates(cluster.preemptor, cluster.snapshot)
    assert found.chosen == next(iter(order.sort(found.candidates.values())), None)
    assert set(found.rejected) >= set(whole.rejected)


@given(clusters(), st.integers(0, 12), st.sampled_from([ReferenceEngine, VectorizedEngine]))
def test_filtering_is_whole_or_none(
    cluster: Cluster, count: int, kind: type[ReferenceEngine | VectorizedEngine]
) -> None:
    engine: Engine = kind(SchedulerRules(NEWEST))
    names = tuple(cluster.snapshot.nodes)
    whole = engine.filter_with_terminating_pods(cluster.preemptor, cluster.snapshot, names)
    try:
        found = engine.filter_with_terminating_pods(
            cluster.preemptor, cluster.snapshot, names, has_time_left=time_for(count)
        )
    except DeadlineExceededError:
        event("broken off")
    else:
        assert found == whole


def test_the_best_of_the_nodes_tried_is_chosen_and_the_rest_counted() -> None:
    moment = snapshot(
        *(node(f"node-{number}", cpu="1") for number in (1, 2, 3)),
        pod("expensive", on="node-1", cpu="1", priority=5),
        pod("cheap", on="node-2", cpu="1", priority=2),
        pod("cheapest", on="node-3", cpu="1", priority=1),
    )
    asking = pod("vip", cpu="1", priority=10)
    # Three nodes are filtered, and two are tried.
    decision = ReferenceEngine().preempt(asking, moment, has_time_left=time_for(5))
    assert decision.chosen is not None
    assert decision.chosen.node == "node-2"
    assert decision.untried == 1
    assert "not tried before the deadline: 1 node(s)" in list(decision.describe())
    with pytest.raises(DeadlineExceededError):
        ReferenceEngine().preempt(asking, moment, has_time_left=time_for(2))


def test_the_requirements_of_a_pod_on_labels_are_evaluated_until_the_deadline() -> None:
    requirements = tuple(Requirement(f"label-{n}", "NotIn", ("a",)) for n in range(300))
    asking = pod("vip", node_selector=requirements)
    moment = snapshot(node("node-1"), node("node-2"))
    assert VectorizedEngine().filter_nodes(asking, moment).feasible == ("node-1", "node-2")
    with pytest.raises(DeadlineExceededError):
        VectorizedEngine().filter_nodes(asking, moment, has_time_left=time_for(1))
