"""The writes of a sync, and their errors: the server refuses, is slow, or has a conflict."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import pytest

from extender.kube.rest.resources import PODS
from fakeapi.testing.faults import Fault, fault
from policies.replicaset import DELETION_COST
from tests.builders import Document
from tests.builders.replicas import a_pod, a_replica_set
from tests.builders.workloadspread import in_zone, injected, spread_json, target_json
from tests.extender.controllers.workloadspread.stages import (
    ControllerStage,
    controller_stage,
    stuck_pod,
)
from tests.extender.controllers.workloadspread.zones import DEFINITIONS, zone_node
from tests.stage import OLD_SPREADS, SPREADS

SLOW: Final = fault("latency", seconds=3)
ADAPTIVE: Final = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 5}}


def web_spread(name: str = "web", **spec: Any) -> Document:
    target = target_json("ReplicaSet", name=name)
    return spread_json(in_zone("a", 2), in_zone("b"), name=name, targetRef=target, **spec)


def two_zones(
    *objects: Document, replicas: int = 2, faults: tuple[Fault, ...] = ()
) -> AbstractAsyncContextManager[ControllerStage]:
    """Open a stage with two nodes, the ReplicaSet ``web``, and these objects."""
    nodes = map(zone_node, "ab")
    workload = a_replica_set(replicas=replicas)
    return controller_stage(*DEFINITIONS, *nodes, workload, *objects, faults=faults)


def running(*names: str) -> list[Document]:
    """Build pods that no webhook has seen, in the zones that their names begin with."""
    return [a_pod(name, "web", node=f"node-{name[0]}") for name in names]


async def test_a_sync_writes_pods_then_the_status_and_nothing_twice() -> None:
    pods = running("a1", "b1")
    async with two_zones(web_spread(), *pods) as stage:
        await stage.passes(60)
        expected = [("PATCH", "pods/a1", 200), ("PATCH", "pods/b1", 200)]
        writes = stage.writes()
        assert sorted(writes[:2]) == expected
        assert sorted(writes[2:4]) == expected
        assert writes[4:] == [("PUT", "workloadspreads/web/status", 200)]
        assert await stage.annotations() == {
            "a1": {**injected("a"), DELETION_COST: "200"},
            "b1": {**injected("b"), DELETION_COST: "100"},
        }


async def test_nothing_is_written_twice_while_the_caches_lag() -> None:
    lagging = fault("lag", seconds=5).on("watch", "pods")
    pods = running("a1", "b1")
    async with two_zones(web_spread(), *pods, faults=(lagging,)) as stage:
        await stage.passes(10)
        await stage.patch(SPREADS, "web", {"metadata": {"labels": {"x": "y"}}})
        await stage.passes(2)
        await stage.patch(SPREADS, "web", {"metadata": {"labels": {"x": "z"}}})
        await stage.passes(60)
        assert len(stage.writes()) == 5


@pytest.mark.parametrize(
    ("slow", "pods", "missing", "responses"),
    [
        (SLOW.on("update", "workloadspreads", subresources="status"), [], 1, [409, 200]),
        (SLOW.on("patch", "pods"), ["a1"], 0, [200]),
    ],
    ids=["before the status is written", "while pods are patched"],
)
async def test_a_status_that_another_client_writes_is_kept(
    slow: Fault, pods: list[str], missing: int, responses: list[int]
) -> None:
    async with two_zones(web_spread(), *running(*pods), faults=(slow.once(),)) as stage:
        await stage.passes(1)
        subset: Document = {"name": "a", "replicas": len(pods), "missingReplicas": missing}
        subset["creatingPods"] = {"to-come": "2026-01-01T00:00:01Z"}
        status = {"versionedSubsetStatuses": {"versionIgnored": [subset]}}
        await stage.patch(SPREADS, "web", {"status": status})
        await stage.passes(10)
        assert stage.statuses("PUT", "/status") == responses
        (found, _) = (await stage.status_of(SPREADS))["versionedSubsetStatuses"]["versionIgnored"]
        assert (found["missingReplicas"], list(found["creatingPods"])) == (missing, ["to-come"])


async def test_failed_pod_deletions_are_reported_and_retried() -> None:
    refused = fault(500).on("delete", "pods").times(3)
    spread = web_spread(scheduleStrategy=ADAPTIVE)
    pods = map(stuck_pod, ("s1", "s2"))
    async with two_zones(spread, *pods, faults=(refused,)) as stage:
        await stage.passes(30)
        assert await stage.annotations() == {}
        assert sorted(stage.statuses("DELETE")) == [200, 200, 500, 500, 500]
        place = "in Subset a of WorkloadSpread default/web"
        assert {each for each in await stage.list_events() if each[1] == "web"} == {
            ("DeletePodFailed", "web", f"Failed to delete unschedulabe Pod default/{name} {place}")
            for name in ("s1", "s2")
        }


async def test_events_are_sent_even_if_a_pod_deletion_fails() -> None:
    refused = fault(500).on("delete", "pods").once()
    missing: Document = {"name": "b", "replicas": 0, "missingReplicas": -1}
    missing["creatingPods"] = {"missing": "2025-12-31T23:50:00Z"}
    spread = {**web_spread(scheduleStrategy=ADAPTIVE), "status": {"subsetStatuses": [missing]}}
    pods = [stuck_pod("s1")]
    async with two_zones(spread, *pods, replicas=1, faults=(refused,)) as stage:
        await stage.passes(30)
        reasons = [reason for reason, name, _ in await stage.list_events() if name == "web"]
        assert sorted(reasons) == ["CreatePodFailed", "DeletePodFailed"]


async def test_a_missing_or_replaced_pod_is_no_error() -> None:
    spread = web_spread(scheduleStrategy=ADAPTIVE)
    pods = map(stuck_pod, ("s1", "s2"))
    async with two_zones(spread, *pods, faults=(SLOW.on("delete", "pods"),)) as stage:
        await stage.passes(1)
        await stage.delete(PODS, "s1")
        await stage.delete(PODS, "s2")
        another = a_pod("s2", "web", node="node-b", uid="another")
        stage.load(another)
        await stage.passes(30)
        assert sorted(stage.statuses("DELETE")) == [404, 409]
        assert list(await stage.annotations()) == ["s2"]
        assert await stage.list_events() == []


async def test_an_error_of_one_pod_s_patch_blocks_no_other() -> None:
    refused = fault(503).on("patch", "pods").times(1)
    names = [f"a{number}" for number in range(20)]
    pods = running(*names)
    async with two_zones(web_spread(), *pods, replicas=20, faults=(refused,)) as stage:
        await stage.passes(30)
        first = stage.writes()[: len(names)]
        assert {path for _, path, _ in first} == {f"pods/{name}" for name in names}
        assert [status for _, _, status in first].count(503) == 1
        costs = [each[DELETION_COST] for each in (await stage.annotations()).values()]
        assert sorted(costs) == ["-100"] * 18 + ["200"] * 2


async def test_hundreds_of_new_keys_are_synced_at_once() -> None:
    names = [f"web-{number}" for number in range(300)]
    sets = [a_replica_set(name, replicas=1) for name in names]
    async with two_zones(*sets, *map(web_spread, names)) as stage:
        await stage.passes(2)
        assert sum("status" in each for each in await stage.all(SPREADS)) == 300


async def test_an_older_server_is_written_to_in_its_own_version() -> None:
    (definition,) = DEFINITIONS
    (_, old) = definition["spec"]["versions"]
    only_old = {**definition["spec"], "versions": [{**old, "storage": True}]}
    only_old["conversion"] = {"strategy": "None"}
    term = in_zone("a")["requiredNodeSelector"]
    spread = web_spread(subsets=[{"name": "a", "requiredNodeSelectorTerm": term}])
    spread["apiVersion"] = "apps.kruise.io/v1alpha1"
    objects = (zone_node("a"), a_replica_set(replicas=1), spread, *running("a1"))
    async with controller_stage({**definition, "spec": only_old}, *objects) as stage:
        await stage.passes(5)
        found = await stage.get(OLD_SPREADS, "web")
        assert found["spec"] == spread["spec"]
        assert found["status"]["subsetStatuses"][0]["replicas"] == 1
        assert (await stage.annotations())["a1"][DELETION_COST] == "100"
