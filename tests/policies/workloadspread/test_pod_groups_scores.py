"""Scores: which subset a running pod fits, and how well."""

from __future__ import annotations

from typing import Any

import pytest

from policies.kubernetes.selectors import Toleration
from policies.workloadspread.model import (
    Expression,
    NodeTerm,
    Preference,
    SpreadPod,
    Subset,
    SubsetToleration,
)
from policies.workloadspread.pod_groups import match_score
from tests.builders import node
from tests.builders.workloadspread import member, subset, term

ZONE_A = node("node-1", labels={"zone": "a", "disk": "ssd"})
EXISTS = Toleration("gpu", "Exists")


def score(one: Subset, pod: SpreadPod | None = None, on: Any = ZONE_A, left: int = 0) -> int | None:
    return match_score(pod or member("web-1"), on, one, left, lambda _pod, _subset: True)


def test_a_subset_that_asks_for_nothing_fits_everything() -> None:
    assert score(subset("a")) == 0


@pytest.mark.parametrize(
    ("required", "fits"),
    [
        (term("zone", "a"), True),
        (term("zone", "b", "a"), True),
        (term("zone", "b"), False),
        (NodeTerm(), False),
        (NodeTerm(fields=(Expression("metadata.name", "In", ("node-1",)),)), True),
        (NodeTerm(fields=(Expression("metadata.name", "In", ("node-1", "node-2")),)), False),
        (NodeTerm((Expression("zone", "Near", ("a",)),)), False),
        (NodeTerm((Expression("zone", "Exists"), Expression("disk", "In", ("ssd",)))), True),
    ],
)
def test_required_node_terms_decide_if_a_node_fits(required: NodeTerm, *, fits: bool) -> None:
    assert (score(subset("a", required=required)) is not None) is fits


@pytest.mark.parametrize(
    ("terms", "fits"),
    [
        ((), True),
        ((term("disk", "ssd"),), True),
        ((term("disk", "hdd"),), False),
        ((term("disk", "hdd"), term("disk", "ssd")), True),
        ((NodeTerm(),), True),
    ],
)
def test_the_pod_s_own_terms_are_required_as_well(
    terms: tuple[NodeTerm, ...], *, fits: bool
) -> None:
    pod = member("web-1", node_terms=terms)
    assert (score(subset("a", required=term("zone", "a")), pod) is not None) is fits


def test_without_a_requirement_the_pod_s_terms_are_not_asked() -> None:
    assert score(subset("a"), member("web-1", node_terms=(term("disk", "hdd"),))) == 0


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute", "PreferNoSchedule"])
def test_every_taint_has_to_be_tolerated_by_the_pod_or_the_subset(effect: str) -> None:
    tainted = node("node-1", taints=[f"gpu=yes:{effect}"])
    assert score(subset("a"), on=tainted) is None
    assert score(subset("a"), member("web-1", tolerations=(EXISTS,)), tainted) == 0
    assert score(subset("a", tolerations=(SubsetToleration(EXISTS),)), on=tainted) == 0


def test_weights_count_a_hundred_the_patch_ten_and_room_one() -> None:
    preferred = (
        Preference(7, term("zone", "a")),
        Preference(5, term("disk", "ssd")),
        Preference(90, term("zone", "b")),
        Preference(0, term("zone", "a")),
        Preference(90, NodeTerm()),
    )
    assert score(subset("a", preferred=preferred)) == 1200
    assert score(subset("a", preferred=preferred, patched=True)) == 1210
    assert score(subset("a", preferred=preferred, patched=True), left=1) == 1211
    assert score(subset("a"), left=5) == 1
    assert score(subset("a"), left=-5) == 0


def test_a_patch_that_would_change_the_pod_does_not_count() -> None:
    one, pod = subset("a", patched=True), member("web-1")
    assert match_score(pod, ZONE_A, one, 0, lambda _pod, _subset: False) == 0
