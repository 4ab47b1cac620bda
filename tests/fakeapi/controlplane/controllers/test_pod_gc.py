"""Pods that no other component would ever end."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.rest.resources import NODES, PODS
from fakeapi.controlplane.controllers.pod_gc import MissingNodes, finished_above_threshold
from fakeapi.controlplane.controllers.types import Pod, decode_pod
from tests.builders import Document, encoded, running_pod
from tests.fakeapi.controlplane.conftest import SetStage
from tests.stage import Stage

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node", "uid": "node"}}


def finished(name: str, created: int, phase: str = "Succeeded", reason: str = "") -> Pod:
    metadata = {"name": name, "creationTimestamp": f"2026-01-01T00:00:{created:02}Z"}
    status = {"phase": phase, "reason": reason}
    return decode_pod(encoded({"metadata": metadata, "status": status}))  # type: ignore[arg-type]


def test_the_evicted_go_first_then_the_oldest_then_by_name() -> None:
    pods = [
        finished("c", 2),
        finished("b", 1),
        finished("a", 1),
        finished("e", 9, "Failed", "Evicted"),
        finished("r", 0, "Running"),
    ]
    assert [p.metadata.name for p in finished_above_threshold(pods, 1)] == ["e", "a", "b"]
    assert finished_above_threshold(pods, 4) == finished_above_threshold(pods, 0) == []


def test_a_node_is_missed_for_a_while_before_it_counts_as_gone() -> None:
    quarantine = MissingNodes({})
    assert quarantine.update(["a", "b"], 0) == []
    assert quarantine.update(["a"], 20) == [], "b has come back"
    assert quarantine.update(["a", "b"], 40) == ["a"]
    assert quarantine.update(["b"], 80) == ["b"]


async def stage_of(set_stage: SetStage, *things: Document) -> Stage:
    stage = await set_stage("podgc")
    stage.load(*things)
    return stage


async def test_pods_of_a_node_that_has_gone_fail_and_go(set_stage: SetStage) -> None:
    stage = await stage_of(set_stage, NODE, running_pod("p", "node"), running_pod("q", "other"))
    await stage.passes(39)
    assert await stage.names(PODS) == ["p", "q"]
    await stage.passes(21)
    assert await stage.names(PODS) == ["p"]
    last = [c.object for c in stage.cluster.history("pods", name="q")][-1]["status"]
    assert last["phase"] == "Failed"
    mark = next(c for c in last["conditions"] if c["type"] == "DisruptionTarget")
    assert (mark["reason"], mark["message"]) == ("DeletionByPodGC", "PodGC: node no longer exists")


async def test_a_node_that_comes_back_in_time_keeps_its_pods(set_stage: SetStage) -> None:
    stage = await stage_of(set_stage, running_pod("p", "node"))
    await stage.passes(30)
    stage.load(NODE)
    await stage.passes(300)
    assert await stage.names(PODS) == ["p"]


async def test_a_pod_deleted_before_it_was_bound_is_removed(set_stage: SetStage) -> None:
    pod = running_pod("p", "")
    pod["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    stage = await stage_of(set_stage, pod)
    await stage.passes(1)
    assert await stage.names(PODS) == []


OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("taints", "ready", "left"),
    [
        ([OUT_OF_SERVICE], "False", []),
        ([OUT_OF_SERVICE], "True", ["p"]),
        ([], "False", ["p"]),
    ],
)
async def test_terminating_pods_on_an_out_of_service_node(
    taints: list[Any], ready: str, left: list[str], set_stage: SetStage
) -> None:
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    stage = await stage_of(
        set_stage, {**NODE, "spec": {"taints": taints}, "status": status}, running_pod("p", "node")
    )
    await stage.delete(PODS, "p")
    await stage.passes(60)
    assert await stage.names(PODS) == left
    assert await stage.names(NODES) == ["node"]
