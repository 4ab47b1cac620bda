"""The database at the location of a ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from extender.config.ledger_location import is_postgresql, shown_location
from extender.ledger.storage.database import Database, LedgerError, Row, Value
from extender.ledger.storage.schema import require_ledger
from extender.ledger.storage.sqlite_database import Access, open_sqlite


async def open_database(location: str, access: Access) -> Database:
    """Open the database at a location. Raise LedgerError."""
    if is_postgresql(location):
        try:
            from extender.ledger.storage.postgresql_database import open_postgresql
        except ImportError as error:
            raise LedgerError(
                f"a ledger in PostgreSQL needs the package {error.name}; install it with:"
                " pip install 'reprieve[postgresql]'"
            ) from None
        return await open_postgresql(location)
    return await open_sqlite(Path(location), access)


class LazyReader:
    """The database at a location, opened when it is first read, and again while that fails.

    So a program starts before its ledger is there.
    """

    def __init__(self, location: str) -> None:
        self._location = location
        self._opening = asyncio.Lock()
        self._database: Database | None = None

    @property
    def location(self) -> str:
        """Where it is; of PostgreSQL without user and password."""
        return shown_location(self._location) or "PostgreSQL"

    async def tables(self) -> frozenset[str]:
        """Return the names of its tables. Raise LedgerError."""
        return await (await self._opened()).tables()

    async def fetch(self, sql: str, *parameters: Value) -> Sequence[Row]:
        """Return the rows of a query. Raise LedgerError."""
        return await (await self._opened()).fetch(sql, *parameters)

    async def close(self) -> None:
        """Close it, if it is open."""
        if self._database is not None:
            await self._database.close()

    async def _opened(self) -> Database:
        async with self._opening:
            if self._database is None:
                database = await open_database(self._location, Access.READ)
                try:
                    await require_ledger(database)
                except LedgerError:
                    await database.close()
                    raise
                self._database = database
            return self._database
