"""A decision that takes long: other work between its steps, on the state that it began with."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any, Final

import pytest

from extender.cluster.assumed_preemptions import AssumedPreemption
from extender.protocol.request_size import at_once
from extender.server.decision_steps import STEP_SECONDS, decide_in_steps
from extender.server.fallback_policy import FallbackPolicy
from extender.server.http_handlers import handle_verb
from extender.server.service import Service, VerbCall
from policies.preemption.time_limit import HasTimeLeft
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import node, pod, pod_json
from tests.extender.conftest import (
    HandClock,
    InformerState,
    filter_body,
    live_cluster,
    preempt_body,
)

HOSTNAME: Final = "kubernetes.io/hostname"
NAMES: Final = [f"node-{number}" for number in range(20)]
APART: Final[dict[str, Any]] = {
    "topologyKey": HOSTNAME,
    "labelSelector": {"matchLabels": {"app": "web"}},
}
REPELLED: Final = {
    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART] * 10}
}
VIP: Final = pod_json("vip", cpu="1", priority=10, spec={"affinity": REPELLED})
CALLS: Final = {
    "filter": filter_body(VIP, *NAMES),
    "preempt": preempt_body(VIP, **{name: [f"web-{name}"] for name in NAMES}),
}


def serve(seconds: float = 0.03) -> Service:
    """Return an extender whose clock advances by some seconds with each reading."""
    nodes = [node(name, cpu="1", labels={HOSTNAME: name}) for name in NAMES]
    pods = [pod(f"web-{name}", on=name, cpu="1", labels={"app": "web"}) for name in NAMES]
    engine, clock = VectorizedEngine(), HandClock(seconds)
    cluster = live_cluster(*nodes, *pods, engine=engine, clock=clock)
    deadlines = FallbackPolicy(dict.fromkeys(CALLS, 1000.0))
    return Service(cluster, engine, clock, fallback_policy=deadlines)


async def answer(service: Service, verb: str) -> str:
    response = await handle_verb(service, VerbCall(verb, CALLS[verb], service.clock.monotonic()))
    assert response.status == 200
    return response.text or ""


@pytest.mark.parametrize("verb", CALLS)
async def test_the_event_loop_runs_between_the_steps_of_a_decision(verb: str) -> None:
    service = serve()
    order: list[str] = []

    async def record(name: str, work: Awaitable[object]) -> None:
        await work
        order.append(name)

    await asyncio.gather(
        record("decision", answer(service, verb)), record("other", asyncio.sleep(0))
    )
    assert order == ["other", "decision"]


@pytest.mark.parametrize("verb", CALLS)
async def test_a_decision_in_steps_is_the_same_as_one_at_once(verb: str) -> None:
    assert await answer(serve(), verb) == await answer(serve(seconds=0), verb)


@pytest.mark.parametrize("verb", CALLS)
async def test_decisions_do_not_mix(verb: str) -> None:
    service = serve()
    answers = await asyncio.gather(*(answer(service, each) for each in [*CALLS, *CALLS]))
    assert answers[list(CALLS).index(verb)] == await answer(serve(seconds=0), verb)
    assert not service.cluster.is_locked


@pytest.mark.parametrize("verb", CALLS)
async def test_the_snapshot_does_not_change_between_the_steps_of_a_decision(verb: str) -> None:
    service = serve()
    earlier = AssumedPreemption(pod("other"), NAMES[0], frozenset({f"web-{NAMES[0]}"}), 100.0)
    service.cluster.assume(earlier)
    steps = service.answer(VerbCall(verb, CALLS[verb], 0.0))
    next(steps)
    current = service.cluster.snapshot()
    assert service.cluster.is_locked
    await service.clock.sleep(200)
    assert service.cluster.snapshot() is current
    at_once(steps)
    assert service.cluster.snapshot() is not current


@pytest.mark.parametrize("verb", CALLS)
def test_a_decision_is_recorded_with_the_version_of_the_pods_that_it_has_read(verb: str) -> None:
    service = serve()
    pods = InformerState()
    service.informers = {"pods": pods}
    first, second = (service.answer(VerbCall(verb, CALLS[verb], 0.0)) for _ in range(2))
    next(first)
    next(second)  # waits for the first decision
    at_once(first).record()
    pods.resource_version = "2"
    at_once(second).record()
    found = json.loads(service.decision_history.document())["decisions"]
    assert [each["podsVersion"] for each in found] == ["2", "1"]


@pytest.mark.parametrize("verb", CALLS)
def test_a_decision_whose_call_ends_makes_room_for_the_next(verb: str) -> None:
    service, undisturbed = serve(), serve(seconds=0)
    steps = service.answer(VerbCall(verb, CALLS[verb], 0.0))
    next(steps)
    steps.close()
    assert not service.cluster.is_locked
    again = at_once(service.answer(VerbCall(verb, CALLS[verb], 0.0))).body
    assert again == at_once(undisturbed.answer(VerbCall(verb, CALLS[verb], 0.0))).body


def test_a_decision_ends_a_step_when_it_has_taken_long() -> None:
    clock, seen = HandClock(), []

    def decide(has_time_left: HasTimeLeft) -> str:
        for seconds in (0.0, STEP_SECONDS, 0.001, 0.001):
            clock.seconds += seconds
            seen.append(has_time_left())
        return "decided"

    steps = decide_in_steps(decide, 1.0, clock)
    next(steps)
    assert seen == [True, True]
    assert at_once(steps) == "decided"
    assert seen == [True] * 4


def test_a_decision_learns_after_a_step_that_its_deadline_has_passed() -> None:
    clock = HandClock()

    def decide(has_time_left: HasTimeLeft) -> bool:
        clock.seconds += 2 * STEP_SECONDS
        return has_time_left()

    steps = decide_in_steps(decide, 1.0, clock)
    next(steps)
    clock.seconds = 2.0
    assert at_once(steps) is False


def test_an_error_of_a_decision_is_raised() -> None:
    clock = HandClock(step=2 * STEP_SECONDS)

    def decide(has_time_left: HasTimeLeft) -> None:
        has_time_left()
        raise LookupError("missing")

    with pytest.raises(LookupError, match="missing"):
        at_once(decide_in_steps(decide, 1.0, clock))


def test_a_decision_whose_steps_are_closed_does_not_go_on() -> None:
    clock, seen = HandClock(step=2 * STEP_SECONDS), []

    def decide(has_time_left: HasTimeLeft) -> None:
        try:
            has_time_left()
            seen.append("went on")
        finally:
            seen.append("ended")

    steps = decide_in_steps(decide, 1.0, clock)
    next(steps)
    steps.close()
    assert seen == ["ended"]
