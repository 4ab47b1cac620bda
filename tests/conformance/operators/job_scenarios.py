"""Jobs and CronJobs, whose pods succeed or fail at once."""

from __future__ import annotations

from tests.conformance.clusters.watched_cluster import PATIENCE_SECONDS, WatchedCluster
from tests.conformance.operators.objects import (
    FAILS,
    SUCCEEDS,
    has_condition,
    in_namespace,
    job,
    job_spec,
    pods,
    status,
)


async def a_job_completes_and_counts_each_pod_once(world: WatchedCluster, namespace: str) -> None:
    await world.create(job("sum", namespace, SUCCEEDS, completions=5, parallelism=2))
    await world.until(
        lambda: has_condition(world, "Job", "sum", namespace, type="Complete", status="True")
    )
    found = status(world, "Job", "sum", namespace)
    assert (found["succeeded"], found.get("failed", 0)) == (5, 0)
    await world.until(lambda: len(pods(world, namespace, **{"job-name": "sum"})) == 5)


async def an_indexed_job_completes_each_index(world: WatchedCluster, namespace: str) -> None:
    spec = {"completions": 3, "parallelism": 3, "completionMode": "Indexed"}
    await world.create(job("index", namespace, SUCCEEDS, **spec))
    await world.until(
        lambda: status(world, "Job", "index", namespace).get("completedIndexes") == "0-2"
    )


async def a_job_fails_beyond_its_backoff_limit(world: WatchedCluster, namespace: str) -> None:
    await world.create(job("broken", namespace, FAILS, backoffLimit=0))
    await world.until(
        lambda: has_condition(
            world, "Job", "broken", namespace, type="Failed", reason="BackoffLimitExceeded"
        )
    )


async def a_suspended_job_starts_when_it_is_resumed(world: WatchedCluster, namespace: str) -> None:
    await world.create(job("later", namespace, SUCCEEDS, suspend=True))
    await world.until(
        lambda: has_condition(world, "Job", "later", namespace, type="Suspended", status="True")
    )
    assert not pods(world, namespace, **{"job-name": "later"})
    await world.patch("Job", "later", {"spec": {"suspend": False}}, namespace=namespace)
    await world.until(
        lambda: has_condition(world, "Job", "later", namespace, type="Complete", status="True")
    )


async def a_finished_job_is_deleted_with_its_pods(world: WatchedCluster, namespace: str) -> None:
    await world.create(job("brief", namespace, SUCCEEDS, ttlSecondsAfterFinished=1))
    await world.until(lambda: status(world, "Job", "brief", namespace).get("succeeded") == 1)
    await world.until(
        lambda: (
            world.get("Job", "brief", namespace) is None
            and not pods(world, namespace, **{"job-name": "brief"})
        )
    )


async def a_cron_job_starts_a_job_each_minute(world: WatchedCluster, namespace: str) -> None:
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": job_spec(SUCCEEDS)}}
    await world.create(in_namespace("CronJob", "tick", namespace, spec=spec))
    await world.until(
        lambda: "lastSuccessfulTime" in status(world, "CronJob", "tick", namespace),
        2 * PATIENCE_SECONDS,
    )


SCENARIOS = (
    a_job_completes_and_counts_each_pod_once,
    an_indexed_job_completes_each_index,
    a_job_fails_beyond_its_backoff_limit,
    a_suspended_job_starts_when_it_is_resumed,
    a_finished_job_is_deleted_with_its_pods,
)
