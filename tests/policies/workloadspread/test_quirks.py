"""Quirks are data, and the documentation has all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from policies.workloadspread.quirks import (
    FIXED,
    MODES,
    QUIRKS,
    UPSTREAM,
    UnknownModeError,
    quirks_of_mode,
)

DOCUMENT = Path(__file__).parents[3] / "docs" / "workloadspread.md"


def test_the_documentation_has_each_quirk() -> None:
    rows = [
        f"| {each.name} | {each.upstream} | {each.ours} | {each.rationale} |" for each in QUIRKS
    ]
    lines = DOCUMENT.read_text().splitlines()
    start = lines.index("|---|---|---|---|") + 1
    assert lines[start : start + len(rows) + 1] == [*rows, ""]


def test_there_are_two_modes() -> None:
    assert MODES == {"upstream": UPSTREAM, "fixed": FIXED}
    assert len(UPSTREAM) == len(QUIRKS) == len({each.name for each in QUIRKS})
    assert not FIXED


def test_an_error_for_an_unknown_mode_has_the_known_ones() -> None:
    assert quirks_of_mode("upstream") == UPSTREAM
    with pytest.raises(UnknownModeError, match="no mode 'odd'; expected one of: upstream, fixed"):
        quirks_of_mode("odd")
