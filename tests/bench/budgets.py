"""Budgets: the limits of figures, as data.

A section of ``budgets.toml`` names a figure. ``aim`` (``aim_ms``, ``aim_mib``, … after its unit) is
its desired cost on the machine of the tables in docs/, shown next to it. ``limit`` is checked: for
times a multiple of the calibration loop of the same run, for memory MiB, for ratios the ratio.
``measured`` is the cost when the limit was set; the difference between the two is the margin for
other machines and for noise. ``full`` marks figures that a quick run omits.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

BUDGETS: Final = Path(__file__).with_name("budgets.toml")
_AIMS: Final = {"aim": "", "aim_us": " µs", "aim_ms": " ms", "aim_s": " s", "aim_mib": " MiB"}


@dataclass(frozen=True, slots=True)
class Figure:
    """A measurement: its text in tables, and its cost in seconds (or MiB, or a ratio)."""

    what: str
    shown: str
    cost: float
    timed: bool = True

    def relative(self, calibration: float) -> float:
        """Return the value compared with a limit: for times, multiples of the calibration loop."""
        return self.cost / calibration if self.timed else self.cost


NamedFigures = Iterator[tuple[str, Figure]]


def untimed(what: str, shown: str, cost: float) -> Figure:
    """Return a figure that is no time: a ratio, or an amount of memory."""
    return Figure(what, shown, cost, timed=False)


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
            found[name] = "it has a limit, but was not measured"
        elif figure.relative(calibration) > budget.limit:
            cost = figure.relative(calibration)
            found[name] = f"{cost:.4g} is over its limit of {budget.limit:g}"
    return found


def confirmed_faults(
    measure: Callable[[], Mapping[str, str]],
    say: Callable[[str], None],
    never_noise: frozenset[str] = frozenset(),
) -> Mapping[str, str]:
    """Return the broken budgets by name that a second measurement confirms.

    Those in ``never_noise`` count in each measurement; with one of them there is no second.
    """
    broken = measure()
    if not broken or never_noise.intersection(broken):
        return broken
    say(f"over budget, measured once more: {', '.join(broken)}")
    return {
        name: fault for name, fault in measure().items() if name in broken or name in never_noise
    }


def _budget(given: Mapping[str, Any]) -> Budget:
    aims = [f"≤ {given[key]:g}{unit}" for key, unit in _AIMS.items() if key in given]
    return Budget("".join(aims), given.get("limit"), given.get("full", False))
