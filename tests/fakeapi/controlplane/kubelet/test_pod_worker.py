"""Pods that ran before the kubelet started: their status is taken as their state."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import orjson
import pytest

from fakeapi.controlplane.kubelet.pod_worker import restore_pod
from fakeapi.controlplane.kubelet.script_parser import parse_pod_script
from fakeapi.controlplane.kubelet.types import KubeletPod, decode_pod
from tests.builders import Document
from tests.fakeapi.controlplane.kubelet.pod_timelines import (
    Telling,
    admitted,
    container,
    pod_of,
    seconds,
)

LONG_AGO: Final = "2025-12-31T00:00:00Z"
DONE: Final = {"exitCode": 0, "reason": "Completed", "startedAt": LONG_AGO, "finishedAt": LONG_AGO}
FAILED: Final = {**DONE, "exitCode": 1, "reason": "Error"}
RUNNING: Final = {"running": {"startedAt": LONG_AGO}}
A_MINUTE: Final = "{stages: [{after: 60s, exit: 1}]}"


def known(name: str, state: Document, **fields: Any) -> Document:
    return {"name": name, "state": state, "restartCount": 0, "ready": False, **fields}


def lived(
    pod: KubeletPod, *apps: Document, inits: list[Document] | None = None, **status: Any
) -> KubeletPod:
    """Return a pod with a status."""
    statuses = {"containerStatuses": list(apps), "initContainerStatuses": inits or []}
    told = {"phase": "Running", "startTime": LONG_AGO, **statuses, **status}
    document = {**msgspec.to_builtins(pod), "status": told}
    return decode_pod(msgspec.Raw(orjson.dumps(document))).object


ONE = pod_of(container("a"))
SIDE = pod_of(
    container("a"), initContainers=[container("i"), container("s", restartPolicy="Always")]
)

TABLE: dict[str, tuple[KubeletPod, str, list[str]]] = {
    "running": (lived(ONE, known("a", RUNNING)), "{}", ["0 Running ready a:run*"]),
    "running, of which nothing more is said": (
        lived(ONE),
        A_MINUTE,
        ["0 Running ready a:run*", "60 Running ready a:run*1"],
    ),
    "running since long, started by another kubelet": (
        lived(ONE, known("a", RUNNING, restartCount=2)),
        A_MINUTE,
        ["0 Running ready a:run*2", "60 Running ready a:run*3"],  # its failures are long ago
    ),
    "waiting, and never started": (
        lived(ONE, known("a", {"waiting": {"reason": "ContainerCreating"}}), phase="Pending"),
        "{}",
        ["0 Running ready a:run*"],
    ),
    "ended, and to be restarted": (
        lived(ONE, known("a", {"terminated": FAILED})),
        "{}",
        ["0 Running ready a:run*1"],
    ),
    "waiting to be restarted": (
        lived(
            ONE,
            known(
                "a",
                {"waiting": {"reason": "CrashLoopBackOff"}},
                lastState={"terminated": {**FAILED, "finishedAt": "2025-12-31T23:59:55Z"}},
                restartCount=2,
            ),
        ),
        "{}",
        ["0 Running ready a:run*3"],  # it ran for a day, so that it is forgiven
    ),
    "waiting to be restarted, having crashed at once": (
        lived(
            ONE,
            known(
                "a",
                {"waiting": {"reason": "CrashLoopBackOff"}},
                lastState={
                    "terminated": {
                        **FAILED,
                        "startedAt": "2025-12-31T23:59:50Z",
                        "finishedAt": "2025-12-31T23:59:55Z",
                    }
                },
                restartCount=2,
            ),
        ),
        "{}",
        ["0 Running a:wait(backoff)2", "15 Running ready a:run*3"],
    ),
    "with an init container that is done, and a sidecar": (
        lived(
            SIDE,
            known("a", RUNNING),
            inits=[known("i", {"terminated": DONE}), known("s", RUNNING)],
        ),
        "{}",
        ["0 Running ready i:stop(0)* s:run* a:run*"],
    ),
    "in the middle of its init containers": (
        lived(
            SIDE,
            known("a", {"waiting": {"reason": "PodInitializing"}}),
            inits=[known("i", RUNNING), known("s", {"waiting": {"reason": "PodInitializing"}})],
            phase="Pending",
        ),
        "{}",
        [
            "0 Pending i:run s:wait(init) a:wait(init)",
            "1 Running ready i:stop(0)* s:run* a:run*",
        ],
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_pods_are_taken_over(case: str) -> None:
    pod, script, lines = TABLE[case]
    life = restore_pod(pod, parse_pod_script(script), seconds(0))
    assert Telling(life).until(100) == lines


@pytest.mark.parametrize("handed_over", [5, 62, 75])
def test_a_life_goes_on_where_our_own_kubelet_left_it(handed_over: int) -> None:
    text = "{stages: [{after: 5s, ready: true}, {after: 55s, exit: 1}]}"
    script, whole = parse_pod_script(text), Telling(admitted(ONE, text))
    status = whole.status(handed_over)
    for condition in status["conditions"]:  # a server keeps no nulls
        del condition["reason"], condition["message"]
    document = {**msgspec.to_builtins(ONE), "status": status}
    pod = decode_pod(msgspec.Raw(orjson.dumps(document))).object
    second = Telling(restore_pod(pod, script, seconds(handed_over)))
    for later in range(handed_over, 200):
        ours, theirs = second.status(later), whole.status(later)
        assert ours["containerStatuses"] == theirs["containerStatuses"]
        assert ours["phase"] == theirs["phase"]
