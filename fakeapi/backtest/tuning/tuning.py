"""The tuning of a policy: a search on training segments, and its validation on held-out ones.

The last third of the segments, in time, is held out. The chosen policy and the base policy are
simulated there only after the search.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from msgspec import Struct

from extender.config.policy_file import PolicyFile
from fakeapi.backtest.report.comparison import Comparison, compare
from fakeapi.backtest.report.estimates import Estimate, estimate
from fakeapi.backtest.simulation.simulated_scheduler import SimulatedPolicy
from fakeapi.backtest.tuning.objectives import Objective, values_by_seed
from fakeapi.backtest.tuning.search import Evaluate, PolicySearch, StoppedError
from fakeapi.backtest.tuning.selection import TriedPolicy, choose, pareto_front
from fakeapi.backtest.tuning.validation import (
    ComparedValues,
    ObjectiveValidation,
    is_recommended,
    validate,
)


@dataclass(frozen=True, slots=True)
class TuningPlan:
    """What to search: variations of ``base``, whose file is ``file``, for one or two objectives.

    ``segments`` of the workload are simulated, of which the last ``held_out`` validate.
    """

    base: SimulatedPolicy
    file: PolicyFile
    objectives: tuple[Objective, ...]
    segments: int
    held_out: int
    trials: int
    seed: int = 0

    @property
    def training_segments(self) -> range:
        """The segments of the search."""
        return range(self.segments - self.held_out)

    @property
    def held_out_segments(self) -> range:
        """The segments that the search does not see."""
        return range(self.segments - self.held_out, self.segments)


class FrontPolicy(Struct, frozen=True, rename="camel"):
    """A policy of the Pareto front: its first trial, its values in training, and its file."""

    trial: int
    values: dict[str, Estimate]
    file: PolicyFile


class Validation(Struct, frozen=True, rename="camel"):
    """The objectives of the chosen policy, and its report on the held-out segments."""

    objectives: tuple[ObjectiveValidation, ...]
    held_out: Comparison


class TuningResult(Struct, frozen=True, rename="camel"):
    """The result of a tuning.

    ``trials`` is how many have finished of those ``planned``, and ``policies`` how many different
    policies they had. The base policy is the first of the policies that were tried. ``validation``
    is None if the base policy was chosen, or if the tuning was interrupted before its end.
    ``recommended`` is the name of the chosen or of the base policy.
    """

    objectives: tuple[Objective, ...]
    planned: int
    trials: int
    policies: int
    seeds: int
    training_segments: int
    held_out_segments: int
    base: FrontPolicy
    front: tuple[FrontPolicy, ...]
    chosen: FrontPolicy
    validation: Validation | None
    recommended: str

    @property
    def is_interrupted(self) -> bool:
        """Whether the tuning ended before its last trial, or before the validation."""
        is_validated = self.validation is not None or self.chosen == self.base
        return self.trials < self.planned or not is_validated


def tune(plan: TuningPlan, evaluate: Evaluate) -> TuningResult:
    """Search and validate; if the user stops it, return the best so far.

    Raise StoppedError if that happens before the first policies were simulated; raise
    ConfigError if the base policy has no value of an objective, and errors of ``evaluate``.
    """
    search = PolicySearch(plan.base, plan.file, plan.objectives, plan.seed)
    search.run(evaluate, plan.training_segments, plan.trials)
    base, chosen = search.tried[0], choose(search.tried, plan.objectives)
    validation = None
    if chosen is not base and search.trials == plan.trials:
        validation = _validate(plan, base, chosen, evaluate)
    is_better = validation is not None and is_recommended(validation.objectives)
    return TuningResult(
        objectives=plan.objectives,
        planned=plan.trials,
        trials=search.trials,
        policies=len(search.tried),
        seeds=len(base.values[0]),
        training_segments=len(plan.training_segments),
        held_out_segments=len(plan.held_out_segments),
        base=_with_values(plan, base),
        front=tuple(
            _with_values(plan, each) for each in pareto_front(search.tried, plan.objectives)
        ),
        chosen=_with_values(plan, chosen),
        validation=validation,
        recommended=(chosen if is_better else base).file.metadata.name,
    )


def _validate(
    plan: TuningPlan, base: TriedPolicy, chosen: TriedPolicy, evaluate: Evaluate
) -> Validation | None:
    """Return the validation on the held-out segments; None if the user stops it."""
    names = [each.file.metadata.name for each in (base, chosen)]
    policies = [
        replace(each.policy, name=name) for each, name in zip((base, chosen), names, strict=True)
    ]
    try:
        results = evaluate(policies, plan.held_out_segments)
    except StoppedError:
        return None
    held_out = ComparedValues(*(values_by_seed(results, n, plan.objectives) for n in names))
    training = ComparedValues(base.values, chosen.values)
    return Validation(validate(plan.objectives, training, held_out), compare(results))


def _with_values(plan: TuningPlan, tried: TriedPolicy) -> FrontPolicy:
    values = {
        objective.name: found
        for objective, by_seed in zip(plan.objectives, tried.values, strict=True)
        if (found := estimate(by_seed.values())) is not None
    }
    return FrontPolicy(tried.trial, values, tried.file)
