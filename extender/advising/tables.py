"""Node forecasts as text: tables of the most urgent nodes, or one line per node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from extender.advising.deeds import Action
from extender.advising.rounds import ObservationRound
from extender.advising.wording import (
    forecast_notes,
    format_amount,
    format_headline,
    format_time_left,
    format_trend,
    margin_bar,
)
from extender.eviction.explaining import format_time
from extender.tables import plain_table
from policies.eviction.outlook import NodeForecast, ThresholdForecast
from policies.eviction.ranking import PodUsage, ranking_steps
from policies.eviction.signals import Signal

_COPIED_SIGNALS: Final = (Signal.CONTAINER_FS, Signal.CONTAINER_FS_INODES)
"""Signals whose thresholds are copies of those of another filesystem, which is shown."""

_SHOWN_PODS: Final = 10
_SHOWN_UNREAD: Final = 20
_SECOND: Final = 10**9


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
        yield f"and {len(seen.forecasts) - most} more nodes, less pressing"
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
