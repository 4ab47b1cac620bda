"""Budgets: what a figure may cost, as data.

A line of ``budgets.toml`` names a figure and its limit, for times as a multiple of the calibration
loop of the same run, for memory in MiB; ``measured`` is what was found when the limit was set. The
distance between the two is the margin for other machines and for noise.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

BUDGETS: Final = Path(__file__).with_name("budgets.toml")


@dataclass(frozen=True, slots=True)
class Figure:
    """One thing measured: as it is shown, and what it cost, in seconds (or MiB, or a ratio)."""

    what: str
    shown: str
    cost: float
    timed: bool = True


def faults(figures: Mapping[str, Figure], calibration: float, path: Path = BUDGETS) -> list[str]:
    """Give a sentence for each budget that is broken, or that nothing was measured for."""
    found = []
    for name, budget in tomllib.loads(path.read_text())["fakeapi"].items():
        figure = figures.get(name)
        if figure is None:
            found.append(f"{name}: there is a budget, but nothing was measured")
            continue
        cost = figure.cost / calibration if figure.timed else figure.cost
        if cost > budget["limit"]:
            found.append(f"{name}: {cost:.4g} is over its limit of {budget['limit']}")
    return found
