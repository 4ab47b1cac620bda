"""Questions to a ledger: entries with their outcomes, by pod, time and name, and totals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from extender.ledger.entry import (
    LedgerEntry,
    LedgerRecord,
    LedgerShadow,
    Outcome,
    State,
    UnreadableEntryError,
    VictimOutcome,
    decode_body,
    first_id,
    format_id,
    time_of_id,
)
from extender.ledger.storage.database import LedgerError, Reader, Row, Value, whole_number
from extender.ledger.storage.schema import HOUR_NS, SHADOW, Role, pod_hash, require_ledger
from extender.ledger.storage.shadow_totals import SUMS, ShadowTotal, shadow_total
from extender.ledger.storage.store import STATES

NEWEST_ID: Final = 2**63 - 1
_OF_NAMESPACE: Final = (
    "(decision.namespace = $n OR EXISTS (SELECT 1 FROM victim WHERE victim.decision = decision.id"
    " AND victim.namespace = $n))"
)
_OF_CLASS: Final = _OF_NAMESPACE.replace("namespace", "class")
_NOTHING: Final = "false"
_DIFFERS: Final = (
    "EXISTS (SELECT 1 FROM shadow AS other WHERE other.decision = decision.id AND differs > 0)"
)
_DIFFERS_FROM: Final = _DIFFERS.replace("differs > 0", "differs > 0 AND policy = $n")
_ROWS_AT_ONCE: Final = 1000
"""A statement of PostgreSQL has at most 32,767 parameters."""
_COLUMNS: Final = "id, state, node, ended, body"


class Grouping(Enum):
    """By what pods are counted: a column of the totals."""

    NAMESPACE = "namespace"
    CLASS = "class"
    TEAM = "team"


class Kind(Enum):
    """Which entries are selected: all, those that name victims, or those with differences.

    These are the entries in which a shadow policy has chosen another node, or other victims.
    """

    ALL = "all"
    PREEMPTIONS = "preemptions"
    DIFFERENCES = "differences"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which entries are selected; times are nanoseconds since the epoch.

    ``namespace`` and ``priority_class`` are those of the preemptor or of a victim, "" for any. Only
    entries with an ID below ``before`` are selected. ``shadow`` is the policy of the differences,
    "" for any.
    """

    since_ns: int = 0
    until_ns: int | None = None
    namespace: str = ""
    priority_class: str = ""
    kind: Kind = Kind.ALL
    before: int = NEWEST_ID
    shadow: str = ""


class Total(NamedTuple):
    """The pods of a group in an hour since the epoch, with the work that was lost.

    ``cpu`` is in milliCPU by seconds, ``devices`` in units of extended resources by seconds.
    """

    hour: int
    role: Role
    group: str
    pods: int
    cpu: int
    devices: int


class Thrash(NamedTuple):
    """Two owners whose pods preempt each other, and how often each has preempted the other."""

    one: str
    other: str
    by_one: int
    by_other: int


class Ledger:
    """Reads the ledger of a database; every method raises LedgerError."""

    def __init__(self, database: Reader) -> None:
        self._database = database
        self._shadowed = False

    @property
    def location(self) -> str:
        """Where the ledger is."""
        return self._database.location

    async def require(self) -> None:
        """Raise LedgerError if there is no ledger of this version."""
        await require_ledger(self._database)

    async def close(self) -> None:
        """Close the database."""
        await self._database.close()

    async def records(self, selection: Selection, limit: int) -> Sequence[LedgerRecord]:
        """Return at most ``limit`` selected entries, the newest first."""
        conditions, parameters = await self._conditions(selection)
        parameters.append(limit)
        rows = await self._database.fetch(
            f"SELECT {_COLUMNS} FROM decision WHERE {conditions}"  # noqa: S608 - names
            f" ORDER BY id DESC LIMIT ${len(parameters)}",
            *parameters,
        )
        return await self._records(rows)

    async def shadow_totals(self, selection: Selection) -> Sequence[ShadowTotal]:
        """Return the shadow policies by name, with the selected decisions that they have made."""
        if not await self._has_shadows():
            return ()
        conditions, parameters = await self._conditions(selection)
        rows = await self._database.fetch(
            f"SELECT name.text, {SUMS} FROM shadow JOIN name ON name.id = shadow.policy"  # noqa: S608 - constants
            f" JOIN decision ON decision.id = shadow.decision WHERE {conditions}"
            " GROUP BY 1 ORDER BY 1",
            *parameters,
        )
        return [shadow_total(row) for row in rows]

    async def _conditions(self, selection: Selection) -> tuple[str, list[int]]:
        """Return the conditions of a selection, and their parameters."""
        until = selection.until_ns
        before = selection.before if until is None else min(selection.before, first_id(until))
        conditions = ["decision.id >= $1", "decision.id < $2"]
        parameters = [first_id(selection.since_ns), before]
        for condition, name in (
            (_OF_NAMESPACE, selection.namespace),
            (_OF_CLASS, selection.priority_class),
            (_DIFFERS_FROM, selection.shadow),
        ):
            if name:
                number = await self._number(name)
                if number is None:
                    return _NOTHING, []
                parameters.append(number)
                conditions.append(condition.replace("$n", f"${len(parameters)}"))
        if selection.kind is Kind.PREEMPTIONS:
            conditions.append("decision.victims > 0")
        if selection.kind is Kind.DIFFERENCES:
            conditions.append(_DIFFERS if await self._has_shadows() else _NOTHING)
        return " AND ".join(conditions), parameters

    async def records_after(self, number: int, before: int, limit: int) -> Sequence[LedgerRecord]:
        """Return at most ``limit`` entries with IDs between two others, the oldest first."""
        rows = await self._database.fetch(
            f"SELECT {_COLUMNS} FROM decision WHERE id > $1 AND id < $2 ORDER BY id LIMIT $3",  # noqa: S608 - a constant
            number,
            before,
            limit,
        )
        return await self._records(rows)

    async def record(self, number: int) -> LedgerRecord | None:
        """Return the entry with an ID, or None."""
        rows = await self._database.fetch(
            f"SELECT {_COLUMNS} FROM decision WHERE id = $1",  # noqa: S608 - a constant
            number,
        )
        found = await self._records(rows)
        return found[0] if found else None

    async def records_of_pod(self, key: str, limit: int) -> Sequence[LedgerRecord]:
        """Return the newest entries in which a pod is the preemptor or a victim, by its name."""
        rows = await self._database.fetch(
            f"SELECT {_COLUMNS} FROM decision WHERE id IN (SELECT id FROM decision WHERE pod = $1"  # noqa: S608 - a constant
            " UNION SELECT decision FROM victim WHERE pod = $1) ORDER BY id DESC LIMIT $2",
            pod_hash(key),
            limit,
        )
        return [
            each
            for each in await self._records(rows)
            if key in (each.entry.pod.key, *(victim.key for victim in each.entry.victims))
        ]

    async def open_records(self, since_ns: int, before: int, limit: int) -> Sequence[LedgerRecord]:
        """Return the newest entries since a time, with an ID below ``before``, to be followed.

        Their preemptor, or the replacement of a victim, is not bound.
        """
        rows = await self._database.fetch(
            f"SELECT {_COLUMNS} FROM decision"  # noqa: S608 - a constant
            " WHERE id >= $1 AND id < $2 AND victims > 0 AND state <> $3 AND (state = 0 OR EXISTS"
            " (SELECT 1 FROM victim WHERE victim.decision = decision.id AND victim.bound IS NULL))"
            " ORDER BY id DESC LIMIT $4",
            first_id(since_ns),
            before,
            STATES.index(State.UNKNOWN),
            limit,
        )
        return await self._records(rows)

    async def totals(
        self, since_ns: int, until_ns: int, grouping: Grouping, hours: int = 1
    ) -> Sequence[Total]:
        """Return preemptors and victims of each group by periods of so many hours, oldest first."""
        rows = await self._database.fetch(
            f"SELECT hour / $3 * $3, role, name.text, sum(pods), sum(cpu), sum(devices)"  # noqa: S608 - a name
            f" FROM total JOIN name ON name.id = total.{grouping.value}"
            f" WHERE hour >= $1 AND hour < $2 AND role <= {Role.VICTIM}"
            " GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
            since_ns // HOUR_NS,
            -(-until_ns // HOUR_NS),
            hours,
        )
        return [
            Total(
                whole_number(hour),
                Role(whole_number(role)),
                str(name),
                whole_number(pods),
                whole_number(cpu),
                whole_number(devices),
            )
            for hour, role, name, pods, cpu, devices in rows
        ]

    async def budgets(self, since_ns: int, until_ns: int) -> Mapping[str, int]:
        """Return how many decisions violated each budget, by its key, the most violated first."""
        rows = await self._database.fetch(
            "SELECT name.text, sum(decisions) FROM budget JOIN name ON name.id = budget.budget"
            " WHERE hour >= $1 AND hour < $2 GROUP BY 1 ORDER BY 2 DESC, 1",
            since_ns // HOUR_NS,
            -(-until_ns // HOUR_NS),
        )
        return {str(name): whole_number(count) for name, count in rows}

    async def bindings_by_node(self, since_ns: int, until_ns: int) -> Mapping[str, int]:
        """Return how many preemptors with victims were bound to each node, decided in a period."""
        rows = await self._database.fetch(
            "SELECT name.text, count(*) FROM decision JOIN name ON name.id = decision.node"
            " WHERE decision.id >= $1 AND decision.id < $2 AND victims > 0 GROUP BY 1",
            first_id(since_ns),
            first_id(until_ns),
        )
        return {str(name): whole_number(count) for name, count in rows}

    async def thrash(self, since_ns: int, limit: int, before: int = NEWEST_ID) -> Sequence[Thrash]:
        """Return the pairs of owners that preempted each other since a time, the worst first.

        Only entries with an ID below ``before`` count.
        """
        rows = await self._database.fetch(
            "WITH pair AS (SELECT d.owner AS one, v.owner AS other, count(*) AS times"
            " FROM decision d JOIN victim v ON v.decision = d.id WHERE d.id >= $1"
            " AND v.decision >= $1 AND d.id < $3 GROUP BY 1, 2)"
            " SELECT a.text, b.text, p.times, q.times FROM pair p"
            " JOIN pair q ON q.one = p.other AND q.other = p.one AND p.one < p.other"
            " JOIN name a ON a.id = p.one JOIN name b ON b.id = p.other"
            " ORDER BY p.times + q.times DESC, 1, 2 LIMIT $2",
            first_id(since_ns),
            limit,
            before,
        )
        return [
            Thrash(str(a), str(b), whole_number(one), whole_number(other))
            for a, b, one, other in rows
        ]

    async def blob(self, digest: bytes) -> bytes | None:
        """Return a part of a snapshot by its digest, or None."""
        rows = await self._database.fetch("SELECT body FROM blob WHERE digest = $1", digest)
        return rows[0][0] if rows and isinstance(rows[0][0], bytes) else None

    async def blobs(self, digests: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Return those of some parts of snapshots that the ledger has, by digest; at most 1,000."""
        places = ", ".join(f"${place}" for place in range(1, len(digests) + 1))
        query = f"SELECT digest, body FROM blob WHERE digest IN ({places})"  # noqa: S608 - numbers
        rows = await self._database.fetch(query, *digests)
        return {
            digest: body
            for digest, body in rows
            if isinstance(digest, bytes) and isinstance(body, bytes)
        }

    async def _number(self, name: str) -> int | None:
        rows = await self._database.fetch("SELECT id FROM name WHERE text = $1", name)
        return whole_number(rows[0][0]) if rows else None

    async def _records(self, rows: Sequence[Row]) -> Sequence[LedgerRecord]:
        found: list[LedgerRecord] = []
        for begin in range(0, len(rows), _ROWS_AT_ONCE):
            found += await self._some_records(rows[begin : begin + _ROWS_AT_ONCE])
        return found

    async def _some_records(self, rows: Sequence[Row]) -> Sequence[LedgerRecord]:
        ids = [whole_number(row[0]) for row in rows]
        places = ", ".join(f"${place}" for place in range(1, len(ids) + 1))
        victims: dict[int, list[Row]] = {}
        for row in await self._database.fetch(
            "SELECT decision, gone, replacement, name.text, bound FROM victim"  # noqa: S608 - numbers
            f" LEFT JOIN name ON name.id = victim.node WHERE decision IN ({places})"
            " ORDER BY decision, place",
            *ids,
        ):
            victims.setdefault(whole_number(row[0]), []).append(row)
        numbers = {whole_number(row[2]) for row in rows if row[2] is not None}
        names = await self._names(sorted(numbers))
        shadows = await self._shadows(ids, places) if await self._has_shadows() else {}
        return [
            self._record(row, victims.get(number, ()), names, shadows.get(number, ()))
            for number, row in zip(ids, rows, strict=True)
        ]

    async def _has_shadows(self) -> bool:
        """Return whether the ledger has the table of shadow policies."""
        self._shadowed = self._shadowed or SHADOW in await self._database.tables()
        return self._shadowed

    async def _shadows(
        self, ids: Sequence[int], places: str
    ) -> Mapping[int, Sequence[LedgerShadow]]:
        """Return the choices of shadow policies by decision, those of a decision by name."""
        found: dict[int, list[LedgerShadow]] = {}
        for number, policy, body in await self._database.fetch(
            "SELECT decision, name.text, body FROM shadow JOIN name ON name.id = shadow.policy"  # noqa: S608 - numbers
            f" WHERE decision IN ({places}) ORDER BY decision, name.text",
            *ids,
        ):
            decision = whole_number(number)
            shadow = LedgerShadow(str(policy), self._entry(decision, body))
            found.setdefault(decision, []).append(shadow)
        return found

    async def _names(self, numbers: Sequence[int]) -> Mapping[int, str]:
        if not numbers:
            return {}
        places = ", ".join(f"${place}" for place in range(1, len(numbers) + 1))
        query = f"SELECT id, text FROM name WHERE id IN ({places})"  # noqa: S608 - numbers
        return {
            whole_number(row[0]): str(row[1]) for row in await self._database.fetch(query, *numbers)
        }

    def _entry(self, number: int, body: Value) -> LedgerEntry:
        try:
            return decode_body(number, body if isinstance(body, bytes) else b"")
        except UnreadableEntryError as error:
            raise LedgerError(f"{self.location}: entry {format_id(number)}: {error}") from None

    def _record(
        self,
        row: Row,
        victims: Sequence[Row],
        names: Mapping[int, str],
        shadows: Sequence[LedgerShadow],
    ) -> LedgerRecord:
        number, state, node, ended, body = row
        entry = self._entry(whole_number(number), body)
        outcome = Outcome(
            STATES[whole_number(state)] if whole_number(state) < len(STATES) else State.UNKNOWN,
            "" if node is None else names.get(whole_number(node), ""),
            _time(entry.id, ended),
            tuple(_victims(entry.id, victims)),
        )
        return LedgerRecord(entry, outcome, tuple(shadows))


def _victims(number: int, rows: Sequence[Row]) -> Iterator[VictimOutcome]:
    for _, gone, replacement, node, bound in rows:
        names = str(replacement or ""), str(node or "")
        yield VictimOutcome(_time(number, gone), *names, _time(number, bound))


def _time(number: int, later: Value) -> int:
    """Return a time that is kept as microseconds after a decision, or 0 for none."""
    return 0 if later is None else time_of_id(number) + whole_number(later) * 1000
