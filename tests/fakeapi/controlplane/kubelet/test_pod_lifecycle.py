"""What becomes of pods, scene by scene (see :mod:`living` for how lines are read)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from fakeapi.controlplane.kubelet.types import KubeletPod
from tests.fakeapi.controlplane.kubelet.pod_timelines import Telling, admitted, container, pod_of


@dataclass(frozen=True)
class Scene:
    """A pod, its script, and what shows of it; ``acts`` are passed to :meth:`Telling.until`."""

    pod: KubeletPod
    script: str
    lines: str
    acts: dict[str, Any] = field(default_factory=dict)


def sidecar(name: str, **fields: Any) -> dict[str, Any]:
    """Build an init container that goes on running."""
    return container(name, restartPolicy="Always", **fields)


SCENES = {
    "started, ready after its probe's delay, told to end": Scene(
        pod_of(container("a"), container("b", readinessProbe={"initialDelaySeconds": 5})),
        "{}",
        """
        0 Pending a:wait(new) b:wait(new)
        1 Running a:run* b:run
        6 Running ready a:run* b:run*
        20 Running ready a:run* b:run*
        21 Succeeded a:stop(0) b:stop(0)
        """,
        {"end": 100, "told": 20},
    ),
    "init containers in their order, a sidecar among them": Scene(
        pod_of(
            container("a"),
            initContainers=[
                container("i"),
                sidecar("s", startupProbe={"initialDelaySeconds": 3}),
                container("j"),
            ],
            restartPolicy="Never",
        ),
        "{containers: {a: {stages: [{after: 10s, exit: 0}]}}}",
        """
        0 Pending i:wait(init) s:wait(init) j:wait(init) a:wait(init)
        1 Pending i:run s:wait(init) j:wait(init) a:wait(init)
        2 Pending i:stop(0)* s:run j:wait(init) a:wait(init)
        5 Pending i:stop(0)* s:run* j:run a:wait(init)
        6 Running ready i:stop(0)* s:run* j:stop(0)* a:run*
        16 Running i:stop(0)* s:run* j:stop(0)* a:stop(0)
        17 Succeeded i:stop(0)* s:stop(0) j:stop(0)* a:stop(0)
        """,
        {"end": 60},
    ),
    "crashes, with growing delays": Scene(
        pod_of(container("a")),
        "{stages: [{after: 5s, exit: 1}]}",
        """
        0 Pending a:wait(new)
        1 Running ready a:run*
        6 Running ready a:run*1
        11 Running a:wait(backoff)1
        21 Running ready a:run*2
        26 Running a:wait(backoff)2
        46 Running ready a:run*3
        51 Running a:wait(backoff)3
        91 Running ready a:run*4
        96 Running a:wait(backoff)4
        176 Running ready a:run*5
        181 Running a:wait(backoff)5
        341 Running ready a:run*6
        346 Running a:wait(backoff)6
        """,
        {"end": 400},
    ),
    "fails once, then succeeds": Scene(
        pod_of(container("a"), restartPolicy="OnFailure"),
        "{runs: [[{after: 5s, exit: 1}],[{after: 5s, exit: 0}]]}",
        """
        0 Pending a:wait(new)
        1 Running ready a:run*
        6 Running ready a:run*1
        11 Succeeded a:stop(0)1
        """,
        {"end": 100},
    ),
    "never restarted: failed if one has failed": Scene(
        pod_of(container("a"), container("b"), restartPolicy="Never"),
        (
            "{containers: {a: {stages: [{after: 5s, exit: 1}]}, b: {stages: [{after: 8s, "
            "exit: 0}]}}}"
        ),
        """
        0 Pending a:wait(new) b:wait(new)
        1 Running ready a:run* b:run*
        6 Running a:stop(1) b:run*
        9 Failed a:stop(1) b:stop(0)
        """,
        {"end": 100},
    ),
    "longer active than it may be": Scene(
        pod_of(container("a"), activeDeadlineSeconds=15),
        "{stop: 60s}",
        """
        0 Pending a:wait(new)
        1 Running ready a:run*
        15 Running ready a:run*
        45 Failed a:stop(137)
        """,
        {"end": 400},
    ),
    "an image that cannot be pulled at first": Scene(
        pod_of(container("a")),
        "{failedPulls: 2}",
        """
        0 Pending a:wait(new)
        1 Pending a:wait(pull)
        11 Pending a:wait(pull)
        31 Running ready a:run*
        """,
        {"end": 100},
    ),
    "told to end before it was started": Scene(
        pod_of(container("a")),
        "{start: 10s}",
        """
        0 Pending a:wait(new)
        5 Failed a:stop(137)
        """,
        {"end": 100, "told": 5},
    ),
    "an init container that fails, never restarted": Scene(
        pod_of(container("a"), initContainers=[container("i")], restartPolicy="Never"),
        "{containers: {i: {stages: [{after: 2s, exit: 3}]}}}",
        """
        0 Pending i:wait(init) a:wait(init)
        1 Pending i:run a:wait(init)
        3 Failed i:stop(3) a:wait(init)
        """,
        {"end": 100},
    ),
    "an init container that fails at first": Scene(
        pod_of(container("a"), initContainers=[container("i")]),
        (
            "{containers: {i: {runs: [[{after: 2s, exit: 3}],[{after: 2s, exit: 3}],[{after: "
            "2s, exit: 0}]]}}}"
        ),
        """
        0 Pending i:wait(init) a:wait(init)
        1 Pending i:run a:wait(init)
        3 Pending i:run1 a:wait(init)
        5 Pending i:wait(backoff)1 a:wait(init)
        15 Pending i:run2 a:wait(init)
        17 Running ready i:stop(0)*2 a:run*
        """,
        {"end": 100},
    ),
    "a sidecar that crashes does not hold the pod up": Scene(
        pod_of(container("a"), initContainers=[sidecar("s")]),
        "{containers: {s: {runs: [[{after: 5s, exit: 1}],[{after: 5s, exit: 1}],[]]}}}",
        """
        0 Pending s:wait(init) a:wait(init)
        1 Running ready s:run* a:run*
        6 Running ready s:run*1 a:run*
        11 Running s:wait(backoff)1 a:run*
        21 Running ready s:run*2 a:run*
        """,
        {"end": 100},
    ),
    "sidecars stop last": Scene(
        pod_of(container("a"), initContainers=[sidecar("s")]),
        "{stop: 4s, containers: {s: {stop: 3s}}}",
        """
        0 Pending s:wait(init) a:wait(init)
        1 Running ready s:run* a:run*
        10 Running ready s:run* a:run*
        14 Running s:run* a:stop(0)
        17 Succeeded s:stop(0) a:stop(0)
        """,
        {"end": 100, "told": 10},
    ),
    "a hook before it stops, and its own exit code": Scene(
        pod_of(container("a", lifecycle={"preStop": {"sleep": {"seconds": 5}}})),
        "{stop: {after: 2s, exit: 143}}",
        """
        0 Pending a:wait(new)
        1 Running ready a:run*
        10 Running ready a:run*
        17 Failed a:stop(143)
        """,
        {"end": 100, "told": 10},
    ),
    "killed when its time is over": Scene(
        pod_of(container("a")),
        "{stop: 60s}",
        """
        0 Pending a:wait(new)
        1 Running ready a:run*
        10 Running ready a:run*
        15 Failed a:stop(137)
        """,
        {"end": 100, "told": 10, "grace": 5},
    ),
    "readiness by its script": Scene(
        pod_of(container("a")),
        (
            "{stages: [{after: 3s, ready: true}, {after: 10s, ready: false}, {after: 5s, "
            "ready: true}]}"
        ),
        """
        0 Pending a:wait(new)
        1 Running a:run
        4 Running ready a:run*
        14 Running a:run
        19 Running ready a:run*
        """,
        {"end": 100},
    ),
    "ready as probed, until the script says otherwise": Scene(
        pod_of(container("a", readinessProbe={"initialDelaySeconds": 5})),
        "{stages: [{after: 10s, ready: false}]}",
        """
        0 Pending a:wait(new)
        1 Running a:run
        6 Running ready a:run*
        11 Running a:run
        """,
        {"end": 100},
    ),
    "killed for its memory": Scene(
        pod_of(container("a", resources={"limits": {"memory": "100Mi"}}), restartPolicy="Never"),
        "{stages: [{memory: 0}, {after: 5s, memory: 200Mi, over: 10s}]}",
        """
        0 Pending a:wait(new)
        1 Running ready a:run*
        11 Failed a:stop(137)
        """,
        {"end": 100},
    ),
    "one of two is restarted": Scene(
        pod_of(container("a"), container("b")),
        "{containers: {b: {stages: [{after: 5s, exit: 0}]}}}",
        """
        0 Pending a:wait(new) b:wait(new)
        1 Running ready a:run* b:run*
        6 Running ready a:run* b:run*1
        11 Running a:run* b:wait(backoff)1
        21 Running ready a:run* b:run*2
        """,
        {"end": 25},
    ),
    "told to end while it waits to be restarted": Scene(
        pod_of(container("a")),
        "{stages: [{after: 5s, exit: 1}]}",
        """
        0 Pending a:wait(new)
        1 Running ready a:run*
        6 Running ready a:run*1
        11 Running a:wait(backoff)1
        15 Failed a:stop(1)1
        """,
        {"end": 100, "told": 15},
    ),
    "a container with a policy of its own": Scene(
        pod_of(container("a", restartPolicy="Never"), container("b")),
        "{containers: {a: {stages: [{after: 5s, exit: 7}]}}}",
        """
        0 Pending a:wait(new) b:wait(new)
        1 Running ready a:run* b:run*
        6 Running a:stop(7) b:run*
        """,
        {"end": 100},
    ),
    "ten minutes without a failure begin anew": Scene(
        pod_of(container("a")),
        (
            "{runs: [[{after: 5s, exit: 1}],[{after: 5s, exit: 1}],[{after: 700s, exit: 1}], "
            "[{after: 5s, exit: 1}], []]}"
        ),
        """
        0 Pending a:wait(new)
        1 Running ready a:run*
        6 Running ready a:run*1
        11 Running a:wait(backoff)1
        21 Running ready a:run*2
        721 Running ready a:run*3
        726 Running a:wait(backoff)3
        736 Running ready a:run*4
        """,
        {"end": 2000},
    ),
}


@pytest.mark.parametrize("name", SCENES)
def test_scene(name: str) -> None:
    scene = SCENES[name]
    lines = [line.strip() for line in scene.lines.strip().splitlines()]
    assert Telling(admitted(scene.pod, scene.script)).until(**scene.acts) == lines
