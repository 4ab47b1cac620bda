"""After a reset, a cluster is as it was after its start."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from fakeapi import VirtualCluster
from tests.builders import manifest, pod_json

SCRIPT = {"register": [{"name": "node-{}", "count": 2}]}


def names(cluster: VirtualCluster) -> set[tuple[str, str]]:
    return {
        (each["kind"], each["metadata"]["name"])
        for each in cluster.export()
        if each["kind"] != "Event"
    }


@pytest.mark.fake_cluster(run="all", kubelet=SCRIPT)
async def test_a_control_plane_starts_again_after_a_reset(virtual_cluster: VirtualCluster) -> None:
    await virtual_cluster.clock.advance(60)
    at_first = names(virtual_cluster)
    assert {("Node", "node-0"), ("Node", "node-1")} < at_first
    with capture_logs() as logs:
        virtual_cluster.reset()
        virtual_cluster.load(manifest("ConfigMap", "mine"))
        await virtual_cluster.clock.advance(60)
    assert names(virtual_cluster) == at_first | {("ConfigMap", "mine")}
    assert logs == []
    await virtual_cluster.apply(pod_json(name="web"))
    await virtual_cluster.wait_for("pod", "web", "Ready", timeout=60)


@pytest.mark.fake_cluster(run="kubelet", kubelet=SCRIPT)
async def test_a_restored_cluster_has_the_nodes_of_the_snapshot(
    virtual_cluster: VirtualCluster,
) -> None:
    await virtual_cluster.clock.advance(10)
    await virtual_cluster.delete("node", "node-1")
    saved = virtual_cluster.snapshot()
    for _ in range(2):
        virtual_cluster.restore(saved)
        await virtual_cluster.clock.advance(10)
        listed: list[Any] = [*await virtual_cluster.list("nodes")]
        assert [each["metadata"]["name"] for each in listed] == ["node-0"]
