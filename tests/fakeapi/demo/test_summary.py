"""The summary of the demo, its tables, and the screen."""

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
    EVICTED,
    PREEMPTED,
    SMALL,
    decision,
    extender_call,
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


def test_an_empty_summary() -> None:
    assert summarize(ObservedState(), SMALL, 1.0) == Summary((), (), (), ())


def test_a_summary() -> None:
    summary = summarize(EVICTED, SMALL, 2.0)
    assert summary.preemptions == (
        PreemptionSummary("d/vip", "n-1", ("d/web-1 (1)",), "the only candidate", (), 0),
    )
    assert summary.replacements == (
        ReplacementSummary(("d/web-3",), "", "FailedScheduling: 0/2 nodes are available"),
        ReplacementSummary(("d/web-4",), "", "FailedScheduling: tainted"),
    )
    assert summary.evictions == (EvictionSummary("d/web-2", "n-2", "low on memory."),)
    assert summary.calls == (CallSummary("preempt", 1, "1 accepted", 5.0, 2.0, ()),)


def test_replacements_are_grouped_by_state() -> None:
    events = tuple(replace(e, uid=uid) for uid in ("x", "y") for e in PREEMPTED.events[1:])
    pods = (pod("y"), pod("x"), pod("z", on="n-2", subset="spot"), pod("mute"))
    summary = summarize(replace(PREEMPTED, pods=pods, events=events), SMALL, 1.0)
    assert summary.replacements == (
        ReplacementSummary(("d/z",), "spot", "runs on n-2"),
        ReplacementSummary(("d/x", "d/y"), "", "FailedScheduling: 0/2 nodes are available"),
    )


def test_a_preemption_lists_victims_and_reprieved_pods() -> None:
    answer = decision("p", "q", spared=SPARED, decided_by="fewest victims", candidates=3)
    events = preempted("p", at=1), preempted("q", at=2)
    summary = summarize(replace(PREEMPTED, events=events, decisions=(answer,)), SMALL, 1.0)
    assert summary.preemptions == (
        PreemptionSummary(
            "d/vip",
            "n-1",
            ("d/p (1)", "d/q (1)"),
            "best of 3 by fewest victims",
            ("a, c: fits beside the preemptor", "b: the budget d/web would be violated"),
            0,
        ),
    )


def test_the_burst_comes_first_and_then_replacements_that_preempt() -> None:
    events = preempted("p", by="web-3", at=1), preempted("q", at=2)
    answers = decision("p", by="web-3"), decision("q")
    summary = summarize(replace(PREEMPTED, events=events, decisions=answers), SMALL, 1.0)
    assert [each.preemptor for each in summary.preemptions] == ["d/vip", "d/web-3"]


def test_answers_for_the_same_pod_and_node_are_listed_apart() -> None:
    events = preempted("p", at=1), preempted("q", at=2)
    answers = decision("p"), decision("q", decided_by="fewest victims", candidates=2)
    summary = summarize(replace(PREEMPTED, events=events, decisions=answers), SMALL, 1.0)
    assert [(each.victims, each.reason) for each in summary.preemptions] == [
        (("d/p (1)",), "the only candidate"),
        (("d/q (1)",), "best of 2 by fewest victims"),
    ]


def test_a_decision_without_an_explanation_is_reported() -> None:
    summary = summarize(replace(PREEMPTED, decisions=()), SMALL, 1.0)
    assert summary.preemptions == (
        PreemptionSummary("d/vip", "n-1", ("d/web-1",), "nobody knows", (), 0),
    )


def test_calls_are_counted_by_outcome() -> None:
    exchanges = (
        extender_call(ExtenderOutcome.ACCEPTED, 0.004, "odd"),
        extender_call(ExtenderOutcome.FAILED, 9.0),
        extender_call(ExtenderOutcome.ACCEPTED, 0.008, "odd", "rare"),
    )
    [calls] = summarize(replace(PREEMPTED, exchanges=exchanges), SMALL, 1.0).calls
    assert (calls.count, calls.outcomes, calls.round_trip) == (3, "2 accepted, 1 failed", 8.0)
    assert calls.notes == ("odd (2 times)", "rare")


def test_of_many_notes_one_is_shown() -> None:
    noted = replace(
        PREEMPTED, exchanges=(extender_call(ExtenderOutcome.ACCEPTED, 0.01, "odd", "rare", "else"),)
    )
    text = shown(summary_tables(summarize(noted, SMALL, 1.0)))
    assert "odd (and 2 more)" in text
    assert "rare" not in text


def test_the_tables() -> None:
    text = shown(summary_tables(summarize(EVICTED, SMALL, 1.0)))
    for expected in (
        "d/web-1 (1)",
        "0/2 nodes are available",
        "low on memory.",
        "2.0 ms",
        "10.0 ms",
    ):
        assert expected in text


def test_the_screen() -> None:
    seen = replace(
        EVICTED, pods=(*EVICTED.pods, pod("web-5", on="n-1", deleting=True)), seconds=9.6
    )
    lines = shown(render_screen(DemoStep.PRESSURE, seen, SMALL, ("the last line",))).splitlines()
    assert lines[0] == f"{DemoStep.PRESSURE.value}   10 s"
    assert [line.split() for line in lines[2:4]] == [
        ["n-1", "vip", "web", "ready"],
        ["n-2", "web", "evicted", "MemoryPressure"],
    ]
    assert lines[4:] == ["pending: web, web", "the last line"]


def test_the_screen_shows_nominated_pods() -> None:
    seen = replace(PREEMPTED, pods=(pod("vip", nominated="n-2"), pod("web-1", on="n-2")))
    text = shown(render_screen(DemoStep.BURST, seen, SMALL, ()))
    assert "web  ← vip" in text
    assert "pending: vip" in text
