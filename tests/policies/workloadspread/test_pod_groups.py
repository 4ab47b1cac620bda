"""Pods by version and subset: those that say it, those that are adopted, those of none."""

from __future__ import annotations

from policies.kubernetes.snapshot import Node
from policies.workloadspread.model import FAKE_SUBSET, SpreadPod, Subset, SubsetInjection
from policies.workloadspread.pod_groups import PodGroups, group_pods
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


def test_a_pod_is_where_its_annotation_says() -> None:
    groups = grouped([A, B], member("x", "b"), member("y", "a"), member("z", "a"))
    assert names(groups) == {"b": ["x"], "a": ["y", "z"]}
    assert not groups.adopted


def test_a_pod_whose_subset_has_gone_is_in_none_and_is_not_matched_again() -> None:
    assert names(grouped([A, B], member("x", "gone"))) == {FAKE_SUBSET: ["x"]}


def test_a_pod_without_a_node_or_on_one_that_is_not_there_is_in_none() -> None:
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


def test_room_is_counted_by_version_with_what_is_there_already() -> None:
    def of(name: str, template_hash: str, put_into: str | None = None) -> SpreadPod:
        labels = {"pod-template-hash": template_hash}
        return member(name, put_into, controller=REPLICA_SET, labels=labels)

    pods = (of("w", "old", "a"), of("x", "old"), of("y", "new"), of("z", "new"))
    groups = grouped([A, B], *pods)
    assert {
        version: {subset: [pod.name for pod in pods] for subset, pods in by_subset.items()}
        for version, by_subset in groups.versions.items()
    } == {"old": {"a": ["w"], "b": ["x"]}, "new": {"a": ["y"], "b": ["z"]}}


def test_shares_are_of_the_replicas() -> None:
    half = subset("a", "50%")
    pods = [member(name) for name in "uvwx"]
    assert names(grouped([half, B], *pods, replicas=4)) == {"a": ["u", "v"], "b": ["w", "x"]}


def test_a_limit_that_makes_no_sense_leaves_no_room() -> None:
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
