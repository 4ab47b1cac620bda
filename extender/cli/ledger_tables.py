"""Lists and statistics of a ledger as documents, tables and rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypedDict

from rich.console import Group, RenderableType
from rich.text import Text

from extender.kube.decoders.object_meta import format_time
from extender.ledger.choice_cost import ChoiceCost
from extender.ledger.decision_rows import DecisionRow, in_seconds, list_document
from extender.ledger.entry import LedgerRecord
from extender.ledger.outcome_text import elapsed_text
from extender.ledger.statistics import GroupTotal, Statistics
from extender.ledger.storage.shadow_totals import ShadowTotal
from extender.terminal.output import TableRows
from extender.terminal.plain_tables import rows_table

LIST_COLUMNS: Final = (
    "id", "at", "verb", "preemptor", "priority", "node", "victims", "decidedBy", "state",
    "boundAfterSeconds", "fallback",
)  # fmt: skip
COST_COLUMNS: Final = ("refusals", "victims", "numPDBViolations", "coreHours", "deviceHours")
_COST_HEAD: Final = (
    "refusals", "victims", "PDB violations", "core-hours lost", "device-hours lost",
)  # fmt: skip
GROUP_COLUMNS: Final = ("group", "victims", "preemptors", "coreHours", "deviceHours")
_MILLICORE_HOUR: Final = 1000 * 3600
_HOUR: Final = 3600
_SECOND_NS: Final = 10**9
_SHOWN_VICTIMS: Final = 2


class GroupDocument(TypedDict):
    """The pods of a group; hours are of whole cores, and of units of extended resources."""

    group: str
    victims: int
    preemptors: int
    coreHours: float
    deviceHours: float


class OutcomesDocument(TypedDict):
    """What became of the preemptors of the newest preemptions; see Outcomes."""

    preemptions: int
    bound: int
    open: int
    medianSecondsUntilBound: float | None


class ThrashDocument(TypedDict):
    """Two owners whose pods preempt each other, and how often each preempted the other."""

    one: str
    other: str
    byOne: int
    byOther: int


class CostDocument(TypedDict):
    """What choices cost; see ChoiceCost."""

    refusals: int
    victims: int
    numPDBViolations: int
    coreHours: float
    deviceHours: float


class ShadowDocument(TypedDict):
    """The decisions that a shadow policy has made as well, and the cost of both choices."""

    policy: str
    decisions: int
    differences: int
    live: CostDocument
    shadow: CostDocument


class StatisticsDocument(TypedDict):
    """The output of ``ledger stats -o json``."""

    since: str
    until: str
    by: str
    decisions: int
    fallbacks: int
    total: GroupDocument
    groups: list[GroupDocument]
    outcomes: OutcomesDocument
    budgets: dict[str, int]
    thrash: list[ThrashDocument]
    shadows: list[ShadowDocument]


def list_rows(records: Sequence[LedgerRecord]) -> Iterator[Sequence[object]]:
    """Yield the names of the columns, and a row for each decision; victims are joined by spaces."""
    yield LIST_COLUMNS
    for each in list_document(records):
        victims = " ".join(each["victims"])
        found = {**each, "victims": victims}
        yield [_cell(found[column]) for column in LIST_COLUMNS]


def list_table(records: Sequence[LedgerRecord], rows: TableRows, limit: int) -> RenderableType:
    """Return a row for each decision; ``limit`` is how many were asked for."""
    if not records:
        return Text("no decisions")
    shown = rows.at_most(_SHOWN_VICTIMS)
    table = rows_table(
        ("id", "at", "preemptor", "node", "victims", "decided by", "state"),
        (
            (
                each["id"],
                each["at"],
                f"{each['preemptor']} ({each['priority']})",
                each["node"] or "",
                _victims(each["victims"], shown),
                each["decidedBy"] or each["fallback"],
                _state(each),
            )
            for each in list_document(records)
        ),
    )
    if len(records) < limit:
        return table
    return Group(table, Text(f"the newest {limit}; --limit N lists more"))


def statistics_document(found: Statistics) -> StatisticsDocument:
    """Return the statistics."""
    outcomes = found.outcomes
    return {
        "since": format_time(found.period.since_ns),
        "until": format_time(found.period.until_ns),
        "by": found.grouping.value,
        "decisions": found.decisions,
        "fallbacks": found.fallbacks,
        "total": _group_document(found.total),
        "groups": [_group_document(each) for each in found.groups],
        "outcomes": {
            "preemptions": outcomes.preemptions,
            "bound": outcomes.bound,
            "open": outcomes.open,
            "medianSecondsUntilBound": in_seconds(outcomes.median_ns),
        },
        "budgets": dict(found.budgets),
        "thrash": [
            {"one": one, "other": other, "byOne": by_one, "byOther": by_other}
            for one, other, by_one, by_other in found.thrash
        ],
        "shadows": shadow_documents(found.shadows),
    }


def shadow_documents(totals: Sequence[ShadowTotal]) -> list[ShadowDocument]:
    """Return the totals of shadow policies."""
    return [
        {
            "policy": each.policy,
            "decisions": each.decisions,
            "differences": each.differences,
            "live": _cost_document(each.live),
            "shadow": _cost_document(each.shadow),
        }
        for each in totals
    ]


def shadow_table(totals: Sequence[ShadowTotal]) -> RenderableType:
    """Return two rows for each shadow policy: the cost of the answers, and that of its choices."""
    rows: list[Sequence[object]] = []
    for each in shadow_documents(totals):
        live, shadow = each["live"], each["shadow"]
        counts = each["policy"], each["decisions"], each["differences"]
        rows.append((*counts, "live", *(live[column] for column in COST_COLUMNS)))
        rows.append(("", "", "", "shadow", *(shadow[column] for column in COST_COLUMNS)))
    head = ("shadow policy", "decisions", "differ", "choice", *_COST_HEAD)
    return rows_table(head, ([_plain(each) for each in row] for row in rows))


def statistics_rows(found: Statistics) -> Iterator[Sequence[object]]:
    """Yield the names of the columns, and a row for each group."""
    yield (found.grouping.value, *GROUP_COLUMNS[1:])
    for each in found.groups:
        document = _group_document(each)
        yield [document[column] for column in GROUP_COLUMNS]


def statistics_table(found: Statistics, most: int) -> RenderableType:
    """Return the statistics in tables of at most so many rows."""
    document = statistics_document(found)
    total = document["total"]
    head = (
        f"{document['since']} to {document['until']}: {total['victims']} pods preempted for "
        f"{total['preemptors']} preemptors; decisions: {document['decisions']}, "
        f"fallbacks: {document['fallbacks']}"
    )
    parts: list[RenderableType] = [Text(head, style="bold"), Text(_outcomes_text(found))]
    groups = ((each[column] for column in GROUP_COLUMNS) for each in document["groups"])
    heading = (document["by"], "preempted", "preemptors", "core-hours lost", "device-hours lost")
    parts += _some(heading, [*map(tuple, groups)], most)
    parts += _some(("budget", "decisions that violate it"), [*document["budgets"].items()], most)
    pairs = [
        (each["one"], each["other"], each["byOne"], each["byOther"]) for each in document["thrash"]
    ]
    if found.shadows:
        parts.append(shadow_table(found.shadows))
    parts += _some(("preempt each other", "", "first by second", "second by first"), pairs, most)
    return Group(*parts)


def _group_document(group: GroupTotal) -> GroupDocument:
    return {
        "group": group.group,
        "victims": group.victims,
        "preemptors": group.preemptors,
        "coreHours": round(group.cpu / _MILLICORE_HOUR, 2),
        "deviceHours": round(group.devices / _HOUR, 2),
    }


def _cost_document(cost: ChoiceCost) -> CostDocument:
    return {
        "refusals": cost.refusals,
        "victims": cost.victims,
        "numPDBViolations": cost.violations,
        "coreHours": round(cost.cpu / _MILLICORE_HOUR, 2),
        "deviceHours": round(cost.devices / _HOUR, 2),
    }


def _outcomes_text(found: Statistics) -> str:
    outcomes = found.outcomes
    if not outcomes.preemptions:
        return "no preemptions"
    share = 100 * outcomes.bound / outcomes.preemptions
    text = f"{share:.0f}% of the newest {outcomes.preemptions} preemptors were bound"
    if outcomes.median_ns is not None:
        text += f", half of them within {elapsed_text(outcomes.median_ns)}"
    return f"{text}; still followed: {outcomes.open}"


def _some(
    head: Sequence[str], rows: Sequence[Sequence[object]], most: int
) -> Iterator[RenderableType]:
    if rows:
        yield rows_table(head, ([_shown(each) for each in row] for row in rows[:most]))
    if len(rows) > most:
        yield Text(f"and {len(rows) - most} more")


def _shown(value: object) -> str:
    return _plain(value) or "none"


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _victims(names: Sequence[str], shown: int) -> str:
    more = [f"and {len(names) - shown} more"] if len(names) > shown else []
    return ", ".join((*names[:shown], *more))


def _state(row: DecisionRow) -> str:
    after = row["boundAfterSeconds"]
    return (
        row["state"] if after is None else f"bound after {elapsed_text(round(after * _SECOND_NS))}"
    )


def _cell(value: object) -> object:
    return "" if value is None else value
