"""The search for better policies, by Optuna's tree-structured Parzen estimator.

It asks for a batch of policies at a time, whose size does not depend on the number of workers, and
learns the values of all of them before the next batch. So a seed finds the same policies on any
machine. The first trial is the base policy. A policy that was tried before is not simulated again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec
import optuna
from optuna.trial import Trial, TrialState

from extender.config.policy_file import PolicyFile
from extender.config.preemption_policy import PolicySource
from extender.config.strict_decoding import ConfigError
from fakeapi.backtest.results import BacktestResults
from fakeapi.backtest.simulation.simulated_scheduler import SimulatedPolicy
from fakeapi.backtest.tuning.objectives import Objective, values_by_seed
from fakeapi.backtest.tuning.search_space import (
    STEPS,
    BaseParameters,
    policy_text,
    vary_policy,
)
from fakeapi.backtest.tuning.selection import TriedPolicy

BATCH: Final = 8
"""How many policies are asked for before the values of the first are known."""


class StoppedError(Exception):
    """The user has stopped the tuning."""


class Evaluate(Protocol):
    """Simulates policies on some segments of a workload, with all seeds."""

    def __call__(self, policies: Sequence[SimulatedPolicy], segments: range) -> BacktestResults:
        """Return the results of all policies. Raise StoppedError if the user stops it."""
        ...


class TrialParameters:
    """The parameters that Optuna suggests in a trial."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial

    def choose(self, name: str, options: Sequence[str], base: str) -> str:  # noqa: ARG002
        """Return one of the options."""
        return self._trial.suggest_categorical(name, options)

    def scale(self, name: str) -> int:
        """Return an exponent."""
        return self._trial.suggest_int(name, -STEPS, STEPS)


class PolicySearch:
    """A search on the training segments; ``tried`` has the base policy first, if it is not empty.

    ``trials`` counts the trials that have finished, also those of a policy that was tried before.
    """

    def __init__(
        self,
        base: SimulatedPolicy,
        file: PolicyFile,
        objectives: Sequence[Objective],
        seed: int,
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        directions = [each.direction for each in objectives]
        self._study = optuna.create_study(directions=directions, sampler=sampler)
        self._base, self._file, self._objectives = base, file, objectives
        self._values: dict[bytes, tuple[float, ...] | None] = {}
        self.tried: list[TriedPolicy] = []
        self.trials = 0
        parameters = BaseParameters()
        vary_policy(file, parameters)
        self._study.enqueue_trial(parameters.values)

    def run(self, evaluate: Evaluate, segments: range, trials: int) -> None:
        """Run trials; if the user stops it, those of the last batch are lost.

        Raise StoppedError if that was the first batch, ConfigError if the base policy has no
        value of an objective, and errors of ``evaluate``.
        """
        try:
            while self.trials < trials:
                self._run_batch(evaluate, segments, min(BATCH, trials - self.trials))
        except StoppedError:
            if not self.tried:
                raise

    def _run_batch(self, evaluate: Evaluate, segments: range, size: int) -> None:
        asked = [self._ask() for _ in range(size)]
        new: dict[bytes, tuple[Trial, PolicyFile]] = {}
        for trial, file in asked:
            key = _key(file)
            if key not in self._values:
                new.setdefault(key, (trial, file))
        policies = {key: self._policy(trial.number, file) for key, (trial, file) in new.items()}
        if policies:
            results = evaluate([*policies.values()], segments)
            for key, (trial, file) in new.items():
                self._values[key] = self._add(trial.number, policies[key], file, results)
        for trial, file in asked:
            values = self._values[_key(file)]
            self._study.tell(trial, values, TrialState.FAIL if values is None else None)
        self.trials += size

    def _ask(self) -> tuple[Trial, PolicyFile]:
        trial = self._study.ask()
        return trial, vary_policy(self._file, TrialParameters(trial))

    def _policy(self, number: int, file: PolicyFile) -> SimulatedPolicy:
        name = f"trial-{number}"
        if file == self._file:
            return SimulatedPolicy(name, self._base.source)
        return SimulatedPolicy(name, PolicySource(f"{name}.yaml", policy_text(file)))

    def _add(
        self, trial: int, policy: SimulatedPolicy, file: PolicyFile, results: BacktestResults
    ) -> tuple[float, ...] | None:
        """Add a policy that was simulated, and return its values; None if a seed has none."""
        values = values_by_seed(results, policy.name, self._objectives)
        for objective, found in zip(self._objectives, values, strict=True):
            if len(found) < results.seeds and not self.tried:
                raise _no_value(objective)
            if len(found) < results.seeds:
                return None
        tried = TriedPolicy(trial, policy, file, values)
        self.tried.append(tried)
        return tried.means()


def _key(file: PolicyFile) -> bytes:
    return msgspec.json.encode(file)


def _no_value(objective: Objective) -> ConfigError:
    return ConfigError(
        f"--{objective.direction} {objective.name}: expected a measure that the base policy has in "
        "the training segments with each seed"
    )
