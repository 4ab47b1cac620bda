"""Exports of ledgers: files by day that hold what the records hold."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyarrow import parquet

from extender.ledger.entry import LedgerEntry, LedgerRecord, Outcome, State, VictimOutcome
from extender.ledger.storage.location import open_database
from extender.ledger.storage.queries import Ledger, Selection
from extender.ledger.storage.sqlite_database import Access
from extender.ledger.storage.store import LedgerBatch, LedgerStore
from tests.builders.ledger_entries import DAY_NS, NOON_NS, ledger_entry, ledger_pod

Run = Callable[..., int]
WEB = ledger_pod("shop/web", priority_class="high", owner="ReplicaSet/web", team="front")
ETL = ledger_pod("data/etl", owner="Job/etl")
LINT = ledger_pod("ci/lint", seconds=30)
ENTRIES = (
    ledger_entry(NOON_NS, WEB, ETL, LINT, budgets=("data/etl",)),
    ledger_entry(NOON_NS + 10**9, ETL),
    ledger_entry(NOON_NS + DAY_NS, WEB, LINT),
)
OUTCOME = Outcome(
    State.BOUND,
    "node-1",
    NOON_NS + 3 * 10**9,
    (VictimOutcome(NOON_NS + 10**9, "etl-2", "node-9", NOON_NS + 2 * 10**9), VictimOutcome()),
)
FIRST, SECOND = "day=2024-10-04", "day=2024-10-05"


@pytest.fixture
def ledger_file(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    asyncio.run(write(path, *ENTRIES))
    return path


async def write(path: Path, *entries: LedgerEntry) -> None:
    database = await open_database(str(path), Access.WRITE)
    store = LedgerStore(database)
    await store.prepare()
    await store.write(LedgerBatch(entries, {ENTRIES[0].id: OUTCOME}))
    await database.close()


async def read(path: Path) -> Sequence[LedgerRecord]:
    database = await open_database(str(path), Access.READ)
    records = await Ledger(database).records(Selection(), 99)
    await database.close()
    return records


def rows(directory: Path, table: str, day: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        parquet.ParquetFile(directory / table / day / "part-0.parquet").read().to_pylist()
    )
    return found


def nanoseconds(time: Any) -> int:
    return 0 if time is None else round(time.timestamp() * 10**6) * 1000


def test_files_hold_the_records(
    ledger_file: Path, tmp_path: Path, command_line: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert command_line("ledger", "export", "--ledger", str(ledger_file), "--out", str(out)) == 0
    assert capsys.readouterr() == (f"{out}: 3 decisions of 2 days\n", "")
    victims: dict[str, list[VictimOutcome]] = {}
    for day in (FIRST, SECOND):
        for row in rows(out, "victims", day):
            victims.setdefault(row["decision"], []).append(
                VictimOutcome(
                    nanoseconds(row["gone_at"]),
                    row["replacement"],
                    row["replacement_node"],
                    nanoseconds(row["bound_at"]),
                )
            )
    found = [
        LedgerRecord(
            msgspec.json.decode(row["entry"], type=LedgerEntry),
            Outcome(
                State(row["state"]),
                row["bound_node"],
                nanoseconds(row["ended_at"]),
                tuple(victims.get(row["id"], ())),
            ),
        )
        for day in (SECOND, FIRST)
        for row in reversed(rows(out, "decisions", day))
    ]
    assert found == asyncio.run(read(ledger_file))


def test_columns_hold_fields_of_the_records(
    ledger_file: Path, tmp_path: Path, command_line: Run
) -> None:
    command_line("ledger", "export", "--ledger", str(ledger_file), "--out", str(tmp_path))
    first, second = rows(tmp_path, "decisions", FIRST)
    assert (nanoseconds(first["at"]), first["at"].tzname()) == (NOON_NS, "UTC")
    assert (first["namespace"], first["name"], first["priority_class"]) == ("shop", "web", "high")
    assert (first["victims"], first["violated_pdbs"]) == (["data/etl", "ci/lint"], ["data/etl"])
    assert (first["node"], second["node"]) == ("node-1", None)
    assert second["rejected"] == [("Insufficient cpu", 3)]
    etl, lint = rows(tmp_path, "victims", FIRST)
    assert (etl["preemptor"], etl["place"], lint["place"]) == ("shop/web", 0, 1)
    assert dict(etl["requests"]) == ETL.requests
    assert (lint["lost_cpu"], lint["lost_devices"]) == (30_000, 60)


@pytest.mark.parametrize(
    ("options", "days"),
    [
        ((), {FIRST, SECOND}),
        (("--since", "2024-10-04T23:00:00Z"), {FIRST, SECOND}),
        (("--since", "2024-10-05T23:00:00Z"), {SECOND}),
        (("--until", "2024-10-04T01:00:00Z"), {FIRST}),
        (("--until", "2024-10-05T00:00:00Z"), {FIRST}),
        (("--until", "2024-10-04T00:00:00Z"), set()),
    ],
)
def test_whole_days_are_exported(
    ledger_file: Path, tmp_path: Path, command_line: Run, options: Sequence[str], days: set[str]
) -> None:
    out = tmp_path / "out"
    command_line("ledger", "export", "--ledger", str(ledger_file), "--out", str(out), *options)
    for table in ("decisions", "victims"):
        assert {path.name for path in (out / table).glob("*")} == days


def test_a_day_is_replaced(ledger_file: Path, tmp_path: Path, command_line: Run) -> None:
    arguments = ("ledger", "export", "--ledger", str(ledger_file), "--out", str(tmp_path / "out"))
    command_line(*arguments)
    asyncio.run(write(ledger_file, ledger_entry(NOON_NS + DAY_NS + 1000, WEB, ETL)))
    command_line(*arguments)
    assert len(rows(tmp_path / "out", "decisions", FIRST)) == 2
    assert len(rows(tmp_path / "out", "decisions", SECOND)) == 2
    names = {path.name for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert names == {"part-0.parquet"}


def test_an_export_that_fails_leaves_the_files_as_they_were(
    ledger_file: Path, tmp_path: Path, command_line: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    (out / "victims" / SECOND / "part-0.parquet").mkdir(parents=True)
    assert command_line("ledger", "export", "--ledger", str(ledger_file), "--out", str(out)) == 2
    assert capsys.readouterr().err.startswith(f"reprieve: {out}: cannot write: ")
    assert len(rows(out, "decisions", FIRST)) == 2
    assert not [*out.rglob("*.partial")]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--out", "x"), "no ledger; expected --ledger FILE"),
        (("--ledger", "none.db"), "Missing option '--out'"),
        (("--ledger", "none.db", "--out", "x"), "none.db: no such file"),
        (
            ("--ledger", "none.db", "--out", "x", "--since", "today"),
            "'today'; expected a time before now such as 24h or 7d",
        ),
    ],
)
def test_bad_input_is_one_line(
    command_line: Run,
    capsys: pytest.CaptureFixture[str],
    arguments: Sequence[str],
    error: str,
) -> None:
    assert command_line("ledger", "export", *arguments) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n"), error in printed.err) == ("", 1, True)


def test_the_extra_that_is_not_installed_is_named(
    ledger_file: Path,
    command_line: Run,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "extender.ledger.storage.parquet_export", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert command_line("ledger", "export", "--ledger", str(ledger_file), "--out", "x") == 2
    assert capsys.readouterr().err == (
        "reprieve: Parquet files need the package pyarrow; install it with:"
        " pip install 'reprieve[parquet]'\n"
    )
