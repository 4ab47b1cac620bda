"""The result of a tuning as sentences and tables for terminals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from extender.cli.field_rows import field_rows
from extender.config.policy_file import PolicyFile
from extender.ledger_page.amounts import count_of
from extender.terminal.output import TableRows
from extender.terminal.plain_tables import plain_text, rows_table
from fakeapi.backtest.report.compared_rows import (
    DifferenceCell,
    compared_rows,
    difference_headings,
    format_estimate,
    main_measures,
)
from fakeapi.backtest.report.comparison import Comparison
from fakeapi.backtest.report.estimates import Estimate
from fakeapi.backtest.report.measures import Measure
from fakeapi.backtest.report.sentences import READING
from fakeapi.backtest.tuning.tuning import FrontPolicy, TuningResult
from fakeapi.backtest.tuning.validation import Change, ObjectiveValidation, PartComparison

_SHOWN_POLICIES: Final = 10
_CHANGES: Final[Mapping[Change, str]] = {
    "better": "better in",
    "worse": "worse in",
    "uncertain": "not certainly different in",
}
_READING: Final = (
    "An improvement is a share of the value of the base policy. The gap is how much less it is on "
    "held-out segments than in training, in percentage points."
)


def render_tuning(result: TuningResult, rows: TableRows) -> RenderableType:
    """Return the result: the conclusion, the Pareto front, what was changed, and the validation.

    With a limit of rows, the front has ten policies.
    """
    parts: list[RenderableType] = [
        plain_text(_facts(result)),
        plain_text(conclusion(result), "bold"),
        Text(),
        _front_table(result, rows),
    ]
    if result.chosen != result.base:
        parts += [Text(), _changes_table(result.base.file, result.chosen.file)]
    if result.validation is not None:
        parts += [
            *(Text(), _validation_table(result, result.validation.objectives)),
            *(Text(), _measures_table(result.validation.held_out)),
            Text(f"* {_READING} {READING}", style="dim"),
        ]
    return Group(*parts)


def conclusion(result: TuningResult) -> str:
    """Return which policy to use, and why, in one or two sentences."""
    base, chosen = _name(result.base), _name(result.chosen)
    interrupted = "The tuning was interrupted. " if result.is_interrupted else ""
    if result.chosen == result.base:
        return f"{interrupted}Keep {base}: no policy that was tried is better."
    if result.validation is None:
        return f"{interrupted}Keep {base}: {chosen} is the best so far, but is not validated."
    found: dict[Change, list[str]] = {"better": [], "worse": [], "uncertain": []}
    for each in result.validation.objectives:
        found[each.held_out.change].append(each.objective)
    changes = "; ".join(
        f"{_CHANGES[change]} {', '.join(names)}" for change, names in found.items() if names
    )
    if result.recommended == chosen:
        return f"Use {chosen}. On the held-out segments, it is {changes}."
    return f"Keep {base}. On the held-out segments, {chosen} is {changes}."


def _facts(result: TuningResult) -> str:
    return (
        f"{result.trials:,} of {count_of(result.planned, 'trial')}, different policies "
        f"{result.policies:,}, seeds {result.seeds:,}, training segments "
        f"{result.training_segments:,}, held-out segments {result.held_out_segments:,}"
    )


def _front_table(result: TuningResult, rows: TableRows) -> Table:
    shown = [*result.front[: rows.at_most(_SHOWN_POLICIES)]]
    shown += [each for each in (result.chosen, result.base) if each not in shown]
    return rows_table(
        ["trial", "Pareto front", "", *(each.name for each in result.objectives)],
        [
            (
                each.trial,
                "yes" if each in result.front else "no",
                "base" if each == result.base else "chosen" if each == result.chosen else "",
                *(
                    format_estimate(objective.measure.unit, each.values[objective.name])
                    for objective in result.objectives
                ),
            )
            for each in shown
        ],
    )


def _changes_table(base: PolicyFile, chosen: PolicyFile) -> Table:
    before, after = (dict(field_rows(msgspec.to_builtins(each.rules))) for each in (base, chosen))
    return rows_table(
        ["field", base.metadata.name, chosen.metadata.name],
        [
            (f"rules{path}", before.get(path, ""), after.get(path, ""))
            for path in dict.fromkeys((*before, *after))
            if before.get(path) != after.get(path)
        ],
    )


def _validation_table(result: TuningResult, validated: Iterable[ObjectiveValidation]) -> Table:
    measures = {each.name: each.measure for each in result.objectives}
    return rows_table(
        ["objective", "segments", _name(result.base), _name(result.chosen), "improvement", "gap"],
        [
            row
            for each in validated
            for row in (
                _part_row(measures[each.objective], each.objective, "training", each.training, ""),
                _part_row(
                    measures[each.objective], "", "held out", each.held_out, _share(each.gap, "pp")
                ),
            )
        ],
    )


def _part_row(
    measure: Measure, name: str, segments: str, part: PartComparison, gap: str
) -> tuple[str, ...]:
    values = (format_estimate(measure.unit, each) for each in (part.base, part.chosen))
    mark = "" if part.change == "uncertain" else f" * {part.change}"
    return name, segments, *values, _share(part.improvement) + mark, gap


def _measures_table(comparison: Comparison) -> Table:
    return rows_table(
        ["held-out segments", *comparison.policies, *difference_headings(comparison.policies)],
        [
            (row.title, *row.values, *(_marked(each) for each in row.differences))
            for row in compared_rows(main_measures(comparison))
        ],
    )


def _marked(cell: DifferenceCell) -> str:
    return f"{cell.text} *" if cell.change else cell.text


def _share(value: Estimate | None, unit: str = "%") -> str:
    """Return a share that may be negative, in percent or percentage points."""
    if value is None:
        return "n/a"
    shown = f"{round(100 * value.mean, 1) + 0.0:.1f} {unit}"  # without the sign of -0.0
    return shown if value.margin is None else f"{shown} ± {100 * value.margin:.1f} {unit}"


def _name(policy: FrontPolicy) -> str:
    return policy.file.metadata.name
