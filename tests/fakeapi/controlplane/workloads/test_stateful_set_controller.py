"""StatefulSets in a cluster: order, updates, revisions and claims."""

from __future__ import annotations

from typing import Any

from extender.kube.rest.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, Resource
from tests.builders import Document
from tests.fakeapi.controlplane.workloads.conftest import (
    SetWorkloads,
    WorkloadStage,
    template,
    workload,
)

REVISIONS = Resource("apps", "v1", "controllerrevisions", namespaced=True)
LONG = 60.0
HASH = "controller-revision-hash"


async def opened(workloads: SetWorkloads, replicas: int = 3, **spec: Any) -> WorkloadStage:
    stage = await workloads("statefulset")
    await stage.create(STATEFUL_SETS, workload("StatefulSet", replicas, **spec))
    await stage.passes(LONG)
    return stage


async def images(stage: WorkloadStage) -> dict[str, str]:
    return {
        pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"]
        for pod in await stage.pods(app="web")
    }


def rolling(**parameters: Any) -> Document:
    return {"type": "RollingUpdate", "rollingUpdate": parameters}


async def test_pods_are_created_one_after_the_other(workloads: SetWorkloads) -> None:
    stage = await workloads("statefulset")
    await stage.create(STATEFUL_SETS, workload("StatefulSet", serviceName="shop"))
    assert await stage.names(PODS, after=0.5) == ["web-0"]
    await stage.passes(LONG)
    pods = await stage.pods(app="web")
    assert [pod["metadata"]["name"] for pod in pods] == ["web-0", "web-1", "web-2"]
    revision = (await stage.status_of(STATEFUL_SETS))["currentRevision"]
    for index, pod in enumerate(pods):
        name = f"web-{index}"
        assert pod["metadata"]["labels"] == {
            "app": "web",
            "statefulset.kubernetes.io/pod-name": name,
            "apps.kubernetes.io/pod-index": str(index),
            HASH: revision,
        }
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == (name, "shop")


async def test_the_status_counts_pods_and_revisions(workloads: SetWorkloads) -> None:
    stage = await opened(workloads)
    (revision,) = await stage.names(REVISIONS)
    assert await stage.status_of(STATEFUL_SETS) == {
        "observedGeneration": 1,
        **dict.fromkeys(("replicas", "readyReplicas", "availableReplicas"), 3),
        **dict.fromkeys(("currentReplicas", "updatedReplicas"), 3),
        "currentRevision": revision,
        "updateRevision": revision,
        "collisionCount": 0,
    }


async def test_a_stuck_pod_blocks_those_after_it_unless_parallel(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, labels={"state": "stuck"})
    assert await stage.names(PODS) == ["web-0"]
    other = await opened(workloads, labels={"state": "stuck"}, podManagementPolicy="Parallel")
    assert await other.names(PODS) == ["web-0", "web-1", "web-2"]


async def test_scaling_down_deletes_the_highest_first(workloads: SetWorkloads) -> None:
    stage = await opened(workloads)
    await stage.patch(STATEFUL_SETS, "web", {"spec": {"replicas": 1}})
    await stage.passes(1.5)
    assert await stage.names(PODS) == ["web-0", "web-1"]
    await stage.passes(LONG)
    assert await stage.names(PODS) == ["web-0"]


async def test_an_update_stops_at_its_partition(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, updateStrategy=rolling(partition=2))
    await stage.patch(STATEFUL_SETS, "web", template("v2"))
    await stage.passes(LONG)
    assert await images(stage) == {"web-0": "v1", "web-1": "v1", "web-2": "v2"}
    status = await stage.status_of(STATEFUL_SETS)
    assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 1)
    assert status["currentRevision"] != status["updateRevision"]
    await stage.end("web-0")
    await stage.passes(LONG)
    assert (await images(stage))["web-0"] == "v1"
    await stage.patch(STATEFUL_SETS, "web", {"spec": {"updateStrategy": rolling(partition=0)}})
    await stage.passes(LONG)
    assert set((await images(stage)).values()) == {"v2"}
    status = await stage.status_of(STATEFUL_SETS)
    assert status["currentRevision"] == status["updateRevision"]


async def test_pods_are_updated_when_they_are_deleted(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, updateStrategy={"type": "OnDelete"})
    await stage.patch(STATEFUL_SETS, "web", template("v2"))
    await stage.passes(LONG)
    assert set((await images(stage)).values()) == {"v1"}
    await stage.end("web-1")
    await stage.passes(LONG)
    assert await images(stage) == {"web-0": "v1", "web-1": "v2", "web-2": "v1"}


async def test_several_pods_may_be_updated_at_a_time(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, 4, updateStrategy=rolling(maxUnavailable="50%"))
    await stage.patch(STATEFUL_SETS, "web", template("v2"))
    await stage.passes(0.5)
    deleting = [p for p in await stage.pods() if "deletionTimestamp" in p["metadata"]]
    assert [pod["metadata"]["name"] for pod in deleting] == ["web-2", "web-3"]


async def test_a_rollback_reuses_its_revision_and_old_ones_are_deleted(
    workloads: SetWorkloads,
) -> None:
    stage = await opened(workloads, 1, revisionHistoryLimit=1)
    first = (await stage.status_of(STATEFUL_SETS))["currentRevision"]
    for image in ("v2", "v1", "v3", "v4"):
        await stage.patch(STATEFUL_SETS, "web", template(image))
        await stage.passes(LONG)
    kept = {each["metadata"]["name"]: each["revision"] for each in await stage.all(REVISIONS)}
    assert sorted(kept.values()) == [4, 5]
    assert first not in kept


async def test_each_pod_has_a_claim_of_each_template(workloads: SetWorkloads) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    stage = await opened(workloads, 2, podManagementPolicy="Parallel", volumeClaimTemplates=[claim])
    assert await stage.names(PERSISTENT_VOLUME_CLAIMS) == ["data-web-0", "data-web-1"]
    (volume,) = (await stage.pod("web-1"))["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == "data-web-1"
    await stage.patch(STATEFUL_SETS, "web", {"spec": {"replicas": 0}})
    await stage.passes(LONG)
    assert await stage.names(PERSISTENT_VOLUME_CLAIMS) == ["data-web-0", "data-web-1"]


async def test_ordinals_start_where_they_should(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, 2, ordinals={"start": 5})
    assert await stage.names(PODS) == ["web-5", "web-6"]


async def test_a_failed_pod_is_replaced(workloads: SetWorkloads) -> None:
    stage = await opened(workloads, 1)
    before = (await stage.pod("web-0"))["metadata"]["uid"]
    await stage.patch(PODS, "web-0", {"status": {"phase": "Failed"}})
    await stage.passes(LONG)
    assert (await stage.pod("web-0"))["metadata"]["uid"] != before
