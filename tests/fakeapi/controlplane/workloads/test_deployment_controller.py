"""Deployments in a cluster: ReplicaSets, rollouts, rollbacks, scaling and conditions."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.rest.resources import REPLICA_SETS
from tests.builders import Document
from tests.fakeapi.controlplane.workloads.conftest import (
    SetWorkloads,
    WorkloadStage,
    conditions,
    template,
    workload,
)
from tests.stage import DEPLOYMENTS

LONG = 60.0
REVISION = "deployment.kubernetes.io/revision"
COMPLETE = {
    "Available": ("True", "MinimumReplicasAvailable"),
    "Progressing": ("True", "NewReplicaSetAvailable"),
}


def deployment(replicas: int = 3, **spec: Any) -> Document:
    return workload("Deployment", replicas, **spec)


async def opened(workloads: SetWorkloads, document: Document) -> WorkloadStage:
    """Return a stage in which a Deployment has been rolled out."""
    stage = await workloads("deployment")
    await stage.create(DEPLOYMENTS, document)
    await stage.passes(LONG)
    return stage


async def set_template(stage: WorkloadStage, image: str = "v1", **labels: str) -> None:
    await stage.patch(DEPLOYMENTS, "web", template(image, **labels))


async def test_a_deployment_creates_a_replica_set_and_pods(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, deployment(metadata={"annotations": {"team": "shop"}}))
    (replica_set,) = await stage.all(REPLICA_SETS)
    hashed = replica_set["metadata"]["labels"]["pod-template-hash"]
    assert replica_set["metadata"]["name"] == f"web-{hashed}"
    assert replica_set["metadata"]["annotations"]["team"] == "shop"
    assert replica_set["spec"]["selector"]["matchLabels"] == {
        "app": "web",
        "pod-template-hash": hashed,
    }
    assert len(await stage.pods(**{"pod-template-hash": hashed})) == 3
    found = await stage.get(DEPLOYMENTS, "web")
    assert found["metadata"]["annotations"][REVISION] == "1"
    status = found["status"]
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    assert {status[name] for name in counts} == {3}
    assert "unavailableReplicas" not in status
    assert status["observedGeneration"] == found["metadata"]["generation"]
    assert conditions(status) == COMPLETE


async def test_a_new_template_rolls_out_and_an_old_one_back(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, deployment())
    await set_template(stage, "v2")
    await stage.passes(LONG)
    assert await stage.replica_sets() == {"1": 0, "2": 3}
    await set_template(stage, "v1")
    await stage.passes(LONG)
    assert await stage.replica_sets() == {"2": 0, "3": 3}
    (again,) = [each for each in await stage.all(REPLICA_SETS) if each["spec"]["replicas"]]
    assert again["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"] == "1"
    assert conditions(await stage.status_of(DEPLOYMENTS)) == COMPLETE


STRATEGIES = [
    ("25%", "25%", (2, 3)),
    (1, 0, (1, 4)),
    (2, 1, (3, 3)),
    ("0%", "50%", (2, 2)),
    (0, "10%", (1, 3)),
    ("100%", 0, (4, 4)),
]


@pytest.mark.parametrize(("surge", "unavailable", "sizes"), STRATEGIES)
async def test_a_rollout_that_is_stuck_keeps_within_its_bounds(
    workloads: SetWorkloads, surge: int | str, unavailable: int | str, sizes: tuple[int, int]
) -> None:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    stage = await opened(workloads, deployment(4, strategy=strategy))
    await set_template(stage, state="stuck")
    await stage.passes(LONG)
    new, old = sizes
    assert await stage.replica_sets() == {"1": old, "2": new}


async def test_recreate_ends_all_old_pods_first(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, deployment(strategy={"type": "Recreate"}))
    await set_template(stage, "v2")
    await stage.passes(0.5)
    assert await stage.replica_sets() == {"1": 0}
    assert all("deletionTimestamp" in pod["metadata"] for pod in await stage.pods(app="web"))
    await stage.passes(LONG)
    assert await stage.replica_sets() == {"1": 0, "2": 3}
    assert conditions(await stage.status_of(DEPLOYMENTS)) == COMPLETE


async def test_a_paused_deployment_scales_and_does_not_roll_out(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, deployment(paused=True))
    assert await stage.replica_sets() == {}
    await stage.patch(DEPLOYMENTS, "web", {"spec": {"paused": False}})
    await stage.passes(LONG)
    await stage.patch(DEPLOYMENTS, "web", {"spec": {"paused": True, "replicas": 5}})
    await set_template(stage, "v2")
    await stage.passes(LONG)
    assert await stage.replica_sets() == {"1": 5}
    found = conditions(await stage.status_of(DEPLOYMENTS))
    assert found["Progressing"] == ("Unknown", "DeploymentPaused")
    await stage.patch(DEPLOYMENTS, "web", {"spec": {"paused": False}})
    await stage.passes(LONG)
    assert await stage.replica_sets() == {"1": 0, "2": 5}


async def test_scaling_during_a_rollout_is_proportional(workloads: SetWorkloads) -> None:
    rolling = {"maxSurge": 3, "maxUnavailable": 2}
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    stage = await opened(workloads, deployment(10, strategy=strategy))
    await set_template(stage, state="stuck")
    await stage.passes(LONG)
    assert await stage.replica_sets() == {"1": 8, "2": 5}
    await stage.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 15}})
    await stage.passes(LONG)
    assert await stage.replica_sets() == {"1": 11, "2": 7}


async def test_a_rollout_without_progress_exceeds_its_deadline(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, deployment(progressDeadlineSeconds=100))
    await set_template(stage, state="stuck")
    await stage.passes(LONG)
    found = conditions(await stage.status_of(DEPLOYMENTS))
    assert found["Progressing"] == ("True", "ReplicaSetUpdated")
    await stage.passes(LONG)
    found = conditions(await stage.status_of(DEPLOYMENTS))
    assert found["Progressing"] == ("False", "ProgressDeadlineExceeded")


async def test_old_replica_sets_beyond_the_limit_are_deleted(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, deployment(1, revisionHistoryLimit=1))
    for image in ("v2", "v3", "v4"):
        await set_template(stage, image)
        await stage.passes(LONG)
    assert await stage.replica_sets() == {"3": 0, "4": 1}


async def test_a_matching_orphan_is_adopted_and_one_relabelled_is_released(
    workloads: SetWorkloads,
) -> None:
    stage = await opened(workloads, deployment())
    (replica_set,) = await stage.names(REPLICA_SETS)
    await stage.patch(REPLICA_SETS, replica_set, {"metadata": {"labels": {"app": "other"}}})
    await stage.passes(LONG)
    assert "ownerReferences" not in (await stage.get(REPLICA_SETS, replica_set))["metadata"]
    await stage.patch(REPLICA_SETS, replica_set, {"metadata": {"labels": {"app": "web"}}})
    await stage.passes(LONG)
    adopted = await stage.get(REPLICA_SETS, replica_set)
    assert adopted["metadata"]["ownerReferences"][0]["name"] == "web"


async def test_a_taken_name_gives_another_hash(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, deployment())
    (replica_set,) = await stage.names(REPLICA_SETS)
    other = await workloads("deployment")
    taken = workload("ReplicaSet", 0)
    await other.create(REPLICA_SETS, {**taken, "metadata": {"name": replica_set, "labels": {}}})
    await other.create(DEPLOYMENTS, deployment())
    await other.passes(LONG)
    status = await other.status_of(DEPLOYMENTS)
    assert (status["collisionCount"], status["availableReplicas"]) == (1, 3)


async def test_scaling_is_reported_in_events(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, deployment())
    (replica_set,) = await stage.names(REPLICA_SETS)
    await stage.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 1}})
    await stage.passes(LONG)
    messages = [each for each in await stage.list_events() if each[0] == "ScalingReplicaSet"]
    assert sorted(messages) == [
        ("ScalingReplicaSet", "web", f"Scaled down replica set {replica_set} from 3 to 1"),
        ("ScalingReplicaSet", "web", f"Scaled up replica set {replica_set} from 0 to 3"),
    ]


async def test_a_selector_that_cannot_be_read_is_left_alone(workloads: SetWorkloads) -> None:
    document = deployment()
    document["spec"]["selector"] = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    stage = await workloads("deployment", document, seconds=LONG)
    assert not await stage.all(REPLICA_SETS)
