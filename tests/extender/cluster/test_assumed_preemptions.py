"""Assumed preemptions: what an answer adds to the snapshot, and what ends it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from extender.cluster.assumed_preemptions import AssumedPreemption, AssumedPreemptions
from policies.kubernetes.snapshot import NodeState, Pod
from tests.builders import holding, node, pod

VIP = pod("vip", priority=10)
WEB = pod("web", on="node-1")
API = pod("api", on="node-1")
NODE = holding(node("node-1"), WEB, API)
ASSUMED = AssumedPreemption(VIP, "node-1", frozenset({"web"}), deadline=30.0)


def overlay(*assumed: AssumedPreemption) -> AssumedPreemptions:
    made = AssumedPreemptions()
    for each in assumed:
        made.assume(each)
    return made


def leaving(state: NodeState) -> list[str]:
    """Return the names of the pods that count as evicted by kube-scheduler."""
    return [each.name for each in state.pods if each.assumed_victim]


def expected(state: NodeState) -> list[str]:
    """Return the names of the nominated pods."""
    return [each.name for each in state.nominated]


def evicted(victim: Pod) -> Pod:
    return structs.replace(victim, terminating=True, preempted=True)


def test_an_assumed_preemption_marks_victims_and_nominates_the_preemptor() -> None:
    state = overlay(ASSUMED).apply(NODE)
    assert leaving(state) == ["web"]
    assert expected(state) == ["vip"]
    assert [each.nominated_node for each in state.nominated] == ["node-1"]
    assert state.requested == NODE.requested


def test_other_nodes_do_not_change() -> None:
    elsewhere = holding(node("node-2"), structs.replace(WEB, node_name="node-2"))
    assert overlay(ASSUMED).apply(elsewhere) is elsewhere


def test_a_preemptor_that_the_watch_shows_as_nominated_is_not_counted_twice() -> None:
    shown = holding(node("node-1"), WEB, nominated=[structs.replace(VIP, nominated_node="node-1")])
    assert expected(overlay(ASSUMED).apply(shown)) == ["vip"]


def test_assumed_preemptions_on_one_node_add_up() -> None:
    rival = pod("rival", priority=9)
    both = overlay(ASSUMED, AssumedPreemption(rival, "node-1", frozenset({"api"}), 30.0))
    state = both.apply(NODE)
    assert leaving(state) == ["web", "api"]
    assert expected(state) == ["vip", "rival"]


def test_a_newer_answer_for_the_same_pod_replaces_the_older() -> None:
    made = overlay(ASSUMED)
    touched = made.assume(AssumedPreemption(VIP, "node-2", frozenset({"x"}), 30.0))
    assert touched == {"node-1", "node-2"}
    assert len(made) == 1
    assert made.apply(NODE) is NODE


@pytest.mark.parametrize(
    "shown",
    [
        structs.replace(VIP, nominated_node="node-1"),
        structs.replace(VIP, node_name="node-1"),
        structs.replace(VIP, finished=True),
    ],
    ids=["nominated", "bound", "finished"],
)
def test_the_nomination_ends_when_the_watch_shows_the_preemptors_node(shown: Pod) -> None:
    made = overlay(ASSUMED)
    assert made.observe_pod(shown) == {"node-1"}
    state = made.apply(NODE)
    assert (leaving(state), expected(state)) == (["web"], [])


@pytest.mark.parametrize(
    "shown",
    [evicted(WEB), structs.replace(WEB, finished=True)],
    ids=["marked and terminating", "finished"],
)
def test_a_victim_ends_when_the_watch_shows_it_terminating(shown: Pod) -> None:
    made = overlay(ASSUMED)
    assert made.observe_pod(shown) == {"node-1"}
    state = made.apply(NODE)
    assert (leaving(state), expected(state)) == ([], ["vip"])


@pytest.mark.parametrize(
    "shown",
    [
        VIP,
        WEB,
        API,
        structs.replace(WEB, terminating=True),
        structs.replace(WEB, preempted=True),
        pod("other"),
    ],
)
def test_an_unchanged_pod_ends_no_assumption(shown: Pod) -> None:
    made = overlay(ASSUMED)
    assert made.observe_pod(shown) == frozenset()
    assert leaving(made.apply(NODE)) == ["web"]


def test_a_deleted_pod_ends_its_half() -> None:
    made = overlay(ASSUMED)
    assert made.observe_deletion(WEB) == {"node-1"}
    assert expected(made.apply(NODE)) == ["vip"]
    assert made.observe_deletion(VIP) == {"node-1"}
    assert len(made) == 0


def test_an_ended_assumption_does_not_end_again() -> None:
    made = overlay(ASSUMED)
    bound = structs.replace(VIP, node_name="node-1")
    assert made.observe_pod(bound) == {"node-1"}
    assert made.observe_pod(bound) == frozenset()


def test_a_confirmed_assumed_preemption_is_forgotten() -> None:
    made = overlay(ASSUMED)
    made.observe_pod(evicted(WEB))
    made.observe_pod(structs.replace(VIP, nominated_node="node-1"))
    assert len(made) == 0
    assert made.apply(NODE) is NODE


def test_an_unconfirmed_assumed_preemption_expires_as_a_whole() -> None:
    made = overlay(ASSUMED)
    assert made.expire(29.9) == frozenset()
    assert made.expire(30.0) == {"node-1"}
    assert made.apply(NODE) is NODE


def test_a_nomination_that_was_known_already_does_not_end_a_newer_one() -> None:
    earlier = structs.replace(VIP, nominated_node="node-9")
    kept = overlay(replace(ASSUMED, preemptor=earlier))
    assert kept.observe_pod(earlier) == set()
    assert expected(kept.apply(NODE)) == ["vip"]
    assert kept.observe_pod(structs.replace(VIP, nominated_node="node-1")) == {"node-1"}


def test_a_withdrawn_assumed_preemption_changes_nothing_any_more() -> None:
    rival = AssumedPreemption(pod("rival", priority=9), "node-1", frozenset({"api"}), 30.0)
    made = overlay(ASSUMED, rival)
    assert made.withdraw("vip") is ASSUMED
    state = made.apply(NODE)
    assert (leaving(state), expected(state)) == (["api"], ["rival"])
    assert made.withdraw("vip") is None


def test_a_victim_that_is_only_assumed_is_no_longer_nominated() -> None:
    early = pod("early", nominated_node="node-1", may_be_assumed=True)
    made = overlay(replace(ASSUMED, victims=frozenset({"early"})))
    assert expected(made.apply(holding(node("node-1"), nominated=[early]))) == ["vip"]
    assert made.observe_pod(early) == frozenset()
    assert made.observe_pod(pod("early")) == {"node-1"}
    made.observe_pod(structs.replace(VIP, nominated_node="node-1"))
    assert len(made) == 0


def test_a_preemptor_waits_for_its_victims_and_is_not_assumed() -> None:
    nominated_by_others = structs.replace(VIP, nominated_node="node-9", may_be_assumed=True)
    state = overlay(replace(ASSUMED, preemptor=nominated_by_others)).apply(NODE)
    assert [each.may_be_assumed for each in state.nominated] == [False]
