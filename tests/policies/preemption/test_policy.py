"""Policies: the criteria one by one, in upstream's order, and guards."""

from __future__ import annotations

import pytest

from policies.kubernetes.snapshot import Pod
from policies.preemption.decision import Candidate, VictimSet
from policies.preemption.guards.victim_guard import protected_pods
from policies.preemption.policy import (
    CANDIDATE_CRITERIA,
    DEFAULT_CANDIDATE_ORDER,
    DEFAULT_VICTIM_ORDER,
    KUBE_SCHEDULER,
    POD_CRITERIA,
    POLICIES,
    Policy,
    candidate_order,
)
from tests.builders import pod

LOWEST = -(2**31)


def candidate(node: str, *victims: Pod, violations: int = 0) -> Candidate:
    return Candidate(node, VictimSet(victims, violations))


def victim(priority: int, started: int | None = 0, name: str = "victim") -> Pod:
    return pod(name, priority=priority, started=started)


def test_upstreams_criteria_in_upstreams_order() -> None:
    assert [criterion.name for criterion in DEFAULT_CANDIDATE_ORDER.criteria] == [
        "fewest PDB violations",
        "lowest priority of the first victim",
        "smallest sum of priorities",
        "fewest victims",
        "latest start of the most important victims",
    ]
    assert [criterion.name for criterion in DEFAULT_VICTIM_ORDER.criteria] == [
        "highest priority",
        "earliest start",
    ]
    assert list(CANDIDATE_CRITERIA) == [
        criterion.name for criterion in DEFAULT_CANDIDATE_ORDER.criteria
    ]
    assert list(POD_CRITERIA) == [criterion.name for criterion in DEFAULT_VICTIM_ORDER.criteria]


@pytest.mark.parametrize(
    ("winner", "loser", "criterion"),
    [
        (
            candidate("b", victim(9), victim(9), violations=0),
            candidate("a", victim(1), violations=1),
            "fewest PDB violations",
        ),
        (
            candidate("b", victim(1), victim(1), victim(1)),
            candidate("a", victim(2)),
            "lowest priority of the first victim",
        ),
        (
            candidate("b", victim(-5)),
            candidate("a", victim(5)),
            "lowest priority of the first victim",
        ),
        (
            candidate("b", victim(5), victim(1)),
            candidate("a", victim(5), victim(2)),
            "smallest sum of priorities",
        ),
        (
            candidate("b", victim(5)),
            candidate("a", victim(5), victim(1)),
            "smallest sum of priorities",
        ),
        (
            candidate("b", victim(-5)),
            candidate("a", victim(-5), victim(-5)),
            "smallest sum of priorities",
        ),
        (candidate("b", victim(5)), candidate("a", victim(5), victim(LOWEST)), "fewest victims"),
        (
            candidate("b", victim(5, started=20)),
            candidate("a", victim(5, started=10)),
            "latest start of the most important victims",
        ),
        (
            candidate("b", victim(5, started=20), victim(1, started=0)),
            candidate("a", victim(5, started=10), victim(1, started=99)),
            "latest start of the most important victims",
        ),
        (
            candidate("b", victim(5, started=30), victim(5, started=20)),
            candidate("a", victim(5, started=10), victim(5, started=99)),
            "latest start of the most important victims",
        ),
        (
            candidate("b", victim(5, started=None)),
            candidate("a", victim(5, started=10)),
            "latest start of the most important victims",
        ),
        (candidate("a", victim(5)), candidate("b", victim(5)), "node name"),
    ],
)
def test_the_first_criterion_that_differs_chooses_the_node(
    winner: Candidate, loser: Candidate, criterion: str
) -> None:
    assert DEFAULT_CANDIDATE_ORDER.sort([loser, winner]) == [winner, loser]
    assert DEFAULT_CANDIDATE_ORDER.deciding_criterion(winner, loser) == criterion


@pytest.mark.parametrize(
    ("first", "second", "criterion"),
    [
        (victim(2, started=9), victim(1, started=0), "highest priority"),
        (victim(0), victim(-1), "highest priority"),
        (victim(1, started=1), victim(1, started=2), "earliest start"),
        (victim(1, started=9), victim(1, started=None), "earliest start"),
        (victim(1, name="a"), victim(1, name="b"), "UID"),
        (victim(1, None, name="a"), victim(1, None, name="b"), "UID"),
        (victim(1, name="B"), victim(1, name="a"), "UID"),
    ],
)
def test_the_more_important_pod_comes_first(first: Pod, second: Pod, criterion: str) -> None:
    assert DEFAULT_VICTIM_ORDER.sort([second, first]) == [first, second]
    assert DEFAULT_VICTIM_ORDER.deciding_criterion(first, second) == criterion


def test_every_key_fits_int64() -> None:
    extremes = [victim(2**31 - 1, started=None), victim(LOWEST, started=2**33)]
    keys = [
        *DEFAULT_CANDIDATE_ORDER.key(candidate("a", *extremes))[0],
        *(DEFAULT_VICTIM_ORDER.key(p)[0][1] for p in extremes),
    ]
    assert all(-(2**63) <= key < 2**63 for key in keys)


def test_the_default_is_kube_schedulers_policy_and_protects_no_pods() -> None:
    assert POLICIES == {"kube-scheduler": KUBE_SCHEDULER}
    assert KUBE_SCHEDULER.protection_of(pod(), 0) is None


def test_the_first_guard_that_protects_a_pod_is_named() -> None:
    system = protected_pods("system pods", lambda each: each.namespace == "kube-system")
    old = protected_pods("old pods", lambda each: each.started_ns is not None)
    policy = Policy("careful", victim_guards=(system, old))
    assert policy.protection_of(pod(namespace="kube-system", started=1), 0) is system
    assert policy.protection_of(pod(started=1), 0) is old
    assert policy.protection_of(pod(), 0) is None


def test_a_policy_may_have_the_criteria_in_another_order() -> None:
    fewest_first = candidate_order(
        (CANDIDATE_CRITERIA["fewest victims"], CANDIDATE_CRITERIA["fewest PDB violations"])
    )
    one, two = candidate("a", victim(9), violations=1), candidate("b", victim(1), victim(1))
    assert fewest_first.sort([two, one]) == [one, two]
    assert DEFAULT_CANDIDATE_ORDER.sort([two, one]) == [two, one]
