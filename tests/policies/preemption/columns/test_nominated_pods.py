"""Nominated pods are of one kind if filters read the same of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from policies.kubernetes.snapshot import AffinityTerm, Pod
from policies.kubernetes.storage import ClaimVolume, PodStorage
from policies.preemption.columns.nominated_pods import NominatedPods
from tests.builders import pod

INDEX = {"n1": 0, "n2": 1, "n3": 2}
TERM = AffinityTerm(None, frozenset(["default"]), None, "zone")


def found(nominated: NominatedPods, uid: str = "") -> dict[str, list[int]]:
    return {each.name: rows.tolist() for each, rows in nominated.others(uid, INDEX)}


def test_pods_of_a_kind_are_found_together_without_the_one_that_asks() -> None:
    nominated = NominatedPods()
    nominated.set("n1", [pod("a-1", cpu="1"), pod("b-1", cpu="2"), pod("a-2", cpu="1")])
    nominated.set("n3", [pod("a-3", cpu="1")])
    assert found(nominated) == {"a-1": [0, 0, 2], "b-1": [0]}
    assert found(nominated, pod("a-3").uid) == {"a-1": [0, 0], "b-1": [0]}
    assert nominated.nodes_of(pod("a-3").uid) == ["n3"]


def test_the_pods_of_a_node_are_replaced() -> None:
    nominated = NominatedPods()
    nominated.set("n1", [pod("a-1", cpu="1")])
    nominated.set("n2", [pod("a-2", cpu="1")])
    nominated.set("n1", [pod("b-1", cpu="2")])
    assert found(nominated) == {"b-1": [0], "a-1": [1]}
    nominated.set("n2", ())
    assert found(nominated) == {"b-1": [0]}
    assert list(nominated.nodes) == ["n1"]


@pytest.mark.parametrize(
    "other",
    [
        pod("b", namespace="other"),
        pod("b", labels={"app": "web"}),
        pod("b", priority=1),
        pod("b", cpu="1"),
        pod("b", others={"example.com/gpu": "1"}),
        pod("b", ports=["80"]),
        replace(pod("b"), may_be_assumed=True),
        replace(pod("b"), scheduler_name="other"),
        replace(pod("b"), anti_affinity=(TERM,)),
        replace(pod("b"), storage=PodStorage((ClaimVolume("c"),))),
    ],
)
def test_pods_of_which_filters_read_different_things_are_of_two_kinds(other: Pod) -> None:
    nominated = NominatedPods()
    nominated.set("n1", [pod("a"), other])
    assert found(nominated) == {"a": [0], "b": [0]}
