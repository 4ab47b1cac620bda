"""Node forecasts as text: tables of the most urgent nodes, or one line per node.

Formatting of amounts, durations and trends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from extender.eviction.advise.executor import Action
from extender.eviction.advise.rounds import ObservationRound
from extender.eviction.explanation import format_time, result_message
from extender.terminal.tables import plain_table
from policies.eviction.forecast import NodeForecast, ThresholdForecast
from policies.eviction.observations import BYTE_SIGNALS
from policies.eviction.ranking import PodUsage, ranking_steps
from policies.eviction.signals import Signal
from policies.eviction.trends import Trend
from policies.kubernetes.duration import format_duration

_SECOND: Final = 10**9
_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_COUNTS: Final = ("", "k", "M", "G", "T", "P", "E")
_BAR_WIDTH: Final = 8
_MILLION: Final = 10**6


def format_amount(signal: Signal, number: int) -> str:
    """Format an amount of a signal with three digits: ``1.21Gi``, ``-740Mi``, ``6.5M``."""
    return (
        format_rounded(number, 1024, _UNITS)
        if signal in BYTE_SIGNALS
        else format_rounded(number, 1000, _COUNTS)
    )


def format_rounded(number: int, base: int, units: Sequence[str]) -> str:
    """Format a number with three digits, rounded towards zero; units differ by ``base``."""
    unit, left = 0, abs(number)
    while left >= 1000 * base**unit and unit < len(units) - 1:
        unit += 1
    whole, rest = divmod(left, base**unit)
    fraction = (
        f"{rest * 100 // base**unit:02}"[: 3 - len(str(whole))] if len(str(whole)) < 3 else ""
    )
    shown = f"{whole}.{fraction}".rstrip("0").rstrip(".") if fraction else str(whole)
    return f"{'-' if number < 0 else ''}{shown}{units[unit]}"


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


def format_headline(outlook: NodeForecast, pressures: Sequence[str]) -> str:
    """Return a node, the pressures that it reports, and its forecast in one line."""
    under = f" under {', '.join(pressures)}" if pressures else ""
    return f"{outlook.node}{under}{_forecast_text(outlook)}"


def _forecast_text(outlook: NodeForecast) -> str:
    sync, leading, first = outlook.sync, outlook.leading, outlook.first_victim
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
    if not outlook.ranking:
        return f" acts on {leading.threshold} {when}"
    who = "no pod can be evicted" if first is None else f"{first.pod.key} would be evicted first"
    return f" acts on {leading.threshold} {when}; {who}"


def forecast_notes(outlook: NodeForecast) -> Iterator[str]:
    """Yield the node-level reclaim before an eviction, and what evicting the first pod regains."""
    leading, first = outlook.leading, outlook.first_victim
    if leading is None or not outlook.is_at_risk:
        return
    if outlook.reclaim:
        done = " and ".join(each.value for each in outlook.reclaim)
        yield f"before that, the node would {done}"
    if first is not None and first.usage:
        freed = format_amount(leading.threshold.signal, first.usage)
        yield f"evicting {first.pod.key} would free {freed}"


_COPIED_SIGNALS: Final = (Signal.CONTAINER_FS, Signal.CONTAINER_FS_INODES)
"""Signals whose thresholds are copies of those of another filesystem, which is shown."""

_SHOWN_PODS: Final = 10
_SHOWN_UNREAD: Final = 20


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
    parts.extend(Text(str(deed), style="bold") for deed in actions)
    return Group(*parts)


def round_lines(observed: ObservationRound, max_nodes: int) -> Iterator[str]:
    """Yield a round as plain lines: the leading threshold of each of the most urgent nodes."""
    at = format_time(observed.at_ns // _SECOND * _SECOND)
    yield from (f"{at} {line}" for line in observed.notifications)
    for outlook in observed.forecasts[:max_nodes]:
        leading = outlook.leading
        line = f"{at} {_headline(outlook, observed)}"
        yield line if leading is None else f"{line}; {leading.threshold}: {_distance(leading)}"
        yield from (f"{at} {outlook.node}: {note}" for note in observed.notes.get(outlook.node, ()))
    yield from (
        f"{at} {line}" for line in (*_summary_lines(observed, max_nodes), *_unread_lines(observed))
    )


def _headline(outlook: NodeForecast, seen: ObservationRound) -> str:
    return format_headline(outlook, seen.pressures.get(outlook.node, ()))


def _summary_lines(seen: ObservationRound, most: int) -> Iterator[str]:
    if len(seen.forecasts) > most:
        yield f"and {len(seen.forecasts) - most} more nodes, less urgent"
    if not seen.forecasts and not seen.unread:
        yield "there are no nodes"


def _unread_lines(seen: ObservationRound) -> Iterator[str]:
    for node, why in islice(seen.unread.items(), _SHOWN_UNREAD):
        yield f"{node}: {why}"
    if len(seen.unread) > _SHOWN_UNREAD:
        yield f"and {len(seen.unread) - _SHOWN_UNREAD} more nodes that cannot be read"


def _distance(forecast: ThresholdForecast) -> str:
    signal = forecast.threshold.signal
    left = format_amount(signal, forecast.observation.available)
    above = format_amount(signal, abs(forecast.margin))
    side = "below" if forecast.margin < 0 else "above"
    trend = format_trend(signal, forecast.trend)
    return f"{left} left, {above} {side}{f', {trend}' if trend else ''}"


def _node(outlook: NodeForecast, seen: ObservationRound) -> RenderableType:
    """Return all details of a node."""
    parts: list[RenderableType] = [Text(_headline(outlook, seen), style="bold")]
    if outlook.forecasts:
        parts.append(_signals(outlook))
    if outlook.ranking:
        parts.append(_pods(outlook))
    said = (*forecast_notes(outlook), *seen.notes.get(outlook.node, ()))
    return Group(*parts, *(Text(note, style="italic") for note in said))


def _node_line(outlook: NodeForecast, seen: ObservationRound) -> RenderableType:
    """Return one line about a node without a forecast of pressure."""
    leading = outlook.leading
    distance = "" if leading is None else f"; {leading.threshold}: {_distance(leading)}"
    said = seen.notes.get(outlook.node, ())
    notes = (Text(f"{outlook.node}: {note}", style="italic") for note in said)
    return Group(Text(f"{_headline(outlook, seen)}{distance}"), *notes)


def _signals(outlook: NodeForecast) -> Table:
    table = plain_table("", "threshold", "", "available", "of", "trend", "time left")
    table.columns[1].no_wrap = True
    leading = outlook.leading
    for each in outlook.forecasts:
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


def _pods(outlook: NodeForecast) -> Table:
    leading, ranking = outlook.leading, outlook.ranking
    assert leading is not None
    signal = leading.threshold.signal
    because = {each.pod.uid: each.criterion for each in ranking_steps(ranking, signal)}
    table = plain_table("", "pod", "priority", "usage", "request", "ahead of the next by")
    for each in ranking[:_SHOWN_PODS]:
        table.add_row(*_pod(each, signal, outlook.first_victim, because))
    if len(ranking) > _SHOWN_PODS:
        table.add_row("", f"and {len(ranking) - _SHOWN_PODS} more", "", "", "", "")
    return table


def _pod(
    standing: PodUsage, signal: Signal, first: PodUsage | None, because: Mapping[str, str]
) -> Iterator[str]:
    pod = standing.pod
    yield "→" if standing is first else "never" if pod.critical else ""
    yield pod.key
    yield str(pod.priority)
    yield "no stats" if standing.usage is None else format_amount(signal, standing.usage)
    yield "" if signal is Signal.PIDS else format_amount(signal, standing.request)
    yield because.get(pod.uid, "")
