"""A controller's write blocks syncs until its caches show it, and no longer."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from extender.kube.informers.consistency_store import ConsistencyStore
from extender.kube.rest.resources import PODS, REPLICA_SETS

OWNER = "shop/web"


@dataclass
class Reached:
    """A copy that has come as far as it says."""

    resource_version: str


@dataclass
class Scene:
    """A store over two copies."""

    pods: Reached
    sets: Reached
    store: ConsistencyStore

    @property
    def said(self) -> str:
        return str(self.store.stale(OWNER))


@pytest.fixture
def scene() -> Scene:
    pods, sets = Reached("100"), Reached("100")
    return Scene(pods, sets, ConsistencyStore({PODS: pods, REPLICA_SETS: sets}))


def test_without_writes_there_is_no_wait(scene: Scene) -> None:
    assert scene.store.stale(OWNER) is None


def test_a_write_blocks_until_the_cache_has_its_version(scene: Scene) -> None:
    scene.store.wrote(OWNER, "u", PODS, "110")
    behind = "read version: {} is not as new as written version: 110 for group resource pods"
    assert scene.said == behind.format(100)
    scene.pods.resource_version = "109"
    assert scene.said == behind.format(109)
    scene.pods.resource_version = "110"
    assert scene.store.stale(OWNER) is None


def test_each_resource_is_waited_for(scene: Scene) -> None:
    scene.store.wrote(OWNER, "u", PODS, "110")
    scene.store.wrote(OWNER, "u", REPLICA_SETS, "120")
    scene.pods.resource_version = "130"
    assert scene.said.endswith("written version: 120 for group resource replicasets.apps")
    scene.sets.resource_version = "120"
    assert scene.store.stale(OWNER) is None


def test_versions_are_compared_as_numbers_and_the_newest_counts(scene: Scene) -> None:
    for version in ("1001", "99", "1000"):
        scene.store.wrote(OWNER, "u", PODS, version)
    scene.pods.resource_version = "999"
    assert "written version: 1001" in scene.said


def test_writes_seen_by_the_cache_are_forgotten(scene: Scene) -> None:
    scene.store.wrote(OWNER, "u", PODS, "110")
    scene.pods.resource_version = "110"
    assert scene.store.stale(OWNER) is None
    assert len(scene.store) == 0
    scene.pods.resource_version = "50"  # the copy begins anew, from a server that was restored
    assert scene.store.stale(OWNER) is None


def test_an_owner_made_anew_has_written_nothing(scene: Scene) -> None:
    scene.store.wrote(OWNER, "old", PODS, "110")
    scene.store.wrote(OWNER, "new", REPLICA_SETS, "105")
    scene.sets.resource_version = "105"
    assert scene.store.stale(OWNER) is None


@pytest.mark.parametrize(("uid", "kept"), [("u", 0), ("", 0), ("another", 1)])
def test_an_owner_is_forgotten_if_it_is_the_one_that_is_meant(
    scene: Scene, uid: str, kept: int
) -> None:
    scene.store.wrote(OWNER, "u", PODS, "110")
    scene.store.clear(OWNER, uid)
    scene.store.clear("shop/unknown", uid)
    assert len(scene.store) == kept


@pytest.mark.parametrize("read", ["", "0", "007", "abc", "-1", "٣"])
def test_an_incomparable_version_blocks_no_sync(scene: Scene, read: str) -> None:
    scene.store.wrote(OWNER, "u", PODS, "110")
    scene.pods.resource_version = read
    assert scene.store.stale(OWNER) is None


@pytest.mark.parametrize("written", ["", "0", "0200", "v9"])
def test_a_written_version_that_cannot_be_compared_is_not_waited_for(
    scene: Scene, written: str
) -> None:
    scene.store.wrote(OWNER, "u", PODS, written)
    assert scene.store.stale(OWNER) is None
    scene.store.wrote(OWNER, "u", PODS, "110")
    scene.store.wrote(OWNER, "u", PODS, written)
    assert "written version: 110" in scene.said


def test_owners_are_independent(scene: Scene) -> None:
    scene.store.wrote("shop/other", "o", PODS, "110")
    assert scene.store.stale(OWNER) is None
    assert scene.store.stale("shop/other") is not None
