"""The ledger of a PostgreSQL database as the workload of a backtest."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

from tests.commands import reprieve
from tests.fakeapi.backtest.test_ledger_workload import record


async def test_a_database_has_the_report_of_a_file_with_the_same_decisions(
    location: str, tmp_path: Path
) -> None:
    reports = []
    for each in (location, str(tmp_path / "ledger.db")):
        await record(each)
        done = await reprieve(
            *("backtest", each, "--policy", "stock", "--policy", "kube-scheduler"),
            *("--segments", "2", "-o", "json"),
        )
        assert done.code == 0, done.err
        assert str(urlsplit(location).password) not in done.out + done.err
        report = json.loads(done.out)
        report["workload"].pop("name")
        reports.append(report)
    assert reports[0] == reports[1]
