"""Chains of owners: from a pod's controller up to the target of a WorkloadSpread."""

from __future__ import annotations

from dataclasses import replace

import pytest

from policies.kubernetes.selectors import LabelSelector, equals_all
from policies.workloadspread.model import SpreadPod, TargetFilter
from policies.workloadspread.object_references import ObjectKey, WorkloadReference
from policies.workloadspread.quirks import FIXED, UPSTREAM
from policies.workloadspread.spread_lookup import (
    OwnerLookup,
    OwnerNotFoundError,
    SelectionError,
    filter_selects,
    is_supported_owner,
    refers_to,
    workloadspread_of_new_pod,
)
from policies.workloadspread.workloads import (
    NO_ALLOWED_KINDS,
    AllowedKind,
    AllowedKinds,
    TargetWorkload,
)
from tests.builders.workloadspread import (
    CLONE_SET,
    DEPLOYMENT,
    REPLICA_SET,
    member,
    replica_set,
    spread,
    subset,
    workload,
)

HASHED = WorkloadReference("apps/v1", "ReplicaSet", "web-h1", "h1-uid")
GAME = WorkloadReference("game.io/v1", "Game", "web", "game-uid")
SERVER = WorkloadReference("game.io/v1", "Server", "web-0", "server-uid")
GAMES = AllowedKinds(
    (
        AllowedKind(
            group="game.io", version="v1", kind="Game", intermediate_kinds=(("game.io", "Server"),)
        ),
    )
)


def above(*workloads: TargetWorkload, whitelist: AllowedKinds = NO_ALLOWED_KINDS) -> OwnerLookup:
    return OwnerLookup({each.identity: each for each in workloads}, allowed_kinds=whitelist)


def test_the_controller_may_be_the_target_itself() -> None:
    assert refers_to(CLONE_SET, CLONE_SET, OwnerLookup())
    other = replace(CLONE_SET, name="other")
    assert not refers_to(other, CLONE_SET, above(workload()))


def test_the_version_of_an_api_does_not_matter() -> None:
    assert refers_to(replace(CLONE_SET, api_version="apps.kruise.io/v1"), CLONE_SET, OwnerLookup())
    assert not refers_to(replace(CLONE_SET, api_version="apps/v1"), CLONE_SET, above(workload()))


def test_the_owner_of_a_replica_set_is_its_deployment() -> None:
    owners = above(replica_set("h1"), workload(DEPLOYMENT))
    assert refers_to(DEPLOYMENT, HASHED, owners)
    assert not refers_to(replace(DEPLOYMENT, name="other"), HASHED, owners)


def test_unknown_owner_kinds_are_not_followed() -> None:
    assert not refers_to(GAME, SERVER, OwnerLookup())


def test_kinds_on_the_whitelist_are_followed() -> None:
    server = TargetWorkload(SERVER.identity, "default", uid="server-uid", controller=GAME)
    assert refers_to(GAME, SERVER, above(server, whitelist=GAMES))
    assert is_supported_owner(SERVER, GAMES)
    assert not is_supported_owner(SERVER, NO_ALLOWED_KINDS)


def test_a_missing_owner_is_reported() -> None:
    with pytest.raises(OwnerNotFoundError, match='ReplicaSet "web-h1" not found'):
        refers_to(DEPLOYMENT, HASHED, OwnerLookup())


def test_an_owner_that_could_not_be_read_decides_nothing() -> None:
    assert not refers_to(DEPLOYMENT, HASHED, OwnerLookup(unread=frozenset({HASHED.identity})))


def test_a_cycle_of_owners_ends() -> None:
    circle = TargetWorkload(REPLICA_SET.identity, "default", controller=REPLICA_SET)
    assert not refers_to(DEPLOYMENT, REPLICA_SET, above(circle))


class TestFilters:
    WEB = TargetFilter(LabelSelector(equals_all({"app": "web"})))

    def test_the_selector_decides_by_labels(self) -> None:
        assert filter_selects(None, {}, FIXED)
        assert filter_selects(self.WEB, {"app": "web"}, FIXED)
        assert not filter_selects(self.WEB, {}, FIXED)

    def test_a_workload_spread_without_a_selector_selects_all_pods(self) -> None:
        assert filter_selects(TargetFilter(), {}, FIXED)
        assert not filter_selects(TargetFilter(), {}, UPSTREAM)

    def test_an_invalid_selector_is_an_error(self) -> None:
        with pytest.raises(SelectionError, match="no such operator"):
            filter_selects(TargetFilter(error="no such operator"), {}, FIXED)


class TestFinding:
    MINE = spread(subset("a"), name="mine")

    def test_the_first_workload_spread_that_selects_counts(self) -> None:
        others = [
            spread(subset("a"), name="a", target=None),
            spread(subset("a"), name="b", target=replace(CLONE_SET, name="other")),
            spread(subset("a"), name="c", terminating=True),
            spread(subset("a"), name="d", target=replace(CLONE_SET, api_version="a/b/c")),
            spread(subset("a"), name="e", target_filter=TargetFilter(error="broken")),
            spread(subset("a"), name="f", target_filter=TestFilters.WEB),
        ]
        owners = above(workload())
        pod = member("web-1")
        assert workloadspread_of_new_pod(pod, [*others, self.MINE], owners, FIXED) == self.MINE
        assert workloadspread_of_new_pod(pod, others, owners, FIXED) is None

    @pytest.mark.parametrize(
        "pod",
        [
            member("web-1", phase="Failed"),
            member("web-1", terminating=True),
            member("web-1", controller=None),
            member("web-1", controller=WorkloadReference("x/y/z", "CloneSet", "web", "web-uid")),
            member("web-1", controller=WorkloadReference("v1", "Node", "web", "web-uid")),
        ],
        ids=["ended", "going", "nobody's", "malformed", "static"],
    )
    def test_pods_without_owners_belong_to_no_workload_spread(self, pod: SpreadPod) -> None:
        assert workloadspread_of_new_pod(pod, [self.MINE], OwnerLookup(), FIXED) is None


def test_identities_have_no_version() -> None:
    assert CLONE_SET.identity == ObjectKey("apps.kruise.io", "CloneSet", "web")
