"""The pods that a ReplicaSet may delete, and related pods per node."""

from __future__ import annotations

from typing import Any

import pytest

from policies.replicaset import (
    ReplicaSet,
    ReplicaSetPod,
    claimed_pods,
    indirectly_related_pods,
    related_pods_per_node,
)
from policies.replicaset.related_pods import siblings
from tests.builders import pod_json
from tests.builders.replicas import (
    VECTORS,
    member_json,
    members,
    names,
    replica_set_json,
    replica_sets,
)


def written_set(row: dict[str, Any]) -> dict[str, Any]:
    written = replica_set_json(
        row["name"],
        match=row["selector"],
        owner=row.get("controller_uid"),
        namespace=row["namespace"],
    )
    if row.get("deleting"):
        written["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return written


def written_pod(row: dict[str, Any]) -> dict[str, Any]:
    return member_json(
        row["name"],
        owner=row.get("owner_uid"),
        labels=row["labels"],
        namespace=row["namespace"],
        uid=row["uid"],
    )


@pytest.mark.parametrize("case", VECTORS["related_lookup"], ids=lambda case: case["name"])
def test_upstream_s_related_pods(case: dict[str, Any]) -> None:
    sets = replica_sets(map(written_set, case["rss"]))
    pods = members(map(written_pod, case["pods"]))
    one = next(each for each in sets if each.name == case["rs"])
    assert [each.name for each in siblings(one, sets)] == case["expect_rss"]
    assert [each.replica.name for each in indirectly_related_pods(one, sets, pods)] == case[
        "expect_pods"
    ]


@pytest.mark.parametrize("case", VECTORS["filters"], ids=lambda case: case["name"])
def test_upstream_s_active_pods(case: dict[str, Any]) -> None:
    pods = members(
        pod_json(row["name"], status={"phase": row["phase"]}, metadata=row.get("metadata"))
        for row in case["pods"]
    )
    assert [pod.replica.name for pod in pods if pod.active] == case["expect_active"]


def one_set(**fields: Any) -> ReplicaSet:
    [found] = replica_sets([replica_set_json(**fields)])
    return found


def of(*documents: dict[str, Any]) -> list[ReplicaSetPod]:
    return members(documents)


GONE = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def test_a_replica_set_may_delete_the_active_pods_that_it_controls_and_selects() -> None:
    pods = of(
        member_json("running"),
        member_json("pending", on=None),
        member_json("unknown", phase="Unknown"),
        member_json("succeeded", phase="Succeeded"),
        member_json("failed", phase="Failed"),
        member_json("deleting", metadata=GONE),
        member_json("orphan", owner=None),
        member_json("of another", owner="rs-old"),
        member_json("relabelled", labels={"app": "debug"}),
        member_json("elsewhere", namespace="other"),
    )
    assert names(claimed_pods(one_set(), pods)) == ["running", "pending", "unknown"]


def test_without_a_selector_it_keeps_what_it_controls() -> None:
    [bare] = replica_sets([{**replica_set_json(), "spec": {}}])
    assert names(claimed_pods(bare, of(member_json("a"), member_json("b", owner=None)))) == ["a"]


def test_pods_of_all_siblings_are_related_by_their_selectors() -> None:
    sets = replica_sets(
        [
            replica_set_json("web", owner="d"),
            replica_set_json("old", owner="d", match={"app": "old"}),
            replica_set_json("other", owner="e", match={"app": "other"}),
            replica_set_json("far", owner="d", namespace="far"),
        ]
    )
    pods = of(
        member_json("own"),
        member_json("of a sibling", owner="rs-old", labels={"app": "old"}),
        member_json("nobody's", owner=None, labels={"app": "old"}),
        member_json("of another", owner="rs-other", labels={"app": "other"}),
        member_json("far", namespace="far"),
        member_json("farther", namespace="farther"),
    )
    found = indirectly_related_pods(sets[0], sets, pods)
    assert [pod.replica.name for pod in found] == ["own", "of a sibling", "nobody's", "far"]


def test_without_a_controller_no_pods_are_related() -> None:
    sets = replica_sets([replica_set_json("web"), replica_set_json("old")])
    assert indirectly_related_pods(sets[0], sets, of(member_json("own"))) == []


def test_a_pod_that_two_siblings_select_is_related_once() -> None:
    sets = replica_sets([replica_set_json("web", owner="d"), replica_set_json("old", owner="d")])
    assert len(indirectly_related_pods(sets[0], sets, of(member_json("own")))) == 1


def test_related_pods_per_node_are_the_active_ones() -> None:
    pods = of(
        member_json("a"),
        member_json("b"),
        member_json("finished", phase="Failed"),
        member_json("deleting", metadata=GONE),
        member_json("c", on="node-2"),
        member_json("nowhere", on=None),
    )
    assert related_pods_per_node([*pods, pods[0]]) == {"node-1": 2, "node-2": 1, "": 1}
