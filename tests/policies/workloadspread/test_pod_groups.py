"""Pods by version and subset, and scores of subsets for running pods."""

from __future__ import annotations

from typing import Any

import pytest

from policies.kubernetes.selectors import Toleration
from policies.kubernetes.snapshot import Node
from policies.workloadspread.model import (
    FAKE_SUBSET,
    Expression,
    NodeTerm,
    Preference,
    SpreadPod,
    Subset,
    SubsetInjection,
    SubsetToleration,
)
from policies.workloadspread.pod_groups import PodGroups, group_pods, match_score
from policies.workloadspread.quirks import FIXED, UPSTREAM, Quirks
from policies.workloadspread.targets import TargetPods
from policies.workloadspread.workload_versions import DEFAULT_VERSIONED_KINDS
from tests.builders import node
from tests.builders.workloadspread import REPLICA_SET, around, member, spread, subset, term

NODE = node("node-1", labels={"zone": "a"})
ELSEWHERE = node("node-2", labels={"zone": "b"})


def grouped(
    subsets: list[Subset],
    *pods: SpreadPod,
    nodes: tuple[Node, ...] = (NODE, ELSEWHERE),
    replicas: int = 10,
    quirks: Quirks = FIXED,
) -> PodGroups:
    return group_pods(
        spread(*subsets),
        TargetPods(pods, replicas),
        around(*nodes),
        DEFAULT_VERSIONED_KINDS,
        quirks,
    )


def names(groups: PodGroups) -> dict[str, list[str]]:
    return {subset: [pod.name for pod in pods] for subset, pods in groups.subsets.items()}


A, B = subset("a", 1), subset("b")


def test_a_pod_is_in_the_subset_of_its_annotation() -> None:
    groups = grouped([A, B], member("x", "b"), member("y", "a"), member("z", "a"))
    assert names(groups) == {"b": ["x"], "a": ["y", "z"]}
    assert not groups.adopted


def test_a_pod_of_a_removed_subset_is_in_none() -> None:
    assert names(grouped([A, B], member("x", "gone"))) == {FAKE_SUBSET: ["x"]}


def test_a_pod_without_a_known_node_is_in_no_subset() -> None:
    groups = grouped([A, B], member("x", node=""), member("y", node="nowhere"))
    assert names(groups) == {FAKE_SUBSET: ["x", "y"]}


def test_a_pod_of_another_spread_or_of_no_subset_is_adopted() -> None:
    foreign = member("x", injection=SubsetInjection("other", "b", "id"))
    groups = grouped([B], foreign, member("y", ""))
    assert names(groups) == {"b": ["x", "y"]}
    assert groups.adopted == {"x": B, "y": B}
    (adopted, _) = groups.subsets["b"]
    assert adopted.injection == SubsetInjection("web", "b")


def test_the_best_subset_wins_and_the_first_of_equals() -> None:
    zoned = subset("zoned", 0, required=term("zone", "b"))
    groups = grouped([zoned, B, subset("c")], member("x"), member("y", node="node-2"))
    assert names(groups) == {"b": ["x", "y"]}
    only = grouped([zoned, subset("c", 0)], member("x"), member("y", node="node-2"))
    assert names(only) == {"c": ["x"], "zoned": ["y"]}


def test_adoption_counts_the_pods_of_the_same_version() -> None:
    def of(name: str, template_hash: str, put_into: str | None = None) -> SpreadPod:
        labels = {"pod-template-hash": template_hash}
        return member(name, put_into, controller=REPLICA_SET, labels=labels)

    pods = (of("w", "old", "a"), of("x", "old"), of("y", "new"), of("z", "new"))
    groups = grouped([A, B], *pods)
    assert {
        version: {subset: [pod.name for pod in pods] for subset, pods in by_subset.items()}
        for version, by_subset in groups.versions.items()
    } == {"old": {"a": ["w"], "b": ["x"]}, "new": {"a": ["y"], "b": ["z"]}}


def test_percentages_are_of_the_replicas() -> None:
    half = subset("a", "50%")
    pods = [member(name) for name in "uvwx"]
    assert names(grouped([half, B], *pods, replicas=4)) == {"a": ["u", "v"], "b": ["w", "x"]}


def test_an_invalid_limit_adopts_no_pods() -> None:
    odd = subset("a", "5")
    assert names(grouped([odd, B], member("x"))) == {"a": ["x"]}
    assert names(grouped([odd, B], member("x"), quirks=UPSTREAM)) == {"b": ["x"]}


def test_a_pod_that_the_patch_would_not_change_fits_better() -> None:
    patched = subset("b", 0, patched=True)
    groups = group_pods(
        spread(A, patched),
        TargetPods((member("x"), member("y")), 10),
        around(NODE, patched=["y"]),
        DEFAULT_VERSIONED_KINDS,
        FIXED,
    )
    assert names(groups) == {"a": ["x"], "b": ["y"]}


# Scores


ZONE_A = node("node-1", labels={"zone": "a", "disk": "ssd"})
EXISTS = Toleration("gpu", "Exists")


def score(one: Subset, pod: SpreadPod | None = None, on: Any = ZONE_A, left: int = 0) -> int | None:
    return match_score(pod or member("web-1"), on, one, left, lambda _pod, _subset: True)


def test_a_subset_without_requirements_fits_every_pod() -> None:
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


def test_the_pod_s_terms_count_only_with_a_requirement() -> None:
    assert score(subset("a"), member("web-1", node_terms=(term("disk", "hdd"),))) == 0


@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute", "PreferNoSchedule"])
def test_every_taint_has_to_be_tolerated_by_the_pod_or_the_subset(effect: str) -> None:
    tainted = node("node-1", taints=[f"gpu=yes:{effect}"])
    assert score(subset("a"), on=tainted) is None
    assert score(subset("a"), member("web-1", tolerations=(EXISTS,)), tainted) == 0
    assert score(subset("a", tolerations=(SubsetToleration(EXISTS),)), on=tainted) == 0


def test_the_score_is_weights_patch_and_missing_replicas() -> None:
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
