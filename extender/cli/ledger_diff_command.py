"""``reprieve ledger diff``: the decisions that shadow policies have made otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, TypedDict

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from extender.cli.ledger_commands import (
    ClassOption,
    LedgerOptionsError,
    NamespaceOption,
    period_times,
)
from extender.cli.ledger_source import LedgerOption, SinceOption, UntilOption, read_ledger
from extender.cli.ledger_tables import ShadowDocument, shadow_documents, shadow_table
from extender.kube.decoders.object_meta import format_time
from extender.ledger.choice_cost import choice_cost, differs
from extender.ledger.entry import LedgerEntry, LedgerRecord, LedgerShadow, format_id
from extender.ledger.shadow_text import choice_text, cost_changes
from extender.ledger.statistics import Period
from extender.ledger.storage.database import Database
from extender.ledger.storage.queries import Kind, Ledger, Selection
from extender.ledger.storage.shadow_totals import ShadowTotal
from extender.ledger.time_bound import TimeBound
from extender.terminal.command_line import OutputOption
from extender.terminal.output import Answer, OutputFormat, print_answer
from extender.terminal.plain_tables import rows_table

DIFF_EXAMPLE: Final = "ledger diff --since 7d --shadow spare-long-jobs --ledger ledger.db"
_DAY: Final = TimeBound(24 * 3600 * 10**9)
_MOST_LISTED: Final = 100_000
_SHOWN_VICTIMS: Final = 3
_COLUMNS: Final = (
    "id", "at", "preemptor", "policy", "node", "victims", "shadowNode", "shadowVictims", "change",
)  # fmt: skip


class DifferenceDocument(TypedDict):
    """A decision that a shadow policy has made otherwise."""

    id: str
    at: str
    preemptor: str
    policy: str
    node: str | None
    victims: list[str]
    shadowNode: str | None
    shadowVictims: list[str]
    change: str


class DiffDocument(TypedDict):
    """The output of ``ledger diff -o json``."""

    since: str
    until: str
    policies: list[ShadowDocument]
    differences: list[DifferenceDocument]


@dataclass(frozen=True, slots=True)
class _Found:
    period: Period
    totals: Sequence[ShadowTotal]
    differing: Sequence[tuple[LedgerEntry, LedgerShadow]]


def show_differences(
    ledger: LedgerOption = None,
    shadow: Annotated[
        str, typer.Option("--shadow", metavar="NAME", help="Only this shadow policy.")
    ] = "",
    since: SinceOption = None,
    until: UntilOption = None,
    namespace: NamespaceOption = "",
    priority_class: ClassOption = "",
    limit: Annotated[
        int,
        typer.Option("--limit", metavar="N", min=1, max=_MOST_LISTED, help="At most so many."),
    ] = 50,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Compare decisions with those of shadow policies on the same state.

    Exit with 1 if any differ. --namespace and --class select decisions whose preemptor, or one of
    whose victims, has them; by default the period is the last 24 hours.
    """
    since_ns, until_ns = period_times(since or _DAY, until)
    period = Period(since_ns, until_ns, namespace, priority_class)

    async def read(database: Database) -> _Found:
        return await _read(database, period, shadow, limit)

    found = read_ledger(ledger, read)
    answer = Answer(
        lambda: _document(found),
        lambda _: _table(found, limit),
        rows=lambda: _rows(found),
    )
    print_answer(output, answer)
    if any(each.differences for each in found.totals):
        raise typer.Exit(1)


async def _read(database: Database, period: Period, shadow: str, limit: int) -> _Found:
    ledger = Ledger(database)
    selected = Selection(period.since_ns, period.until_ns, period.namespace, period.priority_class)
    totals = await ledger.shadow_totals(selected)
    if shadow and shadow not in [each.policy for each in totals]:
        known = ", ".join(each.policy for each in totals) or "there is none"
        raise LedgerOptionsError(
            f"--shadow {shadow}: no decision of this policy in the period; expected one of: {known}"
        )
    differing = replace(selected, kind=Kind.DIFFERENCES, shadow=shadow)
    records = await ledger.records(differing, limit)
    chosen = [each for each in totals if shadow in ("", each.policy)]
    return _Found(period, chosen, list(_differing(records, shadow)))


def _differing(
    records: Sequence[LedgerRecord], policy: str
) -> Iterator[tuple[LedgerEntry, LedgerShadow]]:
    for record in records:
        for each in record.shadows:
            if policy in ("", each.policy) and differs(record.entry, each.entry):
                yield record.entry, each


def _document(found: _Found) -> DiffDocument:
    return {
        "since": format_time(found.period.since_ns),
        "until": format_time(found.period.until_ns),
        "policies": shadow_documents(found.totals),
        "differences": [_difference(live, shadow) for live, shadow in found.differing],
    }


def _difference(live: LedgerEntry, shadow: LedgerShadow) -> DifferenceDocument:
    return {
        "id": format_id(live.id),
        "at": live.at,
        "preemptor": live.pod.key,
        "policy": shadow.policy,
        "node": live.node,
        "victims": [each.key for each in live.victims],
        "shadowNode": shadow.entry.node,
        "shadowVictims": [each.key for each in shadow.entry.victims],
        "change": _change(live, shadow.entry),
    }


def _rows(found: _Found) -> Iterator[Sequence[object]]:
    yield _COLUMNS
    for live, shadow in found.differing:
        each = _difference(live, shadow)
        joined = {name: " ".join(each[name]) for name in ("victims", "shadowVictims")}
        row = {**each, **joined}
        yield ["" if row[column] is None else row[column] for column in _COLUMNS]


def _table(found: _Found, limit: int) -> RenderableType:
    if not found.totals:
        return Text("no decisions of shadow policies")
    parts = [shadow_table(found.totals)]
    if found.differing:
        parts.append(
            rows_table(
                ("id", "preemptor", "chosen", "shadow policy", "would have chosen", "change"),
                (
                    (
                        format_id(live.id),
                        live.pod.key,
                        _choice(live),
                        shadow.policy,
                        _choice(shadow.entry),
                        _change(live, shadow.entry),
                    )
                    for live, shadow in found.differing
                ),
            )
        )
    if len({live.id for live, _ in found.differing}) >= limit:
        parts.append(Text(f"the newest {limit}; --limit N lists more"))
    return Group(*parts)


def _choice(entry: LedgerEntry) -> str:
    """Return the node and the victims of a choice in short."""
    if entry.node is None:
        return choice_text(entry)
    more = len(entry.victims) - _SHOWN_VICTIMS
    victims = " ".join(pod.key for pod in entry.victims[:_SHOWN_VICTIMS])
    return f"{entry.node}: {victims}{f' and {more} more' if more > 0 else ''}"


def _change(live: LedgerEntry, shadow: LedgerEntry) -> str:
    return ", ".join(cost_changes(choice_cost(live), choice_cost(shadow)))
