"""The report on a terminal."""

from __future__ import annotations

from io import StringIO

from msgspec.structs import replace
from rich.console import Console

from extender.terminal.output import TableRows
from fakeapi.backtest.report.comparison import compare
from fakeapi.backtest.report.table import render_table
from fakeapi.backtest.results import BacktestResults
from tests.builders.backtests import disrupted, random_results, results


def printed(of: BacktestResults, rows: TableRows = TableRows.LIMITED) -> str:
    console = Console(file=StringIO(), width=1_000)
    console.print(render_table(compare(of), rows))
    assert isinstance(console.file, StringIO)
    return "\n".join(" ".join(line.split()) for line in console.file.getvalue().splitlines())


def test_policies_are_side_by_side() -> None:
    runs = {
        "default": [disrupted(count) for count in (10, 30, 20)],
        "other": [disrupted(count) for count in (8, 27, 18)],
    }
    text = printed(results(runs))
    assert text.startswith("backtest of three-jobs: jobs 3, duration 1 h, nodes 2, cpu 64 cores, ")
    assert "measure default other other vs default" in text
    assert "disruptions 20 ± 24.8 17.7 ± 23.6 -2.33 ± 1.43 *" in text
    assert "finished pods 0 ± 0 0 ± 0 0 ± 0\n" in text
    assert "queueing delay p50 n/a n/a n/a\n" in text
    assert "batch disruptions 20 ± 24.8" in text
    assert "Compared with default, other is better in disruptions (-2.33)." in text


def test_what_is_missing_comes_first() -> None:
    found = random_results(1, ("default", "other"), seeds=3)
    text = printed(replace(found, units=found.units[:-1], missing=1))
    assert text.startswith(
        "The backtest is incomplete: 1 of 12 units have no result.\n"
        "Only seeds with results of all segments are compared: other 2 of 3.\n"
    )


def test_rows_that_were_left_out_and_assumptions_are_named() -> None:
    text = printed(random_results(1, ("default", "other")))
    assert "left out: 12 rows, it has no duration; the first is openb_pod_list.csv:817\n" in text
    assert "assumed: Pods of one job are interchangeable.\n" in text


def test_equal_policies() -> None:
    run = [disrupted(3), disrupted(4)]
    text = printed(results({"a": run, "b": run}))
    assert "There is no difference between b and a in any measure." in text
    assert " *\n" not in text


def test_one_seed() -> None:
    text = printed(results({"a": [disrupted(3)], "b": [disrupted(4)]}))
    assert "disruptions 3 4 +1\n" in text
    assert "One seed has no intervals, so no difference is certain." in text


def test_policies_without_a_seed_in_common() -> None:
    text = printed(results({"a": [disrupted(3)], "b": []}, missing=1))
    assert "b and a have no complete seed in common." in text
    assert "disruptions 3 n/a n/a\n" in text


def test_few_tenants_are_shown_unless_all_rows_are_asked_for() -> None:
    found = random_results(1, ("default", "other"), tenants=12)
    assert "and 2 tenants with fewer disruptions; -o wide has them all" in printed(found)
    assert "team-3/batch" not in printed(found)
    wide = printed(found, TableRows.ALL)
    assert "-o wide" not in wide
    assert "team-3/batch disruptions" in wide


def test_names_are_neither_markup_nor_commands_of_terminals() -> None:
    policies = ("[bold]a", "[/x]b\x1b[2J")
    runs = {name: [disrupted(count, "[red]t/[/]c\x07")] for count, name in enumerate(policies, 1)}
    text = printed(results(runs))
    assert "measure [bold]a [/x]b\\x1b[2J [/x]b\\x1b[2J vs [bold]a" in text
    assert "[red]t/[ disruptions 1 2 +1" in text
    assert "]c\\x07 disruptions 1 2 +1" in text
