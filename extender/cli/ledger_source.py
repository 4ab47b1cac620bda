"""The ledger of a command: the option ``--ledger``, the environment, and periods of time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, TypeVar

import typer

from extender.ledger.database import Database
from extender.ledger.location import open_database
from extender.ledger.schema import require_ledger
from extender.ledger.sqlite_database import Access
from extender.terminal.output import show_progress
from policies.kubernetes.duration import parse_duration
from policies.kubernetes.input_error import InputError

T = TypeVar("T")

ENVIRONMENT: Final = "REPRIEVE_LEDGER"
_DAY_NS: Final = 24 * 3600 * 10**9
_MICROSECOND_NS: Final = 1000
_LONGEST_NS: Final = 100 * 366 * _DAY_NS

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


@dataclass(frozen=True, slots=True)
class TimeBound:
    """A time of an option: ``ago_ns`` before now, or ``at_ns`` since the epoch."""

    ago_ns: int | None = None
    at_ns: int = 0

    def resolve(self, now_ns: int) -> int:
        """Return the time in nanoseconds since the epoch."""
        return self.at_ns if self.ago_ns is None else max(0, now_ns - self.ago_ns)


def parse_time_bound(text: str) -> TimeBound:
    """Parse a time of the command line: 90m, 24h or 7d before now, or an RFC 3339 time."""
    ago_ns = _parse_ago(text)
    if ago_ns is not None:
        return TimeBound(ago_ns)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or found.year < 1970:
        raise typer.BadParameter(
            f"{text!r}; expected a time before now such as 24h or 7d, or 2026-01-02T15:04:05Z"
        )
    return TimeBound(at_ns=max(0, round(found.timestamp() * 10**6)) * _MICROSECOND_NS)


def _parse_ago(text: str) -> int | None:
    days, unit, _ = text.partition("d")
    if unit and text == f"{days}d" and days.isascii() and days.isdigit() and len(days) < 6:
        found = int(days) * _DAY_NS
    else:
        try:
            found = parse_duration(text)
        except ValueError:
            return None
    return found if 0 <= found <= _LONGEST_NS else None


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
