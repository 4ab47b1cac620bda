"""In adaptive mode a pod is tried on the nodes before it is put anywhere."""

from __future__ import annotations

from typing import Any

import pytest

from extender.controllers.workloadspread.spread_cache import WORKLOAD_SPREADS
from tests.builders import running_pod
from tests.builders.workloadspread import Document, spread_json
from tests.extender.controllers.webhooks.clusters import put_into
from tests.extender.controllers.webhooks.stages import KRUISE, counts, pod, stage
from tests.stage import Stage


def node(name: str, zone: str, cpu: str = "2") -> Document:
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"zone": zone}},
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


def in_zone(zone: str, **fields: Any) -> Document:
    expression = {"key": "zone", "operator": "In", "values": [zone]}
    return {
        "name": zone,
        "requiredNodeSelector": {"matchExpressions": [expression]},
        **fields,
    }


def spread(**adaptive: Any) -> Document:
    return spread_json(
        in_zone("a", maxReplicas=5),
        in_zone("b"),
        scheduleStrategy={"type": "Adaptive", "adaptive": adaptive},
    )


def wanting(cpu: str) -> dict[str, Document]:
    container = {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": cpu}}}
    return {"spec": {"containers": [container]}}


def filling(name: str, on: str, cpu: str) -> Document:
    return {**running_pod(name, on), "spec": {"nodeName": on, **wanting(cpu)["spec"]}}


async def subset(stage: Stage, name: str, cpu: str = "1") -> str | None:
    return (put_into(await pod(stage, name, **wanting(cpu))) or {}).get("subset")


async def test_a_full_subset_is_passed_over_and_its_condition_says_why() -> None:
    there = (node("one", "a"), node("two", "b"), filling("busy", "one", "1500m"))
    async with stage(*KRUISE, *there, spread()) as world:
        assert await subset(world, "web-1") == "b"
        found = await world.get(WORKLOAD_SPREADS, "web")
        [first, _] = found["status"]["versionedSubsetStatuses"]["versionIgnored"]
        [condition] = first["conditions"]
        assert (condition["status"], condition["reason"]) == ("Unknown", "SimulationFailed")
        assert "0/2 nodes are available: 1 Insufficient cpu" in condition["message"]
        assert await counts(world) == {"versionIgnored": {"a": 5, "b": -1}}


async def test_node_changes_count_at_once() -> None:
    there = (node("one", "a"), node("two", "b"))
    async with stage(*KRUISE, *there, spread()) as world:
        assert await subset(world, "web-1") == "a"
        world.load(filling("busy", "one", "1500m"))
        await world.passes()
        assert await subset(world, "web-2") == "b"


@pytest.mark.parametrize(
    "document",
    [
        spread(disableSimulationSchedule=True),
        {**spread(), "spec": {**spread()["spec"], "scheduleStrategy": {"type": "Fixed"}}},
    ],
    ids=["switched off", "fixed"],
)
async def test_otherwise_nothing_is_tried(document: Document) -> None:
    there = (node("one", "a"), node("two", "b"), filling("busy", "one", "1500m"))
    async with stage(*KRUISE, *there, document) as world:
        assert await subset(world, "web-1") == "a"


async def test_where_no_node_is_known_nothing_is_tried() -> None:
    async with stage(*KRUISE, spread()) as world:
        assert await subset(world, "web-1") == "a"
