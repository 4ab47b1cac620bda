"""Stores of storage objects, and decisions of a served extender that read them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from extender.cluster.scheduler_cache import SchedulerCache
from extender.config.component_config import Config
from policies.kubernetes.storage import (
    StorageClass,
    StorageKind,
    UnreadableObject,
    VolumeAttachment,
)
from tests.builders import Document, claim, manifest, node, node_json, pod, pod_json, volume
from tests.extender.conftest import broken, filter_body, following, live_cluster, preempt_body
from tests.extender.go_decoder import Victims, filtered, preempted


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


def test_storage_is_shared_while_it_does_not_change() -> None:
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


def test_equal_events_change_nothing() -> None:
    cluster = live_cluster(claim("data", "pv"), broken("pv", kind="PersistentVolume"))
    before = cluster.snapshot()
    cluster.storage.claims.replace([claim("data", "pv")])
    cluster.storage.volumes.replace([broken("pv", kind="PersistentVolume")])
    assert cluster.snapshot() is before


def test_a_kind_is_unknown_until_it_has_been_listed() -> None:
    cluster = SchedulerCache(lambda: 0.0)
    assert cluster.snapshot().storage.unknown == set(StorageKind)
    before = cluster.snapshot()
    cluster.storage.claims.replace([])
    after = cluster.snapshot()
    assert after.storage.unknown == set(StorageKind) - {StorageKind.CLAIMS}
    assert after.generation == before.generation + 1
    cluster.storage.claims.upsert(claim("data", "pv"))
    cluster.storage.claims.unlist()
    assert cluster.snapshot().storage == before.storage


def test_an_unreadable_object_is_known_until_it_is_readable_or_deleted() -> None:
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


# Served decisions


ONE_GIB = {"storage": "1Gi"}


def claim_json(name: str = "data", volume: str = "pv", mode: str = "ReadWriteOncePod") -> Document:
    """Build a bound claim."""
    return manifest(
        "PersistentVolumeClaim",
        name,
        metadata={"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        spec={"accessModes": [mode], "volumeName": volume, "resources": {"requests": ONE_GIB}},
        status={"phase": "Bound"},
    )


def volume_json(name: str = "pv", mode: str = "ReadWriteOncePod", handle: str = "h") -> Document:
    """Build a volume of a CSI driver."""
    csi = {"driver": "csi.example.com", "volumeHandle": handle}
    spec = {"accessModes": [mode], "capacity": ONE_GIB, "csi": csi}
    return manifest("PersistentVolume", name, spec=spec)


def csi_node_json(name: str, limit: int) -> Document:
    driver = {"name": "csi.example.com", "nodeID": name, "allocatable": {"count": limit}}
    version = "storage.k8s.io/v1"
    return manifest("CSINode", name, version=version, namespace="", spec={"drivers": [driver]})


def mounting(name: str, *claims: str, **fields: Any) -> Document:
    volumes = [{"name": it, "persistentVolumeClaim": {"claimName": it}} for it in claims]
    return pod_json(name, **fields, spec={"volumes": volumes})


NODES = [node_json("node-1", cpu="4"), node_json("node-2", cpu="4")]
CLUSTER = Config(port=0, search=type(Config().search)("cluster"))


async def preempting(
    objects: list[Document],
    preemptor: Document,
    refused: Mapping[str, int] | None = None,
    **offers: list[str],
) -> tuple[dict[str, Victims], list[str]]:
    """Return the answer of a preemption on the whole cluster, and the unknown kinds."""
    async with following(objects, CLUSTER, refused) as it:
        await it.let_it_sync()
        reply = await it.extender.post("/preempt", preempt_body(preemptor, **offers))
        snapshot = it.extender.service.cluster.snapshot()
        return preempted(reply.body, snapshot), sorted(
            kind.value for kind in snapshot.storage.unknown
        )


async def test_a_pod_gets_its_read_write_once_pod_claim_from_its_less_important_user() -> None:
    objects = [
        *NODES,
        claim_json(),
        volume_json(),
        mounting("holder", "data", on="node-2", cpu="1", priority=1),
        pod_json("bystander", on="node-2", cpu="1", priority=0),
        pod_json("other", on="node-1", cpu="1", priority=0),
    ]
    answer, unknown = await preempting(objects, mounting("vip", "data", cpu="1", priority=10))
    assert answer == {"node-2": Victims(("holder",), 0)}
    assert unknown == []


async def test_a_victim_frees_an_attachment_on_a_full_node() -> None:
    mode = "ReadWriteOnce"
    objects = [
        *NODES,
        csi_node_json("node-1", 1),
        csi_node_json("node-2", 1),
        *(claim_json(name, f"pv-{name}", mode) for name in "abc"),
        *(volume_json(f"pv-{name}", mode, name) for name in "abc"),
        mounting("first", "a", on="node-1", priority=5),
        pod_json("idle", on="node-1", priority=0),
        mounting("second", "b", on="node-2", priority=1),
    ]
    answer, _ = await preempting(objects, mounting("vip", "c", priority=10))
    assert answer == {"node-2": Victims(("second",), 0)}


@pytest.mark.parametrize("status", [403, 404])
async def test_without_claims_the_best_offer_is_chosen_by_all_other_filters(status: int) -> None:
    objects = [
        *NODES,
        claim_json(),
        volume_json(),
        mounting("holder", "data", on="node-2", priority=1),
        pod_json("large", on="node-1", cpu="4", priority=2),
        pod_json("small", on="node-2", cpu="4", priority=1),
    ]
    refused = {"persistentvolumeclaims": status, "csidrivers": status}
    answer, unknown = await preempting(
        objects, mounting("vip", "data", priority=10), refused, node_1=["large"], node_2=["holder"]
    )
    assert answer == {"node-2": Victims(("holder",), 0)}
    assert unknown == ["csidrivers", "persistentvolumeclaims"]
    plain = pod_json("plain", cpu="4", priority=10)
    answer, _ = await preempting(objects, plain, refused)
    assert answer == {"node-2": Victims(("small",), 0)}


async def test_readiness_reports_the_kinds_that_are_refused() -> None:
    async with following(NODES, refused={"resourceclaims": 404, "csinodes": 403}) as it:
        await it.let_it_sync()
        ready = await it.extender.get("/readyz?verbose")
        assert ready.status == 200
        rest = "pods that need it are not evaluated"
        assert (
            "[+] resourceclaims excluded: resource.k8s.io/v1, v1beta2, v1beta1 ResourceClaim "
            f"rejected by the server (404 No): {rest}\n" in ready.text
        )
        assert (
            "[+] csinodes excluded: storage.k8s.io/v1 CSINode rejected by the server (403 No; "
            f"grant list and watch on csinodes.storage.k8s.io): {rest}\n" in ready.text
        )
        assert "[+] storageclasses synced" in ready.text


async def test_a_release_that_does_not_filter_by_devices_does_not_follow_them() -> None:
    async with following(NODES, Config(port=0, upstream="1.31")) as it:
        await it.let_it_sync()
        kinds = set(it.extender.service.informers)
        assert not {"resourceclaims", "volumeattachments"} & kinds
        assert {"persistentvolumeclaims", "csinodes", "csidrivers", "csistoragecapacities"} <= kinds


async def test_the_filter_verb_trusts_kube_schedulers_check_of_claims() -> None:
    async with following([*NODES, pod_json("full", on="node-1", cpu="4")]) as it:
        await it.let_it_sync()
        body = filter_body(mounting("web", "not seen yet", cpu="1"), "node-1", "node-2")
        reply = await it.extender.post("/filter", body)
        result = filtered(reply.body, ["node-1", "node-2"], cached=True)
        assert (result.names, result.failed) == (["node-2"], {"node-1": "Insufficient cpu"})


async def test_the_shipped_role_covers_the_resources_that_are_followed() -> None:
    role = yaml.safe_load((Path(__file__).parents[3] / "deploy" / "rbac.yaml").read_text())
    allowed = {name for rule in role["rules"] for name in rule["resources"]}
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}
    async with following([]) as it:
        assert set(it.extender.service.informers) <= allowed
