"""What the eviction of a pod costs, and the workloads it belongs to: worked examples."""

from __future__ import annotations

from typing import Any

import pytest

from policies.kubernetes.default_selector import PodOwner
from policies.kubernetes.snapshot import Pod
from policies.preemption.costs.catalog import (
    DELETION_COST,
    deletion_cost,
    lost_work,
    restarts,
    run_time,
)
from policies.preemption.costs.groupings import gang_of, owner_of
from policies.preemption.costs.pod_cost import MAX_COST, PodCost, Unreadable
from tests.builders import SECOND, pod

GPU = "nvidia.com/gpu"
HOUR = 3600
GPUS = lost_work({GPU: 1000, "cpu": 100}, "saved", lambda text: SECOND * int(text))
STARTED: Any = {"started": 1000, "cpu": "4", "others": {GPU: "8"}}
NOW = 1000 + HOUR


@pytest.mark.parametrize(
    ("cost", "of", "amount"),
    [
        (run_time(), pod(started=1000), HOUR),
        (run_time(), pod(), 0),
        (run_time(), pod(started=2 * NOW), 0),
        (GPUS, pod(**STARTED), (8000 + 400) * HOUR),
        (GPUS, pod(**STARTED, annotations={"saved": f"{NOW - 60}"}), 8400 * 60),
        (GPUS, pod(**STARTED, annotations={"saved": "5"}), 8400 * HOUR),
        (lost_work({"memory": 1000}), pod(memory="2Gi", started=1000), 2000 * HOUR),
        (restarts(), pod(restarts=3), -3),
        (deletion_cost(), pod(), 0),
        (deletion_cost(), pod(annotations={DELETION_COST: "-7"}), -7),
        (deletion_cost(), pod(annotations={DELETION_COST: f"{2**60}"}), MAX_COST),
    ],
)
def test_a_cost_at_a_time(cost: PodCost, of: Pod, amount: int) -> None:
    assert cost.at(of, NOW * SECOND) == amount


def test_an_annotation_that_is_no_time_makes_the_cost_unreadable() -> None:
    cost = lost_work({GPU: 1000}, "saved", lambda _: None)
    assert cost.of(pod(annotations={"saved": "soon"})) == Unreadable(
        "annotation saved: 'soon' is no RFC 3339 time"
    )
    assert cost.annotations == {"saved"}


def owned(kind: str, name: str, labels: dict[str, str] | None = None, **fields: Any) -> Pod:
    return pod("p-0", owner=PodOwner(kind, name), labels=labels or {}, **fields)


@pytest.mark.parametrize(
    ("of", "owner", "gang"),
    [
        (pod("p-0"), "default/Pod/p-0", "default/Pod/p-0"),
        (owned("Job", "train"), "default/Job/train", "default/Job/train"),
        (
            owned("ReplicaSet", "web-5f9b", {"pod-template-hash": "5f9b"}),
            "default/Deployment/web",
            "default/Pod/p-0",
        ),
        (owned("ReplicaSet", "web"), "default/ReplicaSet/web", "default/Pod/p-0"),
        (
            owned("Job", "set-a", {"jobset.sigs.k8s.io/jobset-name": "set"}),
            "default/Job/set-a",
            "default/JobSet/set",
        ),
        (
            owned(
                "StatefulSet",
                "llm-0",
                {
                    "leaderworkerset.sigs.k8s.io/name": "llm",
                    "leaderworkerset.sigs.k8s.io/group-index": "0",
                },
            ),
            "default/StatefulSet/llm-0",
            "default/LeaderWorkerSet/llm/0",
        ),
        (
            owned("PyTorchJob", "t", {"training.kubeflow.org/job-name": "t"}),
            "default/PyTorchJob/t",
            "default/training job/t",
        ),
        (
            owned("RayCluster", "ray", {"ray.io/cluster": "ray"}),
            "default/RayCluster/ray",
            "default/RayCluster/ray",
        ),
        (owned("Job", "j", group="g"), "default/Job/j", "default/PodGroup/g"),
    ],
)
def test_the_workloads_of_a_pod(of: Pod, owner: str, gang: str) -> None:
    assert (owner_of(of), gang_of(of)) == (owner, gang)
