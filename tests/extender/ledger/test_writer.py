"""Batches of entries: written once whatever the database does, in order, and never awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from extender.ledger.entry import LedgerEntry, LedgerRecord, State
from extender.ledger.outcomes import OutcomeTracker
from extender.ledger.storage.database import Database, Dialect, LedgerError, Row, Statement, Value
from extender.ledger.storage.queries import Ledger, Selection
from extender.ledger.storage.sqlite_database import Access, open_sqlite
from extender.ledger.storage.store import Limits
from extender.ledger.writer import LedgerWriter
from tests.builders import SECOND, pod
from tests.extender.conftest import HandClock
from tests.extender.ledger.ledgers import entry, named_pod
from tests.extender.secure_serving.raw_clients import wait_until

AMPLE = Limits(100 * 24 * 3600 * SECOND, 2**30)
VICTIM = named_pod("web-1", owner="ReplicaSet/web")


@dataclass
class FlakyDatabase:
    """A database whose writes fail with ``problem`` or ``defect``, and wait for ``gate``.

    ``largest`` is the number of rows of its largest statement.
    """

    inner: Database
    problem: str = ""
    defect: Exception | None = None
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    largest: int = 0

    @property
    def location(self) -> str:
        return self.inner.location

    @property
    def dialect(self) -> Dialect:
        return self.inner.dialect

    async def tables(self) -> frozenset[str]:
        return await self.inner.tables()

    async def fetch(self, sql: str, *parameters: Value) -> Sequence[Row]:
        return await self.inner.fetch(sql, *parameters)

    async def write(self, statements: Sequence[Statement]) -> None:
        self.largest = max(self.largest, *(len(each.rows) for each in statements))
        await self.gate.wait()
        if self.problem:
            raise LedgerError(f"ledger.db: {self.problem}")
        if self.defect is not None:
            raise self.defect
        await self.inner.write(statements)

    async def size(self) -> int:
        return await self.inner.size()

    async def close(self) -> None:
        await self.inner.close()


class Writing:
    """A writer to a file, whose database may be flaky."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = HandClock()
        self.clock.seconds = 1.0
        self.tracker = OutcomeTracker(self.clock.now_ns)
        self.pages = 0
        self.opening_problem = ""
        self.database: FlakyDatabase | None = None
        self.writer = self.started()

    def started(self) -> LedgerWriter:
        """Return a writer that has written nothing yet."""
        return LedgerWriter(self._open, self.tracker, AMPLE, self.clock, {})

    async def _open(self) -> Database:
        if self.opening_problem:
            raise LedgerError(f"ledger.db: {self.opening_problem}")
        database = await open_sqlite(self.path, Access.WRITE)
        if self.pages:
            await database.fetch(f"PRAGMA max_page_count = {self.pages}")
        self.database = FlakyDatabase(database)
        self.database.gate.set()
        return self.database

    @property
    def flaky(self) -> FlakyDatabase:
        """The database; it is open after the first batch."""
        assert self.database is not None
        return self.database

    def add(self, *entries: LedgerEntry) -> None:
        for each in entries:
            self.writer.add(each)

    async def records(self) -> Sequence[LedgerRecord]:
        """Return what is in the file, the earliest first."""
        ledger = Ledger(await open_sqlite(self.path, Access.READ))
        try:
            return list(reversed(await ledger.records(Selection(), 20_000)))
        finally:
            await ledger.close()

    async def entries(self) -> Sequence[LedgerEntry]:
        return [each.entry for each in await self.records()]


@pytest.fixture
def writing(tmp_path: Path) -> Writing:
    return Writing(tmp_path / "ledger.db")


def some(count: int, first: int = 0) -> list[LedgerEntry]:
    """Build entries without victims, a millisecond apart."""
    return [entry(f"vip-{n}", at=1 + n / 1000) for n in range(first, first + count)]


async def test_entries_are_written_in_batches(writing: Writing) -> None:
    """No batch is so large that answers would wait while it is encoded."""
    entries = some(4500)
    writing.add(*entries)
    assert await writing.writer.flush()
    assert writing.writer.waiting == 0
    assert await writing.entries() == entries
    assert writing.writer.counts.written == 4500
    assert writing.flaky.largest <= 200  # an entry has two names of its own
    await writing.writer.close()


async def test_an_outcome_is_written_after_its_entry(writing: Writing) -> None:
    """Also if the entry is not in the first batch."""
    decision = entry("vip", VICTIM, at=9)
    writing.add(*some(2000), decision)
    writing.tracker.observe(None, pod("vip", on="node-1"))
    assert await writing.writer.flush()
    record = (await writing.records())[-1]
    assert (record.entry, record.outcome.state) == (decision, State.BOUND)
    await writing.writer.close()


async def test_entries_wait_while_the_database_fails(writing: Writing) -> None:
    first, decision = some(1), entry("vip", VICTIM, at=2)
    with capture_logs() as lines:
        writing.add(*first)
        assert await writing.writer.flush()
        writing.flaky.problem = "disk I/O error"
        writing.add(decision)
        for _ in range(3):
            assert not await writing.writer.flush()
        writing.tracker.observe(None, pod("vip", on="node-1"))
        assert not await writing.writer.flush()
        assert writing.writer.warning() == "ledger: ledger.db: disk I/O error; 1 entries wait"
        assert await writing.entries() == first
        writing.flaky.problem = ""
        assert await writing.writer.flush()
    assert writing.writer.warning() == ""
    assert [line["event"] for line in lines] == ["ledger_not_written", "ledger_written_again"]
    assert writing.writer.counts.failures == 4
    [_, record] = await writing.records()
    assert (record.entry, record.outcome.state) == (decision, State.BOUND)
    await writing.writer.close()


async def test_a_database_that_cannot_be_opened_is_opened_later(writing: Writing) -> None:
    writing.opening_problem = "unable to open database file"
    entries = some(3)
    with capture_logs():
        writing.add(*entries)
        assert not await writing.writer.flush()
        writing.opening_problem = ""
        assert await writing.writer.flush()
    assert await writing.entries() == entries
    await writing.writer.close()


async def test_what_exceeds_the_limit_is_dropped_and_counted(writing: Writing) -> None:
    writing.opening_problem = "unable to open database file"
    entries = some(10_100)
    with capture_logs():
        writing.add(*entries)
        assert not await writing.writer.flush()
        expected = "ledger: ledger.db: unable to open database file; 10000 entries wait"
        assert writing.writer.warning() == f"{expected}, 100 were dropped"
        assert (writing.writer.waiting, writing.writer.counts.dropped) == (10_000, 100)
        writing.opening_problem = ""
        assert await writing.writer.flush()
    assert await writing.entries() == entries[:10_000]
    await writing.writer.close()


async def test_a_full_disk_loses_nothing(writing: Writing) -> None:
    """The file has a limit of pages; a real disk reports the same error."""
    writing.pages = 60
    entries = some(4000)
    with capture_logs():
        writing.add(*entries)
        assert not await writing.writer.flush()
        assert "database or disk is full" in writing.writer.warning()
        await writing.flaky.fetch("PRAGMA max_page_count = 100000")
        assert await writing.writer.flush()
    assert await writing.entries() == entries
    await writing.writer.close()


async def test_closing_writes_what_waits(writing: Writing) -> None:
    entries = some(3)
    writing.add(*entries)
    await writing.writer.close()
    assert await writing.entries() == entries


async def test_closing_waits_for_a_batch_in_progress(writing: Writing) -> None:
    first, second = some(1), some(2, 1)
    writing.add(*first)
    assert await writing.writer.flush()
    writing.flaky.gate.clear()
    writing.add(second[0])
    flushing = asyncio.create_task(writing.writer.flush())
    await asyncio.sleep(0)
    closing = asyncio.create_task(writing.writer.close())
    writing.add(second[1])
    writing.flaky.gate.set()
    await asyncio.gather(flushing, closing)
    assert await writing.entries() == [*first, *second]


async def test_a_closed_writer_writes_nothing_more(writing: Writing) -> None:
    earlier = [entry(f"vip-{n}", named_pod(f"web-{n}"), at=1 + n / 1000) for n in range(250)]
    writing.add(*earlier)
    await writing.writer.close()
    writing.clock.seconds = 9.0
    writing.writer = writing.started()  # it has more to resume than it does before it is closed
    await writing.writer.close()
    writing.add(*some(1, 9000))
    await writing.writer.flush()
    assert await writing.entries() == earlier


async def test_a_new_process_follows_what_the_former_did(writing: Writing) -> None:
    """Also the replacement of a victim whose preemptor is bound."""
    decision = entry("vip", VICTIM)
    writing.add(decision)
    writing.tracker.observe(None, pod("vip", on="node-1"))
    await writing.writer.close()
    writing.clock.seconds = 2.0
    tracker = writing.tracker = OutcomeTracker(writing.clock.now_ns)
    writing.writer = writing.started()
    assert await writing.writer.flush()
    assert len(tracker) == 1
    await writing.writer.close()  # writes what was found
    [record] = await writing.records()
    assert record.outcome.state is State.BOUND
    assert record.outcome.victims[0].gone_ns == 2 * SECOND


async def test_what_waits_is_written_before_earlier_decisions_are_followed(
    writing: Writing,
) -> None:
    """They are followed a few at a time."""
    earlier = [entry(f"vip-{n}", named_pod(f"web-{n}"), at=1 + n / 1000) for n in range(250)]
    writing.add(*earlier)
    await writing.writer.close()
    writing.clock.seconds = 9.0
    tracker = writing.tracker = OutcomeTracker(writing.clock.now_ns)
    writing.writer = writing.started()
    followed = []
    for _ in range(4):
        assert await writing.writer.flush()
        followed.append(len(tracker))
    assert followed == [100, 200, 250, 250]
    await writing.writer.close()


async def test_an_entry_that_cannot_be_read_does_not_hold_up_others(writing: Writing) -> None:
    damaged, later = entry("vip", VICTIM), some(1, 5000)
    writing.add(damaged)
    await writing.writer.close()
    writing.clock.seconds = 9.0
    writing.writer = writing.started()
    with capture_logs():
        assert await writing.writer.flush()
        await writing.flaky.inner.write([Statement("UPDATE decision SET body = x'00'")])
        await writing.writer.close()
        writing.writer = writing.started()
        assert not await writing.writer.flush()
        assert "the body of an entry is cut short" in writing.writer.warning()
        writing.add(*later)
        assert await writing.writer.flush()
    assert writing.writer.counts.written == 1
    await writing.writer.close()


async def test_work_of_any_size_is_counted(writing: Writing) -> None:
    """Requests and run times are those of the API: their product may exceed 64 bits."""
    vast = named_pod("vast", requests={"cpu": 2**63 - 1, "example.com/a": 2**62}, run_seconds=10**9)
    entries = [entry("vip", vast), entry("vip", vast, at=2)]
    writing.add(*entries)
    assert await writing.writer.flush()
    assert await writing.entries() == entries
    await writing.writer.close()


async def test_a_defect_of_the_ledger_ends_nothing(writing: Writing) -> None:
    entries = some(2)
    with capture_logs() as lines:
        assert await writing.writer.flush()
        writing.flaky.defect = OverflowError("too large")
        writing.add(*entries)
        assert not await writing.writer.flush()
        warning = "ledger: not written: OverflowError: too large; 2 entries wait"
        assert writing.writer.warning() == warning
        writing.flaky.defect = None
        assert await writing.writer.flush()
    assert [line["event"] for line in lines] == ["ledger_not_written", "ledger_written_again"]
    await writing.writer.close()
    assert await writing.entries() == entries


async def test_the_ledger_is_written_in_the_background(writing: Writing) -> None:
    entries = some(5)
    task = asyncio.create_task(writing.writer.run())
    writing.add(*entries)
    await wait_until(lambda: writing.writer.counts.written == len(entries))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await writing.writer.close()
    assert await writing.entries() == entries
