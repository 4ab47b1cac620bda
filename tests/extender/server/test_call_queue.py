"""Answers after the deadline, on a stale cluster, and under overload."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from extender.cluster.assumed_preemptions import AssumedPreemption
from extender.config.component_config import Config, Deadlines, DegradedConfig, FallbackConfig
from extender.protocol.extender_v1 import CandidateVictims
from extender.protocol.preempt_verb import PreemptArgs
from extender.protocol.request_size import at_once
from extender.protocol.verb_context import FallbackKind
from extender.server.call_queue import CallQueue, OverloadedError
from extender.server.fallback_policy import (
    DegradedError,
    FallbackPolicy,
    FallbackReason,
    configured_fallbacks,
)
from extender.server.service import Service, VerbCall
from policies.kubernetes.releases import RELEASES
from policies.kubernetes.snapshot import Snapshot
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine
from tests.builders import encoded, node, node_json, pod, pod_json
from tests.extender.conftest import (
    HandClock,
    InformerState,
    filter_body,
    live_cluster,
    preempt_body,
)
from tests.extender.go_decoder import filtered, preempted

LATE, STALE, OVERLOADED = FallbackReason.LATE, FallbackReason.STALE, FallbackReason.OVERLOADED
VIP = pod_json("vip", cpu="1", priority=10)


def service(
    clock: HandClock, fallback: FallbackKind, queue: CallQueue | None = None, seconds: float = 0.2
) -> Service:
    """Serve three full nodes, with one fallback for all reasons."""
    cluster = live_cluster(
        *(node(f"node-{number}", cpu="1") for number in (1, 2, 3)),
        *(
            pod(f"web-{number}", on=f"node-{number}", cpu="1", priority=4 - number)
            for number in (1, 2, 3)
        ),
    )
    verbs = ("filter", "preempt")
    degradation = FallbackPolicy(
        dict.fromkeys(verbs, seconds),
        60.0,
        {(case, verb): fallback for case in FallbackReason for verb in verbs},
    )
    return Service(
        cluster,
        ReferenceEngine(),
        clock,
        informers={"pods": InformerState()},
        fallback_policy=degradation,
        call_queue=queue or CallQueue(),
    )


NAMES = ("node-1", "node-2")
BY_NAME = filter_body(VIP, *NAMES)
AS_OBJECTS = encoded(
    {"Pod": VIP, "NodeNames": None, "Nodes": {"items": [node_json(name) for name in NAMES]}}
)
OFFERS = preempt_body(VIP, node_1=["web-1"], node_2=["web-2", "other"])


def late(clock: HandClock) -> None:
    clock.seconds = 0.3


def stale(clock: HandClock) -> None:
    clock.seconds = 61.0


WHEN: Mapping[FallbackReason, tuple[Callable[[HandClock], None], float]] = {
    LATE: (late, 0.0),
    STALE: (stale, 61.0),
}
"""The setup of a case, and the arrival time of its call."""


def answer(
    case: FallbackReason, fallback: FallbackKind, verb: str, body: bytes
) -> tuple[bytes, Service]:
    clock = HandClock()
    serving = service(clock, fallback)
    happen, arrived = WHEN[case]
    happen(clock)
    answered = at_once(serving.answer(VerbCall(verb, body, arrived, "r-1")))
    answered.record()
    return answered.body, serving


@pytest.mark.parametrize("case", [LATE, STALE])
class TestFallbacks:
    @pytest.mark.parametrize("body", [BY_NAME, AS_OBJECTS], ids=["names", "objects"])
    def test_an_echo_of_filter_lets_every_node_pass_unchanged(
        self, case: FallbackReason, body: bytes
    ) -> None:
        sent, _ = answer(case, FallbackKind.ECHO, "filter", body)
        result = filtered(sent, list(NAMES), cached=body is BY_NAME)
        assert not result.failed
        assert not result.unresolvable
        if body is BY_NAME:
            assert result.names == list(NAMES)
        else:
            assert json.loads(sent)["Nodes"]["items"] == json.loads(body)["Nodes"]["items"]

    @pytest.mark.parametrize("body", [BY_NAME, AS_OBJECTS], ids=["names", "objects"])
    def test_a_veto_of_filter_rejects_every_node_with_the_reason(
        self, case: FallbackReason, body: bytes
    ) -> None:
        sent, _ = answer(case, FallbackKind.VETO, "filter", body)
        result = filtered(sent, list(NAMES), cached=body is BY_NAME)
        assert set(result.failed) == set(NAMES)
        assert all(f"cannot decide now ({case.value}: " in why for why in result.failed.values())
        assert not result.unresolvable

    def test_an_echo_of_preempt_returns_the_offers(self, case: FallbackReason) -> None:
        sent, serving = answer(case, FallbackKind.ECHO, "preempt", OFFERS)
        given = json.loads(sent)["NodeNameToMetaVictims"]
        assert given == json.loads(OFFERS)["NodeNameToMetaVictims"]
        assert serving.cluster.assumed_count == 0  # kube-scheduler chooses, and the watch will tell

    def test_a_rejected_preempt_answer_names_no_victims(self, case: FallbackReason) -> None:
        sent, serving = answer(case, FallbackKind.VETO, "preempt", OFFERS)
        assert preempted(sent, serving.cluster.snapshot()) == {}

    @pytest.mark.parametrize("verb", ["filter", "preempt"])
    def test_an_error_leaves_it_to_kube_scheduler(self, case: FallbackReason, verb: str) -> None:
        with pytest.raises(DegradedError, match=f"^{case.value}: "):
            answer(case, FallbackKind.ERROR, verb, BY_NAME if verb == "filter" else OFFERS)

    def test_a_fallback_is_counted_and_recorded_and_is_no_decision(
        self, case: FallbackReason
    ) -> None:
        _, serving = answer(case, FallbackKind.VETO, "preempt", OFFERS)
        figures = serving.scrape().decode().splitlines()
        labels = f'answer="veto",case="{case.value}",verb="preempt"'
        assert f"reprieve_degraded_total{{{labels}}} 1.0" in figures
        assert "reprieve_preempt_without_answer_total 0.0" in figures
        [kept] = json.loads(serving.decision_history.document())["decisions"]
        assert kept["degraded"].startswith(f"{case.value}: ")
        assert (kept["requestID"], kept["pod"]["name"]) == ("r-1", "vip")


@pytest.mark.parametrize("release", ["1.37", "1.38"])
def test_an_echo_leaves_out_offers_that_invalidate_the_others(release: str) -> None:
    offers = {
        "whole": CandidateVictims(("a", "b"), 1),
        "nameless": CandidateVictims(("a", ""), 0),
        "victimless": CandidateVictims((), 0),
    }
    rules = SchedulerRules(RELEASES[release])
    body = PreemptArgs(pod("vip"), offers).pass_through(rules, Snapshot())
    given = set(json.loads(body)["NodeNameToMetaVictims"])
    assert given == ({"whole", "victimless"} if release == "1.38" else {"whole"})


class TestDeadlinesWithinTheSearch:
    def test_the_best_candidate_so_far_is_an_answer_with_a_note(self) -> None:
        # With each look at the clock a step ends, and the decision looks once more: three nodes are
        # filtered, and two of three are tried.
        serving = service(HandClock(step=0.1), FallbackKind.ERROR, seconds=1.4)
        body = preempt_body(VIP, node_1=["web-1"], node_2=["web-2"], node_3=["web-3"])
        answered = at_once(serving.answer(VerbCall("preempt", body, 0.0)))
        [(chosen, victims)] = preempted(answered.body, serving.cluster.snapshot()).items()
        # Whichever two of the three were tried, the dearest of all is not the better of them.
        assert (chosen, victims.uids) in {("node-2", ("web-2",)), ("node-3", ("web-3",))}
        answered.record()
        [kept] = json.loads(serving.decision_history.document())["decisions"]
        assert (kept["candidates"], kept["untried"]) == (2, 1)
        assert kept["notes"] == ["1 nodes were not tried before the deadline"]
        figures = serving.scrape().decode().splitlines()
        assert 'reprieve_searches_cut_short_total{verb="preempt"} 1.0' in figures

    @pytest.mark.parametrize(("verb", "seconds"), [("filter", 0.25), ("preempt", 0.45)])
    def test_a_call_without_a_decision_in_time_is_late(self, verb: str, seconds: float) -> None:
        serving = service(HandClock(step=0.1), FallbackKind.ERROR, seconds=seconds)
        body = BY_NAME if verb == "filter" else OFFERS
        with pytest.raises(
            DegradedError, match=r"^late: the search did not finish before the deadline"
        ):
            at_once(serving.answer(VerbCall(verb, body, 0.0)))

    def test_a_repeated_call_without_a_decision_keeps_the_assumed_preemption(self) -> None:
        serving = service(HandClock(step=0.1), FallbackKind.ERROR, seconds=0.45)
        earlier = AssumedPreemption(pod("vip"), "node-1", frozenset({"web-1"}), deadline=30.0)
        serving.cluster.assume(earlier)
        assumed = serving.cluster.snapshot()
        with pytest.raises(DegradedError, match=r"^late: the search did not finish"):
            at_once(serving.answer(VerbCall("preempt", OFFERS, 0.0)))
        assert serving.cluster.snapshot().nodes == assumed.nodes

    def test_a_finished_decision_is_sent_after_the_deadline(self) -> None:
        serving = service(HandClock(step=0.1), FallbackKind.VETO, seconds=1.2)
        answered = at_once(serving.answer(VerbCall("filter", BY_NAME, 0.0)))
        answered.record()
        figures = serving.scrape().decode().splitlines()
        assert 'reprieve_overdue_answers_total{verb="filter"} 1.0' in figures


class TestCallQueue:
    async def test_a_call_in_an_empty_queue_runs_at_once(self) -> None:
        taking = CallQueue(0).acquire("filter")
        with pytest.raises(StopIteration):
            taking.send(None)

    async def test_one_call_runs_in_each_iteration_in_order_of_arrival(self) -> None:
        queue, order, rounds = CallQueue(), list[str](), 0

        async def call(name: str) -> None:
            await queue.acquire("preempt")
            order.append(f"{name} in {rounds}")

        calls = [asyncio.create_task(call(name)) for name in "abc"]
        while not all(each.done() for each in calls):
            await asyncio.sleep(0)
            rounds += 1
        assert [entry[0] for entry in order] == ["a", "b", "c"]
        assert len({entry[1:] for entry in order}) == 3
        assert queue.waiting == 0

    @pytest.mark.parametrize(
        ("arriving", "deciding"),
        [
            ("p P p f F", "p f F P p"),
            ("f p f f", "f f f p"),
            ("f p p " + "f " * 12, "f " + "f " * 8 + "p " + "f " * 4 + "p"),
        ],
    )
    async def test_filter_calls_overtake_at_most_eight_times_in_a_row(
        self, arriving: str, deciding: str
    ) -> None:
        queue, order = CallQueue(), list[str]()

        async def call(name: str) -> None:
            await queue.acquire("filter" if name in "fF" else "preempt")
            order.append(name)

        await asyncio.gather(*map(call, arriving.split()))
        assert order == deciding.split()

    @pytest.mark.parametrize(
        ("rest", "least", "most"), [(0.0, 1, 1), (0.4, 1, 1), (4.0, 2, 8), (16.0, 8, 32)]
    )
    async def test_decisions_take_as_long_as_the_rest_of_a_long_iteration(
        self, rest: float, least: int, most: int
    ) -> None:
        clock, in_round = HandClock(), list[int]()
        queue = CallQueue(200, clock.monotonic)

        async def call() -> None:
            await queue.acquire("preempt")
            clock.seconds += 1
            in_round[-1] += 1
            queue.record_duration(1)

        in_round.append(0)
        calls = [asyncio.create_task(call()) for _ in range(200)]
        while not all(each.done() for each in calls):
            await asyncio.sleep(0)
            clock.seconds += rest
            in_round.append(0)
        settled = [count for count in in_round if count][6:-1]
        assert {least <= count <= most for count in settled} == {True}

    async def test_a_call_to_a_full_queue_is_refused(self) -> None:
        queue = CallQueue(1)
        calls = [asyncio.create_task(queue.acquire("preempt")) for _ in range(3)]
        await asyncio.sleep(0)
        assert queue.waiting == 1
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(each) for each in outcomes] == [type(None), type(None), OverloadedError]

    async def test_a_cancelled_call_leaves_the_queue(self) -> None:
        queue = CallQueue(1)
        first, second = (asyncio.create_task(queue.acquire("preempt")) for _ in range(2))
        await asyncio.sleep(0)
        assert queue.waiting == 1
        second.cancel()
        third = asyncio.create_task(queue.acquire("preempt"))
        await third
        assert (first.done(), second.cancelled()) == (True, True)
        assert queue.waiting == 0


@pytest.mark.parametrize("fallback", FallbackKind)
async def test_an_overloaded_service_sends_the_fallback(fallback: FallbackKind) -> None:
    serving = service(HandClock(), fallback, CallQueue(0))
    asked = VerbCall("preempt", OFFERS, 0.0)
    outcomes = await asyncio.gather(
        *(serving.call(asked) for _ in range(3)), return_exceptions=True
    )
    shown = ["error" if isinstance(each, DegradedError) else bodies(each) for each in outcomes]
    expected = {"error": "error", "veto": [], "echo": ["node-1", "node-2"]}[fallback.value]
    assert shown == [["node-2"], expected, expected]


def bodies(answered: Any) -> list[str]:
    """Return the names of the nodes in an answer."""
    return list(json.loads(answered.body)["NodeNameToMetaVictims"])


def test_the_configuration_sets_the_fallback() -> None:
    config = Config(
        stale_seconds=5,
        deadline_milliseconds=Deadlines(filter=50),
        degraded=DegradedConfig(late=FallbackConfig(preempt=FallbackKind.ECHO)),
    )
    read = configured_fallbacks(config)
    assert (read.deadline("filter"), read.deadline("preempt")) == (0.05, 0.2)
    assert read.stale_seconds == 5
    others = [key for key, each in read.fallbacks.items() if each is not FallbackKind.ERROR]
    assert others == [(LATE, "preempt")]
    assert read.fallback(STALE, "a verb to come") is FallbackKind.ERROR
