"""Repeated measurements: their number and duration, their summary, and a calibration loop."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured.

    A measurement that has taken ``seconds`` ends before ``rounds``, but after three at least.
    Controllers are compared ``contests`` times.
    """

    nodes: tuple[int, ...]
    rounds: int
    seconds: float
    events: int
    contests: int


FULL: Final = Effort(nodes=(1_000, 5_000, 15_000), rounds=100, seconds=30, events=6_000, contests=5)
QUICK: Final = Effort(nodes=(1_000, 5_000), rounds=50, seconds=4, events=1_500, contests=3)

_LEAST_ROUNDS = 3
_DOCUMENT = {"metadata": {"name": "n", "labels": {f"k{i}": f"v{i}" for i in range(20)}}, "spec": {}}
_CALIBRATION_ROUNDS = 2_000


@dataclass(frozen=True, slots=True)
class Latency:
    """Median, 95th and 99th percentile, in seconds, of so many rounds."""

    p50: float
    p95: float
    p99: float
    rounds: int


def latency(seconds: Sequence[float]) -> Latency:
    """Summarize the seconds of rounds."""
    ordered = sorted(seconds)
    p95, p99 = (ordered[min(len(ordered) - 1, int(len(ordered) * share))] for share in (0.95, 0.99))
    return Latency(statistics.median(ordered), p95, p99, len(ordered))


def repeated(effort: Effort, once: Callable[[], float]) -> list[float]:
    """Repeat ``once``, which returns the seconds to count."""
    taken: list[float] = []
    begun = time.perf_counter()
    while not is_enough(effort, len(taken), time.perf_counter() - begun):
        taken.append(once())
    return taken


def is_enough(effort: Effort, rounds: int, seconds: float) -> bool:
    """Return whether so many rounds in so many seconds are enough."""
    return rounds >= effort.rounds or (rounds >= _LEAST_ROUNDS and seconds > effort.seconds)


def slope(costs: Mapping[int, float]) -> float:
    """Return the exponent by which cost grows with size: least squares on the logarithms.

    1 is linear. ``costs`` maps at least two sizes to costs.
    """
    points = [(math.log(size), math.log(cost)) for size, cost in costs.items()]
    return statistics.linear_regression(*zip(*points, strict=True)).slope


def milliseconds(seconds: float) -> str:
    """Write a time in milliseconds with three significant digits."""
    value = seconds * 1e3
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.3g} ms"


def calibrate() -> float:
    """Return the median seconds of a fixed piece of work, in which budgets are given."""
    return statistics.median(_work() for _ in range(5))


def _work() -> float:
    started = time.perf_counter()
    for turn in range(_CALIBRATION_ROUNDS):
        document = json.loads(json.dumps(_DOCUMENT))
        document["metadata"]["labels"].update({f"x{turn % 7}": "y"})
    return time.perf_counter() - started
