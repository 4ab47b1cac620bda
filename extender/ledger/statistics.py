"""Statistics of a ledger over a period: what was preempted, what it cost, and whether it helped.

Pods and lost work are read from the totals by the hour, so a period consists of whole hours, and
each pod counts in its own namespace and class. The outcomes of preemptors, and the pairs that
preempt each other, are those of the newest preemptions of the period, at most ``MOST_PREEMPTIONS``:
to read all would take seconds in a ledger of a million.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Final, NamedTuple

from extender.ledger.entry import State, first_id, time_of_id
from extender.ledger.storage.database import Database, Row, whole_number
from extender.ledger.storage.queries import Grouping, Ledger, Selection, Thrash
from extender.ledger.storage.schema import HOUR_NS, Role
from extender.ledger.storage.shadow_totals import ShadowTotal
from extender.ledger.storage.store import STATES

MOST_PREEMPTIONS: Final = 20_000
_MOST_PAIRS: Final = 1000
_MICROSECOND_NS: Final = 1000


class GroupTotal(NamedTuple):
    """The pods of a group in a period; see :class:`extender.ledger.storage.queries.Total`."""

    group: str
    victims: int
    preemptors: int
    cpu: int
    devices: int


class Outcomes(NamedTuple):
    """What became of the preemptors of the newest preemptions.

    ``median_ns`` is the median time from a decision to the binding; None if none was bound.
    """

    preemptions: int
    bound: int
    open: int
    median_ns: int | None


@dataclass(frozen=True, slots=True)
class Period:
    """A period, and which pods of it count; "" for those of any namespace, or of any class."""

    since_ns: int
    until_ns: int
    namespace: str = ""
    priority_class: str = ""

    def whole_hours(self) -> Period:
        """Return the period from the beginning of its first hour to the end of its last."""
        since, until = self.since_ns // HOUR_NS, -(-self.until_ns // HOUR_NS)
        return Period(since * HOUR_NS, until * HOUR_NS, self.namespace, self.priority_class)


@dataclass(frozen=True, slots=True)
class Statistics:
    """The statistics of a period.

    ``decisions`` are all entries, ``fallbacks`` those without a decision. ``budgets`` has how many
    decisions violated each budget, and ``thrash`` the pairs of owners that preempt each other.
    ``shadows`` are the shadow policies, with the decisions whose preemptor, or one of whose
    victims, is selected.
    """

    period: Period
    grouping: Grouping
    groups: Sequence[GroupTotal]
    decisions: int
    fallbacks: int
    outcomes: Outcomes
    budgets: Mapping[str, int]
    thrash: Sequence[Thrash]
    shadows: Sequence[ShadowTotal] = ()

    @property
    def total(self) -> GroupTotal:
        """The pods of all groups."""
        columns = zip(*(each[1:] for each in self.groups), strict=True)
        return GroupTotal("", *([sum(each) for each in columns] or (0, 0, 0, 0)))


async def read_statistics(database: Database, period: Period, grouping: Grouping) -> Statistics:
    """Return the statistics of a period, in whole hours. Raise LedgerError.

    Of budgets and of pairs that preempt each other, a namespace selects its own; a class selects
    none of them, since they have no class.
    """
    ledger, period = Ledger(database), period.whole_hours()
    counts = await _counts(database, period, grouping)
    prefix = f"{period.namespace}/" if period.namespace else ""
    budgets = await ledger.budgets(period.since_ns, period.until_ns)
    before = first_id(period.until_ns)
    pairs = await ledger.thrash(await _newest_since(database, period), _MOST_PAIRS, before)
    return Statistics(
        period,
        grouping,
        _groups(counts),
        _count_of(Role.DECISION, counts),
        _count_of(Role.FALLBACK, counts),
        await _outcomes(database, period),
        {name: count for name, count in budgets.items() if name.startswith(prefix)},
        [each for each in pairs if prefix in ("", *map(_namespace_prefix, each[:2]))],
        await ledger.shadow_totals(
            Selection(period.since_ns, period.until_ns, period.namespace, period.priority_class)
        ),
    )


def _namespace_prefix(owner: str) -> str:
    return owner[: owner.find("/") + 1]


async def _counts(database: Database, period: Period, grouping: Grouping) -> Sequence[Row]:
    """Return group, role, pods, cpu and devices of each group and role."""
    selected, parameters = _selected(
        period, "total", period.since_ns // HOUR_NS, period.until_ns // HOUR_NS
    )
    return await database.fetch(
        "SELECT name.text, role, sum(pods), sum(cpu), sum(devices) FROM total"  # noqa: S608 - names
        f" JOIN name ON name.id = total.{grouping.value} WHERE hour >= $1 AND hour < $2{selected}"
        " GROUP BY 1, 2 ORDER BY 1, 2",
        *parameters,
    )


def _groups(counts: Sequence[Row]) -> Sequence[GroupTotal]:
    """Return the groups with preemptions, those with the most victims first."""
    victims = {row[0]: row for row in counts if row[1] == Role.VICTIM}
    preemptors = {row[0]: row for row in counts if row[1] == Role.PREEMPTOR}
    groups = []
    for group in sorted({*victims, *preemptors}, key=str):
        _, _, pods, cpu, devices = victims.get(group, _NO_PODS)
        named = preemptors.get(group, _NO_PODS)[2]
        groups.append(
            GroupTotal(
                str(group),
                whole_number(pods),
                whole_number(named),
                whole_number(cpu),
                whole_number(devices),
            )
        )
    return sorted(groups, key=lambda each: (-each.victims, -each.preemptors, each.group))


_NO_PODS: Final[Row] = ("", 0, 0, 0, 0)


def _count_of(role: Role, counts: Sequence[Row]) -> int:
    return sum(whole_number(row[2]) for row in counts if row[1] == role)


async def _newest_since(database: Database, period: Period) -> int:
    """Return the time of the first of the newest preemptions of a period."""
    rows = await database.fetch(
        "SELECT id FROM decision WHERE id >= $1 AND id < $2 AND victims > 0 ORDER BY id DESC"
        " LIMIT 1 OFFSET $3",
        first_id(period.since_ns),
        first_id(period.until_ns),
        MOST_PREEMPTIONS - 1,
    )
    return time_of_id(whole_number(rows[0][0])) if rows else period.since_ns


async def _outcomes(database: Database, period: Period) -> Outcomes:
    selected, parameters = _selected(
        period, "decision", first_id(period.since_ns), first_id(period.until_ns)
    )
    rows = await database.fetch(
        "SELECT state, ended FROM decision"  # noqa: S608 - names
        f" WHERE id >= $1 AND id < $2 AND victims > 0{selected} ORDER BY id DESC"
        f" LIMIT {MOST_PREEMPTIONS}",
        *parameters,
    )
    states = [STATES[whole_number(row[0])] for row in rows]
    waits = [
        whole_number(row[1]) * _MICROSECOND_NS
        for row, state in zip(rows, states, strict=True)
        if state is State.BOUND
    ]
    return Outcomes(
        len(rows), len(waits), states.count(State.OPEN), median_low(waits) if waits else None
    )


def _selected(period: Period, table: str, since: int, until: int) -> tuple[str, list[int | str]]:
    """Return conditions on the pods of a table after those of time, and all parameters."""
    parameters: list[int | str] = [since, until]
    conditions = ""
    for column, name in (("namespace", period.namespace), ("class", period.priority_class)):
        if name:
            parameters.append(name)
            place = f"${len(parameters)}"
            number = f"(SELECT id FROM name WHERE text = {place})"  # noqa: S608 - a place
            conditions += f" AND {table}.{column} = {number}"
    return conditions, parameters
