"""The geometry of plots: rows of bars or ranges, which the template draws as SVG.

A row has a label on the left, a mark on a common scale, and the value as text on the right, so a
plot is read without its colours. Positions are in user units of the SVG, ``WIDTH`` wide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import log10
from typing import Final

from fakeapi.backtest.report.compared_rows import (
    format_estimate,
    format_value,
    main_measures,
    select_measures,
)
from fakeapi.backtest.report.comparison import Comparison, GroupComparison, MeasureComparison
from fakeapi.backtest.report.estimates import Estimate

WIDTH: Final = 520
_LEFT, _RIGHT = 140.0, 340.0
"""Where marks begin and end."""
_ROW: Final = 20
_COLORS: Final = 6
_LONGEST_LABEL: Final = 18
_MOST_TENANTS: Final = 12
_TICK_DISTANCE: Final = 38
_QUEUEING: Final = ("queueingP50", "queueingP95")
_LEAST_SECONDS: Final = 0.1
_TICKS: Final = {
    0.1: "0.1 s",
    1.0: "1 s",
    10.0: "10 s",
    60.0: "1 min",
    600.0: "10 min",
    3600.0: "1 h",
    36000.0: "10 h",
    864000.0: "10 d",
    8640000.0: "100 d",
}


@dataclass(frozen=True, slots=True)
class PlotRow:
    """A row: a heading if ``text`` is empty, else a mark from ``begin`` to ``end``.

    ``low`` and ``high`` are the ends of the interval, None without one. ``full_label`` is the label
    that ``label`` may shorten.
    """

    y: int
    label: str
    full_label: str
    text: str = ""
    color: int = 0
    begin: float = _LEFT
    end: float = _LEFT
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of a scale."""

    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot; ``kind`` is ``bars`` or ``ranges``, ``description`` its content in words."""

    kind: str
    title: str
    description: str
    rows: tuple[PlotRow, ...]
    height: int
    ticks: tuple[Tick, ...] = ()


def measure_plots(comparison: Comparison) -> list[Plot]:
    """Return a plot of bars for each main measure."""
    return [_bar_plot(each.measure.title, [(None, each)]) for each in main_measures(comparison)]


def tenant_plot(comparison: Comparison) -> Plot | None:
    """Return a plot of the disruptions of the tenants with the most; None without tenants."""
    tenants = comparison.tenants[:_MOST_TENANTS]
    more = len(comparison.tenants) - len(tenants)
    rest = f", the {len(tenants)} tenants of {len(comparison.tenants):,} with the most"
    rows: list[tuple[str | None, MeasureComparison]] = [(t.name, t.measures[0]) for t in tenants]
    return _bar_plot(f"disruptions by tenant{rest if more else ''}", rows) if rows else None


def queueing_plot(comparison: Comparison) -> Plot | None:
    """Return a plot of the queueing delays of classes from p50 to p95, None without any.

    The scale is logarithmic; delays of less than 0.1 s are at its left end.
    """
    ranges = [(each.name, of) for each in comparison.classes if (of := _queueing(each))]
    longest = max((p95.mean for _, of in ranges for _, _, p95 in of), default=None)
    if longest is None:
        return None
    last = next((tick for tick in _TICKS if tick >= max(longest, 1.0)), longest)

    def x(seconds: float) -> float:
        along = log10(max(seconds, _LEAST_SECONDS) / _LEAST_SECONDS) / log10(last / _LEAST_SECONDS)
        return round(_LEFT + along * (_RIGHT - _LEFT), 1)

    rows: list[PlotRow] = []
    for name, of in ranges:
        rows.append(_heading(len(rows), name))
        for policy, p50, p95 in of:
            place = comparison.policies.index(policy)
            text = f"{format_value('seconds', p50.mean)} to {format_value('seconds', p95.mean)}"
            row = _row(len(rows), policy, text, place)
            rows.append(replace(row, begin=x(p50.mean), end=x(p95.mean)))
    ticks: list[Tick] = []
    for seconds, label in _TICKS.items():
        if seconds <= last and (not ticks or x(seconds) - ticks[-1].x >= _TICK_DISTANCE):
            ticks.append(Tick(x(seconds), label))
    return _plot("ranges", "queueing delay by class, from p50 to p95", rows, tuple(ticks))


def _queueing(group: GroupComparison) -> list[tuple[str, Estimate, Estimate]]:
    """Return the policies that have queueing delays of a class, with p50 and p95."""
    delays = [each.policies for each in select_measures(group.measures, _QUEUEING)]
    return [
        (low.policy, low.value, high.value)
        for low, high in zip(*delays, strict=True)
        if low.value is not None and high.value is not None
    ]


def _bar_plot(title: str, groups: Sequence[tuple[str | None, MeasureComparison]]) -> Plot:
    """Return bars for each policy in each group; a group has a heading unless its name is None."""
    values = [policy.value for _, each in groups for policy in each.policies if policy.value]
    most = max((each.mean if each.high is None else each.high for each in values), default=0.0)

    def x(value: float) -> float:
        return round(_LEFT + (max(value, 0.0) / most if most > 0 else 0.0) * (_RIGHT - _LEFT), 1)

    rows: list[PlotRow] = []
    for name, each in groups:
        if name is not None:
            rows.append(_heading(len(rows), name))
        for place, policy in enumerate(each.policies):
            value = policy.value
            row = _row(len(rows), policy.policy, format_estimate(each.measure.unit, value), place)
            if value is not None:
                row = replace(row, end=x(value.mean))
            if value is not None and value.low is not None and value.high is not None:
                row = replace(row, low=x(value.low), high=x(value.high))
            rows.append(row)
    return _plot("bars", title, rows, ())


def _plot(kind: str, title: str, rows: Sequence[PlotRow], ticks: tuple[Tick, ...]) -> Plot:
    height = _ROW * (len(rows) + bool(ticks))
    return Plot(kind, title, "; ".join(_described(rows)), tuple(rows), height, ticks)


def _described(rows: Iterable[PlotRow]) -> Iterator[str]:
    heading = ""
    for row in rows:
        if row.text:
            yield f"{heading}{row.full_label} {row.text}"
        else:
            heading = f"{row.full_label}, "


def _heading(place: int, name: str) -> PlotRow:
    label = name or "(none)"
    return PlotRow(place * _ROW, label, label)


def _row(place: int, label: str, text: str, policy: int) -> PlotRow:
    shown = label if len(label) <= _LONGEST_LABEL else f"{label[: _LONGEST_LABEL - 1]}…"
    return PlotRow(place * _ROW, shown, label, text, policy % _COLORS)
