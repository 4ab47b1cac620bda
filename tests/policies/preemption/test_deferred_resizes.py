"""Filtering and preemption for a running pod whose in-place resize is deferred."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from policies.kubernetes.pod_groups import PodGroups
from policies.kubernetes.releases import RELEASES, release
from policies.kubernetes.selectors import equals_all
from policies.kubernetes.snapshot import Node, Pod, Snapshot
from policies.preemption.decision import PreemptionDecision
from policies.preemption.filtering import filters_named
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import filter_nodes, filter_with_terminating_pods
from tests.builders import node, pod, pod_group, snapshot
from tests.properties.engines import assert_agreement, fit_by_node, victims_by_node

RULES = SchedulerRules(RELEASES["1.37"])
DEVICE = "example.com/device"
CHEAP = pod("cheap", on="node-1", cpu="1", priority=1)
DEAR = pod("dear", on="node-1", cpu="1", priority=5)


def growing(cpu: str = "3", **fields: Any) -> Pod:
    """Return a running pod with the resources that it is to have."""
    return pod("growing", on="node-1", cpu=cpu, priority=10, resize_deferred=True, **fields)


def cluster_of(*things: Node | Pod, **fields: Any) -> Snapshot:
    """Return two nodes with four cores; ``fields`` are those of the first one."""
    return snapshot(node("node-1", cpu="4", **fields), node("node-2", cpu="4"), *things)


def decide(asking: Pod, *others: Pod, **fields: Any) -> PreemptionDecision:
    """Return the decision about a pod that is on the first node beside others."""
    return assert_agreement(asking, cluster_of(asking, *others, **fields), RULES)


def test_pods_are_evicted_until_the_node_is_not_over_allocated() -> None:
    """The pod counts once, with its desired resources."""
    assert victims_by_node(decide(growing("3"), CHEAP, DEAR)) == {"node-1": ["cheap"]}
    assert victims_by_node(decide(growing("4"), CHEAP, DEAR)) == {"node-1": ["dear", "cheap"]}


@pytest.mark.parametrize(("cpu", "fits"), [("2", True), ("3", False)])
def test_it_fits_a_node_that_is_not_over_allocated(cpu: str, *, fits: bool) -> None:
    asking = growing(cpu)
    found = filter_nodes(asking, cluster_of(asking, CHEAP, DEAR), RULES)
    assert found.feasible == (("node-1",) if fits else ())


def test_a_resize_that_the_cache_does_not_count_yet_is_needed_on_top() -> None:
    asking = growing("3")
    before = structs.replace(asking, requests=pod(cpu="2").requests)
    decision = assert_agreement(asking, cluster_of(before, CHEAP, DEAR), RULES)
    assert victims_by_node(decision) == {"node-1": ["cheap"]}


def test_only_its_own_node_is_tried() -> None:
    decision = decide(growing("4"), structs.replace(CHEAP, node_name="node-2"), DEAR)
    assert victims_by_node(decision) == {"node-1": ["dear"]}
    assert str(decision.rejected["node-2"]) == "node(s) didn't satisfy plugin(s) [NodeName]"


def test_without_node_name_another_node_is_refused_as_well() -> None:
    asking = growing("1")
    filters = filters_named(["DeferredPodScheduling", "NodeResourcesFit"])
    found = fit_by_node(asking, cluster_of(asking), replace(RULES, filters=filters))
    assert found == {"node-1": "fits", "node-2": "pod assigned to different node"}


def test_a_node_may_disable_preemption_for_resizes_only() -> None:
    decision = decide(growing("4"), CHEAP, resize_preemption_disabled=True)
    assert decision.candidates == {}
    assert str(decision.rejected["node-1"]) == "node had resize preemption disabled"
    assert not decision.rejected["node-1"].resolvable
    cluster = cluster_of(CHEAP, resize_preemption_disabled=True)
    pending = assert_agreement(pod(on="node-1", cpu="4", priority=10), cluster, RULES)
    assert victims_by_node(pending) == {"node-1": ["cheap"]}


def test_filters_that_decide_where_a_pod_starts_skip_it() -> None:
    asking = growing("2", ports=[80], node_selector=equals_all({"zone": "a"}), volumes=["missing"])
    cluster = cluster_of(asking, CHEAP, taints=["gpu=yes:NoSchedule"], unschedulable=True)
    found = filter_nodes(asking, cluster, RULES)
    assert (found.feasible, found.not_evaluated) == (("node-1",), frozenset())
    assert (
        filter_nodes(structs.replace(asking, resize_deferred=False), cluster, RULES).feasible == ()
    )


def test_it_counts_twice_against_the_number_of_pods() -> None:
    """As upstream, one pod is evicted if the node has no free pod slot."""
    assert victims_by_node(decide(growing("2"), CHEAP, DEAR, pods=3)) == {"node-1": ["cheap"]}


def test_a_request_above_the_allocatable_amount_is_not_helped_by_eviction() -> None:
    decision = decide(growing("5"), CHEAP)
    assert not decision.rejected["node-1"].resolvable
    assert decision.candidates == {}


def test_an_extended_resource_that_it_has_already_does_not_refuse_it() -> None:
    asking = growing("2", others={DEVICE: "1"})
    other = pod("other", on="node-1", others={DEVICE: "1"}, priority=1)
    found = filter_nodes(asking, cluster_of(asking, other, others={DEVICE: "1"}), RULES)
    assert found.feasible == ("node-1",)


def test_it_has_to_fit_beside_more_important_nominated_pods() -> None:
    nominated = pod("nominated", cpu="1", priority=20, nominated_node="node-1")
    assert victims_by_node(decide(growing("3"), CHEAP, nominated)) == {"node-1": ["cheap"]}


@pytest.mark.parametrize(
    ("mode", "cpu", "slots", "victims"),
    [("single", "2", 3, ["aide"]), ("all", "3", 5, ["dear"])],
)
def test_it_is_no_victim_of_itself_by_the_lower_priority_of_its_group(
    mode: str, cpu: str, slots: int, victims: list[str]
) -> None:
    asking = growing(cpu, group="crew")
    aide = pod("aide", on="node-1", cpu="1", priority=10, group="crew")
    cluster = cluster_of(asking, aide, DEAR, pods=slots)
    groups = PodGroups({"default/crew": pod_group("crew", mode, priority=0)})
    rules = replace(RULES, release=release("1.37", {"GenericWorkload": True}))
    decision = assert_agreement(asking, replace(cluster, pod_groups=groups), rules)
    assert victims_by_node(decision) == {"node-1": victims}


def test_it_is_filtered_by_itself_though_it_is_a_member_of_a_pod_group() -> None:
    rules = SchedulerRules(release("1.37", {"GenericWorkload": True}))
    asking = growing("3", group="team")
    team = pod_group("team", "all", priority=10)
    cluster = replace(cluster_of(asking, CHEAP, DEAR), pod_groups=PodGroups({team.key: team}))
    assert filter_with_terminating_pods(asking, cluster, rules, ["node-1"]).feasible == ()
