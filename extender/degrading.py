"""What is answered when no decision can be: too late, on a stale cluster, or too much asked.

    case        when                                              looked at
    late        the verb's deadline has passed since the header   at its turn, and between nodes
    stale       the API server is silent for too long             at its turn
    overloaded  too many calls wait                               on arrival

The configuration says for each case and verb what stands in. An *error* leaves it to
kube-scheduler, whose configuration says whether the extender is ignorable. A *veto* refuses every
node for now, so that the pod waits and is tried again. An *echo* steps aside: every node that was
asked about fits, every victim that was offered goes. Neither is a decision: none of it is counted
as one, nor remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from msgspec import structs

from extender.config import Config
from extender.verdict import Substitute


class Case(Enum):
    """Why no decision can be answered."""

    LATE = "late"
    STALE = "stale"
    OVERLOADED = "overloaded"


class DegradedError(RuntimeError):
    """No decision can be answered, and the configuration has an error stand in."""


@dataclass(frozen=True, slots=True)
class Degradation:
    """When a decision cannot be answered, and what stands in; seconds.

    What is not named has a deadline of 200 ms and an error standing in.
    """

    deadlines: Mapping[str, float] = field(default_factory=dict)
    stale_seconds: float = 180.0
    substitutes: Mapping[tuple[Case, str], Substitute] = field(default_factory=dict)

    def deadline(self, verb: str) -> float:
        """Return how long a call may take."""
        return self.deadlines.get(verb, 0.2)

    def substitute(self, case: Case, verb: str) -> Substitute:
        """Return what stands in."""
        return self.substitutes.get((case, verb), Substitute.ERROR)

    def stand_ins(self, verbs: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        """Return all that may stand in for a decision: verb, case and answer."""
        for verb in verbs:
            for case in Case:
                yield verb, case.value, self.substitute(case, verb).value


def degradation_of(config: Config) -> Degradation:
    """Read the configuration."""
    deadlines: dict[str, int] = structs.asdict(config.deadline_milliseconds)
    by_case = {
        Case.LATE: config.degraded.late,
        Case.STALE: config.degraded.stale,
        Case.OVERLOADED: config.degraded.overloaded,
    }
    return Degradation(
        {verb: milliseconds / 1000 for verb, milliseconds in deadlines.items()},
        config.stale_seconds,
        {
            (case, verb): substitute
            for case, substitutes in by_case.items()
            for verb, substitute in structs.asdict(substitutes).items()
        },
    )
