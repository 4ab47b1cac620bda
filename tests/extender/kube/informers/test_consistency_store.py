"""A controller's write blocks syncs until its caches show it, and no longer."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from extender.kube.informers.consistency_store import ConsistencyStore
from extender.kube.rest.resources import PODS, REPLICA_SETS

OWNER = "shop/web"


@dataclass
class Cache:
    """A cache at a version."""

    resource_version: str


@dataclass
class Caches:
    """A store over two caches."""

    pods: Cache
    sets: Cache
    store: ConsistencyStore

    @property
    def message(self) -> str:
        return str(self.store.stale(OWNER))


@pytest.fixture
def caches() -> Caches:
    pods, sets = Cache("100"), Cache("100")
    return Caches(pods, sets, ConsistencyStore({PODS: pods, REPLICA_SETS: sets}))


def test_without_writes_there_is_no_wait(caches: Caches) -> None:
    assert caches.store.stale(OWNER) is None


def test_a_write_blocks_until_the_cache_has_its_version(caches: Caches) -> None:
    caches.store.wrote(OWNER, "u", PODS, "110")
    behind = "read version: {} is not as new as written version: 110 for group resource pods"
    assert caches.message == behind.format(100)
    caches.pods.resource_version = "109"
    assert caches.message == behind.format(109)
    caches.pods.resource_version = "110"
    assert caches.store.stale(OWNER) is None


def test_each_resource_is_waited_for(caches: Caches) -> None:
    caches.store.wrote(OWNER, "u", PODS, "110")
    caches.store.wrote(OWNER, "u", REPLICA_SETS, "120")
    caches.pods.resource_version = "130"
    assert caches.message.endswith("written version: 120 for group resource replicasets.apps")
    caches.sets.resource_version = "120"
    assert caches.store.stale(OWNER) is None


def test_versions_are_compared_as_numbers_and_the_newest_counts(caches: Caches) -> None:
    for version in ("1001", "99", "1000"):
        caches.store.wrote(OWNER, "u", PODS, version)
    caches.pods.resource_version = "999"
    assert "written version: 1001" in caches.message


def test_writes_seen_by_the_cache_are_forgotten(caches: Caches) -> None:
    caches.store.wrote(OWNER, "u", PODS, "110")
    caches.pods.resource_version = "110"
    assert caches.store.stale(OWNER) is None
    assert len(caches.store) == 0
    caches.pods.resource_version = "50"  # the server was restored, and the cache filled again
    assert caches.store.stale(OWNER) is None


def test_a_recreated_owner_has_written_nothing(caches: Caches) -> None:
    caches.store.wrote(OWNER, "old", PODS, "110")
    caches.store.wrote(OWNER, "new", REPLICA_SETS, "105")
    caches.sets.resource_version = "105"
    assert caches.store.stale(OWNER) is None


@pytest.mark.parametrize(("uid", "kept"), [("u", 0), ("", 0), ("another", 1)])
def test_an_owner_is_forgotten_by_its_uid(caches: Caches, uid: str, kept: int) -> None:
    caches.store.wrote(OWNER, "u", PODS, "110")
    caches.store.clear(OWNER, uid)
    caches.store.clear("shop/unknown", uid)
    assert len(caches.store) == kept


@pytest.mark.parametrize("read", ["", "0", "007", "abc", "-1", "٣"])
def test_an_incomparable_version_blocks_no_sync(caches: Caches, read: str) -> None:
    caches.store.wrote(OWNER, "u", PODS, "110")
    caches.pods.resource_version = read
    assert caches.store.stale(OWNER) is None


@pytest.mark.parametrize("written", ["", "0", "0200", "v9"])
def test_an_incomparable_written_version_is_not_waited_for(caches: Caches, written: str) -> None:
    caches.store.wrote(OWNER, "u", PODS, written)
    assert caches.store.stale(OWNER) is None
    caches.store.wrote(OWNER, "u", PODS, "110")
    caches.store.wrote(OWNER, "u", PODS, written)
    assert "written version: 110" in caches.message


def test_owners_are_independent(caches: Caches) -> None:
    caches.store.wrote("shop/other", "o", PODS, "110")
    assert caches.store.stale(OWNER) is None
    assert caches.store.stale("shop/other") is not None
