"""``reprieve ledger list``, ``show`` and ``stats``: the decisions of a ledger."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
import typer
from rich.console import Group, RenderableType

from extender.cli.account_tables import decision_table
from extender.cli.field_rows import field_rows
from extender.cli.ledger_source import (
    LedgerOption,
    SinceOption,
    UntilOption,
    read_ledger,
)
from extender.cli.ledger_tables import (
    list_rows,
    list_table,
    statistics_document,
    statistics_rows,
    statistics_table,
)
from extender.kube.rest.clock import SystemClock
from extender.ledger.decision_rows import list_document
from extender.ledger.entry import LedgerRecord, parse_id
from extender.ledger.statistics import Period, Statistics, read_statistics
from extender.ledger.storage.database import Database
from extender.ledger.storage.queries import Grouping, Kind, Ledger, Selection
from extender.ledger.time_bound import TimeBound
from extender.ledger.why import decision_account
from extender.terminal.command_line import OutputOption
from extender.terminal.output import Answer, OutputFormat, TableRows, print_answer
from extender.terminal.plain_tables import rows_table
from extender.terminal.program import log_line
from policies.kubernetes.input_error import InputError

LIST_EXAMPLE: Final = "ledger list --since 24h --ledger ledger.db"
SHOW_EXAMPLE: Final = "ledger show 184c6b1a2b3c4d07 --ledger ledger.db"
STATS_EXAMPLE: Final = "ledger stats --since 7d --by team --ledger ledger.db"
_DAY: Final = TimeBound(24 * 3600 * 10**9)
_BEGINNING: Final = TimeBound()
_MOST_LISTED: Final = 100_000

NamespaceOption = Annotated[
    str,
    typer.Option("--namespace", "-n", metavar="NS", help="Only pods of this namespace."),
]
ClassOption = Annotated[
    str, typer.Option("--class", metavar="NAME", help="Only pods of this PriorityClass.")
]


class LedgerOptionsError(InputError):
    """An option or an argument of a ledger command is invalid."""


def list_decisions(
    ledger: LedgerOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    namespace: NamespaceOption = "",
    priority_class: ClassOption = "",
    kind: Annotated[
        Kind,
        typer.Option(
            "--kind",
            help="preemptions: decisions with victims; differences: those that a shadow policy "
            "has made otherwise; all: every one.",
        ),
    ] = Kind.PREEMPTIONS,
    limit: Annotated[
        int,
        typer.Option("--limit", metavar="N", min=1, max=_MOST_LISTED, help="At most so many."),
    ] = 50,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List decisions, the newest first.

    --namespace and --class select those whose preemptor or one of whose victims has them.
    """
    since_ns, until_ns = period_times(since or _BEGINNING, until)
    selection = Selection(since_ns, until_ns, namespace, priority_class, kind)

    async def read(database: Database) -> list[LedgerRecord]:
        return list(await Ledger(database).records(selection, limit))

    records = read_ledger(ledger, read)
    answer = Answer(
        lambda: list_document(records),
        lambda rows: list_table(records, rows, limit),
        rows=lambda: list_rows(records),
    )
    print_answer(output, answer)


def show_decision(
    decision: Annotated[
        str, typer.Argument(metavar="ID", help="The ID of a decision, as ledger list prints it.")
    ],
    ledger: LedgerOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show everything that is kept of a decision."""
    number = parse_id(decision)
    if number is None:
        raise LedgerOptionsError(
            f"{decision!r} is no ID of a decision; expected 16 hexadecimal digits in lower case, "
            "as ledger list prints"
        )

    async def read(database: Database) -> LedgerRecord | None:
        return await Ledger(database).record(number)

    record = read_ledger(ledger, read)
    if record is None:
        log_line(f"there is no decision {decision} in the ledger")
        raise typer.Exit(1)
    document = decision_account(record, record.entry.pod.key)
    kept = msgspec.to_builtins(record)

    def table(_: TableRows) -> RenderableType:
        fields = rows_table(("field", "value"), field_rows(kept))
        return Group(decision_table(document, TableRows.ALL), fields)

    answer = Answer(lambda: document, table, rows=lambda: [("field", "value"), *field_rows(kept)])
    print_answer(output, answer)


def show_statistics(
    ledger: LedgerOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    namespace: NamespaceOption = "",
    priority_class: ClassOption = "",
    by: Annotated[Grouping, typer.Option("--by", help="By what pods are counted.")] = (
        Grouping.NAMESPACE
    ),
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="At most so many rows of a table.")
    ] = 10,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Count preempted pods, lost work, violated budgets, outcomes, and differences.

    The period consists of whole hours; by default it is the last 24 hours.
    """
    since_ns, until_ns = period_times(since or _DAY, until)
    period = Period(since_ns, until_ns, namespace, priority_class)

    async def read(database: Database) -> Statistics:
        return await read_statistics(database, period, by)

    found = read_ledger(ledger, read)
    answer = Answer(
        lambda: statistics_document(found),
        lambda rows: statistics_table(found, rows.at_most(limit)),
        rows=lambda: statistics_rows(found),
    )
    print_answer(output, answer)


def period_times(since: TimeBound, until: TimeBound | None) -> tuple[int, int]:
    """Return the times of a period. Raise LedgerOptionsError if it ends before it begins."""
    now_ns = SystemClock().now_ns()
    since_ns = since.resolve(now_ns)
    until_ns = now_ns if until is None else until.resolve(now_ns)
    if since_ns > until_ns:
        raise LedgerOptionsError("--since: expected a time before --until, and before now")
    return since_ns, until_ns
