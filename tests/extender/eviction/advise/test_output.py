"""Rounds as output: tables, lines, one document or many, with the actions below."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

import pytest
from rich.console import Console
from rich.live import Live

from extender.eviction.advise.executor import Action, planned_actions
from extender.eviction.advise.output import (
    AdviseMode,
    LivePrinter,
    Printer,
    single_printer,
    watch_printer,
)
from extender.eviction.advise.rounds import ObservationRound
from extender.terminal.output import OutputFormat
from policies.eviction.forecast import NodeForecast
from policies.eviction.proactive_eviction import MIN_TREND_MEASUREMENTS, ReliefLimits, plan_relief
from tests.builders.eviction import SECOND, bound, evictable, falling, forecast, plan, uses

HOG = evictable("hog")


def forecast_falling(name: str, falls: int) -> NodeForecast:
    """Return the forecast of a node with 9Gi of memory that loses ``falls`` Gi in ten seconds."""
    amounts = [9 + falls * ago for ago in reversed(range(MIN_TREND_MEASUREMENTS))]
    samples = falling(*(f"{amount}Gi" for amount in amounts), of="40Gi")
    config = plan(bound("memory.available<1Gi"))
    return forecast(config, *samples, pods={HOG: uses("5Gi")}, name=name)


def seen(calm: int = 1, unread: int = 0) -> ObservationRound:
    """Return a round with a node that falls, so many calm ones, and some that cannot be read."""
    nodes = [
        forecast_falling("falling", 4),
        *(forecast_falling(f"calm-{index}", 0) for index in range(calm)),
    ]
    return ObservationRound(0, nodes, {f"broken-{index}": "no answer" for index in range(unread)})


def actions_of(round_: ObservationRound) -> list[Action]:
    return planned_actions(plan_relief(round_.forecasts, {}, ReliefLimits(60 * SECOND, 3)))


def show(screen: Printer, round_: ObservationRound, done: list[Action] | None) -> None:
    screen.print_round(round_)
    for deed in done or ():
        screen.print_action(deed)
    screen.finish_round(round_, done)


def test_a_single_table(capsys: pytest.CaptureFixture[str]) -> None:
    found = seen(calm=2, unread=25)
    with single_printer(OutputFormat.TABLE, 2) as screen:
        show(screen, found, actions_of(found))
    lines = capsys.readouterr().out.splitlines()
    head = "falling acts on memory.available<1Gi in 20s; default/hog would be evicted first"
    assert lines[0] == head
    assert lines[-2] == "would cordon falling (memory.available<1Gi in 20s)"
    assert lines[-1] == "would evict default/hog from falling (memory.available<1Gi in 20s)"
    assert "and 1 more nodes, less urgent" in lines
    assert "broken-0: no answer" in lines
    assert "and 5 more nodes that cannot be read" in lines
    assert any(line.startswith("calm-0: no signal approaches its threshold; ") for line in lines)


def test_without_a_terminal_rounds_are_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    found = seen(unread=1)
    with watch_printer(OutputFormat.TABLE, 9, AdviseMode.DRY_RUN) as screen:
        show(screen, found, actions_of(found))
    assert capsys.readouterr().out.splitlines() == [
        AdviseMode.DRY_RUN.value,
        (
            "1970-01-01T00:00:00Z falling acts on memory.available<1Gi in 20s; default/hog would "
            "be evicted first; memory.available<1Gi: 9Gi left, 8Gi above, -24Gi/min"
        ),
        (
            "1970-01-01T00:00:00Z calm-0: no signal approaches its threshold; "
            "memory.available<1Gi: 9Gi left, 8Gi above, steady"
        ),
        "1970-01-01T00:00:00Z broken-0: no answer",
        "would cordon falling (memory.available<1Gi in 20s)",
        "would evict default/hog from falling (memory.available<1Gi in 20s)",
    ]


def test_json_output_has_a_line_for_each_round(capsys: pytest.CaptureFixture[str]) -> None:
    found = seen(unread=1)
    with watch_printer(OutputFormat.JSON, 9, AdviseMode.DRY_RUN) as screen:
        show(screen, found, None)
        show(screen, found, actions_of(found))
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert [each["node"] for each in first["nodes"]] == ["falling", "calm-0"]
    assert first["unread"] == [{"node": "broken-0", "problem": "no answer"}]
    assert "deeds" not in first
    assert [(each["do"], each["outcome"]) for each in second["deeds"]] == [
        ("cordon", "planned"),
        ("evict", "planned"),
    ]


def test_on_a_terminal_one_table_is_kept_current() -> None:
    terminal = io.StringIO()
    console = Console(file=terminal, force_terminal=True, width=100)
    found = seen()
    with Live(console=console, auto_refresh=False) as live:
        show(LivePrinter(AdviseMode.LIVE, 9, live), found, actions_of(found))
    shown = terminal.getvalue()
    assert shown.count("falling acts on") > 1
    assert "1970-01-01T00:00:00Z live: cordons nodes and evicts pods" in shown
    assert "would evict default/hog" in shown


def test_missing_nodes_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with watch_printer(OutputFormat.TABLE, 9, AdviseMode.DRY_RUN) as screen:
        show(screen, ObservationRound(0, []), None)
    assert capsys.readouterr().out.splitlines() == [
        AdviseMode.DRY_RUN.value,
        "1970-01-01T00:00:00Z there are no nodes",
    ]


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        (OutputFormat.NAME, ["node/falling"]),
        (OutputFormat.WIDE, ["calm-0: no signal", "calm-1: no signal"]),
        (OutputFormat.YAML, ["---", "- node: calm-1"]),
    ],
)
@pytest.mark.parametrize(
    "opened",
    [
        partial(single_printer, max_nodes=1),
        partial(watch_printer, max_nodes=1, mode=AdviseMode.LIVE),
    ],
)
def test_other_formats(
    opened: Callable[[OutputFormat], AbstractContextManager[Printer]],
    output: OutputFormat,
    lines: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    with opened(output) as screen:
        show(screen, seen(calm=2), None)
    out = capsys.readouterr().out
    assert [each for each in lines if each not in out] == []
