"""Guards of groups: cool-downs, limits per window, the loop breaker, ready pods to keep."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from policies.kubernetes.default_selector import PodOwner
from policies.kubernetes.snapshot import PastPreemption, Pod, Snapshot
from policies.preemption.costs.catalog import lost_work
from policies.preemption.costs.groupings import CLUSTER, NAMESPACES
from policies.preemption.guards.allowance import (
    AllowanceGuard,
    loop_breaker,
    min_available,
    victim_cooldown,
    window_limit,
)
from policies.preemption.guards.attempt_guard import preemption_delay, preemptor_cooldown
from policies.preemption.policy import Policy, SchedulerRules
from policies.preemption.reference_engine import preempt
from tests.builders import SECOND, node, pod, snapshot

NOW = 100 * SECOND
MINUTE = 60 * SECOND


def of(owner: str, name: str = "", **fields: Any) -> Pod:
    """Return a pod of a Job; it is on a node of its own, which it fills."""
    name = name or f"{owner}-0"
    return pod(name, cpu="1", owner=PodOwner("Job", owner), **fields)


def past(victim: Pod, preemptor: Pod | None = None, ago: int = 10) -> PastPreemption:
    return PastPreemption(NOW - ago * SECOND, victim, preemptor)


def victims(guard: AllowanceGuard, running: list[Pod], *preemptions: PastPreemption) -> set[str]:
    """Return the pods that a pod of the owner "me" may evict, each on a node of its own."""
    placed = [structs.replace(each, node_name=f"n-{each.name}") for each in running]
    cluster = snapshot(*(node(f"n-{each.name}", cpu="1") for each in running), *placed)
    cluster = replace(cluster, now_ns=NOW, preemptions=preemptions)
    rules = SchedulerRules(policy=Policy("p", allowance_guards=(guard,)))
    found = preempt(of("me", priority=9), cluster, rules)
    return {each.victims.pods[0].name for each in found.candidates.values()}


@pytest.mark.parametrize(
    ("preemptions", "left"),
    [
        ((), {"a-0", "a-1", "b-0"}),
        ((past(of("a", "a-9")),), {"b-0"}),
        ((past(of("a", "a-9"), ago=61),), {"a-0", "a-1", "b-0"}),
    ],
    ids=["never", "just now", "long ago"],
)
def test_an_owner_rests_after_it_was_disrupted(
    preemptions: tuple[PastPreemption, ...], left: set[str]
) -> None:
    running = [of("a"), of("a", "a-1"), of("b")]
    assert victims(victim_cooldown(MINUTE), running, *preemptions) == left


@pytest.mark.parametrize(
    ("edges", "left"),
    [
        ((), {"a-0", "b-0"}),
        ((("a", "me"),), {"b-0"}),
        ((("me", "a"),), {"a-0", "b-0"}),
        ((("a", "b"), ("b", "me")), set()),
        ((("b", "a"), ("a", "b"), ("a", "me")), set()),
    ],
    ids=["none", "direct", "the other way", "a cycle of three", "a cycle beside"],
)
def test_owners_do_not_preempt_each_other_in_turn(
    edges: tuple[tuple[str, str], ...], left: set[str]
) -> None:
    """An edge is a preemptor's owner and its victim's."""
    preemptions = [past(of(victim), of(preemptor)) for preemptor, victim in edges]
    assert victims(loop_breaker(MINUTE), [of("a"), of("b")], *preemptions) == left


def test_preemptions_before_the_window_make_no_loop() -> None:
    old = past(of("me"), of("a"), ago=61)
    assert victims(loop_breaker(MINUTE), [of("a")], old) == {"a-0"}


@pytest.mark.parametrize(
    ("guard", "left"),
    [
        (window_limit("hourly", NAMESPACES, 2, MINUTE), {"b-0"}),
        (window_limit("hourly", CLUSTER, 2, MINUTE), set()),
        (window_limit("hourly", NAMESPACES, 3, MINUTE), {"a-0", "b-0"}),
        (window_limit("hourly", NAMESPACES, 2, 5 * SECOND), {"a-0", "b-0"}),
    ],
    ids=["used up", "in all", "one left", "another window"],
)
def test_victims_are_limited_in_a_window(guard: AllowanceGuard, left: set[str]) -> None:
    running = [of("a", namespace="x"), of("b", namespace="y")]
    two = (past(of("a", "a-8", namespace="x")), past(of("c", namespace="x")))
    assert victims(guard, running, *two) == left


def gone(started: int) -> Pod:
    """Return a victim of the namespace x."""
    return of("a", "gone", namespace="x", started=started)


@pytest.mark.parametrize(
    ("at_most", "lost", "left"),
    [
        (30_000, (), {"old", "young", "other"}),
        (29_999, (), {"young", "other"}),
        (30_000, (past(gone(85)),), {"young", "other"}),
        (30_000, (past(gone(70)),), {"young", "other"}),
        (30_000, (past(gone(50)),), {"other"}),
        (30_000, (past(gone(5), ago=61),), {"young", "old", "other"}),
    ],
    ids=["as much", "less", "five lost", "twenty lost", "forty lost", "long ago"],
)
def test_lost_work_is_limited_in_a_window(
    at_most: int, lost: tuple[PastPreemption, ...], left: set[str]
) -> None:
    """A core counts as one: a pod that has run for 30 seconds loses 30,000 thousandths."""
    guard = window_limit("hourly", NAMESPACES, at_most, MINUTE, lost_work({"cpu": 1000}))
    running = [
        of("a", "old", namespace="x", started=70),
        of("a", "young", namespace="x", started=90),
        of("b", "other", namespace="y", started=99),
    ]
    assert victims(guard, running, *lost) == left


def test_one_preemption_takes_no_more_than_the_window_allows() -> None:
    guard = window_limit("hourly", NAMESPACES, 1, MINUTE)
    cluster = snapshot(
        node(cpu="2"), *(structs.replace(of("a", f"a-{n}"), node_name="node-1") for n in (0, 1))
    )
    rules = SchedulerRules(policy=Policy("p", allowance_guards=(guard,)))
    found = preempt(pod("p", cpu="2", priority=9), cluster, rules)
    assert found.chosen is None
    assert str(found.rejected["node-1"]) == "node(s) exceeded the policy's hourly"


@pytest.mark.parametrize(("least", "left"), [(1, {"web-0", "web-1", "db-0"}), (2, {"db-0"})])
def test_ready_pods_of_an_owner_are_kept(least: int, left: set[str]) -> None:
    running = [
        of("web", ready=True),
        of("web", "web-1", ready=True),
        of("web", "web-2", terminating=True, ready=True, priority=99),
        of("db", ready=True),
    ]
    guard = min_available("minAvailable", lambda each: each.name.startswith("web"), least)
    assert victims(guard, running) == left


@pytest.mark.parametrize(
    ("waited", "refusal"),
    [(29, "it waits for another 1s"), (30, None), (0, "it waits for another 30s")],
)
def test_a_preemptor_waits(waited: int, refusal: str | None) -> None:
    guard = preemption_delay(30 * SECOND)
    preemptor = pod(waiting_since_ns=NOW - waited * SECOND)
    assert guard.refusal(preemptor, Snapshot(now_ns=NOW)) == refusal


@pytest.mark.parametrize(
    ("preemptor", "refusal"),
    [
        (of("a", "a-1"), "default/Job/a has preempted, for another 50s"),
        (of("a"), None),
        (of("b"), None),
    ],
    ids=["a sibling", "the same pod again", "another owner"],
)
def test_an_owner_preempts_once_in_a_while(preemptor: Pod, refusal: str | None) -> None:
    cluster = Snapshot(now_ns=NOW, preemptions=(past(of("v"), of("a")),))
    assert preemptor_cooldown(MINUTE).refusal(preemptor, cluster) == refusal
