"""The tables of a ledger, and their version.

Names that repeat (namespaces, priority classes, owners, nodes) are numbers in ``name``. Pods are
looked up by a 48-bit hash of ``namespace/name``, and compared with the entry that is found. The
outcome is apart from the body, with times as microseconds after the decision. ``total`` and
``budget`` count by the hour, so that statistics need not read all decisions; they are written in
the transaction that writes a decision. ``shadow`` has what shadow policies would have chosen, with
the cost of the choice and of theirs; ledgers that were made without it get it when they are opened
for writing.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from hashlib import blake2b
from typing import Final

from extender.ledger.entry import FORMAT
from extender.ledger.storage.database import (
    Database,
    Dialect,
    LedgerError,
    NoLedgerError,
    Reader,
    Statement,
)

HOUR_NS: Final = 3600 * 10**9
SHADOW: Final = "shadow"
_SHADOW_COLUMNS: Final = (
    "decision", "policy", "differs",
    "live_refusals", "live_victims", "live_violations", "live_cpu", "live_devices",
    "refusals", "victims", "violations", "cpu", "devices",
)  # fmt: skip


class Role(IntEnum):
    """What a total counts: preemptors that have victims, their victims, or pods of entries.

    ``DECISION`` counts the pods of all entries, ``FALLBACK`` those of fallback answers.
    """

    PREEMPTOR = 0
    VICTIM = 1
    DECISION = 2
    FALLBACK = 3


def pod_hash(key: str) -> int:
    """Return the hash of ``namespace/name`` by which a pod is looked up."""
    return int.from_bytes(blake2b(key.encode(), digest_size=6).digest(), "big")


def shadow_table(dialect: Dialect) -> str:
    """Return the statement that makes the table of shadow policies, unless there is one."""
    columns = ", ".join(f"{name} BIGINT NOT NULL" for name in _SHADOW_COLUMNS)
    return (
        f"CREATE TABLE IF NOT EXISTS shadow ({columns}, body {dialect.blob} NOT NULL,"
        f" PRIMARY KEY (decision, policy)){dialect.clustered}"
    )


def definitions(dialect: Dialect) -> Sequence[Statement]:
    """Return the statements that make an empty ledger."""
    row_id, key, blob, clustered = dialect
    return [
        Statement(each)
        for each in (
            "CREATE TABLE ledger_format (version BIGINT NOT NULL)",
            f"CREATE TABLE name (id {row_id}, text TEXT NOT NULL UNIQUE)",
            f"""CREATE TABLE decision (
                id {key}, verb BIGINT NOT NULL, pod BIGINT NOT NULL,
                namespace BIGINT NOT NULL, class BIGINT NOT NULL, team BIGINT NOT NULL,
                owner BIGINT NOT NULL, victims BIGINT NOT NULL, violations BIGINT NOT NULL,
                state BIGINT NOT NULL, node BIGINT, ended BIGINT, body {blob} NOT NULL
            )""",
            "CREATE INDEX decision_by_pod ON decision (pod)",
            f"""CREATE TABLE victim (
                decision BIGINT NOT NULL, place BIGINT NOT NULL, pod BIGINT NOT NULL,
                namespace BIGINT NOT NULL, class BIGINT NOT NULL, owner BIGINT NOT NULL,
                gone BIGINT, replacement TEXT, node BIGINT, bound BIGINT,
                PRIMARY KEY (decision, place)
            ){clustered}""",
            "CREATE INDEX victim_by_pod ON victim (pod)",
            f"""CREATE TABLE total (
                hour BIGINT NOT NULL, role BIGINT NOT NULL, namespace BIGINT NOT NULL,
                class BIGINT NOT NULL, team BIGINT NOT NULL, pods BIGINT NOT NULL,
                cpu BIGINT NOT NULL, devices BIGINT NOT NULL,
                PRIMARY KEY (hour, role, namespace, class, team)
            ){clustered}""",
            f"""CREATE TABLE budget (
                hour BIGINT NOT NULL, budget BIGINT NOT NULL, decisions BIGINT NOT NULL,
                PRIMARY KEY (hour, budget)
            ){clustered}""",
            f"""CREATE TABLE blob (
                digest {blob} PRIMARY KEY, hour BIGINT NOT NULL, body {blob} NOT NULL
            )""",
            "CREATE INDEX blob_by_hour ON blob (hour)",
            shadow_table(dialect),
        )
    ] + [Statement("INSERT INTO ledger_format (version) VALUES ($1)", [(FORMAT,)])]


async def require_ledger(database: Reader) -> None:
    """Raise LedgerError if the database has no ledger of this version."""
    tables = await database.tables()
    if "ledger_format" not in tables:
        if tables:
            raise LedgerError(f"{database.location}: not a ledger: it has other tables")
        raise NoLedgerError(f"{database.location}: there is no ledger yet")
    rows = await database.fetch("SELECT version FROM ledger_format")
    version = rows[0][0] if len(rows) == 1 else None
    if version != FORMAT:
        raise LedgerError(
            f"{database.location}: a ledger of version {version!r}; expected version {FORMAT}"
        )


async def ensure_ledger(database: Database) -> None:
    """Make the tables in an empty database. Raise LedgerError as :func:`require_ledger` does."""
    if not await database.tables():
        try:
            await database.write(definitions(database.dialect))
        except LedgerError:  # another replica may have made them meanwhile
            if not await database.tables():
                raise
    await require_ledger(database)
    if SHADOW not in await database.tables():
        await database.write([Statement(shadow_table(database.dialect))])
