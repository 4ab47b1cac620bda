"""Locations of ledgers that cannot be opened: one line, and never the password."""

from __future__ import annotations

import socket
import sys

import pytest

from extender.ledger.storage.database import LedgerError
from extender.ledger.storage.location import LazyReader, open_database
from extender.ledger.storage.sqlite_database import Access


@pytest.mark.parametrize(
    "location",
    [
        "postgresql://me:se/cret@db.example/ledger",
        "postgresql://me:12/cret@db.example/ledger",
        "postgres://me:12?cret@db.example/ledger",
        "postgresql://me:12#cret@db.example/ledger",
        "postgresql://me:secret@db.example:port/ledger",
        "postgresql://me:secret@[db.example/ledger",
    ],
)
async def test_refuses_an_invalid_url(location: str) -> None:
    with pytest.raises(LedgerError) as refused:
        await open_database(location, Access.WRITE)
    assert str(refused.value) == (
        "the URL of the ledger is invalid; expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE,"
        " with special characters of the password as %XX"
    )


async def test_reports_a_server_that_is_away() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(LedgerError) as refused:
        await open_database(f"postgresql://me:secret@127.0.0.1:{port}/ledger", Access.WRITE)
    assert str(refused.value).startswith(f"postgresql://127.0.0.1:{port}/ledger: cannot connect: ")
    assert "secret" not in str(refused.value)


async def test_names_the_extra_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "extender.ledger.storage.postgresql_database", raising=False)
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(LedgerError) as refused:
        await open_database("postgresql://db.example/ledger", Access.WRITE)
    assert str(refused.value) == (
        "a ledger in PostgreSQL needs the package asyncpg; install it with:"
        " pip install 'reprieve[postgresql]'"
    )


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("/data/a@b/ledger.db", "/data/a@b/ledger.db"),
        ("postgresql://user:secret@db.example:5432/ledger", "postgresql://db.example:5432/ledger"),
        ("postgresql://db.example/ledger?password=secret", "postgresql://db.example/ledger"),
        ("postgresql://user:se/cret@db.example/ledger", "PostgreSQL"),
    ],
)
def test_a_reader_shows_its_location_without_a_password(location: str, shown: str) -> None:
    assert LazyReader(location).location == shown
