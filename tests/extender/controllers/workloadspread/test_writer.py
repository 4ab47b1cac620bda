"""The writes of a sync, and their errors: the server refuses, is slow, or has a conflict."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from extender.kube.rest.resources import PODS, Resource
from fakeapi import VirtualCluster
from fakeapi.apiserver.kinds.schemas import shipped_definitions
from fakeapi.testing.faults import Fault, fault
from policies.replicaset import DELETION_COST
from tests.builders.replicas import a_pod, a_replica_set
from tests.extender.controllers.workloadspread.killable_controller import AGENT, Process
from tests.extender.controllers.workloadspread.objects import SPREADS, Document
from tests.extender.controllers.workloadspread.zones import in_zone, node, spread_document
from tests.stage import Stage

OLD_SPREADS: Final = Resource("apps.kruise.io", "v1alpha1", "workloadspreads", namespaced=True)
MATCHED: Final = "apps.kruise.io/matched-workloadspread"
IN_A: Final = {MATCHED: '{"name":"web","subset":"a"}'}
STUCK: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
ADAPTIVE: Final = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 5}}


class World(Stage):
    """A world in which only the controller under test writes."""

    def writes(self) -> list[tuple[str, str, int]]:
        """Return the controller's writes: method, object, and the answer's status."""
        return [
            (each.method, each.path.partition("/default/")[2], each.status)
            for each in self.cluster.requests
            if each.user_agent == AGENT and each.method != "GET" and "/events" not in each.path
        ]

    async def annotations(self) -> dict[str, Document]:
        """Return the annotations of all pods, by name."""
        listed = await self.all(PODS)
        return {
            each["metadata"]["name"]: each["metadata"].get("annotations", {}) for each in listed
        }


@asynccontextmanager
async def world(*objects: Document, faults: tuple[Fault, ...] = ()) -> AsyncIterator[World]:
    """Open a world with these objects in it, and a controller whose requests meet faults."""
    async with VirtualCluster(run="none") as cluster:
        stage = World(cluster)
        stage.load(*shipped_definitions(["workloadspread"]), *map(node, "ab"), *objects)
        if faults:
            cluster.faults.plan(*(each.by(AGENT) for each in faults))
        process = Process(cluster)
        try:
            yield stage
        finally:
            await process.kill()


def web(**spec: Any) -> Document:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web"}
    subsets = [in_zone("a", 2), in_zone("b")]
    return spread_document({"targetRef": reference, "subsets": subsets, **spec})


def running(*names: str) -> list[Document]:
    """Return pods that no webhook has seen, in the zones that their names begin with."""
    return [a_pod(name, "web", node=f"node-{name[0]}") for name in names]


async def test_one_look_writes_pods_then_the_status_and_nothing_twice() -> None:
    pods = running("a1", "b1")
    async with world(web(), a_replica_set(replicas=2), *pods) as stage:
        await stage.passes(60)
        wanted = [("PATCH", "pods/a1", 200), ("PATCH", "pods/b1", 200)]
        writes = stage.writes()
        assert sorted(writes[:2]) == wanted
        assert sorted(writes[2:4]) == wanted
        assert writes[4:] == [("PUT", "workloadspreads/web/status", 200)]
        assert await stage.annotations() == {
            "a1": {MATCHED: '{"name":"web","subset":"a"}', DELETION_COST: "200"},
            "b1": {MATCHED: '{"name":"web","subset":"b"}', DELETION_COST: "100"},
        }


async def test_nothing_is_written_twice_though_the_copies_lag() -> None:
    lagging = fault("lag", seconds=5).on("watch", "pods")
    pods = running("a1", "b1")
    async with world(web(), a_replica_set(replicas=2), *pods, faults=(lagging,)) as stage:
        await stage.passes(10)
        await stage.patch(SPREADS, "web", {"metadata": {"labels": {"x": "y"}}})
        await stage.passes(2)
        await stage.patch(SPREADS, "web", {"metadata": {"labels": {"x": "z"}}})
        await stage.passes(60)
        assert len(stage.writes()) == 5


async def test_an_earlier_write_is_not_overwritten() -> None:
    slow = fault("latency", seconds=3).on("update", "workloadspreads", subresources="status").once()
    async with world(web(), a_replica_set(replicas=2), faults=(slow,)) as stage:
        await stage.passes(1)
        promised = {"name": "a", "replicas": 0, "missingReplicas": 1}
        promised["creatingPods"] = {"to-come": "2026-01-01T00:00:01Z"}
        status = {"versionedSubsetStatuses": {"versionIgnored": [promised]}}
        await stage.patch(SPREADS, "web", {"status": status})
        await stage.passes(10)
        written = [status for _, path, status in stage.writes() if path.endswith("/status")]
        assert written == [409, 200]
        found = await stage.get(SPREADS, "web")
        (entry, _) = found["status"]["versionedSubsetStatuses"]["versionIgnored"]
        assert (entry["missingReplicas"], list(entry["creatingPods"])) == (1, ["to-come"])


async def test_a_write_during_pod_patches_is_kept() -> None:
    slow = fault("latency", seconds=3).on("patch", "pods").once()
    pods = running("a1")
    async with world(web(), a_replica_set(replicas=2), *pods, faults=(slow,)) as stage:
        await stage.passes(1)
        promised = {"name": "a", "replicas": 1, "missingReplicas": 0}
        promised["creatingPods"] = {"to-come": "2026-01-01T00:00:01Z"}
        status = {"versionedSubsetStatuses": {"versionIgnored": [promised]}}
        await stage.patch(SPREADS, "web", {"status": status})
        await stage.passes(10)
        written = [status for _, path, status in stage.writes() if path.endswith("/status")]
        assert written == [200]
        found = await stage.get(SPREADS, "web")
        (entry, _) = found["status"]["versionedSubsetStatuses"]["versionIgnored"]
        assert list(entry["creatingPods"]) == ["to-come"]


def stuck(*names: str) -> list[Document]:
    """Return pods that have been unschedulable in the first subset for a minute."""
    since = "2025-12-31T23:59:00Z"
    pods = [
        a_pod(name, "web", phase="Pending", annotations=IN_A, creationTimestamp=since)
        for name in names
    ]
    for each in pods:
        each["status"]["conditions"] = [STUCK]
    return pods


async def test_failed_pod_deletions_are_reported_and_retried() -> None:
    refused = fault(500).on("delete", "pods").times(3)
    spread = web(scheduleStrategy=ADAPTIVE)
    pods = stuck("s1", "s2")
    async with world(spread, a_replica_set(replicas=2), *pods, faults=(refused,)) as stage:
        await stage.passes(30)
        assert await stage.annotations() == {}
        deletions = [status for method, _, status in stage.writes() if method == "DELETE"]
        assert sorted(deletions) == [200, 200, 500, 500, 500]
        told = {(reason, message) for reason, name, message in await stage.told() if name == "web"}
        named = "in Subset a of WorkloadSpread default/web"
        assert told == {
            ("DeletePodFailed", f"Failed to delete unschedulabe Pod default/{name} {named}")
            for name in ("s1", "s2")
        }


async def test_events_are_sent_even_if_a_pod_deletion_fails() -> None:
    refused = fault(500).on("delete", "pods").once()
    ghost = {"name": "b", "replicas": 0, "missingReplicas": -1}
    ghost["creatingPods"] = {"ghost": "2025-12-31T23:50:00Z"}
    status = {"subsetStatuses": [ghost]}
    spread = {**web(scheduleStrategy=ADAPTIVE), "status": status}
    pods = stuck("s1")
    async with world(spread, a_replica_set(replicas=1), *pods, faults=(refused,)) as stage:
        await stage.passes(30)
        reasons = [reason for reason, name, _ in await stage.told() if name == "web"]
        assert sorted(reasons) == ["CreatePodFailed", "DeletePodFailed"]


async def test_a_missing_or_replaced_pod_is_no_error() -> None:
    slow = fault("latency", seconds=3).on("delete", "pods")
    spread = web(scheduleStrategy=ADAPTIVE)
    pods = stuck("s1", "s2")
    async with world(spread, a_replica_set(replicas=2), *pods, faults=(slow,)) as stage:
        await stage.passes(1)
        await stage.delete(PODS, "s1")
        await stage.delete(PODS, "s2")
        stage.load({**a_pod("s2", "web", node="node-b"), "metadata": renamed("s2")})
        await stage.passes(30)
        deletions = [status for method, _, status in stage.writes() if method == "DELETE"]
        assert sorted(deletions) == [404, 409]
        assert list(await stage.annotations()) == ["s2"]
        assert await stage.told() == []


def renamed(name: str) -> Document:
    return {**a_pod(name, "web")["metadata"], "uid": "another"}


async def test_where_one_pod_cannot_be_written_the_others_are() -> None:
    refused = fault(503).on("patch", "pods").times(1)
    names = [f"a{number}" for number in range(20)]
    pods = running(*names)
    async with world(web(), a_replica_set(replicas=20), *pods, faults=(refused,)) as stage:
        await stage.passes(30)
        first = stage.writes()[: len(names)]
        assert {path for _, path, _ in first} == {f"pods/{name}" for name in names}
        assert [status for _, _, status in first].count(503) == 1
        costs = [each[DELETION_COST] for each in (await stage.annotations()).values()]
        assert sorted(costs) == ["-100"] * 18 + ["200"] * 2


async def test_hundreds_of_new_keys_are_synced_at_once() -> None:
    sets, spreads = [], []
    for number in range(300):
        sets.append(a_replica_set(f"web-{number}", replicas=1))
        document = web()
        document["metadata"] = {**document["metadata"], "name": f"web-{number}"}
        document["spec"]["targetRef"]["name"] = f"web-{number}"
        spreads.append(document)
    async with world(*sets, *spreads) as stage:
        await stage.passes(2)
        listed = await stage.all(SPREADS)
        assert sum("status" in each for each in listed) == 300


async def test_an_older_server_is_written_to_in_its_own_version() -> None:
    (definition,) = shipped_definitions(["workloadspread"])
    (_, old) = definition["spec"]["versions"]
    only_old = {**definition["spec"], "versions": [{**old, "storage": True}]}
    only_old["conversion"] = {"strategy": "None"}
    async with VirtualCluster(run="none") as cluster:
        stage = World(cluster)
        spread = {**web(), "apiVersion": "apps.kruise.io/v1alpha1"}
        term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
        spread["spec"]["subsets"] = [{"name": "a", "requiredNodeSelectorTerm": term}]
        stage.load({**definition, "spec": only_old}, node("a"), a_replica_set(replicas=1))
        stage.load(spread, *running("a1"))
        process = Process(cluster)
        await stage.passes(5)
        await process.kill()
        found = await stage.get(OLD_SPREADS, "web")
        assert found["spec"] == spread["spec"]
        assert found["status"]["subsetStatuses"][0]["replicas"] == 1
        assert (await stage.annotations())["a1"][DELETION_COST] == "100"
