"""JobSets that succeed, that are restarted, and that a webhook rejects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.builders import Document
from tests.conformance.clusters.watched_cluster import WatchedCluster
from tests.conformance.operators.objects import (
    FAILS_ONCE,
    SUCCEEDS,
    has_condition,
    in_namespace,
    job_spec,
    status,
)


async def a_job_set_completes_with_all_its_jobs(world: WatchedCluster, namespace: str) -> None:
    made = await world.create(_job_set("train", namespace, SUCCEEDS))
    assert made["spec"]["network"]["enableDNSHostnames"] is True  # by the mutating webhook
    await world.until(lambda: _completed(world, "train", namespace))
    expected = {"train-workers-0", "train-workers-1"}
    await world.until(
        lambda: {job["metadata"]["name"] for job in world.all("Job", namespace)} == expected
    )
    assert status(world, "JobSet", "train", namespace)["terminalState"] == "Completed"
    await world.until(lambda: world.get("Service", "train", namespace) is not None)


async def a_job_set_is_restarted_after_a_failure(world: WatchedCluster, namespace: str) -> None:
    policy = {"maxRestarts": 2}
    await world.create(_job_set("retry", namespace, FAILS_ONCE, failurePolicy=policy))
    await world.until(lambda: _completed(world, "retry", namespace))
    assert status(world, "JobSet", "retry", namespace)["restarts"] == 1


async def a_job_set_without_its_target_is_rejected(world: WatchedCluster, namespace: str) -> None:
    policy = {"operator": "All", "targetReplicatedJobs": ["absent"]}
    with pytest.raises(AssertionError, match=r"vjobset\.kb\.io.*invalid replicatedJob name"):
        await world.create(_job_set("wrong", namespace, SUCCEEDS, successPolicy=policy))


SCENARIOS = (
    a_job_set_completes_with_all_its_jobs,
    a_job_set_is_restarted_after_a_failure,
    a_job_set_without_its_target_is_rejected,
)


def _job_set(name: str, namespace: str, labels: Mapping[str, str], **spec: Any) -> Document:
    template = {"spec": job_spec(labels, backoffLimit=0)}
    jobs = [{"name": "workers", "replicas": 2, "template": template}]
    return in_namespace("JobSet", name, namespace, spec={"replicatedJobs": jobs, **spec})


def _completed(world: WatchedCluster, name: str, namespace: str) -> bool:
    return has_condition(world, "JobSet", name, namespace, type="Completed", status="True")
