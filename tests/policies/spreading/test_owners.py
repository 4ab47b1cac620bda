"""Chains of owners: from a pod's controller up to the target of a WorkloadSpread."""

from __future__ import annotations

from dataclasses import replace

import pytest

from policies.selectors import LabelSelector, equals_all
from policies.spreading.model import SpreadPod, TargetFilter
from policies.spreading.owners import (
    OwnerNotFoundError,
    Owners,
    SelectionError,
    refers_to,
    selects,
    spread_of,
    supported,
)
from policies.spreading.quirks import FIXED, UPSTREAM
from policies.spreading.references import Identity, Reference
from policies.spreading.workloads import NO_WHITELIST, AllowedKind, Whitelist, Workload
from tests.spreads import (
    CLONE_SET,
    DEPLOYMENT,
    REPLICA_SET,
    member,
    replica_set,
    spread,
    subset,
    workload,
)

HASHED = Reference("apps/v1", "ReplicaSet", "web-h1", "h1-uid")
GAME = Reference("game.io/v1", "Game", "web", "game-uid")
SERVER = Reference("game.io/v1", "Server", "web-0", "server-uid")
GAMES = Whitelist(
    (AllowedKind(group="game.io", version="v1", kind="Game", below=(("game.io", "Server"),)),)
)


def above(*workloads: Workload, whitelist: Whitelist = NO_WHITELIST) -> Owners:
    return Owners({each.identity: each for each in workloads}, whitelist=whitelist)


def test_the_controller_may_be_the_target_itself() -> None:
    assert refers_to(CLONE_SET, CLONE_SET, Owners())
    other = replace(CLONE_SET, name="other")
    assert not refers_to(other, CLONE_SET, above(workload()))


def test_the_version_of_an_api_does_not_matter() -> None:
    assert refers_to(replace(CLONE_SET, api_version="apps.kruise.io/v1"), CLONE_SET, Owners())
    assert not refers_to(replace(CLONE_SET, api_version="apps/v1"), CLONE_SET, above(workload()))


def test_a_deployment_stands_above_its_replica_sets() -> None:
    owners = above(replica_set("h1"), workload(DEPLOYMENT))
    assert refers_to(DEPLOYMENT, HASHED, owners)
    assert not refers_to(replace(DEPLOYMENT, name="other"), HASHED, owners)


def test_kinds_that_nobody_knows_are_not_followed() -> None:
    assert not refers_to(GAME, SERVER, Owners())


def test_kinds_on_the_whitelist_are() -> None:
    server = Workload(SERVER.identity, "default", uid="server-uid", controller=GAME)
    assert refers_to(GAME, SERVER, above(server, whitelist=GAMES))
    assert supported(SERVER, GAMES)
    assert not supported(SERVER, NO_WHITELIST)


def test_an_owner_that_is_not_there_is_told() -> None:
    with pytest.raises(OwnerNotFoundError, match='ReplicaSet "web-h1" not found'):
        refers_to(DEPLOYMENT, HASHED, Owners())


def test_an_owner_that_could_not_be_read_decides_nothing() -> None:
    assert not refers_to(DEPLOYMENT, HASHED, Owners(unread=frozenset({HASHED.identity})))


def test_a_chain_that_bites_its_tail_ends() -> None:
    circle = Workload(REPLICA_SET.identity, "default", controller=REPLICA_SET)
    assert not refers_to(DEPLOYMENT, REPLICA_SET, above(circle))


class TestFilters:
    WEB = TargetFilter(LabelSelector(equals_all({"app": "web"})))

    def test_labels_are_asked(self) -> None:
        assert selects(None, {}, FIXED)
        assert selects(self.WEB, {"app": "web"}, FIXED)
        assert not selects(self.WEB, {}, FIXED)

    def test_one_without_a_selector_selects_everything(self) -> None:
        assert selects(TargetFilter(), {}, FIXED)
        assert not selects(TargetFilter(), {}, UPSTREAM)

    def test_a_broken_one_is_told(self) -> None:
        with pytest.raises(SelectionError, match="no such operator"):
            selects(TargetFilter(problem="no such operator"), {}, FIXED)


class TestFinding:
    MINE = spread(subset("a"), name="mine")

    def test_the_first_that_fits_counts(self) -> None:
        others = [
            spread(subset("a"), name="a", target=None),
            spread(subset("a"), name="b", target=replace(CLONE_SET, name="other")),
            spread(subset("a"), name="c", terminating=True),
            spread(subset("a"), name="d", target=replace(CLONE_SET, api_version="a/b/c")),
            spread(subset("a"), name="e", target_filter=TargetFilter(problem="broken")),
            spread(subset("a"), name="f", target_filter=TestFilters.WEB),
        ]
        owners = above(workload())
        pod = member("web-1")
        assert spread_of(pod, [*others, self.MINE], owners, FIXED) == self.MINE
        assert spread_of(pod, others, owners, FIXED) is None

    @pytest.mark.parametrize(
        "pod",
        [
            member("web-1", phase="Failed"),
            member("web-1", terminating=True),
            member("web-1", controller=None),
            member("web-1", controller=Reference("x/y/z", "CloneSet", "web", "web-uid")),
            member("web-1", controller=Reference("v1", "Node", "web", "web-uid")),
        ],
        ids=["ended", "going", "nobody's", "malformed", "static"],
    )
    def test_pods_of_nobody_belong_to_none(self, pod: SpreadPod) -> None:
        assert spread_of(pod, [self.MINE], Owners(), FIXED) is None


def test_identities_have_no_version() -> None:
    assert CLONE_SET.identity == Identity("apps.kruise.io", "CloneSet", "web")
