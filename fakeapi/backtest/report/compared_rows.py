"""Measures as people read them: rows of text with a column for each policy and each difference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from extender.ledger_page.amounts import format_interval
from fakeapi.backtest.report.comparison import (
    Comparison,
    GroupComparison,
    MeasureComparison,
    PolicyEstimate,
)
from fakeapi.backtest.report.estimates import Estimate
from fakeapi.backtest.report.measures import Measure, Unit, format_number, is_device

_SECOND_NS: Final = 10**9
_MAIN: Final = (
    *("disruptions", "repeatedDisruptions", "lostHours", "violations", "queueingP95"),
    *("finishedPods", "utilization", "fragmentation"),
)
_OF_CLASSES: Final = ("disruptions", "lostHours", "queueingP50", "queueingP95")
_OF_TENANTS: Final = ("disruptions", "lostHours")

Change = Literal["better", "worse", "different", ""]


@dataclass(frozen=True, slots=True)
class DifferenceCell:
    """A difference to the first policy; ``change`` is "" if its interval does not exclude 0."""

    text: str
    change: Change


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A measure: the values and differences as text."""

    title: str
    values: tuple[str, ...]
    differences: tuple[DifferenceCell, ...]


RowsByGroup = Sequence[tuple[str, Sequence[ComparedRow]]]
"""The rows of each class, tenant, or class of a tenant, by name."""


def compared_rows(measures: Iterable[MeasureComparison]) -> list[ComparedRow]:
    """Return a row for each measure."""
    return [
        ComparedRow(
            each.measure.title,
            tuple(format_estimate(each.measure.unit, policy.value) for policy in each.policies),
            tuple(_difference_cell(each.measure, policy) for policy in each.policies[1:]),
        )
        for each in measures
    ]


def class_rows(groups: Iterable[GroupComparison]) -> RowsByGroup:
    """Return the disruptions, lost hours and queueing delays of each class."""
    return [(g.name, compared_rows(select_measures(g.measures, _OF_CLASSES))) for g in groups]


def tenant_rows(groups: Iterable[GroupComparison]) -> RowsByGroup:
    """Return the disruptions and lost hours of each tenant, or each class of each tenant."""
    return [(g.name, compared_rows(select_measures(g.measures, _OF_TENANTS))) for g in groups]


def main_measures(comparison: Comparison) -> list[MeasureComparison]:
    """Return the main measures, and of those of resources only cpu's and devices'."""
    return [
        each
        for each in select_measures(comparison.measures, _MAIN)
        if each.measure.resource in ("", "cpu") or is_device(each.measure.resource)
    ]


def select_measures(
    measures: Iterable[MeasureComparison], names: Sequence[str]
) -> list[MeasureComparison]:
    """Return the measures with these names."""
    return [each for each in measures if each.measure.name in names]


def difference_headings(policies: Sequence[str]) -> list[str]:
    """Return the headings of the columns of differences."""
    return [f"{policy} vs {policies[0]}" for policy in policies[1:]]


def measure_change(measure: Measure, policy: PolicyEstimate) -> Change:
    """Return how a policy differs from the first; "" if it is not certain that it does."""
    if policy.difference is None or not policy.differs:
        return ""
    if measure.better == "neither":
        return "different"
    return "better" if (policy.difference.mean < 0) == (measure.better == "lower") else "worse"


def format_estimate(unit: Unit, value: Estimate | None) -> str:
    """Return a mean and half of the width of its interval; "n/a" without a value."""
    if value is None:
        return "n/a"
    if value.margin is None:
        return format_value(unit, value.mean)
    return f"{format_value(unit, value.mean)} ± {format_value(unit, value.margin)}"


def format_value(unit: Unit, value: float) -> str:
    """Return a value that is not negative, with its unit where the measure has none."""
    match unit:
        case "seconds":
            return format_interval(round(value * _SECOND_NS))
        case "share":
            return f"{format_number(100 * value)} %"
        case _:
            return format_number(value)


def format_difference(unit: Unit, difference: float) -> str:
    """Return a difference with its sign; that of shares is in percentage points."""
    sign = "+" if difference > 0 else "-" if difference < 0 else ""
    return sign + _points(unit, abs(difference))


def _difference_cell(measure: Measure, policy: PolicyEstimate) -> DifferenceCell:
    found = policy.difference
    if found is None:
        return DifferenceCell("n/a", "")
    text = format_difference(measure.unit, found.mean)
    if found.margin is not None:
        text += f" ± {_points(measure.unit, found.margin)}"
    return DifferenceCell(text, measure_change(measure, policy))


def _points(unit: Unit, value: float) -> str:
    return f"{format_number(100 * value)} pp" if unit == "share" else format_value(unit, value)
