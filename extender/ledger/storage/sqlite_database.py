"""A ledger in a SQLite file, in WAL mode: one process writes, others read meanwhile.

Calls are made in one thread of their own, so that no disk holds up the event loop.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import quote

from extender.ledger.storage.database import (
    Dialect,
    LedgerError,
    NoLedgerError,
    Row,
    Statement,
    Value,
    whole_number,
)

T = TypeVar("T")

_BUSY_SECONDS: Final = 5.0
_MOST_VALUES: Final = 900
"""Of one execution: SQLite before 3.32 allows 999."""
_VALUES: Final = re.compile(r"VALUES (\([^)]*\))")
_PARAMETER: Final = re.compile(r"\$\d+")
_DIALECT: Final = Dialect("INTEGER PRIMARY KEY", "INTEGER PRIMARY KEY", "BLOB", " WITHOUT ROWID")


class Access(Enum):
    """How a file is opened: read only, or also to be written, and made if it does not exist."""

    READ = "ro"
    WRITE = "rwc"


class SqliteDatabase:
    """A SQLite file that is open."""

    def __init__(
        self, path: Path, connection: sqlite3.Connection, thread: ThreadPoolExecutor
    ) -> None:
        self._path = path
        self._connection = connection
        self._thread = thread

    @property
    def location(self) -> str:
        """The path of the file."""
        return str(self._path)

    @property
    def dialect(self) -> Dialect:
        """That of SQLite."""
        return _DIALECT

    async def tables(self) -> frozenset[str]:
        """Return the names of its tables. Raise LedgerError."""
        rows = await self.fetch("SELECT name FROM sqlite_master WHERE type = 'table'")
        return frozenset(str(name) for (name,) in rows)

    async def fetch(self, sql: str, *parameters: Value) -> Sequence[Row]:
        """Return the rows of a query. Raise LedgerError."""
        named = _named(parameters)
        return await self._run(lambda: self._connection.execute(sql, named).fetchall())

    async def write(self, statements: Sequence[Statement]) -> None:
        """Execute statements in one transaction. Raise LedgerError."""

        def execute() -> None:
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                for statement in statements:
                    for sql, parameters in _together(statement):
                        self._connection.executemany(sql, parameters)

        await self._run(execute)

    async def size(self) -> int:
        """Return the bytes of the pages in use. Raise LedgerError."""

        def count() -> int:
            def pragma(name: str) -> int:
                return whole_number(self._connection.execute(f"PRAGMA {name}").fetchone()[0])

            return (pragma("page_count") - pragma("freelist_count")) * pragma("page_size")

        return await self._run(count)

    async def close(self) -> None:
        """Close the file."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)
        self._thread.shutdown()

    async def _run(self, call: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, call)
        except sqlite3.Error as error:
            raise LedgerError(f"{self._path}: {error}") from None


async def open_sqlite(path: Path, access: Access) -> SqliteDatabase:
    """Open a file. Raise LedgerError, and NoLedgerError if it is to be read and does not exist."""
    thread = ThreadPoolExecutor(1, "ledger")

    def connect() -> sqlite3.Connection:
        if access is Access.READ and not path.exists():
            raise NoLedgerError(f"{path}: no such file")
        if path.is_dir():
            raise LedgerError(f"{path}: a directory; expected a file")
        connection = sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?mode={access.value}",
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
            uri=True,
        )
        try:
            tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
            if access is Access.WRITE and (not tables or ("ledger_format",) in tables):
                # An interrupted transaction leaves the file intact; NORMAL may lose the last ones
                # of a machine that loses its power, not of a process that ends. A database that is
                # no ledger is not changed.
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    try:
        connection = await asyncio.get_running_loop().run_in_executor(thread, connect)
    except (sqlite3.Error, LedgerError) as error:
        thread.shutdown()
        raise error if isinstance(error, LedgerError) else LedgerError(f"{path}: {error}") from None
    return SqliteDatabase(path, connection, thread)


def _together(statement: Statement) -> Iterator[tuple[str, Iterable[Mapping[str, Value]]]]:
    """Yield the statement and its parameters such that one execution inserts many rows.

    The thread waits for the interpreter after each execution, for as long as the event loop has
    work: hundreds of them take longer than a busy process needs to add as many entries.
    """
    rows, values = statement.rows, _VALUES.search(statement.sql)
    if values is None or not rows or not rows[0]:
        yield statement.sql, map(_named, rows)
        return
    size = _MOST_VALUES // len(rows[0])
    for begin in range(0, len(rows), size):
        some = rows[begin : begin + size]
        named = {
            f"{column}_{number}": value
            for number, row in enumerate(some)
            for column, value in _named(row).items()
        }
        yield _repeated(statement.sql, values.span(1), len(some)), [named]


@lru_cache(maxsize=256)
def _repeated(sql: str, values: tuple[int, int], times: int) -> str:
    """Return an INSERT with its values so many times, each with the number in its parameters."""
    start, stop = values
    rows = (_PARAMETER.sub(rf"\g<0>_{number}", sql[start:stop]) for number in range(times))
    return sql[:start] + ", ".join(rows) + sql[stop:]


def _named(parameters: Sequence[Value]) -> dict[str, Value]:
    """Return parameters by name: to SQLite, ``$1`` is one named 1, not the first one."""
    return {str(number): value for number, value in enumerate(parameters, 1)}
