"""What a report states in sentences: the result for each policy, the input, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator

from extender.ledger_page.amounts import count_of, format_amount, format_interval
from fakeapi.backtest.report.compared_rows import (
    Change,
    format_difference,
    main_measures,
    measure_change,
)
from fakeapi.backtest.report.comparison import Comparison

READING = (
    "Values are means over seeds, ± half of the 95 % confidence interval (Student's t). A "
    "difference is marked if its interval, over pairs of the same seed, excludes 0. One in twenty "
    "intervals of equal policies excludes 0 by chance."
)


def missing_sentences(comparison: Comparison) -> Iterator[str]:
    """Yield what is missing of an interrupted backtest; nothing if it is complete."""
    units = len(comparison.policies) * comparison.seeds * comparison.segments
    if comparison.missing:
        yield (
            f"The backtest is incomplete: {comparison.missing:,} of {count_of(units, 'unit')} "
            "have no result."
        )
    incomplete = {p: n for p, n in comparison.complete_seeds.items() if n < comparison.seeds}
    if incomplete:
        known = ", ".join(f"{policy} {n} of {comparison.seeds}" for policy, n in incomplete.items())
        yield f"Only seeds with results of all segments are compared: {known}."


def workload_facts(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """Yield the size of the workload and of the cluster, by name."""
    of = comparison.workload
    if of.decisions:
        yield "decisions", f"{of.decisions:,}"
    else:
        yield "jobs", f"{of.jobs:,}"
    yield "duration", format_interval(of.duration_ns)
    yield "nodes", f"{of.nodes:,}"
    for name, amount in of.capacity.items():
        yield name, format_amount(name, amount)
    yield "seeds", f"{comparison.seeds:,}"
    yield "segments", f"{comparison.segments:,}"


def workload_sentences(comparison: Comparison) -> Iterator[str]:
    """Yield the size of the workload, what is left out of it, and the assumptions."""
    of = comparison.workload
    facts = ", ".join(f"{name} {value}" for name, value in workload_facts(comparison))
    yield f"backtest of {of.name}: {facts}"
    for each in of.left_out:
        first = f"; the first is {each.first}" if each.first else ""
        left_out = count_of(each.count, "decision" if of.decisions else "row")
        yield f"left out: {left_out}, {each.reason}{first}"
    for assumption in of.assumptions:
        yield f"assumed: {assumption}"


def conclusions(comparison: Comparison) -> Iterator[str]:
    """Yield for each policy but the first in which main measures it is better or worse."""
    for place, policy in enumerate(comparison.policies[1:], 1):
        yield _conclusion(comparison, policy, place)


def _conclusion(comparison: Comparison, policy: str, place: int) -> str:
    first = comparison.policies[0]
    found = [each.policies[place].difference for each in comparison.measures]
    differences = [each for each in found if each is not None]
    if not differences:
        return f"{policy} and {first} have no complete seed in common."
    if not any(each.mean or each.margin for each in differences):
        return f"There is no difference between {policy} and {first} in any measure."
    if comparison.workload.decisions:
        return f"{policy} and {first} decide about the same states: no difference is by chance."
    if all(each.margin is None for each in differences):
        return (
            f"{policy} and {first} have one complete seed in common. One seed has no intervals, so "
            "no difference is certain."
        )
    changes = _main_changes(comparison, place)
    parts = [
        f"{change} in {', '.join(names)}" for change, names in changes.items() if change and names
    ]
    if not parts:
        return f"No difference between {policy} and {first} in a main measure is certain."
    others = len(changes[""])
    rest = f" {count_of(others, 'other main measure')}: no certain difference." if others else ""
    return f"Compared with {first}, {policy} is {'; '.join(parts)}.{rest}"


def _main_changes(comparison: Comparison, place: int) -> dict[Change, list[str]]:
    """Return the main measures of a policy with their differences, by change."""
    changes: dict[Change, list[str]] = {
        "better": [],
        "worse": [],
        "different": [],
        "": [],
    }
    for each in main_measures(comparison):
        of = each.policies[place]
        if of.difference is not None:
            text = format_difference(each.measure.unit, of.difference.mean)
            changes[measure_change(each.measure, of)].append(f"{each.measure.title} ({text})")
    return changes
