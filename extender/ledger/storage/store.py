"""Writes entries, outcomes and snapshots to a ledger, and keeps it within its limits."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from extender.ledger.choice_cost import choice_cost, differs, lost_work
from extender.ledger.entry import (
    LedgerEntry,
    LedgerPod,
    LedgerShadow,
    Outcome,
    State,
    VictimOutcome,
    encode_body,
    first_id,
    time_of_id,
)
from extender.ledger.storage.database import Database, Row, Statement, whole_number
from extender.ledger.storage.schema import HOUR_NS, Role, ensure_ledger, pod_hash

STATES: Final = tuple(State)
_MAX_NAMES: Final = 100_000
_NAMES_AT_ONCE: Final = 500

_INSERT_NAME: Final = "INSERT INTO name (text) VALUES ($1) ON CONFLICT (text) DO NOTHING"
_INSERT_DECISION: Final = (
    "INSERT INTO decision (id, verb, pod, namespace, class, team, owner, victims, violations,"
    " body, state, node, ended)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
)
_INSERT_VICTIM: Final = (
    "INSERT INTO victim (decision, place, pod, namespace, class, owner, gone, replacement, node,"
    " bound) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"
)
_ADD_TOTAL: Final = (
    "INSERT INTO total (hour, role, namespace, class, team, pods, cpu, devices)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (hour, role, namespace, class, team)"
    " DO UPDATE SET pods = total.pods + excluded.pods, cpu = total.cpu + excluded.cpu,"
    " devices = total.devices + excluded.devices"
)
_ADD_BUDGET: Final = (
    "INSERT INTO budget (hour, budget, decisions) VALUES ($1, $2, $3) ON CONFLICT (hour, budget)"
    " DO UPDATE SET decisions = budget.decisions + excluded.decisions"
)
_UPDATE_DECISION: Final = "UPDATE decision SET state = $2, node = $3, ended = $4 WHERE id = $1"
_UPDATE_VICTIM: Final = (
    "UPDATE victim SET gone = $3, replacement = $4, node = $5, bound = $6"
    " WHERE decision = $1 AND place = $2"
)
_INSERT_SHADOW: Final = (
    "INSERT INTO shadow (decision, policy, differs, live_refusals, live_victims, live_violations,"
    " live_cpu, live_devices, refusals, victims, violations, cpu, devices, body)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
    " ON CONFLICT (decision, policy) DO NOTHING"
)
_INSERT_BLOB: Final = (
    "INSERT INTO blob (digest, hour, body) VALUES ($1, $2, $3)"
    " ON CONFLICT (digest) DO UPDATE SET hour = excluded.hour"
)


class ComparedShadow(NamedTuple):
    """What a shadow policy would have chosen, and the entry of the decision."""

    shadow: LedgerShadow
    live: LedgerEntry


class Blob(NamedTuple):
    """A part of a snapshot by its digest."""

    digest: bytes
    body: bytes


@dataclass(frozen=True, slots=True)
class LedgerBatch:
    """What is written in one transaction.

    ``outcomes`` are by the ID of their entry. The entries and blobs are of the ``hour`` since the
    epoch. The entries of ``shadows`` are written with them, or before.
    """

    entries: Sequence[LedgerEntry] = ()
    outcomes: Mapping[int, Outcome] = field(default_factory=dict)
    shadows: Sequence[ComparedShadow] = ()
    blobs: Sequence[Blob] = ()
    hour: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """How old the entries of a ledger may be, in nanoseconds, and how many bytes it may have."""

    age_ns: int
    size: int


class LedgerStore:
    """Writes to the ledger of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._numbers: OrderedDict[str, int] = OrderedDict()
        self._unmeasured = 0
        """How many more entries may be written before the size is measured again."""

    async def prepare(self) -> None:
        """Make the tables if there are none. Raise LedgerError."""
        await ensure_ledger(self._database)

    async def write(self, batch: LedgerBatch) -> None:
        """Write a batch, all of it or nothing. Raise LedgerError.

        A batch may be written again after an error: entries that the ledger has are not written
        and not counted twice.
        """
        entries = await self._unwritten(batch.entries)
        await self._number(
            {name for entry in entries for name in _names(entry)}
            | {name for each in batch.outcomes.values() for name in _nodes(each)}
            | {each.shadow.policy for each in batch.shadows}
        )
        inserted = {entry.id for entry in entries}
        later = {key: each for key, each in batch.outcomes.items() if key not in inserted}
        statements = [*self._insertions(entries, batch.outcomes), *self._updates(later)]
        blobs = [(blob.digest, batch.hour, blob.body) for blob in batch.blobs]
        statements.append(Statement(_INSERT_BLOB, blobs))
        statements.append(Statement(_INSERT_SHADOW, [*map(self._shadow_row, batch.shadows)]))
        await self._database.write([each for each in statements if each.rows])
        self._unmeasured -= len(entries)

    async def prune(self, now_ns: int, limits: Limits, most: int) -> None:
        """Delete the oldest entries that exceed the limits, at most so many. Raise LedgerError.

        The totals by the hour are kept for as long as entries may be, whatever the size.
        """
        some = await self._database.fetch(
            "SELECT count(*) FROM (SELECT 1 FROM decision LIMIT $1) AS counted", 2 * most
        )
        rows = await self._database.fetch(
            "SELECT id FROM decision ORDER BY id LIMIT 1 OFFSET $1", (_number_in(some) or 0) // 2
        )
        next_id = _number_in(rows)
        first = first_id(now_ns - limits.age_ns)
        if next_id is not None:
            is_full = await self._is_larger(limits.size, most)
            first = next_id if is_full else min(first, next_id)
        oldest = _number_in(await self._database.fetch("SELECT min(id) FROM decision"))
        if oldest is None or oldest >= first:
            return
        hour = (now_ns - limits.age_ns) // HOUR_NS
        statements = [
            Statement("DELETE FROM decision WHERE id < $1", [(first,)]),
            Statement("DELETE FROM victim WHERE decision < $1", [(first,)]),
            Statement("DELETE FROM shadow WHERE decision < $1", [(first,)]),
            # Each hour, all blobs in use are written again: those of older hours are not needed.
            Statement("DELETE FROM blob WHERE hour < $1", [(time_of_id(first) // HOUR_NS,)]),
            Statement("DELETE FROM total WHERE hour < $1", [(hour,)]),
            Statement("DELETE FROM budget WHERE hour < $1", [(hour,)]),
        ]
        await self._database.write(statements)

    async def _is_larger(self, size: int, most: int) -> bool:
        """Return whether the ledger has more bytes than it may have.

        PostgreSQL counts rows for this, so a ledger that was small enough is measured again after
        half as many entries as are deleted at once.
        """
        if self._unmeasured > 0:
            return False
        is_larger = await self._database.size() > size
        self._unmeasured = 0 if is_larger else most // 2
        return is_larger

    async def _unwritten(self, entries: Sequence[LedgerEntry]) -> Sequence[LedgerEntry]:
        """Return the entries that the ledger does not have.

        The primary key is the guard: if one of them is committed after this query, by a connection
        that was lost, the transaction that writes it again fails as a whole.
        """
        if not entries:
            return ()
        numbers = [entry.id for entry in entries]
        query = "SELECT id FROM decision WHERE id >= $1 AND id <= $2"
        rows = await self._database.fetch(query, min(numbers), max(numbers))
        written = {number for (number,) in rows}
        return [entry for entry in entries if entry.id not in written]

    async def _number(self, names: Collection[str]) -> None:
        """Make sure that the numbers of some names are known."""
        missing = []
        for name in sorted(names):
            if name in self._numbers:
                self._numbers.move_to_end(name)
            else:
                missing.append(name)
        if not missing:
            return
        await self._database.write([Statement(_INSERT_NAME, [(name,) for name in missing])])
        for begin in range(0, len(missing), _NAMES_AT_ONCE):
            some = missing[begin : begin + _NAMES_AT_ONCE]
            places = ", ".join(f"${place}" for place in range(1, len(some) + 1))
            query = f"SELECT text, id FROM name WHERE text IN ({places})"  # noqa: S608 - numbers
            rows = await self._database.fetch(query, *some)
            self._numbers.update((str(text), whole_number(number)) for text, number in rows)
        while len(self._numbers) > max(_MAX_NAMES, len(names)):
            self._numbers.popitem(last=False)

    def _insertions(
        self, entries: Sequence[LedgerEntry], outcomes: Mapping[int, Outcome]
    ) -> Iterator[Statement]:
        numbers = self._numbers
        decisions: list[Row] = []
        victims: list[Row] = []
        for entry in entries:
            outcome = outcomes.get(entry.id, Outcome())
            decisions.append(
                (
                    entry.id,
                    numbers[entry.verb],
                    *self._columns(entry.pod),
                    numbers[entry.pod.team],
                    numbers[entry.pod.owner_key],
                    len(entry.victims),
                    0 if entry.chosen is None else entry.chosen.num_pdb_violations,
                    encode_body(entry),
                    *self._decision_columns(entry.id, outcome),
                )
            )
            for place, victim in enumerate(entry.victims):
                owner = numbers[victim.owner_key]
                found = outcome.victims[place] if outcome.victims else VictimOutcome()
                changes = self._victim_columns(entry.id, found)
                victims.append((entry.id, place, *self._columns(victim), owner, *changes))
        yield Statement(_INSERT_DECISION, decisions)
        yield Statement(_INSERT_VICTIM, victims)
        yield Statement(_ADD_TOTAL, list(self._totals(entries)))
        yield Statement(_ADD_BUDGET, list(self._budgets(entries)))

    def _shadow_row(self, each: ComparedShadow) -> Row:
        shadow, live = each.shadow.entry, each.live
        costs = (*choice_cost(live), *choice_cost(shadow))
        policy, differing = self._numbers[each.shadow.policy], 1 if differs(live, shadow) else 0
        return (live.id, policy, differing, *costs, encode_body(shadow))

    def _columns(self, pod: LedgerPod) -> tuple[int, int, int]:
        namespace, priority_class = self._numbers[pod.namespace], self._numbers[pod.priority_class]
        return pod_hash(pod.key), namespace, priority_class

    def _totals(self, entries: Iterable[LedgerEntry]) -> Iterator[Row]:
        """Count decisions, preemptors that have victims, and victims with the work that is lost."""
        counts: dict[tuple[int, ...], list[int]] = {}

        def add(entry: LedgerEntry, role: Role, pod: LedgerPod, cpu: int, devices: int) -> None:
            names = (pod.namespace, pod.priority_class, pod.team)
            key = (entry.at_ns // HOUR_NS, role, *(self._numbers[name] for name in names))
            total = counts.setdefault(key, [0, 0, 0])
            for place, amount in enumerate((1, cpu, devices)):
                total[place] += amount

        for entry in entries:
            add(entry, Role.DECISION, entry.pod, 0, 0)
            if entry.fallback:
                add(entry, Role.FALLBACK, entry.pod, 0, 0)
            if entry.victims:
                add(entry, Role.PREEMPTOR, entry.pod, 0, 0)
            for victim in entry.victims:
                add(entry, Role.VICTIM, victim, *lost_work(victim))
        yield from ((*key, *amounts) for key, amounts in sorted(counts.items()))

    def _budgets(self, entries: Iterable[LedgerEntry]) -> Iterator[Row]:
        counts: Counter[tuple[int, int]] = Counter()
        for entry in entries:
            if entry.chosen is not None:
                for budget in entry.chosen.violated_pdbs:
                    counts[entry.at_ns // HOUR_NS, self._numbers[budget]] += 1
        yield from ((*key, count) for key, count in sorted(counts.items()))

    def _updates(self, outcomes: Mapping[int, Outcome]) -> Iterator[Statement]:
        decisions: list[Row] = []
        victims: list[Row] = []
        for number, found in outcomes.items():
            decisions.append((number, *self._decision_columns(number, found)))
            for place, victim in enumerate(found.victims):
                victims.append((number, place, *self._victim_columns(number, victim)))
        yield Statement(_UPDATE_DECISION, decisions)
        yield Statement(_UPDATE_VICTIM, victims)

    def _decision_columns(self, number: int, found: Outcome) -> Row:
        """Return the columns of a decision that its outcome sets."""
        node = self._numbers[found.node] if found.node else None
        return STATES.index(found.state), node, since(number, found.ended_ns)

    def _victim_columns(self, number: int, victim: VictimOutcome) -> Row:
        """Return the columns of a victim that its outcome sets."""
        node = self._numbers[victim.node] if victim.node else None
        gone, bound = since(number, victim.gone_ns), since(number, victim.bound_ns)
        return gone, victim.replacement or None, node, bound


def _number_in(rows: Sequence[Row]) -> int | None:
    """Return the number that is the only result of a query."""
    found = rows[0][0] if rows else None
    return found if isinstance(found, int) else None


def since(number: int, at_ns: int) -> int | None:
    """Return the microseconds from a decision to a time, or None if the time is not known."""
    return (at_ns - time_of_id(number)) // 1000 if at_ns else None


def _names(entry: LedgerEntry) -> Iterator[str]:
    yield entry.verb
    for pod in (entry.pod, *entry.victims):
        yield from (pod.namespace, pod.priority_class, pod.team, pod.owner_key)
    if entry.chosen is not None:
        yield from entry.chosen.violated_pdbs


def _nodes(outcome: Outcome) -> Iterator[str]:
    yield from (each for each in (outcome.node, *(v.node for v in outcome.victims)) if each)
