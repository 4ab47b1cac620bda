"""The calculations of load runs: outcomes, figures, budgets, and the page."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.bench import budgets
from tests.bench.budgets import faults
from tests.load.answer_check import Checked
from tests.load.figures import MIB, NEVER_NOISE, Moment, Outcome, Share, figures, rate, slope
from tests.load.mixes import (
    ABOVE,
    CAPACITY,
    CROWDED,
    ECHO_CAPACITY,
    FILTERS,
    FILTERS_BESIDE,
    KINDS,
    OPEN,
    QUICK,
    STEADY,
    WARM_UP,
    due,
)
from tests.load.page import page
from tests.load.records import (
    ANSWERED,
    CUT,
    ECHO,
    FULL_HOUSE,
    REFUSED,
    REPRIEVE,
    Call,
    outcome,
    read_calls,
    read_decisions,
    write_calls,
)

NO_RETRY_AFTER = "status 503 without Retry-After"
BUDGETS = Path("tests/load/budgets.toml")


@pytest.mark.parametrize(
    ("status", "retry_after", "body", "expected"),
    [
        (200, "", b"{}", ANSWERED),
        (503, "1", b"reprieve: overloaded: 64 calls are queued\n", REFUSED),
        (429, "2", b"reprieve: late: waited 1.2 s\n", REFUSED),
        (503, "1", b"reprieve: overloaded: there are too many connections\n", FULL_HOUSE),
        (503, "", b"reprieve: overloaded: there are too many connections\n", NO_RETRY_AFTER),
        (503, "", b"reprieve: late: waited 1.2 s\n", NO_RETRY_AFTER),
        (503, "1", b"<html>", "status 503 without a documented case"),
        (500, "1", b"reprieve: internal error: KeyError\n", "status 500"),
        (0, "", b"", CUT),
    ],
)
def test_the_outcome_of_a_call_is_classified(
    status: int, retry_after: str, body: bytes, expected: str
) -> None:
    assert outcome(status, retry_after, body) == expected


def call_of(phase: str, seconds: float, at: float = 0.0, **fields: str) -> Call:
    """Build a call that ends after ``seconds``; it is answered unless ``outcome`` is given."""
    result = fields.pop("outcome", ANSWERED)
    status = 200 if result == ANSWERED else 503
    usual = {"user": "Closed", "target": REPRIEVE, "kind": KINDS[0].name}
    return Call(
        phase, started=at, ended=at + seconds, status=status, outcome=result, **{**usual, **fields}
    )


def healthy() -> Outcome:
    """Return the results of a run without errors."""
    calls = [
        call_of(phase, took * (1 + at), at, user=user, target=target, kind=kind.name)
        for phase, user, target, took in (
            (STEADY, "Closed", REPRIEVE, 0.002),
            (STEADY, "Closed", ECHO, 0.002),
            (STEADY, "Burst", REPRIEVE, 0.02),
            (STEADY, "Burst", ECHO, 0.02),
            (FILTERS, "Filtering", REPRIEVE, 0.002),
            (FILTERS_BESIDE, "Filtering", REPRIEVE, 0.003),
            (CAPACITY, "FlatOut", REPRIEVE, 0.01),
            (ECHO_CAPACITY, "FlatOutEcho", ECHO, 0.01),
            (OPEN, "OpenLoop", REPRIEVE, 0.01),
            (ABOVE, "OpenLoop", REPRIEVE, 0.1),
            (CROWDED, "SlowFinisher", REPRIEVE, 1.6),
        )
        for kind in KINDS
        for at in range(4)
    ]
    calls += [
        call_of(phase, took, user=user, outcome=result)
        for phase, took, user, result in (
            (STEADY, 1.5, "SlowSender", REFUSED),
            (ABOVE, 0.01, "OpenLoop", REFUSED),
            (CROWDED, 1.6, "SlowFinisher", REFUSED),
            (CROWDED, 0.01, "SlowFinisher", FULL_HOUSE),
        )
    ]
    return Outcome(
        calls,
        [Moment(STEADY, float(at), 400 * MIB) for at in range(60)],
        [
            Share(CAPACITY, 60.0, {"extender": 12.0}),
            Share(ECHO_CAPACITY, 60.0, {"echo": 6.0}),
            Share(STEADY, 60.0, {"locust": 6.0, "extender": 12.0}),
        ],
        Checked({kind.name: 10 for kind in KINDS}, behind=[0.0, 0.01]),
        {kind.name: 12.0 for kind in KINDS},
        6_000,
        60.0,
        preempting=[0.004] * 4,
    )


def broken(found: Outcome) -> set[str]:
    return set(faults(budgets.read("load", BUDGETS), figures(found), 1.0))


def with_call(phase: str, user: str, result: str, target: str = REPRIEVE) -> Outcome:
    """Return the healthy results with one more call."""
    call = call_of(phase, 0.01, user=user, outcome=result, target=target)
    return replace(HEALTHY, calls=[*HEALTHY.calls, call])


def right(fewest: int) -> dict[str, int]:
    """Return the numbers of right answers, with the fewest of the last kind."""
    return {kind.name: 12 for kind in KINDS} | {KINDS[-1].name: fewest}


HEALTHY = healthy()
GROWING = [Moment(STEADY, float(at), (400 + at) * MIB) for at in range(60)]
NO_SATURATION = [call for call in HEALTHY.calls if (call.phase, call.outcome) != (ABOVE, REFUSED)]
ROOM = [call for call in HEALTHY.calls if call.outcome != FULL_HOUSE]
SLOW = [
    replace(call, ended=call.started + 100 * call.seconds)
    if (call.phase, call.target) == (STEADY, REPRIEVE)
    else call
    for call in HEALTHY.calls
]
ADDED_CALLS = {
    "a refusal below saturation": (OPEN, "OpenLoop", REFUSED, {"refused-below"}),
    "a connection cut below": (STEADY, "Closed", CUT, {"refused-below"}),
    "a slow sender cut off": (STEADY, "SlowSender", CUT, {"slow-senders"}),
    "a 500 below": (OPEN, "OpenLoop", "status 500", {"refused-below", "errors"}),
    "a 500 to a slow sender": (STEADY, "SlowSender", "status 500", {"slow-senders", "errors"}),
    "a 500 in the warm-up": (WARM_UP, "FlatOut", "status 500", {"refused-below", "errors"}),
    "a 500 above": (ABOVE, "OpenLoop", "status 500", {"unclean-above", "errors"}),
    "a 502 in a crowd": (CROWDED, "SlowFinisher", "status 502", {"unclean-crowd", "errors"}),
    "a connection cut in a crowd": (CROWDED, "SlowFinisher", CUT, {"unclean-crowd"}),
    "too many connections below": (OPEN, "OpenLoop", FULL_HOUSE, {"refused-below"}),
    "an unclean refusal above": (ABOVE, "OpenLoop", NO_RETRY_AFTER, {"unclean-above", "errors"}),
    "a connection cut above": (ABOVE, "OpenLoop", CUT, {"unclean-above"}),
}


@pytest.mark.parametrize(
    ("phase", "user", "result", "expected"), ADDED_CALLS.values(), ids=ADDED_CALLS
)
def test_a_failed_call_breaks_its_budget(
    phase: str, user: str, result: str, expected: set[str]
) -> None:
    assert broken(with_call(phase, user, result)) == expected


def checked(**fields: Any) -> Outcome:
    """Return the healthy results with other results of the check of answers."""
    return replace(HEALTHY, checked=replace(HEALTHY.checked, **fields))


ERRORS = {
    "a crowd within the limit": (replace(HEALTHY, calls=ROOM), {"full-house"}),
    "an error of the echo": (with_call(STEADY, "Closed", "status 500", ECHO), set()),
    "never saturated": (replace(HEALTHY, calls=NO_SATURATION), {"saturated"}),
    "memory that grows": (replace(HEALTHY, moments=GROWING), {"memory-growth"}),
    "a wrong answer": (checked(wrong=["steady-1: why"]), {"wrong"}),
    "a kind unchecked": (checked(right={KINDS[0].name: 30}), {"unchecked"}),
    "few checked of a kind": (checked(right=right(fewest=3)), {"unchecked"}),
    "just enough checked of a kind": (checked(right=right(fewest=4)), set()),
    "stale answers": (checked(behind=[60.0]), {"behind"}),
    "filter calls that wait for four decisions": (
        replace(HEALTHY, preempting=[0.001] * 4),
        {"filter-wait"},
    ),
    "too few changes": (replace(HEALTHY, changes=60), {"changes"}),
    "answers a hundred times as slow": (
        replace(HEALTHY, calls=SLOW),
        {f"{kind.name}-{name}" for kind in KINDS for name in ("p50", "p95")} | {"burst-p99"},
    ),
}


def test_a_run_without_errors_breaks_no_budget() -> None:
    assert broken(HEALTHY) == set()


@pytest.mark.parametrize(("found", "expected"), ERRORS.values(), ids=ERRORS)
def test_each_error_breaks_its_budget(found: Outcome, expected: set[str]) -> None:
    assert broken(found) == expected


def test_figures_that_were_not_measured_break_their_budgets() -> None:
    empty = Outcome([], [], [], Checked(), due(QUICK), 0, 0.0)
    assert broken(empty) >= {
        *("filter-5000-p50", "capacity", "saturated", "memory", "unchecked", "full-house")
    }


def test_figures_that_noise_never_excuses_have_a_limit() -> None:
    limits = budgets.read("load", BUDGETS)
    assert all(limits[name].limit is not None for name in NEVER_NOISE)
    assert {"wrong", "errors", "unchecked"} <= NEVER_NOISE


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([[]], []),
        ([["memory"], []], []),
        ([["memory"], ["memory"]], ["memory"]),
        ([["memory"], ["behind"]], []),
        ([["memory"], ["memory", "behind"]], ["memory"]),
        ([["refused-below"], []], []),
        ([["refused-below", "errors"]], ["refused-below", "errors"]),
        ([["refused-below"], ["refused-below", "errors"]], ["refused-below", "errors"]),
        ([["memory"], ["errors"]], ["errors"]),
        ([["memory"], ["unchecked"]], ["unchecked"]),
        ([["wrong"]], ["wrong"]),
    ],
)
def test_broken_budgets_are_measured_once_more_unless_noise_never_excuses_them(
    runs: list[list[str]], expected: list[str]
) -> None:
    measured = iter([{name: f"{name} in run {n}" for name in run} for n, run in enumerate(runs)])
    lines: list[str] = []
    found = budgets.confirmed_faults(lambda: next(measured), lines.append, NEVER_NOISE)
    assert found == {name: f"{name} in run {len(runs) - 1}" for name in expected}
    assert next(measured, None) is None
    assert len(lines) == len(runs) - 1


def test_every_limit_leaves_a_margin_over_what_was_measured() -> None:
    given = tomllib.loads(BUDGETS.read_text())["load"]
    assert {name for name, each in given.items() if each["limit"] < 1.4 * each["measured"]} == set()
    assert set(given) <= set(figures(HEALTHY))


def test_the_rate_counts_answered_calls_from_first_to_last() -> None:
    calls = [call_of(CAPACITY, 0.5, at / 2) for at in range(20)]
    assert rate(calls) == pytest.approx(2.0)
    assert rate([*calls, call_of(CAPACITY, 0.1, 3.0, outcome=REFUSED)]) == pytest.approx(2.0)
    assert rate([]) == 0.0


def test_the_slope_of_memory_ignores_a_peak() -> None:
    moments = [Moment(STEADY, float(at), (300 + at // 10) * MIB) for at in range(60)]
    assert slope(moments) == pytest.approx(6.0, rel=0.01)
    assert slope([*moments[:-1], Moment(STEADY, 59.0, 9_000 * MIB)]) == pytest.approx(6.0, rel=0.01)


def test_calls_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "calls.csv"
    write_calls(path, HEALTHY.calls)
    assert read_calls(path) == HEALTHY.calls


def test_decisions_are_read_in_the_order_of_their_snapshots(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(
        '{"event":"informer_listed","items":5}\n'
        '{"event":"filter","request_id":"a-3","pod":"default/f","pods_version":"8","fits":2,'
        '"generation":6}\n'
        '{"event":"refused","verb":"filter","status":503,"request_id":"a-2"}\n'
        '{"event":"preempt","request_id":"a-1","pod":"default/p","pods_version":"7",'
        '"generation":5,"node":"n","victims":["default/v"],"spared":0,"notes":[]}\n'
    )
    first, second = read_decisions(path)
    assert (first.request_id, first.node, first.victims) == ("a-1", "n", ("default/v",))
    assert (second.event, second.pods_version, second.victims) == ("filter", "8", ())


def test_the_page_loads_nothing_else() -> None:
    text = page("where", figures(HEALTHY), {}, {}, HEALTHY)
    for needs in ("src=", "href=", "@import", "url("):
        assert needs not in text
    plots = [part.split("</svg>")[0] for part in text.split("<svg xmlns")[1:]]
    assert len(plots) == 4
    for plot in plots:
        ElementTree.fromstring(f"<svg xmlns{plot}</svg>")  # noqa: S314


def test_the_page_marks_broken_budgets_and_wrong_answers() -> None:
    checked = replace(HEALTHY.checked, wrong=["steady-1: NodeNames: <b> missing"])
    found = replace(HEALTHY, checked=checked)
    measured = figures(found)
    text = page("where", measured, budgets.read("load", BUDGETS), {"wrong": "1"}, found)
    assert text.count('class="tag bad"') == 1
    assert "Wrong answers" in text
    assert "steady-1: NodeNames: &lt;b&gt; missing" in text
    assert "Time by the echo" in text
    assert "Resident memory" in text
