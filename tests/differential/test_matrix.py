"""The table of compared releases and gates, and the settings of gates on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.__main__ import parse_gates
from tests.differential.matrix import DEFAULT, Cell, cells, write_table


def test_the_table_has_a_row_for_each_release_and_replaces_the_earlier_one(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- matrix -->\nold\n<!-- end of matrix -->\nafter\n")
    results = [Cell(upstream, gates, 1200, 0) for upstream, gates in cells() if gates == DEFAULT]
    write_table(results, page)
    lines = page.read_text().splitlines()
    assert lines[:2] == ["before", "<!-- matrix -->"]
    assert lines[-2:] == ["<!-- end of matrix -->", "after"]
    assert [line.count("compared 1,200, differ 0") for line in lines[5:-3]] == [1] * 5
    assert lines[5].startswith("| 1.30.14 | compared 1,200, differ 0 |  |")


def test_settings_of_gates_are_booleans() -> None:
    assert parse_gates("A=true,B=false") == {"A": True, "B": False}
    for text in ("A", "A=yes", "=true", ""):
        with pytest.raises(ValueError, match="expected NAME=true or NAME=false"):
            parse_gates(text)
