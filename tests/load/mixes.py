"""The calls of a load run, their rates, and its phases, as data.

A phase is one run of locust with users of the named classes of ``locustfile.py``. Its rate is a
multiple of the capacity that an earlier phase has measured, the answers in a second to a closed
loop without pauses: so phases are below or above saturation on any machine.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of call: its verb, and how many nodes it names.

    There are ``bodies`` different ones; ``weight`` is its relative frequency. An answer is kept for
    the check about every ``sampled_seconds``.
    """

    name: str
    verb: str
    nodes: int
    bodies: int
    weight: int
    sampled_seconds: float


@dataclass(frozen=True, slots=True)
class Phase:
    """One run of locust: ``users`` by class, and for how long.

    ``rate`` is what is asked in a second, by the capacity; 0 for as much as can be. It doubles
    every ``doubling`` seconds; 0 for never.
    """

    name: str
    users: Mapping[str, int]
    seconds: int
    rate: float = 0.0
    doubling: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """The phases in order, and a factor for the interval at which answers are kept."""

    phases: tuple[Phase, ...]
    sampling: float


NODES: Final = 5_000
PODS_PER_NODE: Final = 30
CHANGES_PER_SECOND: Final = 100

KINDS: Final = (
    Kind("filter-5000", "filter", 5_000, bodies=4, weight=6, sampled_seconds=1.5),
    Kind("preempt-100", "preempt", 100, bodies=12, weight=3, sampled_seconds=1.0),
    Kind("preempt-500", "preempt", 500, bodies=6, weight=1, sampled_seconds=3.0),
)
FILTER: Final = KINDS[0]
KIND: Final = {kind.name: kind for kind in KINDS}

CLOSED: Final = 4
"""Users of the closed loop at an even pace."""

WARM_UP: Final = "warm-up"
STEADY: Final = "steady"
CAPACITY: Final = "capacity"
ECHO_CAPACITY: Final = "echo-capacity"
OPEN: Final = "open"
ABOVE: Final = "above"
CROWDED: Final = "crowded"
FILTERS: Final = "filters"
FILTERS_BESIDE: Final = "filters-beside"
"""Filter calls alone, and beside preempt calls without pauses."""

FILTERS_PER_SECOND: Final = 50

CROWD: Final = 384
"""Users who each keep a connection busy: one and a half times the limit of the extender."""

_WARM_UP_SECONDS: Final = 5
_WITHOUT_A_MIX: Final = frozenset({ECHO_CAPACITY, FILTERS, FILTERS_BESIDE, CROWDED})
"""Phases in which the extender is not called, or in one way only."""


def plan(
    filters: int,
    flat_out: int,
    steady: int,
    below: int,
    above: int,
    crowded: int,
    sampling: float,
) -> Plan:
    """Return the phases, each for so many seconds, after a few in which columns are built."""
    return Plan(
        (
            Phase(WARM_UP, {"FlatOut": 2}, _WARM_UP_SECONDS),
            Phase(FILTERS, {"Filtering": 1}, filters),
            Phase(FILTERS_BESIDE, {"Filtering": 1, "Preempting": 4}, filters),
            Phase(CAPACITY, {"FlatOut": 8}, flat_out),
            Phase(ECHO_CAPACITY, {"FlatOutEcho": 8}, flat_out),
            Phase(
                STEADY,
                {"Closed": CLOSED, "Burst": 1, "SlowReader": 1, "SlowSender": 1},
                steady,
                rate=0.3,
            ),
            Phase(OPEN, {"OpenLoop": 1, "SlowReader": 1}, below, rate=0.4),
            Phase(ABOVE, {"OpenLoop": 1, "SlowReader": 1}, above, rate=1.0, doubling=above / 4),
            Phase(CROWDED, {"SlowFinisher": CROWD}, crowded),
        ),
        sampling,
    )


QUICK: Final = plan(filters=8, flat_out=10, steady=40, below=12, above=17, crowded=10, sampling=1.0)
"""Two minutes of load."""

FULL: Final = plan(
    filters=30, flat_out=30, steady=600, below=60, above=60, crowded=20, sampling=2.0
)
"""Ten minutes at an even pace, and what the quick one does for longer."""


def due(plan: Plan) -> dict[str, float]:
    """Return how many answers of each kind are kept for the check if none is slow."""
    seconds = sum(phase.seconds for phase in plan.phases if phase.name not in _WITHOUT_A_MIX)
    return {kind.name: seconds / (kind.sampled_seconds * plan.sampling) for kind in KINDS}


BURST_SECONDS: Final = 5.0
"""The interval of bursts."""


def burst_calls(rate: float) -> int:
    """Return how many calls come at once: those of a second at an even pace of ``rate``.

    There are no more than 16: far fewer than may wait for their turn.
    """
    return max(2, min(16, round(rate)))


def drawn(rng: random.Random) -> Iterator[tuple[Kind, int]]:
    """Draw kinds by their weights without end, each with the number of one of its bodies."""
    numbers = {kind.name: count() for kind in KINDS}
    weights = [kind.weight for kind in KINDS]
    while True:
        [kind] = rng.choices(KINDS, weights)
        yield kind, next(numbers[kind.name]) % kind.bodies


def gaps(rng: random.Random, rate: float, doubling: float = 0.0) -> Iterator[float]:
    """Return the seconds between independent arrivals.

    There are ``rate`` in a second, and twice as many after each ``doubling`` seconds, if any.
    """
    passed = 0.0
    while True:
        gap = rng.expovariate(rate * 2 ** (passed / doubling) if doubling else rate)
        passed += gap
        yield gap
