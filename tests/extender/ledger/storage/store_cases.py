"""What holds for the ledger of every database: its own tests inherit these.

A subclass has a fixture ``location``: that of an empty database.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from msgspec.structs import replace

from extender.ledger.entry import (
    LedgerEntry,
    LedgerRecord,
    LedgerShadow,
    Outcome,
    State,
    VictimOutcome,
)
from extender.ledger.statistics import GroupTotal, Outcomes, Period, read_statistics
from extender.ledger.storage.database import Database, LedgerError, NoLedgerError, Statement
from extender.ledger.storage.location import open_database
from extender.ledger.storage.queries import (
    NEWEST_ID,
    Grouping,
    Kind,
    Ledger,
    Selection,
    Thrash,
    Total,
)
from extender.ledger.storage.schema import Role
from extender.ledger.storage.sqlite_database import Access
from extender.ledger.storage.store import (
    Blob,
    ComparedShadow,
    LedgerBatch,
    LedgerStore,
    Limits,
)
from tests.builders.ledger_entries import DAY_NS, HOUR_NS, NOON_NS, ledger_entry, ledger_pod

NOON = NOON_NS // HOUR_NS
ALL = Selection()
WEB = ledger_pod("shop/web", priority_class="high", owner="ReplicaSet/web", team="front")
ETL = ledger_pod("data/etl", owner="Job/etl", team="data")
LINT = ledger_pod("ci/lint", owner="Job/lint", seconds=30)
UNLIMITED = Limits(10 * DAY_NS, 2**40)
WRITERS = 8


@pytest.fixture
async def database(location: str) -> AsyncIterator[Database]:
    """Return the database, with the tables of a ledger."""
    opened = await open_database(location, Access.WRITE)
    await LedgerStore(opened).prepare()
    yield opened
    await opened.close()


@pytest.fixture
def store(database: Database) -> LedgerStore:
    return LedgerStore(database)


@pytest.fixture
def ledger(database: Database) -> Ledger:
    return Ledger(database)


def minutes(number: int) -> int:
    return NOON_NS + number * 60 * 10**9


def plain(*entries: LedgerEntry) -> list[LedgerRecord]:
    """Return the records of entries whose outcome is open."""
    return [
        LedgerRecord(each, Outcome(victims=tuple(VictimOutcome() for _ in each.victims)))
        for each in entries
    ]


def shadowed(live: LedgerEntry, **shadows: LedgerEntry) -> list[ComparedShadow]:
    """Return what shadow policies would have chosen in place of an entry, by their names."""
    return [
        ComparedShadow(LedgerShadow(name, replace(each, id=live.id)), live)
        for name, each in shadows.items()
    ]


class StoreCases:
    """The tests."""

    async def test_reads_shadows_that_are_written_with_their_entry_or_later(
        self, store: LedgerStore, ledger: Ledger
    ) -> None:
        first, second, third = (ledger_entry(minutes(n), WEB, ETL) for n in range(3))
        other = ledger_entry(minutes(0), WEB, LINT, node="node-3")
        await store.write(LedgerBatch([first, second], shadows=shadowed(first, same=first)))
        await store.write(LedgerBatch([third], shadows=shadowed(second, fair=other, calm=second)))
        await store.write(LedgerBatch(shadows=shadowed(second, fair=other)))  # once more
        found = {each.entry.id: each.shadows for each in await ledger.records(ALL, 9)}
        assert found == {
            third.id: (),
            second.id: (
                LedgerShadow("calm", second),
                LedgerShadow("fair", replace(other, id=second.id)),
            ),
            first.id: (LedgerShadow("same", first),),
        }

    async def test_ledgers_without_shadows_are_read_and_get_their_table(
        self, store: LedgerStore, ledger: Ledger, database: Database
    ) -> None:
        entry = ledger_entry(minutes(0), WEB, ETL)
        await store.write(LedgerBatch([entry]))
        await database.write([Statement("DROP TABLE shadow")])
        await ledger.require()
        assert await ledger.records(ALL, 9) == plain(entry)
        await store.prepare()
        await store.write(LedgerBatch(shadows=shadowed(entry, calm=entry)))
        [found] = await ledger.records(ALL, 9)
        assert found.shadows == (LedgerShadow("calm", entry),)

    async def test_shadows_are_deleted_with_their_entries(
        self, store: LedgerStore, database: Database
    ) -> None:
        entries = [ledger_entry(minutes(60 * n), WEB, ETL) for n in range(2)]
        each_shadowed = [pair for entry in entries for pair in shadowed(entry, calm=entry)]
        await store.write(LedgerBatch(entries, shadows=each_shadowed))
        await store.prune(minutes(60) + HOUR_NS, Limits(HOUR_NS, 2**40), 10)
        assert await database.fetch("SELECT decision FROM shadow") == [(entries[1].id,)]

    async def test_reads_what_was_written(self, store: LedgerStore, ledger: Ledger) -> None:
        first = ledger_entry(minutes(0), WEB, ETL, LINT, budgets=("data/etl",))
        second = ledger_entry(minutes(1), ETL)
        await store.write(LedgerBatch([first, second]))
        assert await ledger.records(ALL, 9) == plain(second, first)
        assert await ledger.records(ALL, 1) == plain(second)
        assert [await ledger.record(first.id)] == plain(first)
        assert await ledger.record(first.id + 1) is None

    @pytest.mark.parametrize(
        ("selection", "found"),
        [
            (Selection(), [2, 1, 0]),
            (Selection(namespace="data"), [1, 0]),
            (Selection(priority_class="high"), [0]),
            (Selection(namespace="none"), []),
            (Selection(kind=Kind.PREEMPTIONS), [2, 0]),
            (Selection(since_ns=minutes(1)), [2, 1]),
            (Selection(until_ns=minutes(1)), [0]),
        ],
    )
    async def test_selects(
        self, store: LedgerStore, ledger: Ledger, selection: Selection, found: list[int]
    ) -> None:
        entries = [
            ledger_entry(minutes(0), WEB, ETL),
            ledger_entry(minutes(1), ETL),
            ledger_entry(minutes(2), ledger_pod("ci/test"), LINT),
        ]
        await store.write(LedgerBatch(entries))
        assert list(await ledger.records(selection, 9)) == plain(*(entries[each] for each in found))

    async def test_reads_from_first_to_last_in_pages(
        self, store: LedgerStore, ledger: Ledger
    ) -> None:
        entries = [ledger_entry(minutes(number), WEB, ETL) for number in range(5)]
        await store.write(LedgerBatch(entries))
        first = await ledger.records_after(0, entries[4].id, 3)
        rest = await ledger.records_after(first[-1].entry.id, entries[4].id, 3)
        assert (first, rest) == (plain(*entries[:3]), plain(entries[3]))

    async def test_finds_a_pod_as_preemptor_and_as_victim(
        self, store: LedgerStore, ledger: Ledger
    ) -> None:
        first, second = ledger_entry(minutes(0), WEB, ETL), ledger_entry(minutes(1), ETL, LINT)
        await store.write(LedgerBatch([first, second, ledger_entry(minutes(2), WEB, LINT)]))
        assert await ledger.records_of_pod("data/etl", 9) == plain(second, first)
        assert await ledger.records_of_pod("data/unknown", 9) == []

    async def test_writes_outcomes_later(self, store: LedgerStore, ledger: Ledger) -> None:
        entry = ledger_entry(minutes(0), WEB, ETL, LINT)
        followed = ledger_entry(minutes(1), WEB, ETL)
        await store.write(LedgerBatch([entry, followed]))
        etl = VictimOutcome(minutes(1), "etl-2", "node-9", minutes(2))
        lint = VictimOutcome(minutes(4), "lint-2")
        outcome = Outcome(State.BOUND, "node-1", minutes(3), (etl, lint))
        await store.write(LedgerBatch(outcomes={entry.id: outcome}))
        assert await ledger.record(entry.id) == LedgerRecord(entry, outcome)
        # The replacement of lint is followed until it is bound.
        assert await ledger.open_records(0, NEWEST_ID, 9) == [
            *plain(followed),
            LedgerRecord(entry, outcome),
        ]
        bound = replace(outcome, victims=(etl, replace(lint, node="node-9", bound_ns=minutes(5))))
        await store.write(LedgerBatch(outcomes={entry.id: bound}))
        assert await ledger.open_records(0, NEWEST_ID, 9) == plain(followed)

    async def test_counts_by_the_hour(self, store: LedgerStore, ledger: Ledger) -> None:
        await store.write(LedgerBatch([ledger_entry(minutes(0), WEB, ETL, budgets=("data/a",))]))
        later = ledger_entry(minutes(1), WEB, ETL, LINT, budgets=("data/a", "ci/b"))
        await store.write(LedgerBatch([later, ledger_entry(minutes(60), WEB, ETL)]))
        until = minutes(61)
        assert await ledger.totals(NOON_NS, until, Grouping.TEAM) == [
            Total(NOON, Role.PREEMPTOR, "front", 2, 0, 0),
            Total(NOON, Role.VICTIM, "", 1, 30_000, 60),
            Total(NOON, Role.VICTIM, "data", 2, 120_000, 240),
            Total(NOON + 1, Role.PREEMPTOR, "front", 1, 0, 0),
            Total(NOON + 1, Role.VICTIM, "data", 1, 60_000, 120),
        ]
        found = await ledger.totals(NOON_NS, until, Grouping.CLASS, 24)
        assert [(each.group, each.pods) for each in found] == [("high", 3), ("low", 4)]
        assert list((await ledger.budgets(NOON_NS, until)).items()) == [("data/a", 2), ("ci/b", 1)]

    async def test_counts_a_period(self, store: LedgerStore, database: Database) -> None:
        entries = [ledger_entry(minutes(n), WEB, ETL, budgets=("data/etl",)) for n in (0, 1)]
        bound = Outcome(State.BOUND, "node-1", minutes(2), (VictimOutcome(),))
        await store.write(LedgerBatch(entries))
        await store.write(LedgerBatch(outcomes={entries[0].id: bound}))
        period = Period(minutes(0), minutes(3), "data", "low")
        found = await read_statistics(database, period, Grouping.TEAM)
        assert found.groups == [GroupTotal("data", 2, 0, 2 * 60 * 1000, 2 * 60 * 2)]
        assert found.budgets == {"data/etl": 2}
        front = Period(minutes(0), minutes(3), "shop")
        found = await read_statistics(database, front, Grouping.CLASS)
        assert (found.decisions, found.fallbacks) == (2, 0)
        assert found.outcomes == Outcomes(2, bound=1, open=1, median_ns=120 * 10**9)

    async def test_finds_owners_that_preempt_each_other(
        self, store: LedgerStore, ledger: Ledger
    ) -> None:
        pairs = [(ETL, LINT), (LINT, ETL), (ETL, LINT), (WEB, ETL)]
        entries = [ledger_entry(minutes(n), one, other) for n, (one, other) in enumerate(pairs)]
        await store.write(LedgerBatch(entries))
        (found,) = await ledger.thrash(0, 9)
        assert Counter({found.one: found.by_one, found.other: found.by_other}) == Counter(
            {"data/Job/etl": 2, "ci/Job/lint": 1}
        )
        assert isinstance(found, Thrash)

    async def test_writes_a_batch_once(self, store: LedgerStore, ledger: Ledger) -> None:
        batch = LedgerBatch([ledger_entry(minutes(0), WEB, ETL, budgets=("data/a",))])
        more = ledger_entry(minutes(1), WEB, LINT)
        for again in (batch, batch, LedgerBatch([*batch.entries, more])):
            await store.write(again)
        assert await ledger.records(ALL, 9) == plain(more, *batch.entries)
        totals = await ledger.totals(NOON_NS, minutes(1), Grouping.NAMESPACE)
        assert [(each.group, each.pods) for each in totals] == [("shop", 2), ("ci", 1), ("data", 1)]
        assert await ledger.budgets(NOON_NS, minutes(1)) == {"data/a": 1}

    async def test_writes_nothing_of_a_batch_that_fails(
        self, store: LedgerStore, ledger: Ledger
    ) -> None:
        entry = ledger_entry(minutes(0), WEB, ETL)
        with pytest.raises(LedgerError):
            await store.write(LedgerBatch([entry, entry]))
        assert await ledger.records(ALL, 9) == []
        assert await ledger.totals(NOON_NS, minutes(1), Grouping.TEAM) == []

    async def test_keeps_blobs_of_hours_in_use(self, store: LedgerStore, ledger: Ledger) -> None:
        await store.write(LedgerBatch(blobs=[Blob(b"a", b"one"), Blob(b"b", b"two")], hour=NOON))
        await store.write(LedgerBatch(blobs=[Blob(b"b", b"two")], hour=NOON + 24))
        entries = [ledger_entry(minutes(0), WEB, ETL), ledger_entry(minutes(24 * 60), WEB, ETL)]
        await store.write(LedgerBatch(entries))
        await store.prune(minutes(25 * 60), Limits(DAY_NS, 2**40), 10)
        assert (await ledger.blob(b"a"), await ledger.blob(b"b")) == (None, b"two")

    @pytest.mark.parametrize(
        ("limits", "most", "kept"),
        [
            (UNLIMITED, 10, 6),
            (Limits(3 * 60 * 10**9, 2**40), 10, 3),
            (Limits(3 * 60 * 10**9, 2**40), 1, 5),
            (Limits(10 * DAY_NS, 1), 2, 4),
        ],
    )
    async def test_deletes_the_oldest(
        self, store: LedgerStore, ledger: Ledger, limits: Limits, most: int, kept: int
    ) -> None:
        entries = [ledger_entry(minutes(number), WEB, ETL) for number in range(6)]
        await store.write(LedgerBatch(entries))
        await store.prune(minutes(6), limits, most)
        assert await ledger.records(ALL, 9) == plain(*reversed(entries[6 - kept :]))

    async def test_measures_the_size_again_after_more_writes(
        self, store: LedgerStore, ledger: Ledger
    ) -> None:
        await store.write(LedgerBatch([ledger_entry(minutes(n), WEB, ETL) for n in range(4)]))
        await store.prune(minutes(9), UNLIMITED, 2)
        await store.prune(minutes(9), Limits(10 * DAY_NS, 1), 2)
        assert len(await ledger.records(ALL, 9)) == 4
        await store.write(LedgerBatch([ledger_entry(minutes(4), WEB, ETL)]))
        await store.prune(minutes(9), Limits(10 * DAY_NS, 1), 2)
        assert len(await ledger.records(ALL, 9)) == 3

    async def test_size_follows_the_rows(self, store: LedgerStore, database: Database) -> None:
        entries = [ledger_entry(minutes(number), WEB, ETL, LINT) for number in range(2000)]
        await store.write(LedgerBatch(entries))
        full = await database.size()
        bodies = await database.fetch("SELECT sum(length(body)) FROM decision")
        assert int(bodies[0][0] or 0) < full < 2**21
        for _ in range(3):
            await store.prune(minutes(2000), Limits(10 * DAY_NS, full // 2), 250)
        assert full // 3 < await database.size() < full * 4 // 5

    async def test_several_write_at_once(self, location: str, ledger: Ledger) -> None:
        async def run(writer: int) -> None:
            async with AsyncExitStack() as stack:
                opened = await open_database(location, Access.WRITE)
                stack.push_async_callback(opened.close)
                store = LedgerStore(opened)
                for number in range(5):
                    pods = [ledger_pod(f"ns-{each}/pod") for each in range(10)]
                    order = pods if writer % 2 else pods[::-1]
                    entry = ledger_entry(minutes(number), *order, writer=writer, budgets=("a/b",))
                    await store.write(LedgerBatch([entry], hour=NOON, blobs=[Blob(b"x", b"y")]))
                    await store.prune(minutes(number), UNLIMITED, 5)

        await asyncio.gather(*(run(writer) for writer in range(1, WRITERS + 1)))
        assert len(await ledger.records(ALL, 99)) == 5 * WRITERS
        totals = await ledger.totals(NOON_NS, minutes(59), Grouping.CLASS)
        assert [(each.role, each.pods) for each in totals] == [
            (Role.PREEMPTOR, 5 * WRITERS),
            (Role.VICTIM, 9 * 5 * WRITERS),
        ]
        assert await ledger.budgets(NOON_NS, minutes(59)) == {"a/b": 5 * WRITERS}

    async def test_several_make_the_tables_at_once(self, location: str) -> None:
        opened = [await open_database(location, Access.WRITE) for _ in range(WRITERS)]
        await asyncio.gather(*(LedgerStore(each).prepare() for each in opened))
        assert await opened[0].fetch("SELECT version FROM ledger_format") in ([(1,)], ((1,),))
        for each in opened:
            await each.close()

    async def test_an_empty_database_has_no_ledger(self, location: str) -> None:
        opened = await open_database(location, Access.WRITE)
        with pytest.raises(NoLedgerError, match=r"there is no ledger yet$"):
            await Ledger(opened).require()
        await opened.close()

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            ("CREATE TABLE customer (id BIGINT)", "not a ledger: it has other tables"),
            (
                "CREATE TABLE ledger_format AS SELECT 7 AS version",
                "a ledger of version 7; expected version 1",
            ),
        ],
    )
    async def test_refuses_other_tables(self, location: str, table: str, message: str) -> None:
        opened = await open_database(location, Access.WRITE)
        await opened.write([Statement(table)])
        with pytest.raises(LedgerError) as refused:
            await LedgerStore(opened).prepare()
        assert str(refused.value) == f"{opened.location}: {message}"
        await opened.close()

    async def test_reports_an_unreadable_entry(
        self, store: LedgerStore, ledger: Ledger, database: Database
    ) -> None:
        entry = ledger_entry(minutes(0), WEB, ETL)
        await store.write(LedgerBatch([entry]))
        await database.write([Statement("UPDATE decision SET body = $1", [(b"zzz",)])])
        with pytest.raises(LedgerError, match=f"entry {entry.id:016x}: the body of an entry"):
            await ledger.record(entry.id)
