"""The values that decisions read: arithmetic without mutation, and snapshots."""

from __future__ import annotations

import pytest

from policies.kubernetes.selectors import LabelSelector, Requirement
from policies.kubernetes.snapshot import AffinityTerm, NodeState, Resources
from tests.builders import budget, holding, host_port, node, pod, snapshot

GPU = "example.com/gpu"


def test_resources_add_and_subtract_by_name() -> None:
    some = Resources(1, 2, 3, {GPU: 1})
    more = Resources(10, 20, 30, {GPU: 2, "hugepages-2Mi": 5})
    assert some + more == Resources(11, 22, 33, {GPU: 3, "hugepages-2Mi": 5})
    assert more - some == Resources(9, 18, 27, {GPU: 1, "hugepages-2Mi": 5})


def test_a_node_has_the_requests_and_ports_of_its_pods() -> None:
    state = holding(node(), pod("a", cpu="1", ports=[80]), pod("b", cpu="500m", ports=["UDP:53"]))
    assert state.requested.milli_cpu == 1500
    assert state.used_ports == {host_port(80), host_port("UDP:53")}


def test_finished_pods_use_no_resources() -> None:
    state = holding(node(), pod("done", cpu="1", finished=True, ports=[80]))
    assert (state.pods, state.requested, state.used_ports) == ((), Resources(), frozenset())


def test_a_removed_pod_that_is_added_again_changes_only_the_order() -> None:
    first, second = pod("a", cpu="1", ports=[80]), pod("b", cpu="2", others={GPU: "1"})
    before = holding(node(), first, second)
    after = before.without_pods([first]).with_pod(first)
    assert after.pods == (second, first)
    assert (after.requested, after.used_ports) == (before.requested, before.used_ports)


def test_removing_pods_does_not_change_the_earlier_state() -> None:
    victim = pod("a", cpu="1")
    before = holding(node(), victim)
    assert before.without_pods([victim]) == NodeState(before.node, used_ports=frozenset())
    assert before.pods == (victim,)


def test_pods_are_distinguished_by_uid() -> None:
    old, new = pod("web-0", uid="1", cpu="1"), pod("web-0", uid="2", cpu="2")
    assert holding(node(), old, new).without_pods([old]).pods == (new,)


def test_a_port_of_two_pods_is_free_once_one_is_removed() -> None:
    """Pods that no scheduler has bound can share a port; upstream frees it with the first."""
    first, second = pod("a", ports=[80]), pod("b", ports=[80])
    assert holding(node(), first, second).without_pods([first]).used_ports == frozenset()


def test_a_snapshot_has_bound_and_nominated_pods_by_node() -> None:
    bound, nominated = pod("bound", on="node-1"), pod("nominated", nominated_node="node-1")
    state = snapshot(node("node-1"), bound, nominated, pod("pending")).nodes["node-1"]
    assert (state.pods, state.nominated) == ((bound,), (nominated,))


def test_a_bound_pod_is_not_nominated() -> None:
    cluster = snapshot(
        node("node-1"), node("node-2"), pod("late", on="node-1", nominated_node="node-2")
    )
    assert cluster.nodes["node-2"].nominated == ()


def test_an_assumed_pod_is_on_its_node_and_nominated_to_none() -> None:
    repelling = (AffinityTerm(None, frozenset(), None, "zone"),)
    early = pod("early", cpu="1", nominated_node="node-2", anti_affinity=repelling)
    cluster = snapshot(node("node-1"), node("node-2"), early, pod("web", on="node-1", cpu="2"))
    after = cluster.with_assumed(early, "node-1")
    assert [each.key for each in after.nodes["node-1"].pods] == ["default/web", "default/early"]
    assert after.nodes["node-1"].requested.milli_cpu == 3000
    assert after.nodes["node-2"].nominated == ()
    assert [each.node_name for each in after.pods_with_anti_affinity] == ["node-1"]
    assert cluster.nodes["node-2"].nominated == (early,)


def test_pods_of_unknown_nodes_and_finished_nominees_are_left_out() -> None:
    cluster = snapshot(
        node("node-1"),
        pod("lost", on="node-9"),
        pod("over", nominated_node="node-1", finished=True),
    )
    assert cluster.nodes == {"node-1": holding(node("node-1"))}


def test_a_snapshot_keeps_budgets_and_namespaces() -> None:
    web = budget("web", match={"app": "web"})
    cluster = snapshot(web, namespaces={"default": {"team": "a"}})
    assert (cluster.budgets, cluster.namespaces) == ((web,), {"default": {"team": "a"}})


@pytest.mark.parametrize(
    ("managed", "named", "concerned"),
    [
        ([], [], True),
        ([], ["cpu"], True),
        ([GPU], [], False),
        ([GPU], ["cpu"], False),
        ([GPU], ["cpu", GPU], True),
    ],
)
def test_an_extender_is_interested_in_pods_with_managed_resources(
    managed: list[str], named: list[str], *, concerned: bool
) -> None:
    assert pod(resource_names=frozenset(named)).requests_any_of(frozenset(managed)) is concerned


WEB = LabelSelector((Requirement("app", "In", ("web",)),))
TEAM_A = LabelSelector((Requirement("team", "In", ("a",)),))


@pytest.mark.parametrize(
    ("selector", "own", "others", "matches"),
    [
        (WEB, {"default"}, None, True),
        (None, {"default"}, None, False),
        (LabelSelector(), {"default"}, None, True),
        (WEB, {"blue"}, None, False),
        (WEB, {"blue"}, TEAM_A, True),
        (WEB, set(), LabelSelector(), True),
        (WEB, set(), LabelSelector((Requirement("team", "In", ("b",)),)), False),
    ],
)
def test_an_affinity_term_matches_pods_by_labels_and_namespace(
    selector: LabelSelector | None, own: set[str], others: LabelSelector | None, *, matches: bool
) -> None:
    term = AffinityTerm(selector, frozenset(own), others, "zone")
    web = pod("web-0", labels={"app": "web"})
    assert term.matches(web, {"default": {"team": "a"}}) is matches
