"""Criteria that compare candidates by what would follow a preemption.

To count that takes long, so it is counted for a shortlist of candidates only: the first
:data:`SHORTLIST` of those that equal the best one by all earlier criteria, in the order of the
later criteria. Any other candidate counts as worse. For example, with the criteria *fewest
victims*, *least cascade* and *lowest priority*, and a shortlist of two:

    candidate   victims   priority   cascade
    a           1         5          2
    b           1         7          1
    c           1         9          not counted
    d           2         1          not counted

b is the best, then a, c and d. What was counted is part of the decision. Counting ends early when
no other candidate can be better than the best two, which is all that a decision reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from policies.kubernetes.criteria import Criterion
from policies.preemption.consequences.simulation import Simulation, replacements
from policies.preemption.decision import Candidate
from policies.preemption.time_limit import DeadlineExceededError

SHORTLIST: Final = 16
BEST_TWO: Final = 2
MOST_ROUNDS: Final = 8
MOST_DISRUPTIONS: Final = 64
NOT_COUNTED: Final = 2**62

Consequences = Mapping[str, Mapping[str, int]]
"""What was counted for the candidates of a decision, by the criterion's name and the node's."""


@dataclass(frozen=True, slots=True)
class ConsequenceCriterion:
    """Prefers the candidate with the smallest ``count``, which is at least ``least``.

    ``counted`` is what is counted, as the head of a column. See the module about ``shortlist``.
    """

    name: str
    counted: str
    count: Callable[[Candidate, Simulation], int]
    least: Callable[[Candidate], int]
    shortlist: int = SHORTLIST

    def bind(self, consequences: Consequences) -> CountedCriterion:
        """Return the criterion for a decision with these consequences."""
        counts = consequences.get(self.name, {})
        return CountedCriterion(
            self.name,
            lambda candidate: counts.get(candidate.node, NOT_COUNTED),
            self.counted,
            counts,
        )


@dataclass(frozen=True, slots=True)
class CountedCriterion(Criterion[Candidate]):
    """A criterion over consequences in a decision; ``counts`` are by node."""

    counted: str
    counts: Mapping[str, int]


def count_consequences(
    criterion: ConsequenceCriterion,
    shortlist: Sequence[Candidate],
    simulation: Simulation,
    enough: int,
) -> Mapping[str, int]:
    """Return what follows each candidate of a shortlist, by node.

    Counting ends when no later candidate can be better than ``enough`` others, or with the time.
    One count alone would compare nothing, so there are either two or none.
    """
    counted: dict[str, int] = {}
    least = [criterion.least(each) for each in shortlist] if len(shortlist) > 1 else []
    for place in range(len(least)):
        if sum(count <= min(least[place:]) for count in counted.values()) >= enough:
            break
        try:
            counted[shortlist[place].node] = criterion.count(shortlist[place], simulation)
        except DeadlineExceededError:
            break
    return counted if len(counted) > 1 else {}


def count_stranded(candidate: Candidate, simulation: Simulation) -> int:
    """Return how many victims have no node that they fit once the preemptor is placed.

    They may come back on the same node. One after another is placed, the most important first, and
    the next one has to fit beside it. A victim without a controller does not come back, so it
    counts.
    """
    cluster = simulation.cluster.after(simulation.preemptor, candidate)
    stranded = len(candidate.victims.pods)
    for pod in replacements(candidate.victims.pods):
        node = simulation.find_node(pod, cluster)
        if node is not None:
            cluster = cluster.placing(pod, node)
            stranded -= 1
    return stranded


def count_cascade(candidate: Candidate, simulation: Simulation) -> int:
    """Return how many pods are evicted until nothing changes, the candidate's victims included.

    The replacements of the victims are placed one after another, the most important first. One that
    fits nowhere preempts by the same policy, and the replacements of its victims follow in the next
    round. It ends after MOST_ROUNDS rounds, or with MOST_DISRUPTIONS evictions.
    """
    cluster = simulation.cluster.after(simulation.preemptor, candidate)
    leaving, disruptions = candidate.victims.pods, len(candidate.victims.pods)
    for _ in range(MOST_ROUNDS):
        returning, leaving = tuple(replacements(leaving)), ()
        for pod in returning:
            node = simulation.find_node(pod, cluster)
            if node is not None:
                cluster = cluster.placing(pod, node)
            elif (chosen := simulation.choose(pod, cluster)) is not None:
                cluster = cluster.after(pod, chosen)
                leaving += chosen.victims.pods
                disruptions += len(chosen.victims.pods)
            if disruptions >= MOST_DISRUPTIONS:
                return disruptions
    return disruptions


def _count_lost(candidate: Candidate) -> int:
    return sum(pod.owner is None for pod in candidate.victims.pods)


def _count_victims(candidate: Candidate) -> int:
    return len(candidate.victims.pods)


_CRITERIA: Final = (
    ConsequenceCriterion(
        "most victims that can run elsewhere", "fit nowhere", count_stranded, _count_lost
    ),
    ConsequenceCriterion("least cascade", "evictions in all", count_cascade, _count_victims),
)
CONSEQUENCE_CRITERIA: Final[Mapping[str, ConsequenceCriterion]] = {c.name: c for c in _CRITERIA}
"""The criteria over consequences, by name."""
