"""Pods that ran before the kubelet started: their status is taken as their state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pytest

from fakeapi.controlplane.kubelet.pod_lifecycle import PodLifecycle
from fakeapi.controlplane.kubelet.pod_worker import restore_pod
from fakeapi.controlplane.kubelet.script_parser import parse_pod_script
from fakeapi.controlplane.kubelet.scripts import PodScript
from fakeapi.controlplane.kubelet.types import KubeletPod
from tests.builders import Document
from tests.fakeapi.controlplane.kubelet.pod_timelines import (
    Timeline,
    admitted,
    container,
    decoded,
    pod_of,
    seconds,
)

LONG_AGO: Final = "2025-12-31T00:00:00Z"
DONE: Final = {"exitCode": 0, "reason": "Completed", "startedAt": LONG_AGO, "finishedAt": LONG_AGO}
FAILED: Final = {**DONE, "exitCode": 1, "reason": "Error"}
RUNNING: Final = {"running": {"startedAt": LONG_AGO}}
FAILS_AFTER_A_MINUTE: Final = "{stages: [{after: 60s, exit: 1}]}"


def known(name: str, state: Document, **fields: Any) -> Document:
    return {"name": name, "state": state, "restartCount": 0, "ready": False, **fields}


def with_status(
    pod: KubeletPod, *apps: Document, inits: Sequence[Document] = (), **status: Any
) -> KubeletPod:
    """Return a pod with a status."""
    statuses = {"containerStatuses": list(apps), "initContainerStatuses": list(inits)}
    written = {"phase": "Running", "startTime": LONG_AGO, **statuses, **status}
    return decoded({**msgspec.to_builtins(pod), "status": written})


def restored(pod: KubeletPod, script: PodScript, now: int) -> PodLifecycle:
    """Restore a pod, and process what is due."""
    life = restore_pod(pod, script, now)
    life.advance(now)
    life.sync_containers(now)
    return life


ONE = pod_of(container("a"))
SIDE = pod_of(
    container("a"), initContainers=[container("i"), container("s", restartPolicy="Always")]
)


def backing_off(**times: str) -> KubeletPod:
    """Build a pod that has failed three times, and waits to be restarted."""
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    last_state = {"terminated": {**FAILED, **times}}
    return with_status(ONE, known("a", waiting, lastState=last_state, restartCount=2))


TABLE: dict[str, tuple[KubeletPod, str, list[str]]] = {
    "running": (with_status(ONE, known("a", RUNNING)), "{}", ["0 Running ready a:run*"]),
    "running, without container statuses": (
        with_status(ONE),
        FAILS_AFTER_A_MINUTE,
        ["0 Running ready a:run*", "60 Running ready a:run*1"],
    ),
    "running since long, started by another kubelet": (
        with_status(ONE, known("a", RUNNING, restartCount=2)),
        FAILS_AFTER_A_MINUTE,
        ["0 Running ready a:run*2", "60 Running ready a:run*3"],  # its failures are long ago
    ),
    "waiting, and never started": (
        with_status(ONE, known("a", {"waiting": {"reason": "ContainerCreating"}}), phase="Pending"),
        "{}",
        ["0 Running ready a:run*"],
    ),
    "ended, and to be restarted": (
        with_status(ONE, known("a", {"terminated": FAILED})),
        "{}",
        ["0 Running ready a:run*1"],
    ),
    "waiting to be restarted": (
        backing_off(finishedAt="2025-12-31T23:59:55Z"),
        "{}",
        ["0 Running ready a:run*3"],  # it ran for a day, so its backoff is reset
    ),
    "waiting to be restarted, having crashed at once": (
        backing_off(startedAt="2025-12-31T23:59:50Z", finishedAt="2025-12-31T23:59:55Z"),
        "{}",
        ["0 Running a:wait(backoff)2", "15 Running ready a:run*3"],
    ),
    "with an init container that is done, and a sidecar": (
        with_status(
            SIDE, known("a", RUNNING), inits=[known("i", {"terminated": DONE}), known("s", RUNNING)]
        ),
        "{}",
        ["0 Running ready i:stop(0)* s:run* a:run*"],
    ),
    "in the middle of its init containers": (
        with_status(
            SIDE,
            known("a", {"waiting": {"reason": "PodInitializing"}}),
            inits=[known("i", RUNNING), known("s", {"waiting": {"reason": "PodInitializing"}})],
            phase="Pending",
        ),
        "{}",
        ["0 Pending i:run s:wait(init) a:wait(init)", "1 Running ready i:stop(0)* s:run* a:run*"],
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_pods_of_another_kubelet_are_restored(case: str) -> None:
    pod, script, lines = TABLE[case]
    life = restored(pod, parse_pod_script(script), seconds(0))
    assert Timeline(life).until(100) == lines


@pytest.mark.parametrize("handed_over", [5, 62, 75])
def test_a_restarted_kubelet_continues_a_lifecycle(handed_over: int) -> None:
    text = "{stages: [{after: 5s, ready: true}, {after: 55s, exit: 1}]}"
    script, whole = parse_pod_script(text), Timeline(admitted(ONE, text))
    status = whole.status(handed_over)
    for condition in status["conditions"]:  # a server keeps no nulls
        del condition["reason"], condition["message"]
    pod = decoded({**msgspec.to_builtins(ONE), "status": status})
    second = Timeline(restored(pod, script, seconds(handed_over)))
    for later in range(handed_over, 200):
        ours, theirs = second.status(later), whole.status(later)
        assert ours["containerStatuses"] == theirs["containerStatuses"]
        assert ours["phase"] == theirs["phase"]
