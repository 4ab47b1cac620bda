"""The page of a run: its figures, and plots of ratios, memory and refusals; needs no network."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from extender.ledger_page.documents import render_document
from tests.bench.budgets import Budget, Figure
from tests.bench.plot import Axis, Linear, Panel, Series, draw
from tests.bench.timing import latency
from tests.load.figures import MIB, Outcome
from tests.load.mixes import ABOVE, KINDS, STEADY
from tests.load.records import ANSWERED, ECHO, REFUSED, REPRIEVE, Call, select

_BINS: Final = 60
_COLORS: Final = ("#0072b2", "#d55e00", "#009e73")
_TEMPLATE: Final = Path(__file__).with_name("page.html")


def page(
    title: str,
    figures: Mapping[str, Figure],
    budgets: Mapping[str, Budget],
    broken: Mapping[str, str],
    found: Outcome,
) -> str:
    """Return the page as HTML."""
    begun = min(call.started for call in found.calls)
    plots = {
        "Time by the echo's, at an even pace": _ratios(
            select(found.calls, STEADY), select(found.calls, STEADY, ECHO), begun
        ),
        "Milliseconds, all phases": _times(found.calls, begun),
        "Resident memory of the extender": _memory(found, begun),
        "Above saturation: calls a second": _refusals(select(found.calls, ABOVE), begun),
    }
    return render_document(
        _TEMPLATE.read_text(),
        title=title,
        figures=figures,
        limits={
            name: f"≤ {each.limit:g}" for name, each in budgets.items() if each.limit is not None
        },
        broken=broken,
        plots=plots,
        wrong=found.checked.wrong,
    )


def binned(calls: Sequence[Call], begun: float) -> Mapping[float, Sequence[Call]]:
    """Put calls into bins of equal length, by the second since ``begun`` at which one begins."""
    if not calls:
        return {}
    first = min(call.started for call in calls)
    width = (max(call.started for call in calls) - first) / _BINS or 1.0
    bins: dict[float, list[Call]] = defaultdict(list)
    for call in calls:
        number = int((call.started - first) / width)
        bins[round(first - begun + number * width, 1)].append(call)
    return bins


def _p50(calls: Sequence[Call]) -> float:
    return latency([call.seconds for call in calls]).p50


def _p99(calls: Sequence[Call]) -> float:
    return latency([call.seconds for call in calls]).p99


def _ratios(ours: Sequence[Call], echo: Sequence[Call], begun: float) -> str:
    series = []
    for kind, color in zip(KINDS, _COLORS, strict=True):
        for name, cost, dash in (("p50", _p50, ""), ("p99", _p99, "2 3")):
            both = [
                {at: cost(found) for at, found in binned(_closed(calls, kind.name), begun).items()}
                for calls in (ours, echo)
            ]
            nearest = _nearest(both[1])
            points = {at: took / nearest(at) for at, took in both[0].items()} if both[1] else {}
            series.append(Series(f"{kind.name}, {name}", color, dash, 1.5, points))
    return draw([Panel("by the echo", series)], _seconds(series), _even("times", series))


def _closed(calls: Sequence[Call], kind: str) -> list[Call]:
    return [call for call in calls if (call.user, call.kind) == ("Closed", kind)]


def _nearest(points: Mapping[float, float]) -> Callable[[float], float]:
    return lambda at: points[min(points, key=lambda other: abs(other - at))]


def _times(calls: Sequence[Call], begun: float) -> str:
    series = []
    for target, dash in ((REPRIEVE, ""), (ECHO, "2 3")):
        for kind, color in zip(KINDS, _COLORS, strict=True):
            chosen = [
                call
                for call in calls
                if (call.target, call.kind, call.outcome) == (target, kind.name, ANSWERED)
                and not call.user.startswith("Slow")
            ]
            points = {at: _p50(found) * 1e3 for at, found in binned(chosen, begun).items()}
            series.append(Series(f"{target}, {kind.name}", color, dash, 1.5, points))
    up = Axis("ms, p50", 0.2, 2_000, (1, 10, 100, 1_000))
    return draw([Panel("median of the answered", series)], _seconds(series), up)


def _memory(found: Outcome, begun: float) -> str:
    step = max(1, len(found.moments) // _BINS)
    points = {
        round(each.at - begun, 1): each.resident / MIB for each in list(found.moments)[::step]
    }
    series = [Series("resident", _COLORS[0], "", 1.5, points)]
    return draw([Panel("memory", series)], _seconds(series), _even("MiB", series))


def _refusals(calls: Sequence[Call], begun: float) -> str:
    series = []
    for how, color in ((ANSWERED, _COLORS[2]), (REFUSED, _COLORS[1])):
        bins = binned(calls, begun)
        width = _width(bins)
        points = {
            at: sum(call.outcome == how for call in found) / width for at, found in bins.items()
        }
        series.append(Series(how, color, "", 1.5, points))
    return draw([Panel("open loop", series)], _seconds(series), _even("a second", series))


def _width(bins: Mapping[float, Sequence[Call]]) -> float:
    ordered = sorted(bins)
    return (ordered[-1] - ordered[0]) / (len(ordered) - 1) if len(ordered) > 1 else 1.0


def _seconds(series: Sequence[Series]) -> Linear:
    return _span("seconds", [at for each in series for at in each.points])


def _even(title: str, series: Sequence[Series]) -> Linear:
    return _span(title, [0.0, *(value for each in series for value in each.points.values())])


def _span(title: str, values: Sequence[float]) -> Linear:
    """Span all values, with about five round marks."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    high = high if high > low else low + 1.0
    rough = (high - low) / 5
    size = 10.0 ** len(str(int(rough))) / 10 if rough >= 1 else 0.1
    step = next((size * each for each in (1, 2, 5, 10) if size * each >= rough), size * 10)
    first = int(low / step)
    marks = [round(step * number, 3) for number in range(first, first + 12)]
    return Linear(title, low, high, [mark for mark in marks if low <= mark <= high])
