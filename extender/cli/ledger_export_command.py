"""``reprieve ledger export``: the decisions of a ledger as Parquet files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from extender.cli.ledger_source import (
    LedgerOption,
    SinceOption,
    UntilOption,
    read_ledger,
)
from extender.kube.rest.clock import SystemClock
from extender.ledger.storage.database import Database, LedgerError
from extender.ledger.storage.queries import Ledger
from extender.ledger.time_bound import TimeBound

if TYPE_CHECKING:
    from extender.ledger.storage.parquet_export import Exported

EXPORT_EXAMPLE: Final = "ledger export --ledger ledger.db --out decisions"


def export_decisions(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where files are written.")],
    ledger: LedgerOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
) -> None:
    """Write decisions as Parquet files, by day.

    DIR/decisions and DIR/victims have a file for each day (UTC). Whole days are written: those of
    --since and --until too. The files of a day that was exported before are replaced.
    """
    try:
        from extender.ledger.storage.parquet_export import export_ledger
    except ImportError as error:
        raise LedgerError(
            f"Parquet files need the package {error.name}; install it with:"
            " pip install 'reprieve[parquet]'"
        ) from None
    now_ns = SystemClock().now_ns()
    since_ns = (since or TimeBound()).resolve(now_ns)
    until_ns = None if until is None else until.resolve(now_ns)

    async def export(database: Database) -> Exported:
        return await export_ledger(Ledger(database), out, since_ns, until_ns)

    found = read_ledger(ledger, export)
    sys.stdout.write(f"{out}: {found.decisions} decisions of {found.days} days\n")
