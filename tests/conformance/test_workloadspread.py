"""Real Deployment and ReplicaSet controllers make the pods, and a WorkloadSpread is kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.conformance.controller_processes import Contender
from tests.conformance.workloadspread_cluster import COSTS, COSTS_OF_AN_OLD_VERSION, LIMITS, rollout

EACH_IN_ITS_ZONE = {(zone, f"node-{zone}") for zone in LIMITS}
FULL = {"a": (4, 0), "b": (8, 0), "c": (18, -1)}


def costs_of(*subsets: str, old: bool = False) -> dict[str, set[int]]:
    costs = COSTS_OF_AN_OLD_VERSION if old else COSTS
    return {subset: {costs[subset]} for subset in subsets}


async def test_subsets_fill_in_order_and_are_emptied_in_reverse(
    real_controllers: Contender, book: Path
) -> None:
    async with rollout(real_controllers, book) as web:
        await web.scale(30)
        await web.settled("first", pods=30)
        assert web.placed() == {"a": 4, "b": 8, "c": 18}
        assert web.zones() == EACH_IN_ITS_ZONE
        assert web.counted() == web.counted("first") == FULL
        assert web.costs("first") == costs_of("a", "b", "c")
        first = {pod["metadata"]["name"] for pod in web.pods("", "a")}

        await web.scale(10)
        await web.settled("first", pods=10)
        assert web.placed() == {"a": 4, "b": 6}, "all of c goes first, then some of b"
        assert {pod["metadata"]["name"] for pod in web.pods("", "a")} == first
        assert web.counted("first") == {"a": (4, 0), "b": (6, 2), "c": (0, -1)}

        await web.scale(0)
        await web.settled("first", pods=0)
        assert web.counted() == {"a": (0, 4), "b": (0, 8), "c": (0, -1)}
        assert web.status().get("versionedSubsetStatuses", {}) == {}
        web.never_overfull()


async def test_a_rollout_fills_and_empties_subsets_from_the_front(
    real_controllers: Contender, book: Path
) -> None:
    async with rollout(real_controllers, book) as web:
        await web.scale(10)
        await web.settled("first", pods=10)
        assert web.placed("first") == {"a": 4, "b": 6}

        await web.become("slow")
        await web.settled("slow", "first", pods=13)
        assert web.placed("first") == {"a": 4, "b": 6}
        assert web.placed("slow") == {"a": 3}, "though the old version still fills it"
        assert web.counted("slow") == {"a": (3, 1), "b": (0, 8), "c": (0, -1)}
        assert web.counted("first") == {"a": (4, 0), "b": (6, 2), "c": (0, -1)}
        assert web.counted() == {"a": (7, 0), "b": (6, 2), "c": (0, -1)}
        assert web.costs("slow") == costs_of("a")
        assert web.costs("first") == costs_of("a", "b", old=True)

        await web.let_run(web.pods("slow"))
        await web.settled("slow", "first", pods=13)
        assert web.placed("first") == {"a": 1, "b": 6}, "the old version leaves its front first"
        assert web.placed("slow") == {"a": 4, "b": 2}

        await web.become("last")
        await web.settled("last", pods=10)
        assert web.placed() == {"a": 4, "b": 6}
        assert web.counted("last") == {"a": (4, 0), "b": (6, 2), "c": (0, -1)}
        assert web.costs("last") == costs_of("a", "b")
        assert len(web.status()["versionedSubsetStatuses"]) == 1
        web.never_overfull()


async def test_storms_leave_every_subset_as_full_as_it_was(
    real_controllers: Contender, book: Path
) -> None:
    async with rollout(real_controllers, book) as web:
        await web.scale(30)
        await web.settled("first", pods=30)
        for remove in (web.world.evict, lambda name: web.world.delete("Pod", name)):
            gone = {pod["metadata"]["name"] for pod in web.pods("", "a", "c")}
            await asyncio.gather(*map(remove, sorted(gone)))
            await web.settled("first", pods=30)
            assert not gone & {pod["metadata"]["name"] for pod in web.pods()}
            assert web.placed() == {"a": 4, "b": 8, "c": 18}
            assert web.zones() == EACH_IN_ITS_ZONE
            assert web.counted("first") == FULL
            assert web.costs("first") == costs_of("a", "b", "c")
        web.never_overfull()
