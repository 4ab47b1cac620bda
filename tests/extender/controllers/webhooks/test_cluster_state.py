"""In adaptive mode a pod is put only into a subset whose nodes have room for it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container_json, node_json, pod_json
from tests.builders.workloadspread import Document, in_zone, spread_json
from tests.extender.controllers.webhooks.stages import webhook_stage
from tests.stage import SPREADS

NODES = tuple(
    node_json(name, cpu="2", memory="8Gi", labels={"zone": zone})
    for name, zone in (("one", "a"), ("two", "b"))
)
BUSY = pod_json("busy", on="one", cpu="1500m")
ONE_CPU = {"spec": {"containers": [container_json(requests={"cpu": "1"})]}}


def spread(kind: str = "Adaptive", **adaptive: Any) -> Document:
    strategy = {"type": kind, "adaptive": adaptive}
    return spread_json(in_zone("a", 5), in_zone("b"), scheduleStrategy=strategy)


async def test_a_full_subset_is_skipped_and_its_condition_has_the_reason() -> None:
    async with webhook_stage(*NODES, BUSY, spread()) as stage:
        assert await stage.subset("web-1", **ONE_CPU) == "b"
        status = await stage.status_of(SPREADS)
        [first, _] = status["versionedSubsetStatuses"]["versionIgnored"]
        [condition] = first["conditions"]
        assert (condition["status"], condition["reason"]) == ("Unknown", "SimulationFailed")
        assert "0/2 nodes are available: 1 Insufficient cpu" in condition["message"]
        assert await stage.missing() == {"versionIgnored": {"a": 5, "b": -1}}


async def test_node_changes_count_at_once() -> None:
    async with webhook_stage(*NODES, spread()) as stage:
        assert await stage.subset("web-1", **ONE_CPU) == "a"
        stage.load(BUSY)
        await stage.passes()
        assert await stage.subset("web-2", **ONE_CPU) == "b"


@pytest.mark.parametrize(
    "document",
    [spread(disableSimulationSchedule=True), spread("Fixed")],
    ids=["switched off", "fixed"],
)
async def test_nodes_are_not_tried_without_the_simulation(document: Document) -> None:
    async with webhook_stage(*NODES, BUSY, document) as stage:
        assert await stage.subset("web-1", **ONE_CPU) == "a"


async def test_nothing_is_tried_without_nodes() -> None:
    async with webhook_stage(spread()) as stage:
        assert await stage.subset("web-1", **ONE_CPU) == "a"
