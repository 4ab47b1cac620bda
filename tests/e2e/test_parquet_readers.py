"""DuckDB and pandas read an exported ledger, each as one table with a column for the day."""

from __future__ import annotations

import asyncio
from datetime import date
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from extender.ledger.storage.location import open_database
from extender.ledger.storage.parquet_export import export_ledger
from extender.ledger.storage.queries import Ledger
from extender.ledger.storage.sqlite_database import Access
from extender.ledger.storage.store import LedgerBatch, LedgerStore
from tests.builders.ledger_entries import DAY_NS, NOON_NS, ledger_entry, ledger_pod

WEB = ledger_pod("shop/web", team="front")
ETL, LINT = ledger_pod("data/etl"), ledger_pod("ci/lint")


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    asyncio.run(export(tmp_path))
    return tmp_path


async def export(directory: Path) -> None:
    database = await open_database(str(directory / "ledger.db"), Access.WRITE)
    store = LedgerStore(database)
    await store.prepare()
    entries = [ledger_entry(NOON_NS, WEB, ETL, LINT), ledger_entry(NOON_NS + DAY_NS, WEB, ETL)]
    await store.write(LedgerBatch(entries))
    await export_ledger(Ledger(database), directory)
    await database.close()


def test_duckdb_reads_an_export(exported: Path) -> None:
    joined = duckdb.sql(
        f"SELECT d.day, d.team, v.namespace, v.requests['cpu'], len(d.victims),"  # noqa: S608 - a path
        f" epoch_ns(d.at) FROM '{exported}/decisions/*/*.parquet' d"
        f" JOIN '{exported}/victims/*/*.parquet' v ON v.decision = d.id ORDER BY d.at, v.place"
    )
    assert joined is not None
    first, second = date(2024, 10, 4), date(2024, 10, 5)
    assert joined.fetchall() == [
        (first, "front", "data", 1000, 2, NOON_NS),
        (first, "front", "ci", 1000, 2, NOON_NS),
        (second, "front", "data", 1000, 1, NOON_NS + DAY_NS),
    ]


def test_pandas_reads_an_export(exported: Path) -> None:
    frame = pd.read_parquet(exported / "victims")
    assert frame.groupby("namespace")["lost_cpu"].sum().to_dict() == {"ci": 60_000, "data": 120_000}
    assert sorted(frame["day"].astype(str)) == ["2024-10-04", "2024-10-04", "2024-10-05"]
    assert str(frame["at"].dt.tz) == "UTC"
