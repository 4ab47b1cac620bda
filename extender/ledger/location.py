"""The location of a ledger: the path of a SQLite file, or the URL of a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from extender.config.component_config import is_postgresql
from extender.ledger.database import Database, LedgerError
from extender.ledger.sqlite_database import Access, open_sqlite


async def open_database(location: str, access: Access) -> Database:
    """Open the database at a location. Raise LedgerError."""
    if is_postgresql(location):
        try:
            from extender.ledger.postgresql_database import open_postgresql
        except ImportError as error:
            raise LedgerError(
                f"a ledger in PostgreSQL needs the package {error.name}; install it with:"
                " pip install 'reprieve[postgresql]'"
            ) from None
        return await open_postgresql(location)
    return await open_sqlite(Path(location), access)
