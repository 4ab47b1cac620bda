"""Which of the policies that were tried is chosen.

With one objective, it is the best. With two, those on the Pareto front are candidates: no other is
better in one objective and at least as good in the other. Policies that are better than the base in
one and not worse in the other come first. Of these, or else of the whole front, the knee is chosen:
the point nearest to the best values of both, each scaled to its range on the front. For example::

    disruptions  finished pods
            100            900    the base
             60            880    the knee: no policy is better than the base in both
             50            700

Of equal policies, the first that was tried is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, hypot

from extender.config.policy_file import PolicyFile
from fakeapi.backtest.simulation.simulated_scheduler import SimulatedPolicy
from fakeapi.backtest.tuning.objectives import Objective


@dataclass(frozen=True, slots=True)
class TriedPolicy:
    """A policy, the first trial that had it, and its values: by seed, for each objective."""

    trial: int
    policy: SimulatedPolicy
    file: PolicyFile
    values: tuple[Mapping[int, float], ...]

    def means(self) -> tuple[float, ...]:
        """Return the mean of each objective over all seeds."""
        return tuple(fsum(found.values()) / len(found) for found in self.values)

    def losses(self, objectives: Sequence[Objective]) -> tuple[float, ...]:
        """Return the means as numbers of which less is better."""
        pairs = zip(objectives, self.means(), strict=True)
        return tuple(objective.loss(mean) for objective, mean in pairs)


def pareto_front(
    tried: Sequence[TriedPolicy], objectives: Sequence[Objective]
) -> tuple[TriedPolicy, ...]:
    """Return the policies than which no other is better, one for each combination of values."""
    first_by_losses: dict[tuple[float, ...], TriedPolicy] = {}
    for each in tried:
        first_by_losses.setdefault(each.losses(objectives), each)
    return tuple(
        first_by_losses[losses]
        for losses in sorted(first_by_losses)
        if not any(_dominates(other, losses) for other in first_by_losses)
    )


def choose(tried: Sequence[TriedPolicy], objectives: Sequence[Objective]) -> TriedPolicy:
    """Return the chosen policy; the first of ``tried`` is the base policy."""
    front = {each.losses(objectives): each for each in pareto_front(tried, objectives)}
    base = tried[0].losses(objectives)
    best = [min(losses) for losses in zip(*front, strict=True)]
    ranges = [max(losses) - min(losses) for losses in zip(*front, strict=True)]

    def distance(losses: tuple[float, ...]) -> float:
        scaled = zip(losses, best, ranges, strict=True)
        return hypot(*((loss - least) / (width or 1) for loss, least, width in scaled))

    candidates = [losses for losses in front if _dominates(losses, base)] or [*front]
    return front[min(candidates, key=distance)]


def _dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
