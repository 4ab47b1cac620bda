"""Pod statuses that kubelets write."""

from __future__ import annotations

from typing import Any

import pytest

from fakeapi.controlplane.controllers.types import ObjectCondition
from fakeapi.controlplane.kubelet.pod_lifecycle import Termination
from fakeapi.controlplane.kubelet.pod_phase import ConditionStatus
from fakeapi.controlplane.kubelet.pod_status import WrittenConditions, image_id, rejection_patch
from tests.fakeapi.controlplane.kubelet.pod_timelines import (
    Timeline,
    admitted,
    container,
    pod_of,
    seconds,
)

T = "2026-01-01T00:00:0{}Z".format


def condition(status: dict[str, Any], type_: str) -> dict[str, Any]:
    [found] = [each for each in status["conditions"] if each["type"] == type_]
    return {name: value for name, value in found.items() if value is not None}


def test_a_waiting_pod() -> None:
    status = Timeline(admitted(pod_of(container("a")))).status(0)
    assert [each["type"] for each in status["conditions"]] == [
        *("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    assert condition(status, "Ready") == {
        "type": "Ready",
        "status": "False",
        "lastTransitionTime": T(0),
        "reason": "ContainersNotReady",
        "message": "containers with unready status: [a]",
        "observedGeneration": 1,
    }
    assert status["containerStatuses"] == [
        {
            "name": "a",
            "image": "a:1",
            "imageID": "",
            "ready": False,
            "started": False,
            "restartCount": 0,
            "state": {"waiting": {"reason": "ContainerCreating"}},
            "lastState": {},
        }
    ]
    assert (status["phase"], status["hostIP"], status["startTime"]) == (
        *("Pending", "172.16.0.2", T(0)),
    )
    assert status["observedGeneration"] == 1


def test_a_running_pod() -> None:
    resources = {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}
    timeline = Timeline(admitted(pod_of(container("a", resources=resources))))
    before, after = timeline.status(0), timeline.status(1)
    assert condition(before, "Initialized") == condition(after, "Initialized")
    assert condition(after, "Ready") == {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": T(1),
        "observedGeneration": 1,
    }
    [container_status] = after["containerStatuses"]
    assert container_status["state"] == {"running": {"startedAt": T(1)}}
    assert container_status["containerID"].startswith("containerd://")
    assert container_status["imageID"].startswith("a@sha256:")
    assert container_status["resources"] == resources
    assert container_status["allocatedResources"] == {"cpu": "1"}
    assert after["podIPs"] == [{"ip": "10.0.0.2"}]
    assert after["hostIPs"] == [{"ip": "172.16.0.2"}]


def test_a_crash_loop() -> None:
    timeline = Timeline(admitted(pod_of(container("a")), "{stages: [{after: 1s, exit: 1}]}"))
    running, waiting = timeline.status(2)["containerStatuses"], timeline.status(3)
    assert running[0]["lastState"]["terminated"] | {"containerID": ""} == {
        "exitCode": 1,
        "reason": "Error",
        "startedAt": T(1),
        "finishedAt": T(2),
        "containerID": "",
    }
    [container_status] = waiting["containerStatuses"]
    assert container_status["state"] == {
        "waiting": {
            "reason": "CrashLoopBackOff",
            "message": "back-off 10s restarting failed container=a pod=p_default(u)",
        }
    }
    assert container_status["lastState"]["terminated"]["finishedAt"] == T(3)
    assert container_status["containerID"] == running[0]["containerID"]
    assert running[0]["lastState"]["terminated"]["containerID"] != container_status["containerID"]


def test_an_evicted_pod_has_its_reason() -> None:
    lifecycle = admitted(pod_of(container("a")))
    timeline = Timeline(lifecycle)
    timeline.status(2)
    eviction = Termination(seconds(3), seconds(9), "Evicted", "too much", "was too much")
    lifecycle.terminate(eviction)
    meanwhile, over = timeline.status(3), timeline.status(4)
    assert (meanwhile["phase"], "reason" in meanwhile) == ("Running", False)
    assert (over["phase"], over["reason"], over["message"]) == ("Failed", "Evicted", "too much")
    assert condition(over, "DisruptionTarget") == {
        "type": "DisruptionTarget",
        "status": "True",
        "lastTransitionTime": T(4),
        "reason": "TerminationByKubelet",
        "message": "was too much",
        "observedGeneration": 1,
    }
    assert condition(over, "Ready")["reason"] == "PodFailed"
    assert condition(over, "PodReadyToStartContainers")["status"] == "False"


@pytest.mark.parametrize(
    ("written", "status", "message"),
    [
        ({}, "False", 'corresponding condition of pod readiness gate "g" does not exist.'),
        ({"g": "False"}, "False", 'the status of pod readiness gate "g" is not "True", but False'),
        ({"g": "True"}, "True", None),
    ],
)
def test_readiness_gates(written: dict[str, str], status: str, message: str | None) -> None:
    gated = pod_of(container("a"), readinessGates=[{"conditionType": "g"}])
    timeline = Timeline(admitted(gated))
    timeline.report.record_foreign(
        [ObjectCondition(type=name, status=s) for name, s in written.items()]
    )
    found = timeline.status(2)
    ready = condition(found, "Ready")
    assert (ready["status"], ready.get("message")) == (status, message)
    assert condition(found, "ContainersReady")["status"] == "True"


def test_foreign_writes_of_the_kubelets_conditions_are_detected() -> None:
    report = WrittenConditions.read(
        [ObjectCondition("Ready", "True"), ObjectCondition("Odd", "True")]
    )
    assert not report.record_foreign(
        [ObjectCondition("Ready", "True"), ObjectCondition("Odd", "False")]
    )
    assert report.statuses == {"Ready": "True", "Odd": "False"}
    assert report.record_foreign([ObjectCondition("Ready", "False")])
    assert report.statuses["Ready"] == "True"


def test_a_transition_time_stays_as_long_as_the_status() -> None:
    report = WrittenConditions()
    assert report.record("Ready", ConditionStatus("False", "a"), T(1)) == T(1)
    assert report.record("Ready", ConditionStatus("False", "b"), T(2)) == T(1)
    assert report.record("Ready", ConditionStatus("True"), T(3)) == T(3)


def test_a_rejected_pod_has_a_reason_and_no_conditions() -> None:
    patch = rejection_patch("u", 0, "OutOfcpu", "no room", seconds(0))
    assert patch == {
        "metadata": {"uid": "u"},
        "status": {
            "phase": "Failed",
            "reason": "OutOfcpu",
            "message": "Pod was rejected: no room",
            "startTime": T(0),
            "conditions": [{"type": "PodScheduled", "$patch": "delete"}],
        },
    }


@pytest.mark.parametrize(
    ("image", "repository"),
    [
        ("nginx", "nginx"),
        ("nginx:1.2", "nginx"),
        ("host:5000/team/app:1", "host:5000/team/app"),
        ("host:5000/app", "host:5000/app"),
        ("app@sha256:abc", "app"),
    ],
)
def test_image_ids_are_digests(image: str, repository: str) -> None:
    name, _, digest = image_id(image).partition("@")
    assert (name, len(digest)) == (repository, len("sha256:") + 64)
