"""Node forecasts as text: tables of the most urgent nodes, or one line per node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from extender.advising.deeds import Deed
from extender.advising.rounds import Round
from extender.advising.wording import amount, bar, headline, notes, rate, time_left
from extender.eviction.explaining import moment
from extender.tables import plain_table
from policies.eviction.outlook import Forecast, Outlook
from policies.eviction.ranking import Standing, steps
from policies.eviction.signals import Signal

_COPIED: Final = (Signal.CONTAINER_FS, Signal.CONTAINER_FS_INODES)
"""Signals whose thresholds are copies of those of another filesystem, which is shown."""

_SHOWN_PODS: Final = 10
_SHOWN_UNREAD: Final = 20
_SECOND: Final = 10**9


def round_table(seen: Round, most: int, deeds: Sequence[Deed] = ()) -> RenderableType:
    """Return a table of the ``max_nodes`` urgent nodes of a round, and of the unreadable ones."""
    nodes, alone = seen.outlooks[:most], len(seen.outlooks) == 1
    parts = [_node(each, seen) if alone or each.heads else _calm(each, seen) for each in nodes]
    parts.extend(Text(line) for line in (*seen.heard, *_rest(seen, most)))
    parts.extend(Text(line, style="yellow") for line in _unread(seen))
    parts.extend(Text(str(deed), style="bold") for deed in deeds)
    return Group(*parts)


def round_lines(seen: Round, most: int) -> Iterator[str]:
    """Yield a round as plain lines: the leading threshold of each of the most urgent nodes."""
    at = moment(seen.at_ns // _SECOND * _SECOND)
    yield from (f"{at} {line}" for line in seen.heard)
    for outlook in seen.outlooks[:most]:
        leading = outlook.leading
        line = f"{at} {_headline(outlook, seen)}"
        yield line if leading is None else f"{line}; {leading.threshold}: {_distance(leading)}"
        yield from (f"{at} {outlook.node}: {note}" for note in seen.notes.get(outlook.node, ()))
    yield from (f"{at} {line}" for line in (*_rest(seen, most), *_unread(seen)))


def _headline(outlook: Outlook, seen: Round) -> str:
    return headline(outlook, seen.pressures.get(outlook.node, ()))


def _rest(seen: Round, most: int) -> Iterator[str]:
    if len(seen.outlooks) > most:
        yield f"and {len(seen.outlooks) - most} more nodes, less pressing"
    if not seen.outlooks and not seen.unread:
        yield "there are no nodes"


def _unread(seen: Round) -> Iterator[str]:
    for node, why in islice(seen.unread.items(), _SHOWN_UNREAD):
        yield f"{node}: {why}"
    if len(seen.unread) > _SHOWN_UNREAD:
        yield f"and {len(seen.unread) - _SHOWN_UNREAD} more nodes that cannot be read"


def _distance(forecast: Forecast) -> str:
    signal = forecast.threshold.signal
    left = amount(signal, forecast.observation.available)
    above = amount(signal, abs(forecast.above))
    side = "below" if forecast.above < 0 else "above"
    trend = rate(signal, forecast.trend)
    return f"{left} left, {above} {side}{f', {trend}' if trend else ''}"


def _node(outlook: Outlook, seen: Round) -> RenderableType:
    """Return all details of a node."""
    parts: list[RenderableType] = [Text(_headline(outlook, seen), style="bold")]
    if outlook.forecasts:
        parts.append(_signals(outlook))
    if outlook.ranking:
        parts.append(_pods(outlook))
    said = (*notes(outlook), *seen.notes.get(outlook.node, ()))
    return Group(*parts, *(Text(note, style="italic") for note in said))


def _calm(outlook: Outlook, seen: Round) -> RenderableType:
    """Return one line about a node without a forecast of pressure."""
    leading = outlook.leading
    distance = "" if leading is None else f"; {leading.threshold}: {_distance(leading)}"
    said = seen.notes.get(outlook.node, ())
    notes = (Text(f"{outlook.node}: {note}", style="italic") for note in said)
    return Group(Text(f"{_headline(outlook, seen)}{distance}"), *notes)


def _signals(outlook: Outlook) -> Table:
    table = plain_table("", "threshold", "", "available", "of", "trend", "time left")
    table.columns[1].no_wrap = True
    leading = outlook.leading
    for each in outlook.forecasts:
        if each.threshold.signal in _COPIED and each is not leading:
            continue
        signal, observation = each.threshold.signal, each.observation
        table.add_row(
            "→" if each is leading else "",
            str(each.threshold),
            bar(each),
            amount(signal, observation.available),
            amount(signal, observation.capacity),
            rate(signal, each.trend),
            time_left(each),
        )
    return table


def _pods(outlook: Outlook) -> Table:
    leading, ranking = outlook.leading, outlook.ranking
    assert leading is not None
    signal = leading.threshold.signal
    because = {each.pod.uid: each.criterion for each in steps(ranking, signal)}
    table = plain_table("", "pod", "priority", "usage", "request", "ahead of the next by")
    for each in ranking[:_SHOWN_PODS]:
        table.add_row(*_pod(each, signal, outlook.first, because))
    if len(ranking) > _SHOWN_PODS:
        table.add_row("", f"and {len(ranking) - _SHOWN_PODS} more", "", "", "", "")
    return table


def _pod(
    standing: Standing, signal: Signal, first: Standing | None, because: Mapping[str, str]
) -> Iterator[str]:
    pod = standing.pod
    yield "→" if standing is first else "never" if pod.critical else ""
    yield pod.key
    yield str(pod.priority)
    yield "no stats" if standing.usage is None else amount(signal, standing.usage)
    yield "" if signal is Signal.PIDS else amount(signal, standing.request)
    yield because.get(pod.uid, "")
