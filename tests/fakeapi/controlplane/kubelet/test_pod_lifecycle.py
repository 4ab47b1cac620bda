"""Lifecycles of pods as timelines (:mod:`pod_timelines` describes their lines)."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from fakeapi.controlplane.kubelet.types import KubeletPod
from tests.fakeapi.controlplane.kubelet.pod_timelines import Timeline, admitted, container, pod_of


class Case(NamedTuple):
    """A pod, its script, and its timeline; the rest are arguments of :meth:`Timeline.until`."""

    pod: KubeletPod
    script: str
    lines: str
    end: float = 100
    deleted: float | None = None
    grace: float = 30


def sidecar(name: str, **fields: Any) -> dict[str, Any]:
    """Build an init container that keeps running."""
    return container(name, restartPolicy="Always", **fields)


CASES = {
    "started, ready after its probe's delay, deleted": Case(
        pod_of(container("a"), container("b", readinessProbe={"initialDelaySeconds": 5})),
        "{}",
        """
        0 Pending a:wait(new) b:wait(new)
        1 Running a:run* b:run
        6 Running ready a:run* b:run*
        20 Running ready a:run* b:run*
        21 Succeeded a:stop(0) b:stop(0)
        """,
        deleted=20,
    ),
    "init containers in their order, a sidecar among them": Case(
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
        end=60,
    ),
    "crashes, with growing delays": Case(
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
        end=400,
    ),
    "fails once, then succeeds": Case(
        pod_of(container("a"), restartPolicy="OnFailure"),
        "{runs: [[{after: 5s, exit: 1}],[{after: 5s, exit: 0}]]}",
        """
        0 Pending a:wait(new)
        1 Running ready a:run*
        6 Running ready a:run*1
        11 Succeeded a:stop(0)1
        """,
    ),
    "never restarted: failed if one has failed": Case(
        pod_of(container("a"), container("b"), restartPolicy="Never"),
        "{containers: {a: {stages: [{after: 5s, exit: 1}]}, b: {stages: [{after: 8s, exit: 0}]}}}",
        """
        0 Pending a:wait(new) b:wait(new)
        1 Running ready a:run* b:run*
        6 Running a:stop(1) b:run*
        9 Failed a:stop(1) b:stop(0)
        """,
    ),
    "longer active than it may be": Case(
        pod_of(container("a"), activeDeadlineSeconds=15),
        "{stop: 60s}",
        """
        0 Pending a:wait(new)
        1 Running ready a:run*
        15 Running ready a:run*
        45 Failed a:stop(137)
        """,
        end=400,
    ),
    "an image that cannot be pulled at first": Case(
        pod_of(container("a")),
        "{failedPulls: 2}",
        """
        0 Pending a:wait(new)
        1 Pending a:wait(pull)
        11 Pending a:wait(pull)
        31 Running ready a:run*
        """,
    ),
    "deleted before it was started": Case(
        pod_of(container("a")),
        "{start: 10s}",
        """
        0 Pending a:wait(new)
        5 Failed a:stop(137)
        """,
        deleted=5,
    ),
    "an init container that fails, never restarted": Case(
        pod_of(container("a"), initContainers=[container("i")], restartPolicy="Never"),
        "{containers: {i: {stages: [{after: 2s, exit: 3}]}}}",
        """
        0 Pending i:wait(init) a:wait(init)
        1 Pending i:run a:wait(init)
        3 Failed i:stop(3) a:wait(init)
        """,
    ),
    "an init container that fails at first": Case(
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
    ),
    "a sidecar that crashes does not hold the pod up": Case(
        pod_of(container("a"), initContainers=[sidecar("s")]),
        "{containers: {s: {runs: [[{after: 5s, exit: 1}],[{after: 5s, exit: 1}],[]]}}}",
        """
        0 Pending s:wait(init) a:wait(init)
        1 Running ready s:run* a:run*
        6 Running ready s:run*1 a:run*
        11 Running s:wait(backoff)1 a:run*
        21 Running ready s:run*2 a:run*
        """,
    ),
    "sidecars stop last": Case(
        pod_of(container("a"), initContainers=[sidecar("s")]),
        "{stop: 4s, containers: {s: {stop: 3s}}}",
        """
        0 Pending s:wait(init) a:wait(init)
        1 Running ready s:run* a:run*
        10 Running ready s:run* a:run*
        14 Running s:run* a:stop(0)
        17 Succeeded s:stop(0) a:stop(0)
        """,
        deleted=10,
    ),
    "a hook before it stops, and its own exit code": Case(
        pod_of(container("a", lifecycle={"preStop": {"sleep": {"seconds": 5}}})),
        "{stop: {after: 2s, exit: 143}}",
        """
        0 Pending a:wait(new)
        1 Running ready a:run*
        10 Running ready a:run*
        17 Failed a:stop(143)
        """,
        deleted=10,
    ),
    "killed when its time is over": Case(
        pod_of(container("a")),
        "{stop: 60s}",
        """
        0 Pending a:wait(new)
        1 Running ready a:run*
        10 Running ready a:run*
        15 Failed a:stop(137)
        """,
        deleted=10,
        grace=5,
    ),
    "readiness by its script": Case(
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
    ),
    "ready as probed, until the script says otherwise": Case(
        pod_of(container("a", readinessProbe={"initialDelaySeconds": 5})),
        "{stages: [{after: 10s, ready: false}]}",
        """
        0 Pending a:wait(new)
        1 Running a:run
        6 Running ready a:run*
        11 Running a:run
        """,
    ),
    "killed for its memory": Case(
        pod_of(container("a", resources={"limits": {"memory": "100Mi"}}), restartPolicy="Never"),
        "{stages: [{memory: 0}, {after: 5s, memory: 200Mi, over: 10s}]}",
        """
        0 Pending a:wait(new)
        1 Running ready a:run*
        11 Failed a:stop(137)
        """,
    ),
    "one of two is restarted": Case(
        pod_of(container("a"), container("b")),
        "{containers: {b: {stages: [{after: 5s, exit: 0}]}}}",
        """
        0 Pending a:wait(new) b:wait(new)
        1 Running ready a:run* b:run*
        6 Running ready a:run* b:run*1
        11 Running a:run* b:wait(backoff)1
        21 Running ready a:run* b:run*2
        """,
        end=25,
    ),
    "deleted while it waits to be restarted": Case(
        pod_of(container("a")),
        "{stages: [{after: 5s, exit: 1}]}",
        """
        0 Pending a:wait(new)
        1 Running ready a:run*
        6 Running ready a:run*1
        11 Running a:wait(backoff)1
        15 Failed a:stop(1)1
        """,
        deleted=15,
    ),
    "a container with a policy of its own": Case(
        pod_of(container("a", restartPolicy="Never"), container("b")),
        "{containers: {a: {stages: [{after: 5s, exit: 7}]}}}",
        """
        0 Pending a:wait(new) b:wait(new)
        1 Running ready a:run* b:run*
        6 Running a:stop(7) b:run*
        """,
    ),
    "ten minutes without a failure begin anew": Case(
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
        end=2000,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_timelines(name: str) -> None:
    case = CASES[name]
    lines = [line.strip() for line in case.lines.strip().splitlines()]
    timeline = Timeline(admitted(case.pod, case.script))
    assert timeline.until(case.end, case.deleted, case.grace) == lines
