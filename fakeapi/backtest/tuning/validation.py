"""The chosen policy on segments that the search has not seen, compared with the base policy.

An improvement is the share of the base policy's value by which the chosen one is better, in each
seed. Shares can be compared between training and held-out segments, which have other numbers of
jobs. The gap is how much less the improvement is on held-out segments. For example:

    seed    training          held out         gap
    0       100 → 60, 40 %    50 → 40, 20 %    20 %
    1       100 → 70, 30 %    60 → 54, 10 %    20 %    on average, 20 % are due to chance

A search tries many policies and chooses by the training segments, so a gap above 0 is to be
expected: some of what is best there is so by chance. The chosen policy is recommended if it is
better on the held-out segments in one objective, and in none worse, where the interval of the
difference excludes 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

from fakeapi.backtest.report.estimates import Estimate, estimate
from fakeapi.backtest.tuning.objectives import Objective

Change = Literal["better", "worse", "uncertain"]
Values = Sequence[Mapping[int, float]]
"""The values of a policy: by seed, for each objective."""


class PartComparison(Struct, frozen=True, rename="camel"):
    """The base and the chosen policy on some segments, by one objective; None without a value.

    ``difference`` is that of the chosen to the base policy, paired by seeds. ``improvement`` is a
    share of the base's value: seeds in which that is 0 have none, unless both are.
    """

    base: Estimate | None
    chosen: Estimate | None
    difference: Estimate | None
    improvement: Estimate | None
    change: Change


class ObjectiveValidation(Struct, frozen=True, rename="camel"):
    """An objective on training and held-out segments; ``gap`` is that of the improvements."""

    objective: str
    training: PartComparison
    held_out: PartComparison
    gap: Estimate | None


@dataclass(frozen=True, slots=True)
class ComparedValues:
    """The values of the base and the chosen policy on the same segments."""

    base: Values
    chosen: Values


def validate(
    objectives: Sequence[Objective], training: ComparedValues, held_out: ComparedValues
) -> tuple[ObjectiveValidation, ...]:
    """Return how the chosen policy compares in each objective, in training and on held-out time."""
    return tuple(
        ObjectiveValidation(
            objective.name,
            _compare(objective, training.base[place], training.chosen[place]),
            _compare(objective, held_out.base[place], held_out.chosen[place]),
            _gap(
                _improvements(objective, training.base[place], training.chosen[place]),
                _improvements(objective, held_out.base[place], held_out.chosen[place]),
            ),
        )
        for place, objective in enumerate(objectives)
    )


def is_recommended(validated: Iterable[ObjectiveValidation]) -> bool:
    """Return whether the chosen policy is certainly better on held-out segments, and not worse."""
    changes = {each.held_out.change for each in validated}
    return "better" in changes and "worse" not in changes


def _compare(
    objective: Objective, base: Mapping[int, float], chosen: Mapping[int, float]
) -> PartComparison:
    difference = estimate(chosen[seed] - base[seed] for seed in base if seed in chosen)
    improvement = estimate(_improvements(objective, base, chosen).values())
    change: Change = "uncertain"
    if difference is not None and difference.excludes_zero:
        change = "better" if objective.loss(difference.mean) < 0 else "worse"
    return PartComparison(
        estimate(base.values()), estimate(chosen.values()), difference, improvement, change
    )


def _improvements(
    objective: Objective, base: Mapping[int, float], chosen: Mapping[int, float]
) -> dict[int, float]:
    """Return by which share of the base's value the chosen policy is better, by seed."""
    found = {}
    for seed, value in base.items():
        if seed in chosen and (value or not chosen[seed]):
            better = objective.loss(value) - objective.loss(chosen[seed])
            found[seed] = better / value if value else 0.0
    return found


def _gap(training: Mapping[int, float], held_out: Mapping[int, float]) -> Estimate | None:
    return estimate(training[seed] - held_out[seed] for seed in training if seed in held_out)
