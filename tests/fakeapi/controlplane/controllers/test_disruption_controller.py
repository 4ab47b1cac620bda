"""Disruption budgets in a world: their status follows the pods, and evictions go by it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import POD_DISRUPTION_BUDGETS, PODS
from tests.builders import Document, owner, running_pod, thing
from tests.fakeapi.controlplane.conftest import SetStage
from tests.stage import Stage, decode

LABELS = {"app": "web"}


def web(index: int, *owners: Document, **status: Any) -> Document:
    """Build a ready pod that the budget selects."""
    document = running_pod(f"web-{index}", "node")
    document["metadata"] |= {"labels": LABELS, "ownerReferences": list(owners)}
    document["status"] |= status
    return document


def controlled(name: str, kind: str, version: str = "apps/v1") -> Document:
    return owner(name, kind, version, controller=True)


def workload(name: str, kind: str, replicas: int, *owners: Document) -> Document:
    document = thing(name, *owners, kind=kind, version="apps/v1")
    return {**document, "spec": {"replicas": replicas}}


def budget(**spec: Any) -> Document:
    document = thing("budget", kind="PodDisruptionBudget", version="policy/v1")
    document["metadata"]["generation"] = 1
    return {**document, "spec": {"selector": {"matchLabels": LABELS}, **spec}}


UNREADY = {"conditions": [{"type": "Ready", "status": "False"}]}
OF_SET = controlled("set", "ReplicaSet")
SET = workload("set", "ReplicaSet", 4)


@dataclass(frozen=True)
class Scene:
    """What there is, and the budget's figures: expected, desired, healthy, allowed."""

    title: str
    spec: dict[str, Any]
    things: list[Document]
    figures: tuple[int, int, int, int]
    reason: str = ""
    told: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return self.title


SCENES = [
    Scene("nobody", {"minAvailable": 1}, [], (0, 1, 0, 0), told=["NoPods"]),
    Scene("a number of pods", {"minAvailable": 1}, [web(0), web(1), web(2)], (3, 1, 3, 2)),
    Scene("one is not ready", {"minAvailable": 1}, [web(0), web(1, **UNREADY)], (2, 1, 1, 0)),
    Scene(
        "a percentage of the replica set's scale",
        {"minAvailable": "50%"},
        [SET, web(0, OF_SET), web(1, OF_SET), web(2, OF_SET)],
        (4, 2, 3, 1),
    ),
    Scene(
        "as many may be missing",
        {"maxUnavailable": 1},
        [SET, *(web(i, OF_SET) for i in range(4))],
        (4, 3, 4, 1),
    ),
    Scene(
        "the deployment's scale counts, not the replica set's",
        {"maxUnavailable": "25%"},
        [
            workload("deployment", "Deployment", 8),
            workload("set", "ReplicaSet", 3, controlled("deployment", "Deployment")),
            *(web(i, OF_SET) for i in range(8)),
        ],
        (8, 6, 8, 2),
    ),
    Scene(
        "two sets of one deployment count once each",
        {"maxUnavailable": 1},
        [
            workload("deployment", "Deployment", 3),
            workload("set", "ReplicaSet", 3, controlled("deployment", "Deployment")),
            workload("new", "ReplicaSet", 1, controlled("deployment", "Deployment")),
            *(web(i, OF_SET) for i in range(3)),
            web(3, controlled("new", "ReplicaSet")),
        ],
        (3, 2, 4, 2),
    ),
    Scene(
        "a stateful set",
        {"maxUnavailable": 1},
        [
            workload("set", "StatefulSet", 2),
            *(web(i, controlled("set", "StatefulSet")) for i in range(2)),
        ],
        (2, 1, 2, 1),
    ),
    Scene(
        "a kind that is asked for its scale",
        {"maxUnavailable": 0},
        [
            {**thing("rc", kind="ReplicationController"), "spec": {"replicas": 2}},
            *(web(i, controlled("rc", "ReplicationController", "v1")) for i in range(2)),
        ],
        (2, 2, 2, 0),
    ),
    Scene(
        "a pod without a controller counts nothing",
        {"maxUnavailable": 1},
        [SET, web(0, OF_SET), web(1)],
        (4, 3, 2, 0),
        told=["UnmanagedPods"],
    ),
    Scene(
        "a controller that is not there",
        {"maxUnavailable": 1},
        [web(0, OF_SET)],
        (0, 0, 0, 0),
        'found no controllers for pod "web-0"',
        ["CalculateExpectedPodCountFailed"],
    ),
    Scene(
        "a controller of a kind without a scale",
        {"maxUnavailable": 1},
        [thing("map"), web(0, owner("map", controller=True))],
        (0, 0, 0, 0),
        "configmaps does not implement the scale subresource",
        ["CalculateExpectedPodCountFailed"],
    ),
    Scene(
        "a controller of no kind",
        {"maxUnavailable": 1},
        [web(0, controlled("x", "Wisp", "example.com/v1"))],
        (0, 0, 0, 0),
        'no matches for kind "Wisp" in version "example.com/v1"',
        ["CalculateExpectedPodCountFailed"],
    ),
]


async def status(stage: Stage) -> Document:
    found = await stage.get(POD_DISRUPTION_BUDGETS, "budget")
    return found["status"]  # type: ignore[no-any-return]


def figures(found: Document) -> tuple[int, ...]:
    names = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    return tuple(found.get(name, 0) for name in names)


async def evict(stage: Stage, name: str) -> None:
    body = orjson.dumps({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}})
    path = PODS.object(name, "default").subresource("eviction")
    await stage.client.create(path, body, decode)


@pytest.mark.parametrize("scene", SCENES, ids=str)
async def test_what_the_status_says(scene: Scene, set_stage: SetStage) -> None:
    stage = await set_stage("disruption")
    stage.load(*scene.things, budget(**scene.spec))
    await stage.passes(1)
    found = await status(stage)
    condition = found["conditions"][0]
    assert figures(found) == scene.figures
    assert (condition["reason"], condition["message"]) == (
        ("SyncFailed", scene.reason)
        if scene.reason
        else ("SufficientPods" if scene.figures[3] else "InsufficientPods", "")
    )
    assert [reason for reason, _, _ in await stage.told()] == scene.told


async def test_it_follows_the_pods(set_stage: SetStage) -> None:
    stage = await set_stage("disruption")
    stage.load(budget(minAvailable=1))
    for index in range(3):
        stage.load(web(index))
        await stage.passes(1)
        assert figures(await status(stage)) == (index + 1, 1, index + 1, index)
    await stage.patch(PODS, "web-0", {"status": UNREADY})
    await stage.passes(1)
    assert figures(await status(stage)) == (3, 1, 2, 1)
    await stage.client.delete(PODS.object("web-1", "default"))
    await stage.passes(1)
    assert figures(await status(stage)) == (3, 1, 1, 0)
    await stage.patch(POD_DISRUPTION_BUDGETS, "budget", {"spec": {"minAvailable": 0}})
    await stage.passes(1)
    assert figures(await status(stage)) == (3, 0, 1, 1)
    assert (await status(stage))["observedGeneration"] == 2


async def test_evictions_are_charged_and_refused(set_stage: SetStage) -> None:
    stage = await set_stage("disruption")
    stage.load(budget(minAvailable=2), *(web(i) for i in range(3)))
    await stage.passes(1)
    await evict(stage, "web-0")
    with pytest.raises(ApiError, match="violate the pod's disruption budget"):
        await evict(stage, "web-1")
    await stage.passes(1)
    assert figures(await status(stage)) == (3, 2, 2, 0)
    with pytest.raises(ApiError, match="violate"):
        await evict(stage, "web-1")
    stage.load(web(3))
    await stage.passes(1)
    await evict(stage, "web-1")


async def test_a_disrupted_pod_that_stays_counts_again_after_two_minutes(
    set_stage: SetStage,
) -> None:
    stage = await set_stage("disruption")
    stage.load(budget(minAvailable=1), web(0), web(1))
    await stage.passes(1)
    now = "2026-01-01T00:00:01Z"
    await stage.patch(
        POD_DISRUPTION_BUDGETS,
        "budget",
        {"status": {"disruptedPods": {"web-0": now}, "disruptionsAllowed": 0}},
    )
    await stage.passes(119)
    assert figures(await status(stage)) == (2, 1, 1, 0)
    await stage.passes(2)
    found = await status(stage)
    assert (figures(found), "disruptedPods" in found) == ((2, 1, 2, 1), False)
    assert [reason for reason, _, _ in await stage.told()] == ["NotDeleted"]


async def test_a_stale_mark_is_taken_back_after_two_minutes(set_stage: SetStage) -> None:
    stage = await set_stage("disruption")
    mark = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    stage.load(web(0, conditions=[mark]))
    await stage.passes(119)
    assert await mark_of(stage) == "True"
    await stage.passes(2)
    assert await mark_of(stage) == "False"


async def mark_of(stage: Stage) -> str:
    pod = await stage.get(PODS, "web-0")
    return str(pod["status"]["conditions"][0]["status"])


async def test_a_pod_with_two_budgets_is_reported(set_stage: SetStage) -> None:
    stage = await set_stage("disruption")
    other = budget(minAvailable=1)
    other["metadata"] = {**other["metadata"], "name": "other", "uid": "other"}
    stage.load(budget(minAvailable=1), other)
    await stage.passes(1)
    stage.load(web(0))
    await stage.passes(1)
    assert ("MultiplePodDisruptionBudgets", "web-0") in [t[:2] for t in await stage.told()]
