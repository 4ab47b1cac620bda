"""Candidates are built when they are read, and the best two are those of the whole order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from policies import SchedulerRules, Snapshot
from policies.kubernetes.criteria import Criterion
from policies.kubernetes.releases import NEWEST
from policies.kubernetes.snapshot import Pod, Resources
from policies.preemption.decision import Candidate
from policies.preemption.policy import CANDIDATE_CRITERIA, KUBE_SCHEDULER, candidate_order
from policies.preemption.reference_engine import preempt
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import NO_LABELS, budget, node, pod, snapshot

PREEMPTOR = pod("preemptor", cpu="1", priority=10)


def cluster(*victims: Pod) -> Snapshot:
    """Return nodes n0, n1, … of one core, and the pods of them that have to go."""
    names = sorted({each.node_name or "" for each in victims})
    return snapshot(*(node(name, cpu="1") for name in names), *victims, BUDGET)


def victim(
    on: str, priority: int = 0, started: int = 0, labels: Mapping[str, str] = NO_LABELS
) -> Pod:
    name = f"{on}-{priority}-{started}"
    return pod(name, on=on, cpu="1", priority=priority, started=started, labels=labels)


BUDGET = budget("spent", match={"app": "guarded"})
WEB = cluster(victim("n0"), victim("n1", 3), victim("n2", 1), pod("spared", on="n2", priority=1))


def candidates(now: Snapshot) -> Mapping[str, Candidate]:
    return VectorizedEngine().preempt(PREEMPTOR, now).candidates


def test_candidates_are_a_mapping_by_name() -> None:
    found = candidates(WEB)
    assert len(found) == 3
    assert sorted(found) == ["n0", "n1", "n2"]
    assert "n1" in found
    assert "unknown" not in found
    assert found.get("unknown") is None
    assert found["n1"].victims.pods == (WEB.nodes["n1"].pods[0],)
    assert [each.name for each in found["n2"].spared] == ["spared"]
    assert repr(found) == repr({name: found[name] for name in found})


def test_a_node_that_is_no_candidate_is_a_key_error() -> None:
    full = cluster(victim("n0"), victim("n1", priority=11))
    found = candidates(full)
    assert list(found) == ["n0"]
    for name in ("n1", "unknown"):
        with pytest.raises(KeyError, match=name):
            found[name]


def test_candidates_equal_the_references_both_ways() -> None:
    found, expected = candidates(WEB), dict(preempt(PREEMPTOR, WEB).candidates)
    assert found == expected
    assert dict(expected) == found
    assert found == candidates(WEB)
    assert found != {**expected, "n0": expected["n1"]}
    assert {name: each for name, each in expected.items() if name != "n0"} != found


def test_no_candidates_are_an_empty_mapping() -> None:
    found = candidates(cluster(victim("n0", priority=11)))
    assert (len(found), list(found), dict(found)) == (0, [], {})
    assert not found


def test_candidates_that_were_read_one_by_one_are_in_the_mapping() -> None:
    huge = structs.replace(pod("n9-huge", on="n9"), requests=Resources(milli_cpu=2**70))
    mixed = cluster(victim("n0", 3), victim("n1", 2), huge)
    found = candidates(mixed)
    assert found == preempt(PREEMPTOR, mixed).candidates
    assert (len(found), sorted(found)) == (3, ["n0", "n1", "n9"])
    assert found["n9"].victims.pods == (huge,)
    decided = VectorizedEngine().preempt(PREEMPTOR, mixed)
    assert decided.chosen == found["n9"]
    assert decided.decided_by == "lowest priority of the first victim"


GUARDED = {"app": "guarded"}


@pytest.mark.parametrize(
    ("victims", "chosen", "decided_by"),
    [
        ([victim("n0")], "n0", None),
        ([victim("n0", labels=GUARDED), victim("n1", 9)], "n1", "fewest PDB violations"),
        ([victim("n0", 2), victim("n1", 1)], "n1", "lowest priority of the first victim"),
        ([victim("n0", -1), victim("n1", -2)], "n1", "lowest priority of the first victim"),
        (
            [victim("n0", started=1), victim("n1", started=2)],
            "n1",
            "latest start of the most important victims",
        ),
        ([victim("n1"), victim("n0")], "n0", "node name"),
        # The winner stands out at once; its closest rival is the one that is level the longest.
        (
            [victim("n0", 2), victim("n1", 1), victim("n2", 2, labels=GUARDED)],
            "n1",
            "lowest priority of the first victim",
        ),
        ([victim("n3"), victim("n2"), victim("n1", 1), victim("n0", 1)], "n2", "node name"),
        (
            [victim("n0", -(2**31)), victim("n1", -(2**31), 1)],
            "n1",
            "latest start of the most important victims",
        ),
    ],
)
def test_the_best_two_are_those_of_the_whole_order(
    victims: list[Pod], chosen: str, decided_by: str | None
) -> None:
    now = cluster(*victims)
    decided = VectorizedEngine().preempt(PREEMPTOR, now)
    assert decided.chosen is not None
    assert (decided.chosen.node, decided.decided_by) == (chosen, decided_by)
    assert decided == preempt(PREEMPTOR, now)


@st.composite
def crowds(draw: st.DrawFn) -> Snapshot:
    """Draw nodes on which one or two pods have to go, alike in most ways."""
    names = [f"n{number}" for number in range(draw(st.integers(1, 8)))]
    pods = [
        pod(
            f"{name}-{number}",
            on=name,
            cpu="1" if count == 1 else "500m",
            priority=draw(st.integers(0, 1)),
            started=draw(st.sampled_from([None, 0, 1])),
            labels=draw(st.sampled_from([NO_LABELS, GUARDED])),
        )
        for name in names
        for count in [draw(st.integers(1, 2))]
        for number in range(count)
    ]
    return snapshot(*(node(name, cpu="1") for name in names), *pods, BUDGET)


@given(crowds(), st.permutations(list(CANDIDATE_CRITERIA.values())), st.integers(0, 5))
def test_the_best_two_of_many_are_those_of_any_order(
    now: Snapshot, criteria: list[Criterion[Candidate]], count: int
) -> None:
    order = candidate_order(tuple(criteria[:count]))
    rules = SchedulerRules(NEWEST, policy=replace(KUBE_SCHEDULER, candidates=order.criteria))
    decided = VectorizedEngine(rules).preempt(PREEMPTOR, now)
    winner, *others = order.sort(decided.candidates.values())
    assert decided.chosen == winner
    assert decided.decided_by == (order.deciding_criterion(winner, others[0]) if others else None)


def test_pods_that_never_started_are_distinguished_from_the_earliest() -> None:
    never = structs.replace(victim("n0"), started_ns=None)
    first = structs.replace(victim("n1"), started_ns=-(2**63) + 1)
    now = cluster(never, first)
    decided = VectorizedEngine().preempt(PREEMPTOR, now)
    assert decided.chosen is not None
    assert decided.chosen.node == "n0"
    assert decided == preempt(PREEMPTOR, now)


def test_an_own_criterion_reads_the_candidates() -> None:
    last_name: Criterion[Candidate] = Criterion("last name", lambda each: -int(each.node[1:]))
    criteria = (last_name, *CANDIDATE_CRITERIA.values())
    rules = SchedulerRules(NEWEST, policy=replace(KUBE_SCHEDULER, candidates=criteria))
    decided = VectorizedEngine(rules).preempt(PREEMPTOR, WEB)
    assert decided.chosen is not None
    assert (decided.chosen.node, decided.decided_by) == ("n2", "last name")
    assert decided == preempt(PREEMPTOR, WEB, rules)


def test_an_own_criterion_with_the_name_of_upstreams_is_used() -> None:
    impostor: Criterion[Candidate] = Criterion("fewest victims", lambda c: -int(c.node[1:]))
    policy = replace(KUBE_SCHEDULER, candidates=(impostor,))
    decided = VectorizedEngine(SchedulerRules(NEWEST, policy=policy)).preempt(PREEMPTOR, WEB)
    assert decided.chosen is not None
    assert decided.chosen.node == "n2"
