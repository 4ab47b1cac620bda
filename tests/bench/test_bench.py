"""The benchmarks' own arithmetic: budgets, growth, and what is written into the document."""

from __future__ import annotations

import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.bench import budgets
from tests.bench.budgets import Budget, Figure, faults
from tests.bench.document import DOCUMENT, PLOT, filled
from tests.bench.plot import Axis, Panel, Series, draw
from tests.bench.timing import latency, milliseconds, slope

CALIBRATION = 0.01


def timed(seconds: float) -> Figure:
    return Figure("what", "shown", seconds)


def sized(mib: float) -> Figure:
    return Figure("what", "shown", mib, timed=False)


@pytest.mark.parametrize(
    ("figure", "limit", "broken"),
    [
        (timed(0.02), 2.0, False),
        (timed(0.021), 2.0, True),
        (sized(64), 64, False),
        (sized(65), 64, True),
        (timed(99), None, False),
    ],
    ids=["in time", "too slow", "small enough", "too large", "an aim alone"],
)
def test_a_limit_is_broken_by_what_costs_more(
    figure: Figure, limit: float | None, *, broken: bool
) -> None:
    found = faults({"name": Budget(limit=limit)}, {"name": figure}, CALIBRATION)
    assert bool(found) == broken


def test_a_limit_that_nothing_was_measured_for_is_broken() -> None:
    found = faults({"name": Budget(limit=1), "aimed": Budget(aim="≤ 1 ms")}, {}, CALIBRATION)
    assert found == {"name": "it has a limit, but was not measured"}


def test_an_exceeded_limit_is_reported_in_its_own_unit() -> None:
    found = faults({"name": Budget(limit=2)}, {"name": timed(0.05)}, CALIBRATION)
    assert found == {"name": "5 is over its limit of 2"}


@pytest.mark.parametrize("part", ["fakeapi", "extender", "controllers", "webhooks", "scheduling"])
def test_every_limit_leaves_a_margin_over_what_was_measured(part: str) -> None:
    given = tomllib.loads(budgets.BUDGETS.read_text())[part]
    checked = {name: each for name, each in given.items() if "limit" in each}
    assert checked
    assert {
        name for name, each in checked.items() if each["limit"] < 1.4 * each["measured"]
    } == set()


def test_an_aim_is_shown_in_its_unit(tmp_path: Path) -> None:
    path = tmp_path / "budgets.toml"
    path.write_text(
        "[part.a]\naim_ms = 12\n[part.b]\naim = 1.5\nfull = true\n[part.c]\nlimit = 3\n"
    )
    assert budgets.read("part", path) == {
        "a": Budget("≤ 12 ms"),
        "b": Budget("≤ 1.5", full=True),
        "c": Budget(limit=3),
    }


@pytest.mark.parametrize(("power", "factor"), [(1.0, 3.0), (2.0, 0.1), (0.0, 7.0)])
def test_the_slope_is_the_power_that_costs_grow_by(power: float, factor: float) -> None:
    costs = {size: factor * size**power for size in (1_000, 5_000, 15_000)}
    assert slope(costs) == pytest.approx(power)


def test_latency_takes_the_middle_and_nearly_the_worst() -> None:
    found = latency([each / 100 for each in range(100)])
    assert (found.p50, found.p99, found.rounds) == (0.495, 0.99, 100)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.00041, "0.41 ms"), (0.0123, "12.3 ms"), (3.3424, "3,342 ms")]
)
def test_times_have_the_digits_that_count(seconds: float, text: str) -> None:
    assert milliseconds(seconds) == text


def test_only_what_stands_between_the_marks_is_replaced() -> None:
    text = "before\n<!-- a -->\nold\n<!-- end -->\nbetween\n<!-- b -->\nkept\n<!-- end -->\n"
    once = filled(text, "a", "new \\1\n")
    assert "old" not in once
    assert "new \\1" in once
    assert once.endswith("between\n<!-- b -->\nkept\n<!-- end -->\n")
    assert filled(once, "a", "new \\1\n") == once


def test_a_block_without_its_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for 'a'"):
        filled("text", "a", "block")


@pytest.mark.parametrize(
    "name", ["machine", "decisions", "others", "policies", "controllers", "ledger", "scheduling"]
)
def test_the_document_has_a_place_for_every_block(name: str) -> None:
    assert filled(DOCUMENT.read_text(), name, "block")


def test_a_plot_is_the_same_bytes_each_time_and_small() -> None:
    axis = Axis("nodes", 100, 10_000, (100, 1_000, 10_000))
    series = Series("ours", "#123456", "", 2, {10_000: 5_000.0, 100: 150.0})
    first, second = (draw([Panel("title", [series])], axis, axis) for _ in range(2))
    assert first == second
    assert ElementTree.fromstring(first).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314
    assert len(PLOT.read_bytes()) < 30_000


def test_a_line_of_slope_one_goes_from_corner_to_corner() -> None:
    axis = Axis("cost", 1, 1_000, ())
    assert [axis.share(value) for value in (1, 10, 1_000)] == pytest.approx([0, 1 / 3, 1])
