"""The units of a backtest: each is simulated by itself, in any process, in any order.

A unit is a segment of the workload, a policy and a seed. Its key is a hash of all that determines
its result: the content of the segment, the text of the policy, the seed and the release. So
results that were kept under their keys are used again only for the same input.

A unit names the file of its workload, which is read where the unit runs. A worker that finds other
content there, or is of another version of this project, refuses the unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from socket import gethostname

import msgspec

from extender.config.preemption_policy import build_policy, read_policy_source
from extender.config.strict_decoding import ConfigError
from extender.terminal.program import program_version
from fakeapi.backtest.results import UnitResult
from fakeapi.backtest.simulation.simulated_scheduler import STOCK, SimulatedPolicy
from fakeapi.backtest.workloads import RunOptions, Workload
from policies.kubernetes.input_error import InputError


class UnitError(InputError):
    """A worker cannot run a unit; the text names the worker and what was expected."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit, which can be pickled. ``digest`` is the workload's, ``version`` the project's."""

    workload: Workload
    segment: int
    policy: SimulatedPolicy
    seed: int
    options: RunOptions
    digest: str
    version: str

    @property
    def key(self) -> str:
        """A hash of all that determines the result of the unit, as hexadecimal digits."""
        text = None if self.policy.source is None else self.policy.source.text
        parts = (
            *(self.version, self.digest, self.segment, self.policy.name, text, self.seed),
            *(self.options.upstream, self.options.drain_ns),
        )
        return sha256(msgspec.json.encode(parts)).hexdigest()


def plan_units(
    segments: Sequence[Workload],
    policies: Sequence[SimulatedPolicy],
    seeds: int,
    options: RunOptions,
) -> tuple[Unit, ...]:
    """Return the units of a backtest, all of the first seed first. Raise InputError.

    So if the backtest is interrupted, most seeds have results of either all policies or none.
    """
    digests, version = [each.digest() for each in segments], program_version()
    return tuple(
        Unit(workload, segment, policy, seed, options, digests[segment], version)
        for seed in range(seeds)
        for segment, workload in enumerate(segments)
        for policy in policies
    )


def run_unit(unit: Unit) -> UnitResult:
    """Run a unit. Raise UnitError, ConfigError, and InputError for the workload."""
    if program_version() != unit.version:
        raise UnitError(
            f"worker {gethostname()}: expected version {unit.version} of reprieve, found "
            f"{program_version()}"
        )
    if unit.workload.digest() != unit.digest:
        raise UnitError(
            f"{unit.workload.name}: expected the same content on all workers during the backtest; "
            f"it differs on {gethostname()}"
        )
    statistics = unit.workload.simulate(unit.policy, unit.seed, unit.options)
    return UnitResult(unit.policy.name, unit.seed, unit.segment, statistics)


def read_policies(names: Sequence[str]) -> tuple[SimulatedPolicy, ...]:
    """Return policies by name or file, under the names that reports show. Raise ConfigError."""
    policies = tuple(map(_read_policy, names))
    for name, count in Counter(policy.name for policy in policies).items():
        if count > 1:
            raise ConfigError(f"--policy: expected different names; {count} policies have {name!r}")
    return policies


def _read_policy(name: str) -> SimulatedPolicy:
    if name == STOCK:
        return SimulatedPolicy(STOCK, None)
    source = read_policy_source(name)
    return SimulatedPolicy(build_policy(source).name, source)
