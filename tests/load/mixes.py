"""What is asked of the extender, how often, and in which phases: as data.

A phase is one run of locust with users of the named classes of ``locustfile.py``. Its rate is that
of an open loop, as a multiple of the capacity that an earlier phase has found: what a closed loop
without pauses is answered in a second.
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

    There are ``bodies`` different ones of it; of ``weight`` is how often it is sent beside others.
    An answer is kept to be checked about every ``sampled_seconds``.
    """

    name: str
    verb: str
    nodes: int
    bodies: int
    weight: int
    sampled_seconds: float


@dataclass(frozen=True, slots=True)
class Phase:
    """One run of locust: ``users`` by class, for how long, and whether refusals are expected.

    ``rate`` is what arrives in an open loop, by the capacity; 0 for closed loops.
    """

    name: str
    users: Mapping[str, int]
    seconds: int
    rate: float = 0.0
    saturated: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The phases in their order, and how much rarer than said by its kind an answer is kept."""

    phases: tuple[Phase, ...]
    sampling: float

    def phase(self, name: str) -> Phase:
        """Give a phase by its name. Raises KeyError."""
        return {phase.name: phase for phase in self.phases}[name]


NODES: Final = 5_000
PODS_PER_NODE: Final = 30
CHANGES_PER_SECOND: Final = 100

KINDS: Final = (
    Kind("filter-5000", "filter", 5_000, bodies=4, weight=6, sampled_seconds=1.5),
    Kind("preempt-100", "preempt", 100, bodies=12, weight=3, sampled_seconds=1.0),
    Kind("preempt-500", "preempt", 500, bodies=6, weight=1, sampled_seconds=3.0),
)
KIND: Final = {kind.name: kind for kind in KINDS}

STEADY: Final = "steady"
CAPACITY: Final = "capacity"
ECHO_CAPACITY: Final = "echo-capacity"
OPEN: Final = "open"
ABOVE: Final = "above"

_EVERYDAY: Final = {"Closed": 4, "Burst": 1, "SlowReader": 1, "SlowSender": 1}


def _plan(steady: int, flat_out: int, below: int, above: int, sampling: float) -> Plan:
    return Plan(
        (
            Phase(STEADY, _EVERYDAY, steady),
            Phase(CAPACITY, {"FlatOut": 8}, flat_out),
            Phase(ECHO_CAPACITY, {"FlatOutEcho": 8}, flat_out),
            Phase(OPEN, {"OpenLoop": 1, "SlowReader": 1}, below, rate=0.5),
            Phase(ABOVE, {"OpenLoop": 1, "SlowReader": 1}, above, rate=3.0, saturated=True),
        ),
        sampling,
    )


QUICK: Final = _plan(steady=60, flat_out=10, below=20, above=20, sampling=1.0)
"""Two minutes of load."""

FULL: Final = _plan(steady=600, flat_out=30, below=60, above=60, sampling=2.0)
"""Ten minutes at an even pace, and what the quick one does for longer."""

BURST_SECONDS: Final = 5.0
BURST_CALLS: Final = 16
"""How many calls come at once, and how often; far fewer than may wait for their turn."""


def drawn(rng: random.Random) -> Iterator[tuple[Kind, int]]:
    """Draw kinds by their weights without end, each with the number of one of its bodies."""
    numbers = {kind.name: count() for kind in KINDS}
    weights = [kind.weight for kind in KINDS]
    while True:
        [kind] = rng.choices(KINDS, weights)
        yield kind, next(numbers[kind.name]) % kind.bodies


def gaps(rng: random.Random, rate: float) -> Iterator[float]:
    """Give the seconds between arrivals that know nothing of each other, ``rate`` a second."""
    while True:
        yield rng.expovariate(rate)
