"""Pods that no other component deletes."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.rest.resources import NODES, PODS
from fakeapi.controlplane.controllers.pod_gc import MissingNodes, finished_above_threshold
from fakeapi.controlplane.controllers.types import Pod, decode_pod
from tests.builders import encoded, pod_json, running_pod, thing
from tests.fakeapi.controlplane.conftest import SetStage

NODE = thing("node", kind="Node", namespace="")


def finished(name: str, created: int, phase: str = "Succeeded", reason: str = "") -> Pod:
    metadata = {"creationTimestamp": f"2026-01-01T00:00:{created:02}Z"}
    document = pod_json(name, phase=phase, metadata=metadata, status={"reason": reason})
    return decode_pod(encoded(document))  # type: ignore[arg-type]


def test_evicted_pods_are_deleted_first_then_the_oldest_then_by_name() -> None:
    pods = [
        finished("c", 2),
        finished("b", 1),
        finished("a", 1),
        finished("e", 9, "Failed", "Evicted"),
        finished("r", 0, "Running"),
    ]
    assert [p.metadata.name for p in finished_above_threshold(pods, 1)] == ["e", "a", "b"]
    assert finished_above_threshold(pods, 4) == finished_above_threshold(pods, 0) == []


def test_a_node_counts_as_deleted_after_a_while() -> None:
    missing = MissingNodes({})
    assert missing.update(["a", "b"], 0) == []
    assert missing.update(["a"], 20) == [], "b exists again"
    assert missing.update(["a", "b"], 40) == ["a"]
    assert missing.update(["b"], 80) == ["b"]


async def test_pods_of_a_deleted_node_fail_and_are_deleted(set_stage: SetStage) -> None:
    pods = running_pod("p", "node"), running_pod("q", "other")
    stage = await set_stage("podgc", NODE, *pods, seconds=39)
    assert await stage.names(PODS) == ["p", "q"]
    assert await stage.names(PODS, after=21) == ["p"]
    last = [c.object for c in stage.cluster.history("pods", name="q")][-1]["status"]
    assert last["phase"] == "Failed"
    mark = next(c for c in last["conditions"] if c["type"] == "DisruptionTarget")
    assert (mark["reason"], mark["message"]) == ("DeletionByPodGC", "PodGC: node no longer exists")


async def test_a_node_that_is_created_again_in_time_keeps_its_pods(set_stage: SetStage) -> None:
    stage = await set_stage("podgc", running_pod("p", "node"), seconds=30)
    stage.load(NODE)
    assert await stage.names(PODS, after=300) == ["p"]


async def test_a_pod_deleted_before_it_was_bound_is_removed(set_stage: SetStage) -> None:
    pod = running_pod("p", "", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    stage = await set_stage("podgc", pod, seconds=1)
    assert await stage.names(PODS) == []


OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("taints", "ready", "left"),
    [([OUT_OF_SERVICE], "False", []), ([OUT_OF_SERVICE], "True", ["p"]), ([], "False", ["p"])],
)
async def test_terminating_pods_on_an_out_of_service_node(
    taints: list[Any], ready: str, left: list[str], set_stage: SetStage
) -> None:
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    node = {**NODE, "spec": {"taints": taints}, "status": status}
    stage = await set_stage("podgc", node, running_pod("p", "node"))
    await stage.delete(PODS, "p")
    assert await stage.names(PODS, after=60) == left
    assert await stage.names(NODES) == ["node"]
