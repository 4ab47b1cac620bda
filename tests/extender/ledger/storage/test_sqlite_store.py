"""The ledger of a SQLite file."""

from __future__ import annotations

from pathlib import Path

import pytest

from extender.ledger.storage.database import LedgerError, NoLedgerError
from extender.ledger.storage.location import open_database
from extender.ledger.storage.sqlite_database import Access
from tests.extender.ledger.storage.store_cases import StoreCases, database, ledger, store

__all__ = ["database", "ledger", "store"]


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.db")


class TestSqliteStore(StoreCases):
    """The tests of every database."""


async def test_a_file_to_be_read_is_not_made(location: str) -> None:
    for _ in range(2):
        with pytest.raises(NoLedgerError, match=r"ledger\.db: no such file$"):
            await open_database(location, Access.READ)


async def test_refuses_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database\n" * 100)
    with pytest.raises(LedgerError, match=r"notes\.txt: file is not a database$"):
        await open_database(str(path), Access.WRITE)
