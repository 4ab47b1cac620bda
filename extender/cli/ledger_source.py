"""The ledger of a command: the option ``--ledger``, the environment, and periods of time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Annotated, Final, TypeVar

import typer

from extender.ledger.storage.database import Database
from extender.ledger.storage.location import open_database
from extender.ledger.storage.schema import require_ledger
from extender.ledger.storage.sqlite_database import Access
from extender.ledger.time_bound import TIME_BOUND, TimeBound, read_time_bound
from extender.terminal.output import show_progress
from policies.kubernetes.input_error import InputError

T = TypeVar("T")

ENVIRONMENT: Final = "REPRIEVE_LEDGER"

LedgerOption = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="FILE|URL",
        help=f"The ledger: a file, or postgresql://…; default: ${ENVIRONMENT}.",
    ),
]


class NoLedgerOptionError(InputError):
    """A command was given no ledger."""


def parse_time_bound(text: str) -> TimeBound:
    """Parse a time of the command line."""
    found = read_time_bound(text)
    if found is None:
        raise typer.BadParameter(f"{text!r}; expected {TIME_BOUND}")
    return found


SinceOption = Annotated[
    TimeBound | None,
    typer.Option(
        "--since",
        metavar="24h|7d|RFC3339",
        parser=parse_time_bound,
        help="From this time on, or from so long before now on.",
    ),
]
UntilOption = Annotated[
    TimeBound | None,
    typer.Option(
        "--until",
        metavar="24h|7d|RFC3339",
        parser=parse_time_bound,
        help="Before this time; default: now.",
    ),
]


def read_ledger(location: str | None, read: Callable[[Database], Awaitable[T]]) -> T:
    """Return what ``read`` returns of the ledger at a location, by default of the environment.

    Raise NoLedgerOptionError and LedgerError.
    """
    found = location or os.environ.get(ENVIRONMENT)
    if not found:
        raise NoLedgerOptionError(
            f"no ledger; expected --ledger FILE, --ledger postgresql://…, or ${ENVIRONMENT}"
        )
    with show_progress("reading the ledger"):
        return asyncio.run(_read(found, read))


async def _read(location: str, read: Callable[[Database], Awaitable[T]]) -> T:
    database = await open_database(location, Access.READ)
    try:
        await require_ledger(database)
        return await read(database)
    finally:
        await database.close()
