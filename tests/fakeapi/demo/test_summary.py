"""What is summed up, and how people see it."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

from rich.console import Console, RenderableType

from fakeapi.controlplane.scheduler.extender_trace import ExtenderOutcome
from fakeapi.demo.decisions import ReprievedPod
from fakeapi.demo.observed_state import ObservedState
from fakeapi.demo.output import render_screen, summary_tables
from fakeapi.demo.steps import DemoStep
from fakeapi.demo.summary import (
    CallSummary,
    EvictionSummary,
    PreemptionSummary,
    ReplacementSummary,
    Summary,
    summarize,
)
from tests.fakeapi.demo.observed_states import (
    SMALL,
    STRAINED,
    TAKEN,
    deliberation,
    exchange,
    pod,
    preempted,
)

SPARED = (
    ReprievedPod("d/a", 1, "fits beside the preemptor"),
    ReprievedPod("d/b", 1, "the budget d/web would be violated"),
    ReprievedPod("d/c", 1, "fits beside the preemptor"),
)


def shown(renderable: RenderableType) -> str:
    text = StringIO()
    Console(file=text, width=140, highlight=False).print(renderable)
    return text.getvalue()


def test_nothing_has_happened() -> None:
    assert summarize(ObservedState(), SMALL, 1.0) == Summary((), (), (), ())


def test_all_that_has_happened() -> None:
    told = summarize(STRAINED, SMALL, 2.0)
    assert told.preemptions == (
        PreemptionSummary("d/vip", "n-1", ("d/web-1 (1)",), "the only candidate", (), 0),
    )
    assert told.replacements == (
        ReplacementSummary(("d/web-3",), "", "FailedScheduling: 0/2 nodes are available"),
        ReplacementSummary(("d/web-4",), "", "FailedScheduling: tainted"),
    )
    assert told.evictions == (EvictionSummary("d/web-2", "n-2", "low on memory."),)
    assert told.calls == (CallSummary("preempt", 1, "1 accepted", 5.0, 2.0, ()),)


def test_pods_with_the_same_fate_stand_together_and_those_that_run_come_first() -> None:
    events = tuple(replace(e, uid=uid) for uid in ("x", "y") for e in TAKEN.events[1:])
    pods = (pod("y"), pod("x"), pod("z", on="n-2", subset="spot"), pod("mute"))
    told = summarize(replace(TAKEN, pods=pods, events=events), SMALL, 1.0)
    assert told.replacements == (
        ReplacementSummary(("d/z",), "spot", "runs on n-2"),
        ReplacementSummary(("d/x", "d/y"), "", "FailedScheduling: 0/2 nodes are available"),
    )


def test_victims_of_one_preemptor_stand_together_and_why_others_were_spared() -> None:
    answer = deliberation("p", "q", spared=SPARED, decided_by="fewest victims", candidates=3)
    events = preempted("p", at=1), preempted("q", at=2)
    told = summarize(replace(TAKEN, events=events, decisions=(answer,)), SMALL, 1.0)
    assert told.preemptions == (
        PreemptionSummary(
            "d/vip",
            "n-1",
            ("d/p (1)", "d/q (1)"),
            "best of 3 by fewest victims",
            ("a, c: fits beside the preemptor", "b: the budget d/web would be violated"),
            0,
        ),
    )


def test_the_burst_comes_first_in_its_order_and_then_who_preempts_in_turn() -> None:
    events = preempted("p", by="web-3", at=1), preempted("q", at=2)
    answers = deliberation("p", by="web-3"), deliberation("q")
    told = summarize(replace(TAKEN, events=events, decisions=answers), SMALL, 1.0)
    assert [each.preemptor for each in told.preemptions] == ["d/vip", "d/web-3"]


def test_each_answer_stands_by_itself_though_it_is_for_the_same_pod_and_node() -> None:
    events = preempted("p", at=1), preempted("q", at=2)
    answers = deliberation("p"), deliberation("q", decided_by="fewest victims", candidates=2)
    told = summarize(replace(TAKEN, events=events, decisions=answers), SMALL, 1.0)
    assert [(each.victims, each.reason) for each in told.preemptions] == [
        (("d/p (1)",), "the only candidate"),
        (("d/q (1)",), "best of 2 by fewest victims"),
    ]


def test_a_decision_without_an_explanation_is_reported() -> None:
    told = summarize(replace(TAKEN, decisions=()), SMALL, 1.0)
    assert told.preemptions == (
        PreemptionSummary("d/vip", "n-1", ("d/web-1",), "nobody knows", (), 0),
    )


def test_calls_are_counted_by_what_was_made_of_them() -> None:
    exchanges = (
        exchange(ExtenderOutcome.ACCEPTED, 0.004, "odd"),
        exchange(ExtenderOutcome.FAILED, 9.0),
        exchange(ExtenderOutcome.ACCEPTED, 0.008, "odd", "rare"),
    )
    [calls] = summarize(replace(TAKEN, exchanges=exchanges), SMALL, 1.0).calls
    assert (calls.count, calls.outcomes, calls.round_trip) == (3, "2 accepted, 1 failed", 8.0)
    assert calls.notes == ("odd (2 times)", "rare")


def test_of_many_notes_one_is_shown() -> None:
    noted = replace(
        TAKEN, exchanges=(exchange(ExtenderOutcome.ACCEPTED, 0.01, "odd", "rare", "else"),)
    )
    text = shown(summary_tables(summarize(noted, SMALL, 1.0)))
    assert "odd (and 2 more)" in text
    assert "rare" not in text


def test_the_tables() -> None:
    text = shown(summary_tables(summarize(STRAINED, SMALL, 1.0)))
    for told in ("d/web-1 (1)", "0/2 nodes are available", "low on memory.", "2.0 ms", "10.0 ms"):
        assert told in text


def test_the_screen() -> None:
    seen = replace(
        STRAINED, pods=(*STRAINED.pods, pod("web-5", on="n-1", deleting=True)), seconds=9.6
    )
    lines = shown(render_screen(DemoStep.PRESSURE, seen, SMALL, ("the last line",))).splitlines()
    assert lines[0] == f"{DemoStep.PRESSURE.value}   10 s"
    assert [line.split() for line in lines[2:4]] == [
        ["n-1", "vip", "web", "ready"],
        ["n-2", "web", "evicted", "MemoryPressure"],
    ]
    assert lines[4:] == ["pending: web, web", "the last line"]


def test_the_screen_shows_nominated_pods() -> None:
    seen = replace(TAKEN, pods=(pod("vip", nominated="n-2"), pod("web-1", on="n-2")))
    text = shown(render_screen(DemoStep.BURST, seen, SMALL, ()))
    assert "web  ← vip" in text
    assert "pending: vip" in text
