"""The keys that an event enqueues: upstream's table of events, and cases that it lacks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import orjson
import pytest

from extender.controllers.process.controller_manager import ComponentSwitch
from extender.kube.rest.client import Propagation
from extender.kube.rest.resources import NODES, PODS, REPLICA_SETS, STATEFUL_SETS, Resource
from extender.kube.workloadspread.spread_pods import MATCHED_WORKLOADSPREAD
from fakeapi import VirtualCluster
from tests.builders import Document
from tests.builders.replicas import a_pod, a_replica_set
from tests.builders.workloadspread import UNSCHEDULABLE, injected, spread_json, target_json
from tests.extender.controllers.workloadspread.objects import CLONE_SET_DEFINITION, definition
from tests.extender.controllers.workloadspread.zones import DEFINITIONS, zone_node
from tests.stage import DEPLOYMENTS, JOBS, SPREADS, Stage
from tests.vectors.workloadspread import CASES, of

ADVANCED: Final = Resource("apps.kruise.io", "v1beta1", "statefulsets", namespaced=True)
RESOURCES: Final = {
    ("apps/v1", "Deployment"): DEPLOYMENTS,
    ("apps/v1", "ReplicaSet"): REPLICA_SETS,
    ("apps/v1", "StatefulSet"): STATEFUL_SETS,
    ("apps.kruise.io/v1beta1", "StatefulSet"): ADVANCED,
    ("batch/v1", "Job"): JOBS,
    ("v1", "Pod"): PODS,
}
TABLE: Final = [data for data in CASES if data["table"] == "event_enqueue"]


class QueueStage(Stage):
    """A stage whose controller enqueues keys, and syncs only when a test calls it."""

    @property
    def controller(self) -> ComponentSwitch:
        return self.cluster.control_plane["workloadspread"]

    async def sync_all(self) -> None:
        """Sync enqueued keys until the queue is empty."""
        while await self.has_enqueued():
            await self.controller.step()

    async def has_enqueued(self) -> bool:
        """Return whether any key is enqueued."""
        await self.passes(2)
        return self.controller.pending > 0


@asynccontextmanager
async def queue_stage(*objects: Document, quirks: str = "fixed") -> AsyncIterator[QueueStage]:
    """Open a stage with these objects, all of which have been synced."""
    async with VirtualCluster(run="none", quirks=quirks) as cluster:
        advanced = definition("apps.kruise.io/v1beta1", "StatefulSet")
        stage = QueueStage(cluster)
        stage.load(*DEFINITIONS, CLONE_SET_DEFINITION, advanced, *objects)
        stage.controller.pause()
        stage.controller.start()
        await stage.sync_all()
        yield stage


def spread_of(pod: Document) -> Document:
    """Build the WorkloadSpread that a pod has been put into."""
    name = orjson.loads(pod["metadata"]["annotations"][MATCHED_WORKLOADSPREAD])["name"]
    target = target_json("ReplicaSet", name="elsewhere")
    return spread_json({"name": "subset-demo"}, name=name, targetRef=target)


@pytest.mark.parametrize("data", TABLE, ids=of)
async def test_upstreams_table(data: dict[str, Any]) -> None:
    thing: Document = data["workload"] or data["pods"][0]
    spread = data["workloadspread"] or spread_of(thing)
    resource = RESOURCES[thing["apiVersion"], thing["kind"]]
    name, operation = thing["metadata"]["name"], data["operation"]
    before = [] if operation == "create" else [thing]
    async with queue_stage(spread, *before) as stage:
        match operation:
            case "create":
                stage.load(thing)
            case "update":
                stage.load(data["newWorkload"])
            case "delete":
                await stage.delete(resource, name, Propagation.BACKGROUND)
        assert await stage.has_enqueued() == bool(data["expect"]["enqueued"])


WEB: Final = spread_json(
    {"name": "a", "maxReplicas": 2}, {"name": "b"}, targetRef=target_json("ReplicaSet")
)
FAILED: Final = {"status": {"phase": "Failed"}}
BOUND: Final = {"spec": {"nodeName": "node-a"}}

CHANGES: Final[dict[str, tuple[Document, Document, bool, bool]]] = {
    "it becomes ready": ({}, {"status": {"phase": "Running"}}, False, False),
    "it fails": ({}, FAILED, True, True),
    "it gets another label": ({}, {"metadata": {"labels": {"more": "x"}}}, False, False),
    "it gets another version": (
        {},
        {"metadata": {"labels": {"pod-template-hash": "h2"}}},
        True,
        True,
    ),
    "it is unschedulable": ({}, {"status": {"conditions": [UNSCHEDULABLE]}}, True, False),
    "it is put on a node": ({}, BOUND, False, False),
    "a pod without a subset is put on a node": ({"annotations": {}}, BOUND, True, False),
    "a pod without a subset fails": (
        {"annotations": {}},
        {"status": {"phase": "Failed"}},
        False,
        False,
    ),
}
"""A pod's fields, its change, and whether its WorkloadSpread is enqueued, here and upstream."""


@pytest.mark.parametrize(
    ("metadata", "change", "fixed", "upstream"), CHANGES.values(), ids=list(CHANGES)
)
@pytest.mark.parametrize("quirks", ["fixed", "upstream"])
async def test_a_changed_pod_enqueues_its_workload_spread_if_that_matters(
    metadata: Document, change: Document, quirks: str, *, fixed: bool, upstream: bool
) -> None:
    pod = a_pod("web-1", "web", phase="Pending", **{"annotations": injected("a"), **metadata})
    async with queue_stage(WEB, a_replica_set(replicas=1), pod, quirks=quirks) as stage:
        changed = {**pod, "status": pod["status"] | change.get("status", {})}
        changed["spec"] = pod["spec"] | change.get("spec", {})
        labels = pod["metadata"]["labels"] | change.get("metadata", {}).get("labels", {})
        changed["metadata"] = {**pod["metadata"], "labels": labels}
        stage.load(changed)
        assert await stage.has_enqueued() == (fixed if quirks == "fixed" else upstream)


async def test_a_changed_or_deleted_workload_spread_is_enqueued() -> None:
    async with queue_stage(WEB, a_replica_set()) as stage:
        await stage.patch(SPREADS, "web", {"metadata": {"labels": {"x": "y"}}})
        assert await stage.has_enqueued()
        await stage.sync_all()
        await stage.delete(SPREADS, "web")
        assert await stage.has_enqueued()


async def test_new_pods_enqueue_their_workload_spread() -> None:
    async with queue_stage(WEB, a_replica_set()) as stage:
        stage.load(a_pod("mine", "web", annotations=injected("a")))
        assert await stage.has_enqueued()
        await stage.sync_all()
        stage.load(a_pod("waiting", "web", phase="Pending"))
        assert not await stage.has_enqueued()
        stage.load(a_pod("on-a-node", "web", node="node-a"))
        assert await stage.has_enqueued()
        await stage.sync_all()
        stage.load(a_pod("strange", "another", node="node-a"), a_pod("orphan", node="node-a"))
        assert not await stage.has_enqueued()


async def test_a_changed_node_enqueues_nothing() -> None:
    async with queue_stage(WEB, a_replica_set(), zone_node("a")) as stage:
        await stage.patch(NODES, "node-a", {"metadata": {"labels": {"zone": "b"}}})
        assert not await stage.has_enqueued()


async def test_an_invalid_object_is_logged_and_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    broken = a_pod("broken", "web", node="node-a")
    broken["metadata"]["creationTimestamp"] = "yesterday"
    invalid = a_replica_set("invalid", replicas="many")
    async with queue_stage(WEB, a_replica_set(replicas=1), invalid) as stage:
        stage.load(broken)
        assert not await stage.has_enqueued()
        log = capsys.readouterr().out
        assert ("pod_ignored" in log, "workload_ignored" in log) == (True, True)
        stage.load(a_pod("broken", "web", annotations=injected("a")))
        assert await stage.has_enqueued()
        await stage.sync_all()
        stage.load(broken)
        assert await stage.has_enqueued()
