"""DaemonSets in a cluster: which nodes get a pod, updates, and the counts of the status."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.rest.resources import NODES, Resource
from tests.builders import Document
from tests.fakeapi.controlplane.workloads.conftest import (
    SetWorkloads,
    WorkloadStage,
    containers,
    template,
    workload,
)

DAEMON_SETS = Resource("apps", "v1", "daemonsets", namespaced=True)
LONG = 60.0
HASH = "controller-revision-hash"
ALL = {"node-0", "node-1", "node-2"}


def daemon_set(pod: Document | None = None, **spec: Any) -> Document:
    document = workload("DaemonSet", **spec)
    del document["spec"]["replicas"]
    document["spec"]["template"]["spec"] |= pod or {}
    return document


async def opened(workloads: SetWorkloads, document: Document) -> WorkloadStage:
    stage = await workloads("daemonset", seconds=1)
    await stage.patch(NODES, "node-0", {"metadata": {"labels": {"disk": "fast"}}})
    await taint(stage, "node-1", "NoSchedule")
    await stage.create(DAEMON_SETS, document)
    await stage.passes(LONG)
    return stage


async def taint(stage: WorkloadStage, node: str, effect: str) -> None:
    taints = [{"key": "dedicated", "effect": effect}]
    await stage.patch(NODES, node, {"spec": {"taints": taints}})


async def places(stage: WorkloadStage) -> set[str]:
    return {pod["spec"]["nodeName"] for pod in await stage.pods(app="web")}


FAST = [{"key": "disk", "operator": "In", "values": ["fast"]}]
TERMS = {"nodeSelectorTerms": [{"matchExpressions": FAST}]}
PLACED: dict[str, tuple[Document, set[str]]] = {
    "a taint is not tolerated": ({}, ALL - {"node-1"}),
    "all taints are tolerated": ({"tolerations": [{"operator": "Exists"}]}, ALL),
    "a node selector": ({"nodeSelector": {"disk": "fast"}}, {"node-0"}),
    "an affinity": (
        {
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": TERMS},
            },
        },
        {"node-0"},
    ),
}


@pytest.mark.parametrize("name", PLACED)
async def test_a_pod_runs_on_each_node_that_fits(workloads: SetWorkloads, name: str) -> None:
    pod, expected = PLACED[name]
    stage = await opened(workloads, daemon_set(pod))
    assert await places(stage) == expected
    status = await stage.status_of(DAEMON_SETS)
    assert status == {
        "observedGeneration": 1,
        "numberMisscheduled": 0,
        **dict.fromkeys(
            (
                *("desiredNumberScheduled", "currentNumberScheduled", "numberReady"),
                *("numberAvailable", "updatedNumberScheduled"),
            ),
            len(expected),
        ),
    }


async def test_a_pod_names_its_node_and_tolerates_its_conditions(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, daemon_set({"nodeSelector": {"disk": "fast"}}))
    (pod,) = await stage.pods(app="web")
    (required,) = pod["spec"]["affinity"]["nodeAffinity"].values()
    fields = [{"key": "metadata.name", "operator": "In", "values": ["node-0"]}]
    assert required == {"nodeSelectorTerms": [{"matchFields": fields}]}
    tolerated = {(each["key"], each["effect"]) for each in pod["spec"]["tolerations"]}
    assert ("node.kubernetes.io/not-ready", "NoExecute") in tolerated
    assert ("node.kubernetes.io/unschedulable", "NoSchedule") in tolerated
    assert len(tolerated) == 6
    assert HASH in pod["metadata"]["labels"]


async def test_pods_follow_nodes_that_change(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, daemon_set())
    await taint(stage, "node-2", "NoSchedule")
    await stage.passes(LONG)
    assert await places(stage) == {"node-0", "node-2"}
    assert (await stage.status_of(DAEMON_SETS))["numberMisscheduled"] == 1
    await taint(stage, "node-2", "NoExecute")
    await stage.patch(NODES, "node-1", {"spec": {"taints": None}})
    await stage.passes(LONG)
    assert await places(stage) == {"node-0", "node-1"}


@pytest.mark.parametrize(("most", "deleted"), [(1, 1), (2, 2), ("50%", 1), ("60%", 2)])
async def test_an_update_deletes_as_many_pods_as_may_be_unavailable(
    workloads: SetWorkloads, most: int | str, deleted: int
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": most}}
    stage = await opened(workloads, daemon_set(updateStrategy=strategy))
    await stage.patch(DAEMON_SETS, "web", template("v2"))
    await stage.passes(0.5)
    pods = await stage.pods(app="web")
    assert sum("deletionTimestamp" in pod["metadata"] for pod in pods) == deleted
    await stage.passes(LONG)
    images = [p["spec"]["containers"][0]["image"] for p in await stage.pods(app="web")]
    assert images == ["v2", "v2"]
    assert (await stage.status_of(DAEMON_SETS))["updatedNumberScheduled"] == 2


async def test_pods_are_updated_when_they_are_deleted(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, daemon_set(updateStrategy={"type": "OnDelete"}))
    await stage.patch(DAEMON_SETS, "web", template("v2"))
    await stage.passes(LONG)
    first, _ = await stage.pods(app="web")
    await stage.end(first["metadata"]["name"])
    await stage.passes(LONG)
    images = sorted(p["spec"]["containers"][0]["image"] for p in await stage.pods(app="web"))
    assert images == ["v1", "v2"]


async def test_a_failed_pod_is_replaced(workloads: SetWorkloads) -> None:
    pod = containers("v1", nodeSelector={"disk": "fast"})
    stage = await opened(workloads, daemon_set(pod))
    (before,) = await stage.pods(app="web")
    status = {"status": {"phase": "Failed"}}
    await stage.patch(
        Resource("", "v1", "pods", namespaced=True), before["metadata"]["name"], status
    )
    await stage.passes(LONG)
    (after,) = await stage.pods(app="web")
    assert after["metadata"]["name"] != before["metadata"]["name"]
