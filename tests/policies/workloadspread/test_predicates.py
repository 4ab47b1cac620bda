"""Changes that enqueue a WorkloadSpread."""

from __future__ import annotations

from dataclasses import replace

import pytest

from policies.workloadspread.model import SpreadPod
from policies.workloadspread.object_references import ObjectKey
from policies.workloadspread.predicates import (
    has_become_adoptable,
    is_relevant_pod_update,
    is_relevant_workload_event,
    is_relevant_workload_update,
    watched_kinds,
    workloadspread_of_pod,
    workloadspread_of_workload,
)
from policies.workloadspread.quirks import FIXED, UPSTREAM
from policies.workloadspread.workload_versions import DEFAULT_VERSIONED_KINDS
from policies.workloadspread.workloads import (
    NO_ALLOWED_KINDS,
    AllowedKind,
    AllowedKinds,
    TargetWorkload,
)
from tests.builders.workloadspread import (
    CLONE_SET,
    DEPLOYMENT,
    JOB,
    REPLICA_SET,
    STATEFUL_SET,
    member,
    replica_set,
    spread,
    stuck,
    subset,
    workload,
)

GAMES = AllowedKinds((AllowedKind("game.io", "v1", "Game", "spec.count"),))
POD = member("x", "a", controller=REPLICA_SET, labels={"pod-template-hash": "h1"})


def game(count: int, **spec: object) -> TargetWorkload:
    document = {"spec": {"count": count, **spec}}
    return TargetWorkload(ObjectKey("game.io", "Game", "web"), "default", document=document)


def test_stateful_sets_are_watched_unless_upstream_is_followed() -> None:
    assert len(watched_kinds(NO_ALLOWED_KINDS, UPSTREAM)) == 4
    more = set(watched_kinds(GAMES, FIXED)) - set(watched_kinds(NO_ALLOWED_KINDS, UPSTREAM))
    assert more == {("apps", "StatefulSet"), ("apps.kruise.io", "StatefulSet"), ("game.io", "Game")}


@pytest.mark.parametrize(
    ("new", "matters"),
    [
        (POD, False),
        (replace(POD, phase="Failed"), True),
        (replace(POD, terminating=True), True),
        (replace(POD, labels={"pod-template-hash": "h2"}), True),
        (replace(POD, labels={"pod-template-hash": "h1", "more": "x"}), False),
        (replace(POD, ready=True), False),
    ],
    ids=["same", "failed", "going", "another version", "another label", "ready"],
)
def test_pods_enqueue_when_they_stop_or_change_version(new: SpreadPod, *, matters: bool) -> None:
    for quirks in (FIXED, UPSTREAM):
        assert is_relevant_pod_update(POD, new, DEFAULT_VERSIONED_KINDS, quirks) == matters


def test_becoming_unschedulable_enqueues_except_upstream() -> None:
    new = stuck("x", "a", 5)
    old = replace(new, unschedulable=False)
    assert is_relevant_pod_update(old, new, DEFAULT_VERSIONED_KINDS, FIXED)
    assert not is_relevant_pod_update(old, new, DEFAULT_VERSIONED_KINDS, UPSTREAM)
    assert not is_relevant_pod_update(new, new, DEFAULT_VERSIONED_KINDS, FIXED)


ALONE = member("x", None, node="", phase="Pending")
ON_A_NODE = replace(ALONE, node="node-1")


@pytest.mark.parametrize(
    ("old", "new", "awaits"),
    [
        (None, ALONE, False),
        (None, ON_A_NODE, True),
        (ALONE, ON_A_NODE, True),
        (ON_A_NODE, ON_A_NODE, False),
        (ALONE, replace(ON_A_NODE, phase="Failed"), False),
        (ALONE, replace(POD, node="node-1"), False),
    ],
    ids=["new", "found on a node", "put on a node", "was there", "finished", "of a subset"],
)
def test_pods_are_adopted_once_they_are_on_a_node_except_upstream(
    old: SpreadPod | None, new: SpreadPod, *, awaits: bool
) -> None:
    assert has_become_adoptable(old, new, FIXED) == awaits
    assert not has_become_adoptable(old, new, UPSTREAM)


def test_pods_name_their_workload_spread() -> None:
    assert workloadspread_of_pod(POD) == "web"
    assert workloadspread_of_pod(member("x")) is None


class TestWorkloads:
    def test_the_first_workload_spread_that_targets_it_is_enqueued(self) -> None:
        spreads = [
            spread(subset("a"), name="gone", terminating=True),
            spread(subset("a"), name="none", target=None),
            spread(subset("a"), name="other", target=replace(CLONE_SET, name="other")),
            spread(subset("a"), name="mine"),
            spread(subset("a"), name="late"),
        ]
        found = workloadspread_of_workload(workload(), spreads)
        assert found is not None
        assert found.name == "mine"

    def test_replica_sets_enqueue_for_their_deployment(self) -> None:
        mine = spread(subset("a"), target=DEPLOYMENT)
        assert workloadspread_of_workload(replica_set("h1"), [mine]) == mine
        assert (
            workloadspread_of_workload(replace(replica_set("h1"), controller=None), [mine]) is None
        )

    def test_changed_replicas_enqueue(self) -> None:
        for reference in (CLONE_SET, DEPLOYMENT, REPLICA_SET, STATEFUL_SET, JOB):
            old = workload(reference)
            is_job = reference is JOB
            assert is_relevant_workload_update(old, replace(old, replicas=7)) != is_job
            assert is_relevant_workload_update(old, replace(old, parallelism=7)) == is_job

    def test_rollouts_of_deployments_and_clone_sets_enqueue(self) -> None:
        deployment, clone_set = workload(DEPLOYMENT), workload()
        assert is_relevant_workload_update(deployment, replace(deployment, deployment_revision="2"))
        assert is_relevant_workload_update(clone_set, replace(clone_set, update_revision="v2"))

    def test_whitelisted_kinds_have_replicas_at_a_path(self) -> None:
        assert is_relevant_workload_update(game(1), game(2), GAMES)
        assert not is_relevant_workload_update(game(1), game(1, more=1), GAMES)
        assert not is_relevant_workload_update(game(1), game(2))

    def test_only_built_in_kinds_enqueue_when_they_are_created(self) -> None:
        assert is_relevant_workload_event(workload())
        assert not is_relevant_workload_event(game(1))
        assert not is_relevant_workload_event(
            TargetWorkload(ObjectKey("other.io", "Deployment", "web"), "default")
        )
