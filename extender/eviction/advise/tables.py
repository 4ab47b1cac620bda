"""Node forecasts as text: tables of the most urgent nodes, or one line per node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from extender.eviction.advise.executor import Action
from extender.eviction.advise.rounds import ObservationRound
from extender.eviction.explanation import format_time, result_message
from extender.eviction.tables import RankingTable, format_amount
from extender.terminal.plain_tables import plain_table
from policies.eviction.forecast import NodeForecast, ThresholdForecast
from policies.eviction.signals import Signal
from policies.eviction.trends import Trend
from policies.kubernetes.duration import format_duration

_SECOND: Final = 10**9
_BAR_WIDTH: Final = 8
_MILLION: Final = 10**6
_SHOWN_PODS: Final = 10
_SHOWN_UNREAD: Final = 20

_COPIED_SIGNALS: Final = (Signal.CONTAINER_FS, Signal.CONTAINER_FS_INODES)
"""Signals whose thresholds are copies of those of another filesystem, which is shown."""


def format_seconds(nanoseconds: int) -> str:
    """Format a duration in whole seconds."""
    return format_duration(nanoseconds // _SECOND * _SECOND)


def margin_bar(forecast: ThresholdForecast) -> str:
    """Return a bar of the margin above a threshold; empty once the threshold is met."""
    full = -(-forecast.margin_millionths * _BAR_WIDTH // _MILLION)
    return "█" * full + "░" * (_BAR_WIDTH - full)


def format_trend(signal: Signal, trend: Trend | None) -> str:
    """Format a trend."""
    if trend is None:
        return ""
    change = trend.per_minute
    if not change:
        return "steady"
    return f"{'+' if change > 0 else ''}{format_amount(signal, change)}/min"


def format_time_left(forecast: ThresholdForecast) -> str:
    """Format the time until a threshold is met, and acted on."""
    met_in, acts_in = forecast.met_in_ns, forecast.acts_in_ns
    if met_in is None or acts_in is None:
        return ""
    if not met_in:
        return "met" if not acts_in else f"met, {format_seconds(acts_in)} of grace left"
    grace = acts_in - met_in
    return format_seconds(met_in) + (f" and {format_seconds(grace)} of grace" if grace else "")


def format_headline(forecast: NodeForecast, pressures: Sequence[str]) -> str:
    """Return a node, the pressures that it reports, and its forecast in one line."""
    under = f" under {', '.join(pressures)}" if pressures else ""
    return f"{forecast.node}{under}{_forecast_text(forecast)}"


def _forecast_text(forecast: NodeForecast) -> str:
    sync, leading, first = forecast.sync, forecast.leading, forecast.first_victim
    if sync.evictions:
        return f" is about to evict {', '.join(each.pod.key for each in sync.evictions)}"
    if leading is None:
        return f": {result_message(sync)}"
    acts_in = leading.acts_in_ns
    if acts_in is None:
        return (
            ": no signal approaches its threshold" if leading.trend else ": one sample has no trend"
        )
    when = f"in {format_seconds(acts_in)}" if acts_in >= _SECOND else "now"
    if not forecast.ranking:
        return f" acts on {leading.threshold} {when}"
    victim = "no pod can be evicted" if first is None else f"{first.pod.key} would be evicted first"
    return f" acts on {leading.threshold} {when}; {victim}"


def forecast_notes(forecast: NodeForecast) -> Iterator[str]:
    """Yield the node-level reclaim before an eviction, and what evicting the first pod regains."""
    leading, first = forecast.leading, forecast.first_victim
    if leading is None or not forecast.is_at_risk:
        return
    if forecast.reclaim:
        done = " and ".join(each.value for each in forecast.reclaim)
        yield f"before that, the node would {done}"
    if first is not None and first.usage:
        freed = format_amount(leading.threshold.signal, first.usage)
        yield f"evicting {first.pod.key} would free {freed}"


def round_table(
    observed: ObservationRound, max_nodes: int, actions: Sequence[Action] = ()
) -> RenderableType:
    """Return a table of the ``max_nodes`` urgent nodes of a round, and of the unreadable ones."""
    nodes, alone = observed.forecasts[:max_nodes], len(observed.forecasts) == 1
    parts = [
        _node(each, observed) if alone or each.is_at_risk else _node_line(each, observed)
        for each in nodes
    ]
    parts.extend(
        Text(line) for line in (*observed.notifications, *_summary_lines(observed, max_nodes))
    )
    parts.extend(Text(line, style="yellow") for line in _unread_lines(observed))
    parts.extend(Text(str(action), style="bold") for action in actions)
    return Group(*parts)


def round_lines(observed: ObservationRound, max_nodes: int) -> Iterator[str]:
    """Yield a round as plain lines: the leading threshold of each of the most urgent nodes."""
    at = round_time(observed)
    yield from (f"{at} {line}" for line in observed.notifications)
    for forecast in observed.forecasts[:max_nodes]:
        leading = forecast.leading
        line = f"{at} {_headline(forecast, observed)}"
        yield line if leading is None else f"{line}; {leading.threshold}: {_distance(leading)}"
        yield from (
            f"{at} {forecast.node}: {note}" for note in observed.notes.get(forecast.node, ())
        )
    yield from (
        f"{at} {line}" for line in (*_summary_lines(observed, max_nodes), *_unread_lines(observed))
    )


def round_time(observed: ObservationRound) -> str:
    """Return the time of a round, to the second."""
    return format_time(observed.at_ns // _SECOND * _SECOND)


def _headline(forecast: NodeForecast, observed: ObservationRound) -> str:
    return format_headline(forecast, observed.pressures.get(forecast.node, ()))


def _summary_lines(observed: ObservationRound, most: int) -> Iterator[str]:
    if len(observed.forecasts) > most:
        yield f"and {len(observed.forecasts) - most} more nodes, less urgent"
    if not observed.forecasts and not observed.unread:
        yield "there are no nodes"


def _unread_lines(observed: ObservationRound) -> Iterator[str]:
    for node, why in islice(observed.unread.items(), _SHOWN_UNREAD):
        yield f"{node}: {why}"
    if len(observed.unread) > _SHOWN_UNREAD:
        yield f"and {len(observed.unread) - _SHOWN_UNREAD} more nodes that cannot be read"


def _distance(forecast: ThresholdForecast) -> str:
    signal = forecast.threshold.signal
    left = format_amount(signal, forecast.observation.available)
    above = format_amount(signal, abs(forecast.margin))
    side = "below" if forecast.margin < 0 else "above"
    trend = format_trend(signal, forecast.trend)
    return f"{left} left, {above} {side}{f', {trend}' if trend else ''}"


def _node(forecast: NodeForecast, observed: ObservationRound) -> RenderableType:
    """Return all details of a node."""
    parts: list[RenderableType] = [Text(_headline(forecast, observed), style="bold")]
    if forecast.forecasts:
        parts.append(_signals(forecast))
    if forecast.ranking:
        parts.append(_pods(forecast))
    notes = (*forecast_notes(forecast), *observed.notes.get(forecast.node, ()))
    return Group(*parts, *(Text(note, style="italic") for note in notes))


def _node_line(forecast: NodeForecast, observed: ObservationRound) -> RenderableType:
    """Return one line about a node without a forecast of pressure."""
    leading = forecast.leading
    distance = "" if leading is None else f"; {leading.threshold}: {_distance(leading)}"
    notes = (
        Text(f"{forecast.node}: {note}", style="italic")
        for note in observed.notes.get(forecast.node, ())
    )
    return Group(Text(f"{_headline(forecast, observed)}{distance}"), *notes)


def _signals(forecast: NodeForecast) -> Table:
    table = plain_table("", "threshold", "", "available", "of", "trend", "time left")
    table.columns[1].no_wrap = True
    leading = forecast.leading
    for each in forecast.forecasts:
        if each.threshold.signal in _COPIED_SIGNALS and each is not leading:
            continue
        signal, observation = each.threshold.signal, each.observation
        table.add_row(
            "→" if each is leading else "",
            str(each.threshold),
            margin_bar(each),
            format_amount(signal, observation.available),
            format_amount(signal, observation.capacity),
            format_trend(signal, each.trend),
            format_time_left(each),
        )
    return table


def _pods(forecast: NodeForecast) -> Table:
    leading, first = forecast.leading, forecast.first_victim
    assert leading is not None
    marked = set() if first is None else {first.pod.uid}
    table = RankingTable(leading.threshold.signal, marked, _SHOWN_PODS)
    return table.render(forecast.ranking)
