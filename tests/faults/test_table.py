"""The documentation has the table of the tests, and each row has its tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import ROOT
from tests.faults import table
from tests.faults.table import ROWS, Row, written

DOCUMENT = Path(ROOT / "docs" / "reliability.md")


def test_the_documentation_shows_the_table() -> None:
    assert written(ROWS) in DOCUMENT.read_text()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.fault)
def test_each_row_has_its_tests(row: Row) -> None:
    [name] = [name for name, value in vars(table).items() if value is row]
    assert name in (ROOT / row.where).read_text().split("import", 1)[1]
    assert row.seen
