"""Jobs in a cluster: their pods, their ends, and each pod counted once."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.rest.client import Propagation
from tests.builders import Document, manifest
from tests.fakeapi.controlplane.workloads.conftest import (
    SetWorkloads,
    WorkloadStage,
    conditions,
    containers,
)
from tests.stage import JOBS

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
LONG = 150.0
SUCCEEDS = {"end": "succeed"}
FAILS = {"end": "fail"}


def job(labels: dict[str, str], **spec: Any) -> Document:
    """Build a Job whose pods run for five seconds."""
    restart = spec.pop("restartPolicy", "Never")
    pod = {"metadata": {"labels": labels}, "spec": containers("v1", restartPolicy=restart)}
    return manifest("Job", "sum", spec={"template": pod, **spec})


async def opened(
    workloads: SetWorkloads, document: Document, seconds: float = LONG
) -> WorkloadStage:
    stage = await workloads("job")
    await stage.create(JOBS, document)
    await stage.passes(seconds)
    return stage


async def status_of(stage: WorkloadStage) -> Document:
    return await stage.status_of(JOBS, "sum")


def counts(status: Document) -> tuple[int, int, int]:
    return tuple(status.get(name, 0) for name in ("active", "succeeded", "failed"))


async def test_pods_of_a_job_have_its_labels_and_its_finalizer(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, job(SUCCEEDS, parallelism=2, completions=3), 4)
    pods = await stage.pods(**{"job-name": "sum"})
    assert len(pods) == 2
    for pod in pods:
        assert pod["metadata"]["finalizers"] == [TRACKING]
        assert pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "sum"
        assert pod["metadata"]["ownerReferences"][0]["kind"] == "Job"
    status = await status_of(stage)
    assert counts(status) == (2, 0, 0)
    assert status["ready"] == 2
    assert "startTime" in status


ENDS: dict[str, tuple[dict[str, str], dict[str, Any], tuple[int, int, int], str, str]] = {
    "one pod": (SUCCEEDS, {}, (0, 1, 0), "Complete", "CompletionsReached"),
    "five completions": (
        SUCCEEDS,
        {"completions": 5, "parallelism": 2},
        (0, 5, 0),
        "Complete",
        "CompletionsReached",
    ),
    "a work queue": (SUCCEEDS, {"parallelism": 3}, (0, 3, 0), "Complete", "CompletionsReached"),
    "no completions": (SUCCEEDS, {"completions": 0}, (0, 0, 0), "Complete", "CompletionsReached"),
    "no retries": (FAILS, {"backoffLimit": 0}, (0, 0, 1), "Failed", "BackoffLimitExceeded"),
    "two retries": (FAILS, {"backoffLimit": 2}, (0, 0, 3), "Failed", "BackoffLimitExceeded"),
    "restarts": (
        FAILS,
        {"backoffLimit": 2, "restartPolicy": "OnFailure"},
        (0, 0, 1),
        "Failed",
        "BackoffLimitExceeded",
    ),
    "a deadline": (
        {},
        {"activeDeadlineSeconds": 20, "parallelism": 2},
        (0, 0, 2),
        "Failed",
        "DeadlineExceeded",
    ),
}


@pytest.mark.parametrize("name", ENDS)
async def test_a_job_ends(workloads: SetWorkloads, name: str) -> None:
    labels, spec, expected, type_, reason = ENDS[name]
    stage = await opened(workloads, job(labels, **spec))
    status = await status_of(stage)
    assert counts(status) == expected
    first = "SuccessCriteriaMet" if type_ == "Complete" else "FailureTarget"
    assert conditions(status) == {first: ("True", reason), type_: ("True", reason)}
    assert ("completionTime" in status) == (type_ == "Complete")
    assert status["uncountedTerminatedPods"] == {}
    assert not [pod for pod in await stage.pods() if "finalizers" in pod["metadata"]]


async def test_an_indexed_job_completes_each_index(workloads: SetWorkloads) -> None:
    spec = {"completions": 4, "parallelism": 2, "completionMode": "Indexed"}
    stage = await opened(workloads, job(SUCCEEDS, **spec))
    assert (await status_of(stage))["completedIndexes"] == "0-3"
    for index, pod in enumerate(await stage.pods()):
        assert pod["metadata"]["generateName"] == f"sum-{index}-"
        assert pod["metadata"]["labels"][INDEX] == str(index)
        assert pod["metadata"]["annotations"][INDEX] == str(index)
        assert pod["spec"]["hostname"] == f"sum-{index}"
        (variable,) = pod["spec"]["containers"][0]["env"]
        assert variable["name"] == "JOB_COMPLETION_INDEX"


async def test_retries_wait_twice_as_long_each_time(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, job(FAILS, backoffLimit=3), 0)
    seen = []
    for _ in range(4):
        await stage.passes(30)
        seen.append((await status_of(stage)).get("failed", 0))
    assert seen == [2, 3, 3, 4]


async def test_a_suspended_job_deletes_its_pods_and_does_not_count_them(
    workloads: SetWorkloads,
) -> None:
    stage = await opened(workloads, job({}, parallelism=2, suspend=True), 5)
    assert not await stage.pods()
    await stage.patch(JOBS, "sum", {"spec": {"suspend": False}})
    await stage.passes(5)
    assert counts(await status_of(stage)) == (2, 0, 0)
    await stage.patch(JOBS, "sum", {"spec": {"suspend": True}})
    await stage.passes(5)
    status = await status_of(stage)
    assert counts(status) == (0, 0, 0)
    assert conditions(status) == {"Suspended": ("True", "JobSuspended")}
    assert not await stage.pods()


async def test_less_parallelism_deletes_pods(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, job({}, parallelism=3), 5)
    await stage.patch(JOBS, "sum", {"spec": {"parallelism": 1}})
    await stage.passes(5)
    assert counts(await status_of(stage)) == (1, 0, 0)
    assert len(await stage.pods()) == 1


async def test_a_finished_job_is_deleted_after_its_time(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, job(SUCCEEDS, ttlSecondsAfterFinished=100), 60)
    assert await stage.find(JOBS, "sum")
    await stage.passes(60)
    assert await stage.find(JOBS, "sum") is None
    assert not await stage.pods()


async def test_pods_of_a_deleted_job_lose_the_finalizer(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, job({}, parallelism=2), 5)
    await stage.delete(JOBS, "sum", Propagation.BACKGROUND)
    await stage.passes(60)
    assert not await stage.pods()


async def test_a_job_of_another_manager_is_left_alone(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, job(SUCCEEDS, managedBy="example.com/queue"), 60)
    assert not await stage.pods()
