"""The timeline: bars of pods by time and group, and the decisions below it.

The ledger counts by the hour, so a bar begins at a full hour. The bars cover at least a day, also
if the selected range is shorter: those outside the range are marked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from extender.kube.decoders.object_meta import format_time
from extender.ledger.entry import LedgerRecord, State, format_id
from extender.ledger.shadow_text import cost_changes
from extender.ledger.storage.queries import Grouping, Kind, Total
from extender.ledger.storage.schema import HOUR_NS, Role
from extender.ledger.storage.shadow_totals import ShadowTotal
from extender.ledger_page.page_query import RANGES, Counted, PageQuery
from extender.ledger_page.sentences import headline
from extender.ledger_page.view import Link, PodLink, View, decision_url, pod_link

PATH: Final = "/ui/"
ROWS: Final = 50
"""The decisions on one page."""

_MOST_BARS: Final = 80
_PERIODS: Final = (1, 6, 24, 7 * 24)
_LEAST_HOURS: Final = 24
_MOST_GROUPS: Final = 5
_OTHERS: Final = "others"
_UNNAMED: Final = "(none)"
_SHOWN_VICTIMS: Final = 3
_STATES: Final = {
    State.OPEN: "not bound yet",
    State.BOUND: "bound",
    State.DELETED: "deleted",
    State.SUPERSEDED: "decided again",
    State.UNKNOWN: "unknown",
}


class Segment(View, frozen=True, kw_only=True):
    """The pods of a group in a bar; ``y`` and ``height`` are in percent of the highest bar."""

    group: str
    rank: int
    pods: int
    y: float
    height: float


class Bar(View, frozen=True, kw_only=True):
    """The pods of a period; ``x`` and ``width`` are in percent, ``label`` is empty for most."""

    start: str
    end: str
    label: str
    url: str
    pods: int
    selected: bool
    x: float
    width: float
    segments: tuple[Segment, ...]


class Group(View, frozen=True, kw_only=True):
    """A group with its pods in all bars that are selected; ``url`` selects it, if it can be."""

    name: str
    rank: int
    pods: int
    url: str = ""


class DecisionRow(View, frozen=True, kw_only=True):
    """A decision in a list; ``more`` victims are not listed."""

    id: str
    url: str
    at: str
    sentence: str
    pod: PodLink
    victims: tuple[PodLink, ...]
    more: int
    node: str
    decided_by: str
    result: str


class ShadowRow(View, frozen=True, kw_only=True):
    """A shadow policy: how many decisions it made, and how the cost of its choices differs."""

    policy: str
    decisions: int
    differences: int
    change: str


class TimelineView(View, frozen=True, kw_only=True):
    """The first page.

    ``parameters`` are those of the query. ``looked_at`` is the number of decisions that were read
    to find those of a node, 0 without one. ``live`` if the range ends now and the list begins with
    the newest decision.
    """

    since: str
    until: str
    ranges: tuple[Link, ...]
    groupings: tuple[Link, ...]
    roles: tuple[Link, ...]
    kinds: tuple[Link, ...]
    parameters: Mapping[str, str]
    filters: Mapping[str, str]
    without_filters: str
    counted: str
    grouping: str
    period_hours: int
    pods: int
    highest: int
    groups: tuple[Group, ...]
    bars: tuple[Bar, ...]
    decisions: tuple[DecisionRow, ...]
    newest: str
    older: str
    looked_at: int
    live: bool
    shadows: tuple[ShadowRow, ...]
    differences_url: str


def bar_hours(query: PageQuery) -> tuple[int, int, int]:
    """Return the hours that the bars cover, from and to, and the hours of one bar."""
    until = -(-query.until_ns // HOUR_NS)
    since = min(query.since_ns // HOUR_NS, until - _LEAST_HOURS)
    period = next((each for each in _PERIODS if until - since <= _MOST_BARS * each), 0)
    return since, until, period or -(-(until - since) // _MOST_BARS)


def timeline_view(
    query: PageQuery,
    totals: Sequence[Total],
    rows: Sequence[DecisionRow],
    shadows: Sequence[ShadowTotal],
    older: str,
    looked_at: int,
) -> TimelineView:
    """Return the page of a query; ``totals`` are of the hours of :func:`bar_hours`."""
    kinds = [Kind.PREEMPTIONS, *([Kind.DIFFERENCES] if shadows else []), Kind.ALL]
    role = Role.VICTIM if query.counted is Counted.VICTIMS else Role.PREEMPTOR
    wanted = _wanted_group(query)
    counted = [each for each in totals if each.role is role and wanted in ("", each.group)]
    since, until, period = bar_hours(query)
    first, last = query.since_ns // HOUR_NS, -(-query.until_ns // HOUR_NS)
    in_range = [each for each in counted if first < each.hour + period and each.hour < last]
    groups = _groups(query, in_range or counted)
    bars = _bars(query, counted, groups, (since, until, period))
    kind = query.selection.kind.value
    filters = {
        "namespace": query.selection.namespace,
        "class": query.selection.priority_class,
        "node": query.node,
    }
    return TimelineView(
        since=format_time(query.since_ns),
        until=format_time(query.until_ns),
        ranges=range_links(query, PATH),
        groupings=_choices(query, "by", [each.value for each in Grouping], query.grouping.value),
        roles=_choices(query, "role", [each.value for each in Counted], query.counted.value),
        kinds=_choices(query, "kind", [each.value for each in kinds], kind),
        parameters=query.parameters,
        filters={name: value for name, value in filters.items() if value},
        without_filters=query.url(PATH, namespace="", node="", before="", **{"class": ""}),
        counted=query.counted.value,
        grouping=query.grouping.value,
        period_hours=period,
        pods=sum(bar.pods for bar in bars if bar.selected),
        highest=max((bar.pods for bar in bars), default=0),
        groups=groups,
        bars=bars,
        decisions=tuple(rows),
        newest=rows[0].id if rows else "",
        older=older,
        looked_at=looked_at,
        live=bool(query.range) and "before" not in query.parameters,
        shadows=tuple(_shadow_row(each) for each in shadows),
        differences_url=query.url(PATH, kind=Kind.DIFFERENCES.value, before=""),
    )


def _shadow_row(total: ShadowTotal) -> ShadowRow:
    return ShadowRow(
        policy=total.policy,
        decisions=total.decisions,
        differences=total.differences,
        change=", ".join(cost_changes(total.live, total.shadow)),
    )


def range_links(query: PageQuery, path: str) -> tuple[Link, ...]:
    """Return links to the relative ranges."""
    return tuple(
        Link(label=each, url=query.range_url(path, each), current=each == query.range)
        for each in RANGES
    )


def decision_row(record: LedgerRecord) -> DecisionRow:
    """Return a decision as a row."""
    entry = record.entry
    victims = entry.victims
    if victims:
        result = _STATES[record.outcome.state]
    else:
        result = "fallback" if entry.fallback else "no victims"
    return DecisionRow(
        id=format_id(entry.id),
        url=decision_url(entry.id),
        at=entry.at,
        sentence=headline(record),
        pod=pod_link(entry.pod),
        victims=tuple(pod_link(victim) for victim in victims[:_SHOWN_VICTIMS]),
        more=max(0, len(victims) - _SHOWN_VICTIMS),
        node=entry.node or "",
        decided_by=entry.decided_by or "",
        result=result,
    )


def _choices(
    query: PageQuery, parameter: str, values: Sequence[str], current: str
) -> tuple[Link, ...]:
    return tuple(
        Link(
            label=each,
            url=query.url(PATH, **{parameter: each, "before": ""}),
            current=each == current,
        )
        for each in values
    )


def _wanted_group(query: PageQuery) -> str:
    """Return the only group that a filter selects, "" for all."""
    match query.grouping:
        case Grouping.NAMESPACE:
            return query.selection.namespace
        case Grouping.CLASS:
            return query.selection.priority_class
        case Grouping.TEAM:
            return ""


def _groups(query: PageQuery, totals: Sequence[Total]) -> tuple[Group, ...]:
    """Return the largest groups, and the others as one."""
    counts = Counter[str]()
    for each in totals:
        counts[each.group] += each.pods
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    parameter = {Grouping.NAMESPACE: "namespace", Grouping.CLASS: "class"}.get(query.grouping, "")
    found = [
        Group(
            name=name or _UNNAMED,
            rank=rank,
            pods=pods,
            url=query.url(PATH, before="", **{parameter: name}) if parameter and name else "",
        )
        for rank, (name, pods) in enumerate(ranked[:_MOST_GROUPS])
    ]
    if rest := ranked[_MOST_GROUPS:]:
        name = f"{len(rest)} {_OTHERS}"
        found.append(Group(name=name, rank=_MOST_GROUPS, pods=sum(pods for _, pods in rest)))
    return tuple(found)


def _bars(
    query: PageQuery,
    totals: Sequence[Total],
    groups: Sequence[Group],
    hours: tuple[int, int, int],
) -> tuple[Bar, ...]:
    since, until, period = hours
    ranks = {group.name: group.rank for group in groups}
    counts: dict[int, Counter[int]] = {}
    for each in totals:
        rank = ranks.get(each.group or _UNNAMED, _MOST_GROUPS)
        counts.setdefault(each.hour // period, Counter())[rank] += each.pods
    highest = max((count.total() for count in counts.values()), default=0) or 1
    first, end = since // period, -(-until // period)
    width = 100 / (end - first)
    names = {group.rank: group.name for group in groups}
    return tuple(
        Bar(
            start=format_time(number * period * HOUR_NS),
            end=format_time((number + 1) * period * HOUR_NS),
            label=_label(number, period, end - first),
            url=_period_url(query, number * period, period),
            pods=counts.get(number, Counter()).total(),
            selected=query.since_ns < (number + 1) * period * HOUR_NS
            and number * period * HOUR_NS < query.until_ns,
            x=round((number - first) * width, 3),
            width=round(width, 3),
            segments=_segments(counts.get(number, Counter()), names, highest),
        )
        for number in range(first, end)
    )


def _label(number: int, period: int, bars: int) -> str:
    """Return the label of a bar: its date at midnight, or its hour; "" if there is no room."""
    start = format_time(number * period * HOUR_NS)
    date, hour = start[5:10], start[11:16]
    if period >= _LEAST_HOURS:
        return "" if number % (1 + bars // 8) else date
    if hour == "00:00":
        return date
    return hour if hour in ("06:00", "12:00", "18:00") and bars * period <= 2 * _LEAST_HOURS else ""


def _period_url(query: PageQuery, hour: int, hours: int) -> str:
    since, until = format_time(hour * HOUR_NS), format_time((hour + hours) * HOUR_NS)
    return query.url(PATH, range="", before="", since=since, until=until)


def _segments(
    counts: Mapping[int, int], names: Mapping[int, str], highest: int
) -> tuple[Segment, ...]:
    """Return the segments of a bar from below; the group of rank 0 is the lowest."""
    found, below = [], 0
    for rank in sorted(counts):
        pods = counts[rank]
        top = 100 * (below + pods) / highest
        found.append(
            Segment(
                group=names.get(rank, _OTHERS),
                rank=rank,
                pods=pods,
                y=round(100 - top, 3),
                height=round(100 * pods / highest, 3),
            )
        )
        below += pods
    return tuple(found)
