"""docs/performance.md: the results of the last full run next to Go's, as tables and a plot.

The text of the document is written by hand. Blocks between two marks are replaced::

    <!-- decisions -->
    …
    <!-- end -->
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from tests.bench import report
from tests.bench.budgets import Budget, Figure
from tests.bench.budgets import read as read_budgets
from tests.bench.decisions.next_questions import PREEMPTORS
from tests.bench.decisions.preemption_decisions import VARIANTS
from tests.bench.plot import Axis, Panel, Series, draw
from tests.bench.report import Measured, table
from tests.properties.engines import ENGINES

DOCUMENT: Final = Path("docs/performance.md")
PLOT: Final = Path("docs/performance.svg")
GO: Final = Path(__file__).with_name("go.toml")

_NOTHING: Final = "–"  # noqa: RUF001 - no figure, written as other tables write it
_POLICIES: Final = ("policy-", "expression-")
_SIZES: Final = (1_000, 5_000, 15_000)
_COLORS: Final = {"plain": "#0072b2", "constrained": "#d55e00", "large": "#009e73"}
_NODES: Final = Axis("nodes", 80, 20_000, (100, 1_000, 5_000, 15_000))
_COST: Final = Axis("ms", 0.5, 60_000, (1, 10, 100, 1_000, 10_000))

Times = Mapping[int, tuple[float, ...]]
"""Nodes → milliseconds with one core, and with two."""


class NoResultsError(RuntimeError):
    """There are no results of a full run; the text says what to do."""


def write_document() -> None:
    """Write tables and plot. Raises NoResultsError."""
    measured, beside = _last_run("extender"), _last_run("controllers")
    asked, kept = _last_run("scheduling"), _last_run("ledger")
    go = _go()
    blocks = {
        "machine": f"{measured.machine}; the calibration loop took "
        f"{measured.calibration * 1e3:.1f} ms.\n",
        "decisions": table(list(_decisions(measured.figures, go))),
        "others": table(list(_others(measured.figures, read_budgets("extender")))),
        "policies": table(list(_found(_of_policies(measured.figures), read_budgets("extender")))),
        "controllers": table(list(_found(beside.figures, read_budgets("controllers")))),
        "ledger": table(list(_found(kept.figures, read_budgets("ledger")))),
        "scheduling": table(list(_found(asked.figures, read_budgets("scheduling")))),
    }
    text = DOCUMENT.read_text()
    for name, block in blocks.items():
        text = filled(text, name, block)
    DOCUMENT.write_text(text)
    PLOT.write_text(draw([*_panels(measured.figures, go)], _NODES, _COST))


def filled(text: str, name: str, block: str) -> str:
    """Put ``block`` between the marks of ``name``. Raises ValueError if there are none."""
    marks = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not marks.search(text):
        raise ValueError(f"no place for {name!r} in the document")
    return marks.sub(lambda found: f"{found[1]}\n{block}\n{found[2]}", text)


def _last_run(part: str) -> Measured:
    try:
        measured = report.read(part)
    except (OSError, msgspec.DecodeError) as error:
        raise NoResultsError(f"no results ({error}); run python -m tests.bench first") from None
    if measured.quick:
        raise NoResultsError("the last run was a quick one; run python -m tests.bench first")
    return measured


def _go() -> Mapping[str, Mapping[str, Times]]:
    """Read Go's times: by how many nodes were tried (all or sampled), and by variant."""
    given = tomllib.loads(GO.read_text())
    return {
        tried: {
            variant: {int(nodes): tuple(ms) for nodes, ms in times.items()}
            for variant, times in variants.items()
        }
        for tried, variants in given.items()
    }


def _decisions(
    figures: Mapping[str, Figure], go: Mapping[str, Mapping[str, Times]]
) -> Iterator[list[str]]:
    engines = [name for name in ENGINES if any(figure.startswith(f"{name}-") for figure in figures)]
    yield ["preemptor", "nodes", *engines, "Go, all nodes", "Go, a tenth of them"]
    for variant, (_, what) in VARIANTS.items():
        for nodes in _SIZES:
            ours = [_ours(figures, f"{engine}-{nodes}-{variant}") for engine in engines]
            theirs = [_theirs(go[tried][variant].get(nodes)) for tried in ("all", "sampled")]
            yield [what, f"{nodes:,}", *ours, *theirs]


def _ours(figures: Mapping[str, Figure], name: str) -> str:
    if name not in figures:
        return _NOTHING
    return f"{_number(figures[name].cost * 1e3)} / {_number(figures[f'{name}-p99'].cost * 1e3)}"


def _theirs(times: tuple[float, ...] | None) -> str:
    return _NOTHING if times is None else " / ".join(_number(each) for each in times)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _others(figures: Mapping[str, Figure], budgets: Mapping[str, Budget]) -> Iterator[list[str]]:
    decisions = {
        f"{engine}-{nodes}-{variant}{suffix}"
        for engine in ENGINES
        for nodes in _SIZES
        for variant in VARIANTS
        for suffix in ("", "-p99")
    }
    shown = decisions | _of_policies(figures).keys()
    yield from _found({name: each for name, each in figures.items() if name not in shown}, budgets)


def _of_policies(figures: Mapping[str, Figure]) -> Mapping[str, Figure]:
    return {name: each for name, each in figures.items() if name.startswith(_POLICIES)}


def _found(figures: Mapping[str, Figure], budgets: Mapping[str, Budget]) -> Iterator[list[str]]:
    yield ["what", "found", "aim"]
    for name, figure in figures.items():
        yield [figure.what, figure.shown, budgets.get(name, Budget()).aim]


def _panels(
    figures: Mapping[str, Figure], go: Mapping[str, Mapping[str, Times]]
) -> Iterator[Panel]:
    for title, suffix in (("100 disruption budgets", ""), ("no disruption budgets", "-no-pdb")):
        every = [_gos(go["all"], each, suffix, "Go, all nodes", "") for each in PREEMPTORS]
        tenth = [_gos(go["sampled"], each, suffix, "Go, a tenth", "2 3") for each in PREEMPTORS]
        ours = [_ours_as_line(figures, each, suffix) for each in PREEMPTORS]
        yield Panel(title, [*every, *tenth, *ours])


def _gos(times: Mapping[str, Times], preemptor: str, suffix: str, who: str, dash: str) -> Series:
    points = {nodes: both[1] for nodes, both in times[f"{preemptor}{suffix}"].items()}
    return Series(f"{who}, {preemptor}", _COLORS[preemptor], dash, 1, points)


def _ours_as_line(figures: Mapping[str, Figure], preemptor: str, suffix: str) -> Series:
    engine = list(ENGINES)[-1]  # the newest is the one to show
    names = {nodes: f"{engine}-{nodes}-{preemptor}{suffix}" for nodes in _SIZES}
    points = {nodes: figures[n].cost * 1e3 for nodes, n in names.items() if n in figures}
    return Series(f"{engine}, {preemptor}", _COLORS[preemptor], "", 3, points)
