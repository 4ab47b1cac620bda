"""Which keys an event enqueues: upstream's table of events, and cases that it lacks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import orjson
import pytest

from extender.controllers.process.controller_manager import ComponentSwitch
from extender.kube.rest.client import Propagation
from extender.kube.rest.resources import NODES, PODS, REPLICA_SETS, STATEFUL_SETS, Resource
from fakeapi import VirtualCluster
from fakeapi.apiserver.kinds.schemas import shipped_definitions
from tests.builders.replicas import a_pod, a_replica_set
from tests.extender.controllers.workloadspread.objects import (
    CLONE_SET_DEFINITION,
    DEPLOYMENTS,
    JOBS,
    SPREADS,
    Document,
    definition,
)
from tests.extender.controllers.workloadspread.zones import node, spread_document
from tests.stage import Stage
from tests.workloadspread_vectors import CASES, of

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
MATCHED: Final = "apps.kruise.io/matched-workloadspread"
IN_A: Final = {MATCHED: '{"name":"web","subset":"a"}'}


class Watching(Stage):
    """A world with a controller that records enqueued keys, and does not sync."""

    @property
    def part(self) -> ComponentSwitch:
        return self.cluster.control_plane["workloadspread"]

    async def rest(self) -> None:
        """Sync enqueued keys until the queue is empty."""
        await self.passes(2)
        while self.part.pending:
            await self.part.step()
            await self.passes(2)

    async def follows(self) -> bool:
        """Return whether anything is to be looked at."""
        await self.passes(2)
        return self.part.pending > 0


@asynccontextmanager
async def watching(*objects: Document, quirks: str = "fixed") -> AsyncIterator[Watching]:
    """Open a world with these objects in it, all of which has been looked at."""
    async with VirtualCluster(run="none", quirks=quirks) as cluster:
        advanced = definition("apps.kruise.io/v1beta1", "StatefulSet")
        cluster.load([*shipped_definitions(["workloadspread"]), CLONE_SET_DEFINITION, advanced])
        cluster.load(objects)
        stage = Watching(cluster)
        stage.part.pause()
        stage.part.start()
        await stage.rest()
        yield stage


def spread_for(pod: Document) -> Document:
    """Return the WorkloadSpread that a pod has been put into."""
    name = orjson.loads(pod["metadata"]["annotations"][MATCHED])["name"]
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "elsewhere"}
    document = spread_document({"targetRef": reference, "subsets": [{"name": "subset-demo"}]})
    return {**document, "metadata": {**document["metadata"], "name": name}}


@pytest.mark.parametrize("data", TABLE, ids=of)
async def test_upstream_s_table(data: dict[str, Any]) -> None:
    thing: Document = data["workload"] or data["pods"][0]
    spread = data["workloadspread"] or spread_for(thing)
    resource = RESOURCES[thing["apiVersion"], thing["kind"]]
    name, operation = thing["metadata"]["name"], data["operation"]
    before = [] if operation == "create" else [thing]
    async with watching(spread, *before) as stage:
        match operation:
            case "create":
                stage.load(thing)
            case "update":
                stage.load(data["newWorkload"])
            case "delete":
                await stage.delete(resource, name, Propagation.BACKGROUND)
        assert await stage.follows() == bool(data["expect"]["enqueued"])


def web(**spec: Any) -> Document:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
    subsets = [{"name": "a", "maxReplicas": 2}, {"name": "b"}]
    return spread_document({"targetRef": reference, "subsets": subsets, **spec})


STUCK: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
BOUND: Final = {"spec": {"nodeName": "node-a"}}

CHANGES: Final[dict[str, tuple[Document, Document, bool, bool]]] = {
    "it becomes ready": ({}, {"status": {"phase": "Running"}}, False, False),
    "it fails": ({}, {"status": {"phase": "Failed"}}, True, True),
    "it gets another label": ({}, {"metadata": {"labels": {"more": "x"}}}, False, False),
    "it gets another version": (
        {},
        {"metadata": {"labels": {"pod-template-hash": "h2"}}},
        True,
        True,
    ),
    "it is unschedulable": ({}, {"status": {"conditions": [STUCK]}}, True, False),
    "it is put on a node": ({}, BOUND, False, False),
    "a pod of nobody's is put on a node": ({"annotations": {}}, BOUND, True, False),
    "a pod of nobody's fails": ({"annotations": {}}, {"status": {"phase": "Failed"}}, False, False),
}
"""A pod's fields, its change, and whether it is enqueued, here and upstream."""


@pytest.mark.parametrize(
    ("metadata", "change", "fixed", "upstream"), CHANGES.values(), ids=list(CHANGES)
)
@pytest.mark.parametrize("quirks", ["fixed", "upstream"])
async def test_a_pod_changes(
    metadata: Document, change: Document, quirks: str, *, fixed: bool, upstream: bool
) -> None:
    pod = a_pod("web-1", "web", phase="Pending", **{"annotations": IN_A, **metadata})
    async with watching(web(), a_replica_set(replicas=1), pod, quirks=quirks) as stage:
        changed = {**pod, "status": pod["status"] | change.get("status", {})}
        changed["spec"] = pod["spec"] | change.get("spec", {})
        labels = pod["metadata"]["labels"] | change.get("metadata", {}).get("labels", {})
        changed["metadata"] = {**pod["metadata"], "labels": labels}
        stage.load(changed)
        assert await stage.follows() == (fixed if quirks == "fixed" else upstream)


async def test_a_workload_spread_that_changes_or_goes_is_looked_at() -> None:
    async with watching(web(), a_replica_set()) as stage:
        await stage.patch(SPREADS, "web", {"metadata": {"labels": {"x": "y"}}})
        assert await stage.follows()
        await stage.rest()
        await stage.delete(SPREADS, "web")
        assert await stage.follows()


async def test_new_pods_enqueue_their_workload_spread() -> None:
    async with watching(web(), a_replica_set()) as stage:
        stage.load(a_pod("mine", "web", annotations=IN_A))
        assert await stage.follows()
        await stage.rest()
        stage.load(a_pod("waiting", "web", phase="Pending"))
        assert not await stage.follows()
        stage.load(a_pod("on-a-node", "web", node="node-a"))
        assert await stage.follows()
        await stage.rest()
        stage.load(a_pod("strange", "another", node="node-a"), a_pod("orphan", node="node-a"))
        assert not await stage.follows()


async def test_nodes_are_only_read() -> None:
    async with watching(web(), a_replica_set(), node("a")) as stage:
        await stage.patch(NODES, "node-a", {"metadata": {"labels": {"zone": "b"}}})
        assert not await stage.follows()


async def test_an_invalid_object_is_logged_and_skipped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    broken = a_pod("broken", "web", node="node-a")
    broken["metadata"]["creationTimestamp"] = "yesterday"
    sick = a_replica_set("sick", replicas="many")
    async with watching(web(), a_replica_set(replicas=1), sick) as stage:
        stage.load(broken)
        assert not await stage.follows()
        told = capsys.readouterr().out
        assert ("pod_ignored" in told, "workload_ignored" in told) == (True, True)
        stage.load(a_pod("broken", "web", annotations=IN_A))
        assert await stage.follows()
        await stage.rest()
        stage.load(broken)
        assert await stage.follows()
