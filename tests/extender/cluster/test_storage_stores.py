"""Storage objects of volumes and devices in the live cluster: shared, unknown, unreadable."""

from __future__ import annotations

from extender.cluster.scheduler_cache import SchedulerCache
from policies.kubernetes.storage import (
    StorageClass,
    StorageKind,
    UnreadableObject,
    VolumeAttachment,
)
from tests.builders import claim, node, pod, volume
from tests.extender.conftest import broken, live_cluster


def test_objects_are_found_by_their_key() -> None:
    attached = [VolumeAttachment(name, "node-1", "d", "pv") for name in ("a", "b")]
    elsewhere = VolumeAttachment("c", "node-2", "d", "pv")
    cluster = live_cluster(
        claim("data", "pv"), volume("pv"), StorageClass("s"), *attached, elsewhere
    )
    found = cluster.snapshot().storage
    assert found.claims == {"default/data": claim("data", "pv")}
    assert found.volumes == {"pv": volume("pv")}
    assert found.classes == {"s": StorageClass("s")}
    assert found.attachments == {"node-1": tuple(attached), "node-2": (elsewhere,)}


def test_attachments_follow_their_node() -> None:
    first = VolumeAttachment("a", "node-1", "d", "pv")
    cluster = live_cluster(first, VolumeAttachment("b", "node-1", "d", "pv"))
    before = cluster.snapshot().storage.attachments
    cluster.storage.claims.upsert(claim("data"))
    assert cluster.snapshot().storage.attachments is before
    moved = VolumeAttachment("a", "node-2", "d", "pv")
    cluster.storage.attachments.upsert(moved)
    cluster.storage.attachments.remove(VolumeAttachment("b", "node-1", "d", "pv"))
    assert cluster.snapshot().storage.attachments == {"node-2": (moved,)}
    assert [each.name for each in before["node-1"]] == ["a", "b"]
    cluster.storage.attachments.replace([first])
    assert cluster.snapshot().storage.attachments == {"node-1": (first,)}


def test_all_of_it_is_shared_while_none_of_it_changes() -> None:
    cluster = live_cluster(claim("data", "pv"), volume("pv"))
    before = cluster.snapshot()
    cluster.nodes.upsert(node("node-1"))
    assert cluster.snapshot().storage is before.storage


def test_kinds_that_did_not_change_are_shared() -> None:
    cluster = live_cluster(claim("data", "pv"), volume("pv"))
    before = cluster.snapshot().storage
    cluster.storage.claims.remove(claim("data", "pv"))
    after = cluster.snapshot().storage
    assert after.volumes is before.volumes
    assert (after.claims, before.claims) == ({}, {"default/data": claim("data", "pv")})


def test_hearing_the_same_again_changes_nothing() -> None:
    cluster = live_cluster(claim("data", "pv"), broken("pv", kind="PersistentVolume"))
    before = cluster.snapshot()
    cluster.storage.claims.replace([claim("data", "pv")])
    cluster.storage.volumes.replace([broken("pv", kind="PersistentVolume")])
    assert cluster.snapshot() is before


def test_a_kind_is_unknown_until_it_has_been_listed_though_it_be_empty() -> None:
    cluster = SchedulerCache(lambda: 0.0)
    assert cluster.snapshot().storage.unknown == set(StorageKind)
    before = cluster.snapshot()
    cluster.storage.claims.replace([])
    after = cluster.snapshot()
    assert after.storage.unknown == set(StorageKind) - {StorageKind.CLAIMS}
    assert after.generation == before.generation + 1


def test_a_broken_object_is_known_to_be_there_until_it_is_mended_or_gone() -> None:
    cluster = live_cluster(volume("other"))
    volumes, bad = cluster.storage.volumes, broken("pv", kind="PersistentVolume")
    volumes.upsert(bad)
    found = cluster.snapshot().storage
    assert found.unreadable == {UnreadableObject(StorageKind.VOLUMES, "pv")}
    assert not found.knows(StorageKind.VOLUMES, "pv")
    assert found.knows(StorageKind.VOLUMES, "none")
    volumes.upsert(volume("pv"))
    assert cluster.snapshot().storage.unreadable == set()
    volumes.upsert(bad)
    assert cluster.snapshot().storage.volumes == {"other": volume("other")}
    volumes.remove(bad)
    assert cluster.snapshot().storage.unreadable == set()
    volumes.upsert(bad)
    volumes.replace([])
    assert cluster.snapshot().storage.unreadable == set()


def test_sizes_name_every_kind() -> None:
    sizes = live_cluster(claim("data"), pod("web", on="node-1")).object_counts()
    assert (sizes["persistentvolumeclaims"], sizes["resourceclaims"]) == (1, 0)
    assert {kind.value for kind in StorageKind} < set(sizes)
