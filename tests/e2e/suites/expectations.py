"""A pytest plugin for suites that others wrote: which tests cannot pass here, and why.

``EXPECTATIONS`` names a file of reasons, each with its tests (a file, or names below it, as pytest
writes them). A listed test has to fail; one that passes, or that is not there, fails the run. Only
a reason that says ``by_chance`` lets its tests end either way.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

VARIABLE: Final = "EXPECTATIONS"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the listed tests as bound to fail."""
    reasons = dict(_reasons(Path(os.environ[VARIABLE])))
    for item in items:
        for name in (_name(item), _name(item).partition("[")[0]):
            if name in reasons:
                why, strict = reasons[name]
                item.add_marker(pytest.mark.xfail(strict=strict, reason=why))
    names = {name for item in items for name in (_name(item), _name(item).partition("[")[0])}
    files = {item.path.name for item in items}
    listed = {name for name in reasons if name.partition("::")[0] in files}
    if gone := sorted(listed - names):
        raise pytest.UsageError(f"listed, but not in the suite: {', '.join(gone)}")


def _reasons(path: Path) -> Iterator[tuple[str, tuple[str, bool]]]:
    for entry in yaml.safe_load(path.read_text()) or ():
        for test in entry["tests"]:
            yield test, (entry["why"], not entry.get("by_chance", False))


def _name(item: pytest.Item) -> str:
    return f"{item.path.name}::{item.nodeid.partition('::')[2]}"
