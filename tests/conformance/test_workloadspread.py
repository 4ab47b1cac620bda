"""Real Deployment and ReplicaSet controllers make the pods, and a WorkloadSpread is kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.conformance.clusters.controller_processes import Controllers
from tests.conformance.clusters.workloadspread_cluster import (
    COSTS,
    COSTS_OF_AN_OLD_VERSION,
    LIMITS,
    rollout,
)

EACH_IN_ITS_ZONE = {(zone, f"node-{zone}") for zone in LIMITS}
FULL = {"a": (4, 0), "b": (8, 0), "c": (18, -1)}


def costs_of(*subsets: str, old: bool = False) -> dict[str, set[int]]:
    costs = COSTS_OF_AN_OLD_VERSION if old else COSTS
    return {subset: {costs[subset]} for subset in subsets}


async def test_subsets_are_filled_in_order_and_emptied_in_reverse(
    real_controllers: Controllers, script: Path
) -> None:
    async with rollout(real_controllers, script) as web:
        await web.scale(30)
        await web.wait_settled("first", pods=30)
        assert web.placed() == {"a": 4, "b": 8, "c": 18}
        assert web.zones() == EACH_IN_ITS_ZONE
        assert web.counted() == web.counted("first") == FULL
        assert web.costs("first") == costs_of("a", "b", "c")
        first = {pod["metadata"]["name"] for pod in web.pods("", "a")}

        await web.scale(10)
        await web.wait_settled("first", pods=10)
        assert web.placed() == {"a": 4, "b": 6}, "all of c goes first, then some of b"
        assert {pod["metadata"]["name"] for pod in web.pods("", "a")} == first
        assert web.counted("first") == {"a": (4, 0), "b": (6, 2), "c": (0, -1)}

        await web.scale(0)
        await web.wait_settled("first", pods=0)
        assert web.counted() == {"a": (0, 4), "b": (0, 8), "c": (0, -1)}
        assert web.status().get("versionedSubsetStatuses", {}) == {}
        web.check_limits()


async def test_a_rollout_fills_and_empties_subsets_from_the_front(
    real_controllers: Controllers, script: Path
) -> None:
    async with rollout(real_controllers, script) as web:
        await web.scale(10)
        await web.wait_settled("first", pods=10)
        assert web.placed("first") == {"a": 4, "b": 6}

        await web.roll_out("slow")
        await web.wait_settled("slow", "first", pods=13)
        assert web.placed("first") == {"a": 4, "b": 6}
        assert web.placed("slow") == {"a": 3}, "though the old version still fills it"
        assert web.counted("slow") == {"a": (3, 1), "b": (0, 8), "c": (0, -1)}
        assert web.counted("first") == {"a": (4, 0), "b": (6, 2), "c": (0, -1)}
        assert web.counted() == {"a": (7, 0), "b": (6, 2), "c": (0, -1)}
        assert web.costs("slow") == costs_of("a")
        assert web.costs("first") == costs_of("a", "b", old=True)

        await web.make_ready(web.pods("slow"))
        await web.wait_settled("slow", "first", pods=13)
        assert web.placed("first") == {"a": 1, "b": 6}, "the old version leaves its front first"
        assert web.placed("slow") == {"a": 4, "b": 2}

        await web.roll_out("last")
        await web.wait_settled("last", pods=10)
        assert web.placed() == {"a": 4, "b": 6}
        assert web.counted("last") == {"a": (4, 0), "b": (6, 2), "c": (0, -1)}
        assert web.costs("last") == costs_of("a", "b")
        assert len(web.status()["versionedSubsetStatuses"]) == 1
        web.check_limits()


async def test_mass_evictions_and_deletions_leave_the_subsets_unchanged(
    real_controllers: Controllers, script: Path
) -> None:
    async with rollout(real_controllers, script) as web:
        await web.scale(30)
        await web.wait_settled("first", pods=30)
        for remove in (web.world.evict, lambda name: web.world.delete("Pod", name)):
            gone = {pod["metadata"]["name"] for pod in web.pods("", "a", "c")}
            await asyncio.gather(*map(remove, sorted(gone)))
            await web.wait_settled("first", pods=30)
            assert not gone & {pod["metadata"]["name"] for pod in web.pods()}
            assert web.placed() == {"a": 4, "b": 8, "c": 18}
            assert web.zones() == EACH_IN_ITS_ZONE
            assert web.counted("first") == FULL
            assert web.costs("first") == costs_of("a", "b", "c")
        web.check_limits()
