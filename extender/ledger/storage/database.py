"""Where a ledger is kept: a SQLite file or a PostgreSQL database, behind one port.

Both have the same tables (:mod:`extender.ledger.storage.schema`) and get the same statements, whose
parameters are written ``$1``, ``$2``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from policies.kubernetes.input_error import InputError

Value = int | str | bytes | None
Row = Sequence[Value]


class Statement(NamedTuple):
    """A statement that is executed once for each row of parameters."""

    sql: str
    rows: Sequence[Row] = ((),)


class Dialect(NamedTuple):
    """What differs in the definitions of tables.

    ``row_id`` is a key that the database numbers, ``key`` one that is given, of eight bytes.
    """

    row_id: str
    key: str
    blob: str
    clustered: str


class LedgerError(InputError):
    """The database of a ledger cannot be used: where, and why."""


class NoLedgerError(LedgerError):
    """There is no ledger there, and none was to be made."""


class Reader(Protocol):
    """A database that is read; every method raises LedgerError if it fails."""

    @property
    def location(self) -> str:
        """Where it is, for messages: without a password."""
        ...

    async def tables(self) -> frozenset[str]:
        """Return the names of its tables."""
        ...

    async def fetch(self, sql: str, *parameters: Value) -> Sequence[Row]:
        """Return the rows of a query."""
        ...

    async def close(self) -> None:
        """Close it."""
        ...


class Database(Reader, Protocol):
    """A database; every method raises LedgerError if it fails."""

    @property
    def dialect(self) -> Dialect:
        """What is written differently in definitions of tables."""
        ...

    async def write(self, statements: Sequence[Statement]) -> None:
        """Execute statements in one transaction."""
        ...

    async def size(self) -> int:
        """Return the bytes that hold its rows; free space does not count."""
        ...


def whole_number(value: Value) -> int:
    """Return a number of a row; the sum of no rows is none. Raise LedgerError for another type."""
    if value is None or isinstance(value, int):
        return value or 0
    raise LedgerError(f"the ledger has {value!r} where a number belongs")
