"""Criteria over what follows a preemption: worked examples that both engines decide alike."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Final

import pytest
from msgspec import structs

from policies.kubernetes.default_selector import PodOwner
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.consequences.criteria import (
    CONSEQUENCE_CRITERIA,
    MOST_DISRUPTIONS,
    MOST_ROUNDS,
)
from policies.preemption.decision import PreemptionDecision
from policies.preemption.engine import Engine
from policies.preemption.explanation import explain_decision
from policies.preemption.policy import CANDIDATE_CRITERIA, Policy, PolicyCriterion, SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.time_limit import DeadlineExceededError, HasTimeLeft
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import node, pod, snapshot
from tests.properties.engines import assert_agreement

ELSEWHERE, CASCADE = CONSEQUENCE_CRITERIA
STRANDED, DISRUPTIONS = CONSEQUENCE_CRITERIA.values()
FEWEST: Final = CANDIDATE_CRITERIA["fewest victims"]
FIRST_PRIORITY: Final = CANDIDATE_CRITERIA["lowest priority of the first victim"]
OWNER: Final = PodOwner("ReplicaSet", "web")


def of(on: str, cpu: str, priority: int = 0, owner: PodOwner | None = OWNER, name: str = "") -> Pod:
    """Return a bound pod with a controller."""
    return pod(name or f"on-{on}", on=on, cpu=cpu, priority=priority, owner=owner)


def rules_with(*criteria: PolicyCriterion) -> SchedulerRules:
    """Return rules that choose a node by some criteria."""
    return SchedulerRules(policy=Policy("drawn", candidates=criteria))


def decide(now: Snapshot, *criteria: PolicyCriterion, cpu: str = "2") -> PreemptionDecision:
    """Return the decision of both engines for a pod of priority 9."""
    return assert_agreement(pod("new", cpu=cpu, priority=9), now, rules_with(*criteria))


def outcome(decision: PreemptionDecision) -> tuple[str, str | None]:
    """Return the chosen node, and the criterion that decided."""
    assert decision.chosen is not None
    return decision.chosen.node, decision.decided_by


@pytest.mark.parametrize(
    ("free", "stranded", "chosen", "decided_by"),
    [
        ("0", {"a": 1, "b": 3}, "a", ELSEWHERE),
        ("1", {"a": 1, "b": 2}, "a", ELSEWHERE),
        ("2", {"a": 1, "b": 1}, "a", "node name"),
    ],
)
def test_victims_are_placed_one_after_another(
    free: str, stranded: dict[str, int], chosen: str, decided_by: str
) -> None:
    now = snapshot(
        *(node("a", cpu="3"), node("b", cpu="3"), node("c", cpu=free)),
        of("a", "3"),
        *(of("b", "1", name=f"small-{number}") for number in range(3)),
    )
    decision = decide(now, STRANDED, cpu="3")
    assert decision.consequences == {ELSEWHERE: stranded}
    assert outcome(decision) == (chosen, decided_by)


def test_a_pod_without_a_controller_does_not_come_back() -> None:
    now = snapshot(
        *(node("a", cpu="2"), node("b", cpu="2"), node("c", cpu="1")),
        *(of("a", "1", owner=None), of("a", "1", priority=99, name="stays")),
        *(of("b", "1"), of("b", "1", priority=99, name="stays, too")),
    )
    decision = assert_agreement(
        pod("new", cpu="1", priority=9, labels={}), now, rules_with(STRANDED)
    )
    assert decision.consequences == {ELSEWHERE: {"a": 1, "b": 0}}
    assert outcome(decision) == ("b", ELSEWHERE)


def chain(length: int) -> Snapshot:
    """Return full nodes with one pod each, the priority of each one lower than the last one's."""
    names = [f"n{number:02}" for number in range(length)]
    pods = (of(name, "2", priority=length - place) for place, name in enumerate(names))
    return snapshot(*(node(name, cpu="2") for name in names), *pods)


def test_victims_that_come_back_preempt_in_turn() -> None:
    decision = decide(chain(3), DISRUPTIONS)
    assert decision.consequences == {CASCADE: {"n00": 3, "n01": 2, "n02": 1}}
    assert outcome(decision) == ("n02", CASCADE)


def test_a_cascade_is_followed_for_some_rounds() -> None:
    decision = decide(chain(8), DISRUPTIONS)
    assert decision.consequences[CASCADE]["n00"] == 8
    long = assert_agreement(
        pod("new", cpu="2", priority=99), chain(MOST_ROUNDS + 5), rules_with(DISRUPTIONS)
    )
    assert long.consequences[CASCADE]["n00"] == MOST_ROUNDS + 1


def test_a_cascade_is_followed_up_to_some_disruptions() -> None:
    small = (of("b", "125m", 3, name=f"small-{number}") for number in range(MOST_DISRUPTIONS))
    now = snapshot(
        *(node(name, cpu="8") for name in "abc"), of("a", "8", 5), *small, of("c", "8", 2)
    )
    decision = decide(now, DISRUPTIONS, cpu="8")
    assert decision.consequences[CASCADE]["a"] == MOST_DISRUPTIONS + 1


@pytest.mark.parametrize(
    ("criteria", "counted", "chosen", "decided_by"),
    [
        # The first two by name are counted.
        ((replace(DISRUPTIONS, shortlist=2),), {"n00": 3, "n01": 2}, "n01", CASCADE),
        # The first two by the later criterion are counted.
        (
            (replace(DISRUPTIONS, shortlist=2), FIRST_PRIORITY),
            {"n01": 2, "n02": 1},
            "n02",
            CASCADE,
        ),
        ((FEWEST, DISRUPTIONS), {"n00": 3, "n01": 2, "n02": 1}, "n02", CASCADE),
        # With one candidate there is nothing to compare.
        ((FIRST_PRIORITY, DISRUPTIONS), {}, "n02", FIRST_PRIORITY.name),
        ((replace(DISRUPTIONS, shortlist=1),), {}, "n00", "node name"),
        # No later candidate can be better than these two, whose victims have no other node.
        ((STRANDED, FIRST_PRIORITY), {"n00": 1, "n01": 1, "n02": 1}, "n02", FIRST_PRIORITY.name),
    ],
)
def test_a_shortlist_is_counted(
    criteria: tuple[PolicyCriterion, ...],
    counted: dict[str, int],
    chosen: str,
    decided_by: str,
) -> None:
    decision = decide(chain(3), *criteria)
    assert next(iter(decision.consequences.values())) == counted
    assert outcome(decision) == (chosen, decided_by)


def test_counting_ends_with_two_candidates_that_none_can_beat() -> None:
    alone = (of(name, "2", owner=None) for name in "abcd")
    decision = decide(snapshot(*(node(name, cpu="2") for name in "abcd"), *alone), DISRUPTIONS)
    assert decision.consequences == {CASCADE: {"a": 1, "b": 1}}
    assert outcome(decision) == ("a", "node name")


def test_all_that_are_equal_are_counted_for_a_later_criterion_of_the_kind() -> None:
    alone = (of(name, "2", owner=None) for name in "abcd")
    now = snapshot(*(node(name, cpu="2") for name in "abcd"), *alone)
    decision = decide(now, DISRUPTIONS, STRANDED)
    assert decision.consequences == {
        CASCADE: dict.fromkeys("abcd", 1),
        ELSEWHERE: {"a": 1, "b": 1},
    }


def test_an_explanation_ranks_the_candidates_as_the_decision_did() -> None:
    rules = rules_with(replace(DISRUPTIONS, shortlist=2))
    now = chain(4)
    decision = assert_agreement(pod("new", cpu="2", priority=9), now, rules)
    order = explain_decision(decision, now, rules).order
    ranked = order.sort(decision.candidates.values())
    assert [each.node for each in ranked] == ["n01", "n00", "n02", "n03"]
    assert order.deciding_criterion(*ranked[:2]) == decision.decided_by == CASCADE
    assert order.deciding_criterion(*ranked[1:3]) == CASCADE


def time_for(steps: int) -> HasTimeLeft:
    """Return whether there is time left, for so many steps."""
    left = iter(range(steps))
    return lambda: next(left, None) is not None


@pytest.mark.parametrize("kind", [ReferenceEngine, VectorizedEngine])
def test_with_little_time_those_counted_so_far_are_compared(
    kind: type[ReferenceEngine | VectorizedEngine],
) -> None:
    now, preemptor = chain(3), pod("new", cpu="2", priority=9)
    engine: Engine = kind(rules_with(DISRUPTIONS))
    whole = engine.preempt(preemptor, now).consequences[CASCADE]
    counted: set[int] = set()
    for steps in count():
        try:
            found = engine.preempt(preemptor, now, has_time_left=time_for(steps))
        except DeadlineExceededError:
            continue
        if not found.untried:
            keys = found.consequences[CASCADE]
            assert keys == {name: whole[name] for name in keys}
            # A later node has the shorter cascade.
            assert outcome(found)[0] == max(keys, default="n00")
            counted.add(len(keys))
            if keys == whole:
                break
    assert counted == {0, 2, 3}


def test_the_columns_follow_the_cluster_after_simulations() -> None:
    engine = VectorizedEngine(rules_with(STRANDED, DISRUPTIONS))
    preemptor, now = pod("new", cpu="2", priority=9), chain(4)
    engine.follow(now)
    for name in ("n03", "n00", "n02"):
        assert_agreement(preemptor, now, engine.rules, engine)
        moved = structs.replace(now.nodes[name], pods=(), requested=pod().requests)
        now = replace(now, nodes={**now.nodes, name: moved.with_pod(of(name, "1500m", 7))})
        engine.follow(now, [name])
        assert_agreement(preemptor, now, engine.rules, engine)
