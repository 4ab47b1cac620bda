"""Budgets: what a figure may cost, as data.

A section of ``budgets.toml`` names a figure. ``aim`` (``aim_ms``, ``aim_mib``, … after its unit) is
what it should cost on the machine of the tables in docs/, and is shown beside it. ``limit`` is what
is checked: for times a multiple of the calibration loop of the same run, for memory MiB, for ratios
the ratio. ``measured`` is what was found when the limit was set; the distance between the two is
the margin for other machines and for noise. ``full`` marks what a quick run leaves out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

BUDGETS: Final = Path(__file__).with_name("budgets.toml")
_AIMS: Final = {"aim": "", "aim_us": " µs", "aim_ms": " ms", "aim_s": " s", "aim_mib": " MiB"}


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing measured: as it is shown, and what it cost, in seconds (or MiB, or a ratio)."""

    what: str
    shown: str
    cost: float
    timed: bool = True

    def relative(self, calibration: float) -> float:
        """Return the value compared with a limit: for times, multiples of the calibration loop."""
        return self.cost / calibration if self.timed else self.cost


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of one figure: an aim to be shown, and a limit to be checked; both optional."""

    aim: str = ""
    limit: float | None = None
    full: bool = False


def read(part: str, path: Path = BUDGETS) -> dict[str, Budget]:
    """Read the budgets of one part, such as ``fakeapi``."""
    return {name: _budget(given) for name, given in tomllib.loads(path.read_text())[part].items()}


def faults(
    budgets: Mapping[str, Budget], figures: Mapping[str, Figure], calibration: float
) -> dict[str, str]:
    """Return the limits that are exceeded or were not measured, with the reason, by name."""
    found = {}
    for name, budget in budgets.items():
        figure = figures.get(name)
        if budget.limit is None:
            continue
        if figure is None:
            found[name] = "there is a limit, but nothing was measured"
        elif figure.relative(calibration) > budget.limit:
            cost = figure.relative(calibration)
            found[name] = f"{cost:.4g} is over its limit of {budget.limit:g}"
    return found


def _budget(given: Mapping[str, Any]) -> Budget:
    aims = [f"≤ {given[key]:g}{unit}" for key, unit in _AIMS.items() if key in given]
    return Budget("".join(aims), given.get("limit"), given.get("full", False))
