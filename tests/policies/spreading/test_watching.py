"""Which changes are a reason to look again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from policies.spreading.model import SpreadPod
from policies.spreading.quirks import FIXED, UPSTREAM
from policies.spreading.references import Identity
from policies.spreading.versions import DEFAULT_VERSIONED_KINDS
from policies.spreading.watching import (
    awaits_adoption,
    pod_change_matters,
    spread_of_pod,
    spread_of_workload,
    watched_kinds,
    workload_arrival_matters,
    workload_change_matters,
)
from policies.spreading.workloads import NO_WHITELIST, AllowedKind, Whitelist, Workload
from tests.spreads import (
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

GAMES = Whitelist((AllowedKind("game.io", "v1", "Game", "spec.count"),))
POD = member("x", "a", controller=REPLICA_SET, labels={"pod-template-hash": "h1"})


def game(count: int, **spec: object) -> Workload:
    document = {"spec": {"count": count, **spec}}
    return Workload(Identity("game.io", "Game", "web"), "default", document=document)


def test_stateful_sets_are_watched_unless_upstream_is_followed() -> None:
    assert len(watched_kinds(NO_WHITELIST, UPSTREAM)) == 4
    more = set(watched_kinds(GAMES, FIXED)) - set(watched_kinds(NO_WHITELIST, UPSTREAM))
    assert more == {
        ("apps", "StatefulSet"),
        ("apps.kruise.io", "StatefulSet"),
        ("game.io", "Game"),
    }


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
def test_pods_matter_when_they_stop_or_change_version(new: SpreadPod, *, matters: bool) -> None:
    for quirks in (FIXED, UPSTREAM):
        assert pod_change_matters(POD, new, DEFAULT_VERSIONED_KINDS, quirks) == matters


def test_becoming_unschedulable_matters_except_upstream() -> None:
    new = stuck("x", "a", 5)
    old = replace(new, unschedulable=False)
    assert pod_change_matters(old, new, DEFAULT_VERSIONED_KINDS, FIXED)
    assert not pod_change_matters(old, new, DEFAULT_VERSIONED_KINDS, UPSTREAM)
    assert not pod_change_matters(new, new, DEFAULT_VERSIONED_KINDS, FIXED)


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
    assert awaits_adoption(old, new, FIXED) == awaits
    assert not awaits_adoption(old, new, UPSTREAM)


def test_pods_say_whose_they_are() -> None:
    assert spread_of_pod(POD) == "web"
    assert spread_of_pod(member("x")) is None


class TestWorkloads:
    def test_the_first_that_targets_it_is_looked_at(self) -> None:
        spreads = [
            spread(subset("a"), name="gone", terminating=True),
            spread(subset("a"), name="none", target=None),
            spread(subset("a"), name="other", target=replace(CLONE_SET, name="other")),
            spread(subset("a"), name="mine"),
            spread(subset("a"), name="late"),
        ]
        found = spread_of_workload(workload(), spreads)
        assert found is not None
        assert found.name == "mine"

    def test_replica_sets_concern_their_deployment(self) -> None:
        mine = spread(subset("a"), target=DEPLOYMENT)
        assert spread_of_workload(replica_set("h1"), [mine]) == mine
        assert spread_of_workload(replace(replica_set("h1"), controller=None), [mine]) is None

    def test_replicas_matter(self) -> None:
        for reference in (CLONE_SET, DEPLOYMENT, REPLICA_SET, STATEFUL_SET, JOB):
            old = workload(reference)
            is_job = reference is JOB
            assert workload_change_matters(old, replace(old, replicas=7)) != is_job
            assert workload_change_matters(old, replace(old, parallelism=7)) == is_job

    def test_rollouts_of_deployments_and_clone_sets_matter(self) -> None:
        deployment, clone_set = workload(DEPLOYMENT), workload()
        assert workload_change_matters(deployment, replace(deployment, deployment_revision="2"))
        assert workload_change_matters(clone_set, replace(clone_set, update_revision="v2"))

    def test_whitelisted_kinds_have_replicas_at_a_path(self) -> None:
        assert workload_change_matters(game(1), game(2), GAMES)
        assert not workload_change_matters(game(1), game(1, more=1), GAMES)
        assert not workload_change_matters(game(1), game(2))

    def test_they_do_not_matter_when_they_arrive(self) -> None:
        assert workload_arrival_matters(workload())
        assert not workload_arrival_matters(game(1))
        assert not workload_arrival_matters(
            Workload(Identity("other.io", "Deployment", "web"), "default")
        )
