"""The ledger of a PostgreSQL database, on a real server that is also stopped and started again."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from extender.ledger.storage.database import LedgerError
from extender.ledger.storage.location import open_database
from extender.ledger.storage.queries import Grouping, Ledger, Selection
from extender.ledger.storage.sqlite_database import Access
from extender.ledger.storage.store import LedgerBatch, LedgerStore
from tests.builders.ledger_entries import NOON_NS, ledger_entry
from tests.e2e.postgresql.server import PASSWORD, PostgresqlServer, postgresql_server
from tests.extender.ledger.storage.store_cases import (
    ALL,
    ETL,
    WEB,
    StoreCases,
    database,
    ledger,
    minutes,
    store,
)

__all__ = ["database", "ledger", "store"]

PODS = (WEB, ETL)
BATCHES = 30


class TestPostgresqlStore(StoreCases):
    """The tests of every database."""


async def test_reads_more_than_the_parameters_of_a_statement(
    store: LedgerStore, ledger: Ledger
) -> None:
    entries = [ledger_entry(minutes(number), WEB, ETL) for number in range(40_000)]
    for begin in range(0, len(entries), 10_000):
        await store.write(LedgerBatch(entries[begin : begin + 10_000]))
    found = await ledger.records(Selection(), len(entries))
    assert [each.entry.id for each in reversed(found)] == [e.id for e in entries]


async def test_the_password_may_be_in_the_environment(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = urlsplit(location)
    without = f"{parts.scheme}://{parts.username}@{parts.hostname}:{parts.port}{parts.path}"
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    opened = await open_database(without, Access.WRITE)
    assert await opened.tables() == frozenset()
    await opened.close()
    monkeypatch.setenv("PGPASSWORD", "wrong")
    with pytest.raises(LedgerError, match="password authentication failed"):
        await open_database(without, Access.WRITE)


@pytest.fixture
def own_server() -> Iterator[PostgresqlServer]:
    """Return a server that a test may stop, without harm to others."""
    with postgresql_server() as running:
        yield running


async def test_writes_once_while_the_server_is_stopped_and_started(
    own_server: PostgresqlServer,
) -> None:
    opened = await open_database(await own_server.make_database("ledger"), Access.WRITE)
    store, ledger = LedgerStore(opened), Ledger(opened)
    await store.prepare()
    running = asyncio.Event()
    running.set()
    written: asyncio.Queue[LedgerBatch] = asyncio.Queue()
    failures: list[str] = []

    async def write(writer: int) -> None:
        for number in range(BATCHES):
            entries = [ledger_entry(minutes(number), *PODS, writer=writer + n) for n in range(50)]
            while True:
                await running.wait()
                try:
                    await store.write(LedgerBatch(entries))
                except LedgerError as error:
                    failures.append(str(error))
                else:
                    written.put_nowait(LedgerBatch(entries))
                    break

    writers = [asyncio.create_task(write(100 * writer)) for writer in range(3)]
    for _ in range(3):
        for _ in range(10):
            await written.get()
        await asyncio.to_thread(own_server.stop)
        with pytest.raises(LedgerError, match=f"127.0.0.1:{own_server.port}/ledger: "):
            await ledger.records(ALL, 1)
        running.clear()
        await asyncio.to_thread(own_server.start)
        running.set()
    await asyncio.gather(*writers)
    assert len(await ledger.records(ALL, 10**6)) == 3 * BATCHES * 50
    totals = await ledger.totals(NOON_NS, minutes(BATCHES), Grouping.CLASS, 10**6)
    assert [each.pods for each in totals] == [3 * BATCHES * 50] * 2
    assert failures
    assert not [each for each in failures if PASSWORD in each or "\n" in each]
    await opened.close()


async def test_writes_once_what_was_committed_without_an_answer(
    server: PostgresqlServer, location: str
) -> None:
    async with unconfirmed_commit(server.port) as (port, losing):
        opened = await open_database(
            location.replace(f":{server.port}/", f":{port}/"), Access.WRITE
        )
        store, ledger = LedgerStore(opened), Ledger(opened)
        await store.prepare()
        first, second = ledger_entry(minutes(0), *PODS), ledger_entry(minutes(1), *PODS)
        await store.write(LedgerBatch([first]))
        losing.set()
        with pytest.raises(LedgerError):
            await store.write(LedgerBatch([second]))
        assert not losing.is_set()
        assert [each.entry for each in await ledger.records(ALL, 9)] == [second, first]
        await store.write(LedgerBatch([second]))
        assert [each.entry for each in await ledger.records(ALL, 9)] == [second, first]
        totals = await ledger.totals(NOON_NS, minutes(2), Grouping.CLASS)
        assert [each.pods for each in totals] == [2, 2]
        await opened.close()


@asynccontextmanager
async def unconfirmed_commit(port: int) -> AsyncIterator[tuple[int, asyncio.Event]]:
    """Forward connections to a port, and close one when it is answered that it has committed.

    That happens once after each time that the event is set.
    """
    losing = asyncio.Event()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", port)

        async def answer() -> None:
            while data := await server_reader.read(2**16):
                if losing.is_set() and b"COMMIT\0" in data:
                    losing.clear()
                    break
                writer.write(data)
            writer.close()

        answering = asyncio.create_task(answer())
        while data := await reader.read(2**16):
            server_writer.write(data)
        server_writer.close()
        await answering

    async with await asyncio.start_server(forward, "127.0.0.1", 0) as proxy:
        yield proxy.sockets[0].getsockname()[1], losing


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("p%40ss%2Fword", "wrong"), 'password authentication failed for user "postgres"'),
        (("/ledger_", "/none_"), "does not exist"),
    ],
)
async def test_reports_a_database_that_cannot_be_opened(
    location: str, change: tuple[str, str], message: str
) -> None:
    changed = location.replace(*change)
    with pytest.raises(LedgerError, match=message) as refused:
        await open_database(changed, Access.WRITE)
    parts = urlsplit(changed)
    assert str(refused.value).startswith(f"postgresql://127.0.0.1:{parts.port}{parts.path}: ")


async def test_reports_a_server_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(LedgerError) as refused:
            await open_database(f"postgresql://me:secret@127.0.0.1:{port}/ledger", Access.READ)
    assert str(refused.value) == (
        f"postgresql://127.0.0.1:{port}/ledger: the server did not answer in time"
    )
