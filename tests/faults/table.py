"""The table of faults: what goes wrong, what is promised then, how often it is tried, what came.

``docs/reliability.md`` shows it, and test_table.py holds the two together. ``SEEDS=1000`` in the
environment runs each row ten times as often as ``SEEDS=100``, the default.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_USUAL: Final = 100
SEEDS: Final = int(os.environ.get("SEEDS", _USUAL))


@dataclass(frozen=True, slots=True)
class Row:
    """A fault: ``runs`` of ``what`` (lives, bodies, …) by default, in the test file ``where``.

    ``seen`` is what came of it so far.
    """

    fault: str
    promise: str
    runs: int
    what: str
    where: str
    seen: str

    @property
    def times(self) -> int:
        """How often it is tried in this run."""
        return max(1, self.runs * SEEDS // _USUAL)

    @property
    def seeds(self) -> range:
        """The seeds of this run."""
        return range(self.times)


def written(rows: Iterable[Row]) -> str:
    """Write rows as a table in Markdown."""
    lines = ["| Fault | Promise | Runs | What was seen |", "|---|---|---|---|"]
    lines += [
        f"| {row.fault} | {row.promise} | {row.runs:,} {row.what} | {row.seen} |" for row in rows
    ]
    return "\n".join(lines) + "\n"
