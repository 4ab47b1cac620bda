"""Disruption budgets in a cluster: their status follows the pods and limits evictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import POD_DISRUPTION_BUDGETS, PODS
from tests.builders import Document, encoded, manifest, owner, running_pod, thing
from tests.fakeapi.controlplane.conftest import SetStage
from tests.stage import Stage, decode

LABELS = {"app": "web"}


def web(index: int, *owners: Document, **status: Any) -> Document:
    """Build a ready pod that the budget selects."""
    metadata = {"labels": LABELS, "ownerReferences": list(owners)}
    return running_pod(f"web-{index}", "node", metadata=metadata, status=status)


def controlled(name: str, kind: str, version: str = "apps/v1") -> Document:
    return owner(name, kind, version, controller=True)


def workload(name: str, kind: str, replicas: int, *owners: Document) -> Document:
    return thing(name, *owners, kind=kind, version="apps/v1", spec={"replicas": replicas})


def budget(name: str = "budget", **spec: Any) -> Document:
    """Build a budget for the pods of :func:`web`."""
    spec = {"selector": {"matchLabels": LABELS}, **spec}
    metadata = {"uid": name, "generation": 1}
    return manifest("PodDisruptionBudget", name, metadata=metadata, spec=spec)


UNREADY = {"conditions": [{"type": "Ready", "status": "False"}]}
OF_SET = controlled("set", "ReplicaSet")
SET = workload("set", "ReplicaSet", 4)
OF_DEPLOYMENT = controlled("deployment", "Deployment")


class Case(NamedTuple):
    """A budget, other objects, and the figures: expected, desired, healthy, allowed."""

    spec: dict[str, Any]
    objects: list[Document]
    figures: tuple[int, int, int, int]
    error: str = ""
    events: Sequence[str] = ()


CASES = {
    "no pods": Case({"minAvailable": 1}, [], (0, 1, 0, 0), events=["NoPods"]),
    "a number of pods": Case({"minAvailable": 1}, [web(0), web(1), web(2)], (3, 1, 3, 2)),
    "one is not ready": Case({"minAvailable": 1}, [web(0), web(1, **UNREADY)], (2, 1, 1, 0)),
    "a percentage of the replica set's scale": Case(
        {"minAvailable": "50%"}, [SET, web(0, OF_SET), web(1, OF_SET), web(2, OF_SET)], (4, 2, 3, 1)
    ),
    "as many may be missing": Case(
        {"maxUnavailable": 1}, [SET, *(web(i, OF_SET) for i in range(4))], (4, 3, 4, 1)
    ),
    "the deployment's scale counts, not the replica set's": Case(
        {"maxUnavailable": "25%"},
        [
            workload("deployment", "Deployment", 8),
            workload("set", "ReplicaSet", 3, OF_DEPLOYMENT),
            *(web(i, OF_SET) for i in range(8)),
        ],
        (8, 6, 8, 2),
    ),
    "two sets of one deployment count once each": Case(
        {"maxUnavailable": 1},
        [
            workload("deployment", "Deployment", 3),
            workload("set", "ReplicaSet", 3, OF_DEPLOYMENT),
            workload("new", "ReplicaSet", 1, OF_DEPLOYMENT),
            *(web(i, OF_SET) for i in range(3)),
            web(3, controlled("new", "ReplicaSet")),
        ],
        (3, 2, 4, 2),
    ),
    "a stateful set": Case(
        {"maxUnavailable": 1},
        [
            workload("set", "StatefulSet", 2),
            *(web(i, controlled("set", "StatefulSet")) for i in range(2)),
        ],
        (2, 1, 2, 1),
    ),
    "a kind with a scale subresource": Case(
        {"maxUnavailable": 0},
        [
            thing("rc", kind="ReplicationController", spec={"replicas": 2}),
            *(web(i, controlled("rc", "ReplicationController", "v1")) for i in range(2)),
        ],
        (2, 2, 2, 0),
    ),
    "a pod without a controller counts nothing": Case(
        {"maxUnavailable": 1}, [SET, web(0, OF_SET), web(1)], (4, 3, 2, 0), events=["UnmanagedPods"]
    ),
    "a controller that is not there": Case(
        {"maxUnavailable": 1},
        [web(0, OF_SET)],
        (0, 0, 0, 0),
        'found no controllers for pod "web-0"',
        ["CalculateExpectedPodCountFailed"],
    ),
    "a controller of a kind without a scale": Case(
        {"maxUnavailable": 1},
        [thing("map"), web(0, owner("map", controller=True))],
        (0, 0, 0, 0),
        "configmaps does not implement the scale subresource",
        ["CalculateExpectedPodCountFailed"],
    ),
    "a controller of an unknown kind": Case(
        {"maxUnavailable": 1},
        [web(0, controlled("x", "Wisp", "example.com/v1"))],
        (0, 0, 0, 0),
        'no matches for kind "Wisp" in version "example.com/v1"',
        ["CalculateExpectedPodCountFailed"],
    ),
}


async def status(stage: Stage) -> Document:
    found = await stage.get(POD_DISRUPTION_BUDGETS, "budget")
    return found["status"]  # type: ignore[no-any-return]


def figures(found: Document) -> tuple[int, ...]:
    names = ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
    return tuple(found.get(name, 0) for name in names)


async def evict(stage: Stage, name: str) -> None:
    body = manifest("Eviction", name, version="policy/v1")
    path = PODS.object(name, "default").subresource("eviction")
    await stage.client.create(path, encoded(body), decode)


@pytest.mark.parametrize("name", CASES)
async def test_the_status_counts_pods(name: str, set_stage: SetStage) -> None:
    case = CASES[name]
    stage = await set_stage("disruption", *case.objects, budget(**case.spec), seconds=1)
    found = await status(stage)
    condition = found["conditions"][0]
    reason = "SufficientPods" if case.figures[3] else "InsufficientPods"
    assert figures(found) == case.figures
    assert condition["reason"] == ("SyncFailed" if case.error else reason)
    assert condition["message"] == case.error
    assert [reason for reason, _, _ in await stage.list_events()] == list(case.events)


async def test_the_status_follows_the_pods(set_stage: SetStage) -> None:
    stage = await set_stage("disruption", budget(minAvailable=1))
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


async def test_evictions_are_counted_and_refused(set_stage: SetStage) -> None:
    stage = await set_stage("disruption", budget(minAvailable=2), *(web(i) for i in range(3)))
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


async def test_a_disrupted_pod_counts_again_after_two_minutes(set_stage: SetStage) -> None:
    stage = await set_stage("disruption", budget(minAvailable=1), web(0), web(1), seconds=1)
    now = "2026-01-01T00:00:01Z"
    change = {"status": {"disruptedPods": {"web-0": now}, "disruptionsAllowed": 0}}
    await stage.patch(POD_DISRUPTION_BUDGETS, "budget", change)
    await stage.passes(119)
    assert figures(await status(stage)) == (2, 1, 1, 0)
    await stage.passes(2)
    found = await status(stage)
    assert (figures(found), "disruptedPods" in found) == ((2, 1, 2, 1), False)
    assert [reason for reason, _, _ in await stage.list_events()] == ["NotDeleted"]


async def test_a_stale_condition_is_reset_after_two_minutes(set_stage: SetStage) -> None:
    stage = await set_stage("disruption")
    mark = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    stage.load(web(0, conditions=[mark]))
    await stage.passes(119)
    assert (await stage.pod("web-0"))["status"]["conditions"][0]["status"] == "True"
    await stage.passes(2)
    assert (await stage.pod("web-0"))["status"]["conditions"][0]["status"] == "False"


async def test_a_pod_with_two_budgets_is_reported(set_stage: SetStage) -> None:
    budgets = [budget(name, minAvailable=1) for name in ("budget", "other")]
    stage = await set_stage("disruption", *budgets, seconds=1)
    stage.load(web(0))
    await stage.passes(1)
    assert ("MultiplePodDisruptionBudgets", "web-0") in [t[:2] for t in await stage.list_events()]
