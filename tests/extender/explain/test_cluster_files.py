"""Clusters and ReplicaSets that are read from files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from extender.explain.cluster_files import (
    LoadedCluster,
    ReplicaFileError,
    ReplicaSetPods,
    load_cluster,
    load_pod,
    load_replica_set_pods,
)
from extender.explain.cluster_objects import ClusterObjects, find_pod, read_objects
from extender.kube.decoders.manifests import ManifestError
from policies import decide_filter, decide_preemption
from policies.kubernetes.default_selector import SERVICE
from policies.kubernetes.releases import NEWEST
from policies.kubernetes.snapshot import Pod
from policies.kubernetes.storage import StorageKind
from tests.builders import node_json, pdb_json, pod_json, workload
from tests.builders.replicas import member_json, names, replica_set_json
from tests.commands import written

NO_OBJECTS = ClusterObjects([], "--cluster nothing")


def priority_class(name: str, value: int, **fields: Any) -> Mapping[str, Any]:
    return {"kind": "PriorityClass", "metadata": {"name": name}, "value": value, **fields}


def cluster_of(tmp_path: Path, *documents: Any) -> LoadedCluster:
    return load_cluster(read_objects([written(tmp_path, "cluster.json", *documents)]), NEWEST)


def pod_of(tmp_path: Path, cluster: LoadedCluster, document: Any) -> Pod:
    return load_pod(find_pod(written(tmp_path, "pod.json", document), NO_OBJECTS), cluster, NEWEST)


def without_uid(document: dict[str, Any]) -> dict[str, Any]:
    del document["metadata"]["uid"]
    return document


def test_files_are_read_together(tmp_path: Path) -> None:
    nodes = written(tmp_path, "nodes", node_json("node-1"), node_json("node-2"))
    rest = written(
        tmp_path,
        "rest",
        {"kind": "PodList", "items": [pod_json("web", on="node-1")]},
        pdb_json("web", match={"app": "web"}),
        {"kind": "Namespace", "metadata": {"name": "default", "labels": {"a": "b"}}},
        {"kind": "ConfigMap", "metadata": {"name": "of no interest"}, "data": 5},
    )
    snapshot = load_cluster(read_objects([nodes, rest]), NEWEST).snapshot
    assert {name: len(state.pods) for name, state in snapshot.nodes.items()} == {
        "node-1": 1,
        "node-2": 0,
    }
    assert [budget.name for budget in snapshot.budgets] == ["web"]
    assert snapshot.namespaces == {"default": {"a": "b"}}


def test_an_unreadable_object_is_left_out_with_one_warning(tmp_path: Path) -> None:
    broken = pod_json("broken", on="node-1", cpu="lots")
    with capture_logs() as logs:
        cluster = cluster_of(tmp_path, node_json("node-1"), broken, pod_json("web", on="node-1"))
    state = cluster.snapshot.nodes["node-1"]
    assert ([pod.name for pod in state.pods], state.unreadable) == (["web"], ("default/broken",))
    assert [log["key"] for log in logs] == ["default/broken"]


def test_handwritten_pods_without_uids_are_distinguished(tmp_path: Path) -> None:
    pods = [without_uid(pod_json(name, on="node-1", cpu="1")) for name in ("a", "b")]
    cluster = cluster_of(tmp_path, node_json("node-1", cpu="2"), *pods)
    vip = pod_of(tmp_path, cluster, without_uid(pod_json("vip", cpu="1", priority=10)))
    decision = decide_preemption(vip, cluster.snapshot)
    assert decision.chosen is not None
    assert [pod.key for pod in decision.chosen.victims.pods] == ["default/b"]
    assert [pod.key for pod in decision.chosen.spared] == ["default/a"]


@pytest.mark.parametrize(
    ("resources", "milli_cpu"),
    [
        ({"limits": {"cpu": "2"}}, 2000),
        ({"limits": {"cpu": "2"}, "requests": None}, 2000),
        ({"limits": {"cpu": "2"}, "requests": {"memory": "1Gi"}}, 2000),
        ({"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}, 1000),
        ({"limits": {"cpu": "2"}, "requests": {"cpu": "0"}}, 0),
        ({"limits": {"memory": "1Gi"}}, 0),
        ({"limits": None}, 0),
        (None, 0),
    ],
)
@pytest.mark.parametrize("containers", ["containers", "initContainers"])
def test_a_container_written_by_hand_requests_its_limits(
    tmp_path: Path, containers: str, resources: Mapping[str, Any] | None, milli_cpu: int
) -> None:
    spec = {containers: [{"name": "main", "resources": resources}]}
    cluster = cluster_of(tmp_path, node_json("node-1"), pod_json("old", on="node-1", spec=spec))
    (old,) = cluster.snapshot.nodes["node-1"].pods
    new = pod_of(tmp_path, cluster, pod_json("new", spec=spec))
    assert (old.requests.milli_cpu, new.requests.milli_cpu) == (milli_cpu, milli_cpu)


def test_pods_keep_the_annotations_that_a_policy_reads(tmp_path: Path) -> None:
    written_on = {"annotations": {"cost": "5", "other": "6"}}
    path = written(
        tmp_path,
        "cluster.json",
        node_json("node-1"),
        pod_json("web", on="node-1", metadata=written_on),
        pod_json("vip", metadata=written_on),
    )
    objects = read_objects([path])
    for keys, kept in ((frozenset[str](), {}), (frozenset({"cost"}), {"cost": "5"})):
        cluster = load_cluster(objects, NEWEST, keys)
        (web,) = cluster.snapshot.nodes["node-1"].pods
        vip = load_pod(find_pod("default/vip", objects), cluster, NEWEST, keys)
        assert (web.annotations, vip.annotations) == (kept, kept)


class TestAdmission:
    """The pod gets the priority that the Priority admission plugin sets."""

    CLASSES = (
        priority_class("high", 1000),
        priority_class("meek", 500, preemptionPolicy="Never"),
        priority_class("usual", 7, globalDefault=True),
    )

    @pytest.mark.parametrize(
        ("spec", "priority", "preempts"),
        [
            ({}, 7, True),
            ({"priority": 3}, 3, True),
            ({"priority": 3, "priorityClassName": "high"}, 3, True),
            ({"priorityClassName": "high"}, 1000, True),
            ({"priorityClassName": "meek"}, 500, False),
            ({"priorityClassName": "high", "preemptionPolicy": "Never"}, 1000, False),
            ({"priorityClassName": "meek", "preemptionPolicy": "PreemptLowerPriority"}, 500, True),
            ({"priorityClassName": "system-cluster-critical"}, 2_000_000_000, True),
            ({"priorityClassName": "system-node-critical"}, 2_000_001_000, True),
            ({"priority": None, "priorityClassName": ""}, 7, True),
        ],
    )
    def test_from_its_class(
        self,
        tmp_path: Path,
        spec: dict[str, Any],
        priority: int,
        preempts: bool,  # noqa: FBT001 - a column of the table
    ) -> None:
        cluster = cluster_of(tmp_path, *self.CLASSES)
        pod = pod_of(tmp_path, cluster, pod_json(spec=spec))
        assert (pod.priority, pod.preempts) == (priority, preempts)

    def test_without_any_class_it_is_zero(self, tmp_path: Path) -> None:
        assert pod_of(tmp_path, cluster_of(tmp_path), pod_json()).priority == 0

    def test_of_several_defaults_the_lowest_counts(self, tmp_path: Path) -> None:
        classes = [priority_class(f"c{value}", value, globalDefault=True) for value in (9, 4, 6)]
        assert pod_of(tmp_path, cluster_of(tmp_path, *classes), pod_json()).priority == 4

    @pytest.mark.parametrize(
        ("spec", "priority"),
        [
            ({"priorityClassName": "high"}, 1000),
            ({"priorityClassName": "high", "priority": 3}, 3),
            ({"priorityClassName": "gone"}, 0),
            ({}, 0),
        ],
    )
    def test_a_running_pod_has_its_own_priority_or_that_of_its_class(
        self, tmp_path: Path, spec: dict[str, Any], priority: int
    ) -> None:
        running = pod_json("old", on="node-1", spec=spec)
        cluster = cluster_of(tmp_path, *self.CLASSES, node_json("node-1"), running)
        (pod,) = cluster.snapshot.nodes["node-1"].pods
        assert pod.priority == priority

    def test_an_unknown_class_is_refused(self, tmp_path: Path) -> None:
        cluster = cluster_of(tmp_path, *self.CLASSES)
        with pytest.raises(ManifestError) as raised:
            pod_of(tmp_path, cluster, pod_json(spec={"priorityClassName": "highest"}))
        assert str(raised.value) == (
            f"{tmp_path}/pod.json[0]: spec.priorityClassName: "
            "no PriorityClass 'highest' in the cluster"
        )


class TestPod:
    @pytest.mark.parametrize(
        ("documents", "problem"),
        [
            ([], ": holds 0 pods and 0 workloads; expected exactly one"),
            ([node_json()], ": holds 0 pods and 0 workloads; expected exactly one"),
            (
                [pod_json("a"), pod_json("b")],
                ": holds 2 pods and 0 workloads; expected exactly one",
            ),
            (
                [pod_json(cpu="lots")],
                (
                    "[0]: Pod default/pod: spec.containers[0].resources.requests.cpu: "
                    "'lots' is not a quantity; expected a number such as 100m, 2 or 1.5Gi"
                ),
            ),
            ([{"kind": "Pod", "metadata": {"name": "a"}}], "[0]: Pod a: "),
        ],
    )
    def test_is_exactly_one_that_can_be_read(
        self, tmp_path: Path, documents: list[Any], problem: str
    ) -> None:
        path = written(tmp_path, "pod.json", *documents)
        with pytest.raises(ManifestError) as raised:
            load_pod(find_pod(path, NO_OBJECTS), cluster_of(tmp_path), NEWEST)
        assert str(raised.value).startswith(path + problem)


def test_services_and_controllers_are_read_as_well(tmp_path: Path) -> None:
    service = {"kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"a": "b"}}}
    snapshot = cluster_of(tmp_path, node_json("node-1"), service).snapshot
    assert snapshot.workloads == {"default": (workload(SERVICE, "web", {"a": "b"}),)}


CLAIM = {"kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "default"}}
CLAIMING = pod_json(
    "vip", spec={"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}
)


def test_claims_volumes_and_devices_are_read(tmp_path: Path) -> None:
    kinds = "PersistentVolume", "StorageClass", "CSINode", "CSIDriver", "VolumeAttachment"
    cluster_wide = [{"kind": kind, "metadata": {"name": "x"}} for kind in kinds]
    device = {"kind": "ResourceClaim", "metadata": {"name": "gpu", "namespace": "default"}}
    capacity = {**device, "kind": "CSIStorageCapacity", "storageClassName": "x"}
    published = [
        {"kind": kind, "metadata": {"name": "x"}} for kind in ("ResourceSlice", "DeviceClass")
    ]
    found = cluster_of(
        tmp_path, CLAIM, device, capacity, *cluster_wide, *published
    ).snapshot.storage
    assert set(found.slices) == set(found.device_classes) == {"x"}
    assert (set(found.claims), set(found.devices)) == ({"default/data"}, {"default/gpu"})
    assert set(found.volumes) == set(found.classes) == set(found.csi_nodes) == {"x"}
    assert (set(found.drivers), set(found.capacities)) == ({"x"}, {"default/gpu"})
    assert found.unknown == set()


def test_kinds_that_the_files_lack_are_unknown(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, node_json("node-1"))
    decision = decide_filter(pod_of(tmp_path, cluster, CLAIMING), cluster.snapshot)
    assert decision.feasible == ("node-1",)
    assert "VolumeBinding" in decision.not_evaluated
    # There may well be no attachments, and no drivers that ask for anything.
    known = set(StorageKind) - cluster.snapshot.storage.unknown
    often_absent = {StorageKind.ATTACHMENTS, StorageKind.DRIVERS}
    assert known == often_absent | {StorageKind.DEVICE_CLASSES, StorageKind.TAINT_RULES}


def test_an_unbound_claim_is_distinguished_from_a_missing_one(tmp_path: Path) -> None:
    cluster = cluster_of(tmp_path, node_json("node-1"), CLAIM)
    decision = decide_filter(pod_of(tmp_path, cluster, CLAIMING), cluster.snapshot)
    assert str(decision.conflict) == "pod has unbound immediate PersistentVolumeClaims"


# ReplicaSets


BROKEN_SELECTOR = {"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}


def loaded(
    tmp_path: Path, *documents: Any, key: str = "default/web", count: int = 0
) -> ReplicaSetPods:
    return load_replica_set_pods(
        read_objects([written(tmp_path, "cluster.json", *documents)]), key, count
    )


def test_files_of_a_replica_set_are_read_together(tmp_path: Path) -> None:
    sets = written(
        tmp_path,
        "sets",
        replica_set_json("web", owner="d"),
        replica_set_json("old", owner="d", match={"app": "old"}),
    )
    old = member_json("c", owner="rs-old", labels={"app": "old"})
    pods = written(tmp_path, "pods", {"kind": "PodList", "items": [member_json("a"), old]})
    more = written(tmp_path, "more", node_json(), member_json("b", on="node-2"))
    replicas = load_replica_set_pods(read_objects([sets, pods, more]), "default/web", 2)
    assert names(replicas.active) == ["a", "b"]
    assert replicas.crowding == {"node-1": 2, "node-2": 1}


def test_of_two_objects_with_one_name_the_later_counts(tmp_path: Path) -> None:
    replicas = loaded(
        tmp_path, replica_set_json(), member_json("a"), member_json("a", on="node-2", uid="new")
    )
    assert [(each.node, each.uid) for each in replicas.active] == [("node-2", "new")]


def test_an_unreadable_pod_is_left_out_with_one_warning(tmp_path: Path) -> None:
    broken = member_json("broken", status={"containerStatuses": 5})
    with capture_logs() as logs:
        replicas = loaded(tmp_path, replica_set_json(), broken, member_json("a"))
    assert names(replicas.active) == ["a"]
    assert [log["key"] for log in logs] == ["default/broken"]


def test_a_sibling_with_a_broken_selector_selects_nothing(tmp_path: Path) -> None:
    sibling = {**replica_set_json("old", owner="d"), "spec": BROKEN_SELECTOR}
    with capture_logs() as logs:
        replicas = loaded(tmp_path, replica_set_json(owner="d"), sibling, member_json("a"))
    assert replicas.crowding == {"node-1": 1}
    assert [log["key"] for log in logs] == ["default/old"]


@pytest.mark.parametrize("key", ["default/web", "web"])
def test_a_broken_replica_set_is_refused(tmp_path: Path, key: str) -> None:
    broken = {**replica_set_json(), "spec": BROKEN_SELECTOR}
    if key == "web":
        del broken["metadata"]["namespace"]
    with pytest.raises(ReplicaFileError) as raised:
        loaded(tmp_path, member_json("a"), broken)
    assert str(raised.value) == (
        f"{tmp_path}/cluster.json[1]: ReplicaSet {key}: spec.selector: "
        "'Like' is not a valid label selector operator"
    )


@pytest.mark.parametrize("key", ["default/nope", "other/web"])
def test_a_missing_replica_set_is_named(tmp_path: Path, key: str) -> None:
    with pytest.raises(ReplicaFileError) as raised:
        loaded(tmp_path, replica_set_json(), key=key)
    place = f"--cluster {tmp_path}/cluster.json"
    assert str(raised.value) == f"--replicaset: no ReplicaSet '{key}' in {place}"


def test_more_pods_than_there_are_cannot_be_deleted(tmp_path: Path) -> None:
    documents = (replica_set_json(), member_json("a"), member_json("gone", phase="Failed"))
    assert names(loaded(tmp_path, *documents, count=1).active) == ["a"]
    with pytest.raises(ReplicaFileError) as raised:
        loaded(tmp_path, *documents, count=2)
    assert str(raised.value) == (
        "--delete: 2; expected at most 1, as many active pods as ReplicaSet default/web has "
        f"in --cluster {tmp_path}/cluster.json"
    )


def test_a_file_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ManifestError, match=r"none\.json: cannot be read"):
        load_replica_set_pods(read_objects(["none.json"]), "default/web", 0)


def test_an_extended_resource_is_found_among_the_devices_of_the_files(tmp_path: Path) -> None:
    api = {"apiVersion": "resource.k8s.io/v1"}
    published = {
        **api,
        "kind": "ResourceSlice",
        "metadata": {"name": "node-1-gpus"},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "node-1",
            "devices": [{"name": "gpu-0"}],
        },
    }
    device_class = {
        **api,
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {
            "selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}],
            "extendedResourceName": "example.com/gpu",
        },
    }
    held = {"driver": "gpu.example.com", "pool": "node-1", "device": "gpu-1"}
    claim = {
        **api,
        "kind": "ResourceClaim",
        "metadata": {"name": "held", "namespace": "default"},
        "status": {"allocation": {"devices": {"results": [held]}}},
    }
    wanted = {"requests": {"example.com/gpu": "1"}}
    asking = pod_json("asking", spec={"containers": [{"name": "main", "resources": wanted}]})
    nodes = node_json("node-1"), node_json("node-2")
    cluster = cluster_of(tmp_path, *nodes, published, device_class, claim)
    decision = decide_filter(pod_of(tmp_path, cluster, asking), cluster.snapshot)
    assert decision.feasible == ("node-1",)
    assert str(decision.rejected["node-2"]) == "cannot allocate all claims"
