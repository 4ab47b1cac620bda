"""Scenarios of Jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.builders import NO_LABELS
from tests.conformance.clusters.watched_cluster import WatchedCluster
from tests.conformance.objects import NAMESPACE
from tests.conformance.operators.objects import FAILS, SUCCEEDS, job
from tests.conformance.workloads.runs import Scenario, Settle


async def created(
    world: WatchedCluster, settle: Settle, labels: Mapping[str, str] = NO_LABELS, **spec: Any
) -> None:
    """Create a Job, and wait for the outcome."""
    await world.create(job("sum", NAMESPACE, labels, **spec))
    await settle()


async def a_job_of_five_completions(world: WatchedCluster, settle: Settle) -> None:
    await created(world, settle, SUCCEEDS, completions=5, parallelism=2)


async def an_indexed_job(world: WatchedCluster, settle: Settle) -> None:
    spec = {"completions": 3, "parallelism": 2, "completionMode": "Indexed"}
    await created(world, settle, SUCCEEDS, **spec)


async def a_job_that_fails(world: WatchedCluster, settle: Settle) -> None:
    await created(world, settle, FAILS, backoffLimit=0, parallelism=2)


async def a_job_that_takes_too_long(world: WatchedCluster, settle: Settle) -> None:
    await created(world, settle, activeDeadlineSeconds=6, parallelism=2)
    await world.until(lambda: "Failed" in str(world.get("Job", "sum")))
    await settle()


async def a_job_that_is_suspended_and_scaled(world: WatchedCluster, settle: Settle) -> None:
    await created(world, settle, parallelism=3, suspend=True)
    for change in ({"suspend": False}, {"parallelism": 1}, {"suspend": True}):
        await world.patch("Job", "sum", {"spec": change})
        await settle()


async def a_job_that_is_deleted_when_it_is_done(world: WatchedCluster, settle: Settle) -> None:
    await world.create(job("sum", NAMESPACE, SUCCEEDS, ttlSecondsAfterFinished=1))
    await world.until(lambda: world.get("Job", "sum") is None)
    await settle()


SCENARIOS = (
    Scenario(a_job_of_five_completions),
    Scenario(an_indexed_job),
    Scenario(a_job_that_fails),
    Scenario(a_job_that_takes_too_long),
    Scenario(a_job_that_is_suspended_and_scaled),
    Scenario(a_job_that_is_deleted_when_it_is_done),
)
