"""A node's pods and samples in files: active pods, their UIDs, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from extender.eviction.input_files import NodeFiles, load_node
from extender.explain.cluster_objects import read_objects
from extender.explain.decisions import UnknownNodeError
from extender.kube.decoders.manifests import ManifestError
from policies.eviction.kubelet_releases import NEWEST_EVICTION
from tests.builders import Document, node_json, pod_json
from tests.commands import written
from tests.extender.eviction.documents import measured, summary

NODE = node_json("node-1")


def load(tmp_path: Path, *objects: Any, samples: list[Document] | None = None) -> NodeFiles:
    cluster = written(tmp_path, "cluster.json", *objects)
    sampled = written(tmp_path, "summary.json", *([summary(100)] if samples is None else samples))
    return load_node(read_objects([cluster]), [sampled], "node-1", NEWEST_EVICTION)


def names(files: NodeFiles) -> list[str]:
    return [pod.name for pod in files.pods]


def test_the_active_pods_of_the_node_are_read(tmp_path: Path) -> None:
    files = load(
        tmp_path,
        NODE,
        pod_json("running", on="node-1"),
        pod_json("starting", on="node-1", phase="Pending"),
        pod_json("leaving", on="node-1", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        pod_json("failed", on="node-1", phase="Failed"),
        pod_json("done", on="node-1", phase="Succeeded"),
        pod_json("elsewhere", on="node-2"),
        pod_json("nowhere"),
    )
    assert names(files) == ["running", "starting", "leaving"]


def test_a_node_that_only_pods_name_is_known(tmp_path: Path) -> None:
    assert names(load(tmp_path, pod_json("web", on="node-1"))) == ["web"]


def test_a_node_without_pods_is_known(tmp_path: Path) -> None:
    assert names(load(tmp_path, NODE)) == []


def test_an_unknown_node_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNodeError, match="--node: no node 'node-1' in --cluster"):
        load(tmp_path, node_json("other"), pod_json("web", on="other"))


def test_a_pod_without_priority_has_that_of_its_class(tmp_path: Path) -> None:
    own = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    files = load(
        tmp_path,
        own,
        pod_json("high", on="node-1", spec={"priorityClassName": "high"}),
        pod_json("said", on="node-1", priority=1, spec={"priorityClassName": "high"}),
        pod_json("system", on="node-1", spec={"priorityClassName": "system-node-critical"}),
        pod_json("unknown", on="node-1", spec={"priorityClassName": "missing"}),
    )
    assert [pod.priority for pod in files.pods] == [9, 1, 2_000_001_000, 0]


def test_pods_without_uids_take_those_of_their_stats(tmp_path: Path) -> None:
    mirror = {"kubernetes.io/config.mirror": "hash", "kubernetes.io/config.hash": "hash"}
    handmade = pod_json("handmade", on="node-1")
    del handmade["metadata"]["uid"]
    samples = [summary(100, {"podRef": {"uid": "hash"}}, measured("other"))]
    files = load(
        tmp_path,
        pod_json("static", on="node-1", uid="api", metadata={"annotations": mirror}),
        handmade,
        samples=samples,
    )
    assert [pod.uid for pod in files.pods] == ["hash", "default/handmade"]
    mirrored = load(tmp_path, pod_json("x", on="node-1", metadata={"annotations": mirror}))
    assert mirrored.pods[0].uid == "x"


def test_samples_come_in_the_order_of_the_files(tmp_path: Path) -> None:
    cluster = written(tmp_path, "cluster.json", NODE)
    first = written(tmp_path, "1.json", summary(1), summary(2))
    second = written(tmp_path, "2.json", summary(3))
    files = load_node(read_objects([cluster]), [first, second], "node-1", NEWEST_EVICTION)
    left = [each.node.memory.available for each in files.samples if each.node.memory]
    assert left == [2**20, 2 * 2**20, 3 * 2**20]


@pytest.mark.parametrize(
    ("samples", "problem"),
    [
        ([], "summary.json: holds no summary; expected at least one"),
        ([{"pods": []}], r"summary.json\[0\]: \(the object\): object missing required field node"),
        (
            [summary(1), {"node": {"nodeName": "node-2"}}],
            r"summary.json\[1\]: node.nodeName: expected 'node-1' as in --node, got 'node-2'",
        ),
    ],
)
def test_an_invalid_node_sample_is_refused(
    tmp_path: Path, samples: list[Document], problem: str
) -> None:
    with pytest.raises(ManifestError, match=problem):
        load(tmp_path, NODE, samples=samples)


def test_an_unreadable_pod_matters_only_on_the_node(tmp_path: Path) -> None:
    broken = {"containers": [{"resources": {"requests": {"memory": "much"}}}]}
    assert names(load(tmp_path, NODE, pod_json("x", on="node-2", spec=broken))) == []
    with pytest.raises(ManifestError, match=r"cluster.json\[1\]: Pod default/x: spec.containers"):
        load(tmp_path, NODE, pod_json("x", on="node-1", spec=broken))
