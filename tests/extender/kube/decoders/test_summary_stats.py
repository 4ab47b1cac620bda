"""/stats/summary: the decoded fields, absent ones, and invalid ones."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.decoders.kubelet.summary_stats import decode_summary
from extender.kube.decoders.manifests import Document, ManifestError
from policies.eviction.stats import (
    ContainerStats,
    DiskUsage,
    FilesystemStats,
    MemoryStats,
    NodeStats,
    PodStats,
    ProcessStats,
    Summary,
    VolumeStats,
)
from tests.builders import encoded

NOON = "1970-01-01T12:00:00Z"
NOON_NS = 12 * 3600 * 10**9


def read(document: Any) -> Summary:
    return decode_summary(Document(encoded(document), "summary.json[0]"))[1]


def of_node(**fields: Any) -> NodeStats:
    return read({"node": fields}).node


def of_pod(**fields: Any) -> PodStats:
    return read({"node": {}, "pods": [{"podRef": {"uid": "u"}, **fields}]}).pods["u"]


def test_a_node_without_measurements_is_decoded() -> None:
    assert read({"node": {}}) == Summary(NodeStats())
    assert of_node(memory=None, fs=None, runtime=None, rlimit=None) == NodeStats()
    assert of_node(memory={}, fs={}, runtime={"imageFs": {}, "containerFs": {}}, rlimit={}) == (
        NodeStats(
            memory=MemoryStats(),
            node_fs=FilesystemStats(),
            image_fs=FilesystemStats(),
            container_fs=FilesystemStats(),
            processes=ProcessStats(),
        )
    )


def test_a_complete_node_is_decoded() -> None:
    disk = {
        "time": NOON,
        "availableBytes": 1,
        "capacityBytes": 2,
        "usedBytes": 99,
        "inodesFree": 3,
        "inodes": 4,
    }
    memory = {
        "time": NOON,
        "availableBytes": 5,
        "workingSetBytes": 6,
        "usageBytes": 7,
        "rssBytes": 8,
    }
    measured = FilesystemStats(1, 2, 3, 4, NOON_NS)
    assert of_node(
        cpu={"usageNanoCores": 1},
        memory=memory,
        fs=disk,
        runtime={"imageFs": disk, "containerFs": disk},
        rlimit={"time": NOON, "maxpid": 10, "curproc": 11},
        systemContainers=[
            {"name": "kubelet", "memory": {"workingSetBytes": 1}},
            {"name": "pods", "memory": memory},
        ],
    ) == NodeStats(
        MemoryStats(5, 6, 7, NOON_NS),
        MemoryStats(5, 6, 7, NOON_NS),
        measured,
        measured,
        measured,
        ProcessStats(10, 11, NOON_NS),
    )


def test_a_complete_pod_is_decoded() -> None:
    assert of_pod(
        startTime=NOON,
        memory={"workingSetBytes": 1},
        process_stats={"process_count": 2},
        **{"ephemeral-storage": {"usedBytes": 3, "availableBytes": 4}},
        containers=[
            {
                "name": "main",
                "memory": {"workingSetBytes": 5},
                "rootfs": {"usedBytes": 6, "inodesUsed": 7},
                "logs": {"usedBytes": 8},
            },
            {"name": "silent"},
        ],
        volume=[{"name": "v", "usedBytes": 9, "inodesUsed": 10, "capacityBytes": 11, "inodes": -1}],
    ) == PodStats(
        1,
        2,
        3,
        (ContainerStats("main", 5, DiskUsage(6, 7), DiskUsage(8)), ContainerStats("silent")),
        (VolumeStats("v", DiskUsage(9, 10), 11),),
    )


def test_memory_without_a_working_set_is_zero() -> None:
    assert of_pod(memory={"time": NOON}).working_set == 0
    assert of_pod().working_set is None


@pytest.mark.parametrize("time", [None, "0001-01-01T00:00:00Z"])
def test_a_missing_time_is_none(time: str | None) -> None:
    assert of_node(memory={"time": time}).memory == MemoryStats()


def test_pods_are_keyed_by_uid_or_by_name() -> None:
    found = read(
        {
            "node": {},
            "pods": [
                {"podRef": {"name": "a", "namespace": "x", "uid": "u"}},
                {"podRef": {"name": "b", "namespace": "x"}},
            ],
        }
    )
    assert set(found.pods) == {"u", "x/b"}


def test_the_name_of_the_node_is_decoded() -> None:
    document = Document(encoded({"node": {"nodeName": "node-1"}}), "s")
    assert decode_summary(document)[0] == "node-1"


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "(the object): expected object, got array"),
        ({}, "(the object): object missing required field node"),
        ({"node": {"memory": {"availableBytes": "1"}}}, "node.memory.availableBytes: expected"),
        ({"node": {"memory": {"availableBytes": -1}}}, "node.memory.availableBytes: expected"),
        ({"node": {"fs": {"time": "noon"}}}, "node.fs.time: invalid RFC3339"),
        ({"node": {}, "pods": [{}]}, "pods[0]: object missing required field podRef"),
        (
            {"node": {}, "pods": [{"podRef": {}, "containers": [{"logs": 1}]}]},
            "pods[0].containers[0].logs: expected",
        ),
    ],
)
def test_an_invalid_field_is_reported(document: Any, problem: str) -> None:
    with pytest.raises(ManifestError) as raised:
        read(document)
    assert str(raised.value).startswith(f"summary.json[0]: {problem}")


def test_invalid_json_is_refused() -> None:
    with pytest.raises(ManifestError, match=r"summary.json\[0\]: not JSON"):
        decode_summary(Document(b"{", "summary.json[0]"))
