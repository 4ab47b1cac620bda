"""The objectives of a search: measures of the report, by the names that options have.

An option names a measure as JSON reports do, with hyphens: ``disruptions``, ``finished-pods``,
``lost-gpu-hours``. A measure that several resources have is named with one: ``lost-share:cpu``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from extender.config.strict_decoding import ConfigError
from fakeapi.backtest.report.measures import Measure, hours_unit, simulation_values
from fakeapi.backtest.results import BacktestResults, WorkloadSummary, statistics_by_seed
from fakeapi.backtest.statistics import RunStatistics
from policies.kubernetes.input_error import similar_name

Direction = Literal["minimize", "maximize"]

_MOST: Final = 2
_BETTER: Final[Mapping[Direction, str]] = {"minimize": "lower", "maximize": "higher"}
_CAPITAL: Final = re.compile("([A-Z])")


@dataclass(frozen=True, slots=True)
class Objective:
    """A measure by its name in options, and in which direction the search changes it."""

    name: str
    measure: Measure
    direction: Direction

    def loss(self, value: float) -> float:
        """Return a value as a number of which less is better."""
        return value if self.direction == "minimize" else -value


def parse_objectives(
    minimize: Iterable[str], maximize: Iterable[str], workload: WorkloadSummary
) -> tuple[Objective, ...]:
    """Return the objectives of the options. Raise ConfigError."""
    known = measure_names(workload)
    found = (
        *(_objective("minimize", name, known) for name in minimize),
        *(_objective("maximize", name, known) for name in maximize),
    )
    if not 1 <= len(found) <= _MOST or len({each.measure for each in found}) < len(found):
        raise ConfigError(
            "--minimize, --maximize: expected one or two different measures; found "
            f"{', '.join(each.name for each in found) or 'none'}"
        )
    return found


def measure_names(workload: WorkloadSummary) -> Mapping[str, Measure]:
    """Return the measures of a workload, by their names in options."""
    known = workload.measures
    measures = [
        each
        for each in simulation_values(RunStatistics(), sorted(workload.capacity))
        if known is None or each.name in known
    ]
    counts = Counter(map(_short_name, measures))
    return {
        name if counts[name] == 1 else f"{name}:{measure.resource}": measure
        for measure in measures
        for name in (_short_name(measure),)
    }


def _short_name(measure: Measure) -> str:
    if measure.name == "lostHours":
        return f"lost-{hours_unit(measure.resource).lower()}"
    return _CAPITAL.sub(r"-\1", measure.name).lower()


def _objective(direction: Direction, name: str, known: Mapping[str, Measure]) -> Objective:
    measure = known.get(name)
    if measure is None:
        similar = similar_name(name, known)
        hint = f"did you mean {similar}? " if similar else ""
        raise ConfigError(
            f"--{direction} {name}: unknown measure; {hint}expected one of {', '.join(known)}"
        )
    if measure.better not in ("neither", _BETTER[direction]):
        (other,) = (each for each in _BETTER if each != direction)
        raise ConfigError(
            f"--{direction} {name}: {measure.better} is better; expected --{other} {name}"
        )
    return Objective(name, measure, direction)


def values_by_seed(
    results: BacktestResults, policy: str, objectives: Sequence[Objective]
) -> tuple[Mapping[int, float], ...]:
    """Return the values of a policy over all segments: by seed, for each objective."""
    resources = sorted(results.workload.capacity)
    runs = statistics_by_seed(results, policy)
    values = {seed: simulation_values(run, resources) for seed, run in runs.items()}
    return tuple(
        {
            seed: value
            for seed, found in values.items()
            if (value := found[each.measure]) is not None
        }
        for each in objectives
    )
