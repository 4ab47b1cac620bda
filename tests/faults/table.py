"""The table of faults: the fault, the guaranteed behaviour, the number of runs, the results.

``docs/reliability.md`` shows it, and test_table.py holds the two together. ``SEEDS=1000`` in the
environment runs each row ten times as often as ``SEEDS=100``. The default is the number of examples
of the Hypothesis profile.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hypothesis import settings

_USUAL: Final = 100
SEEDS: Final = int(os.environ.get("SEEDS", settings().max_examples))


@dataclass(frozen=True, slots=True)
class Row:
    """A fault: ``runs`` of ``what`` (lives, bodies, …) by default, in the test file ``where``.

    ``seen`` counts the results so far.
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
