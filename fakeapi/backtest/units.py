"""The units of a backtest: each is simulated by itself, in any process, in any order.

A unit is a segment of the workload, a policy and a seed. Its key is a hash of all that determines
its result: the nodes and jobs of the segment, the text of the policy, the seed and the release. So
results that were kept under their keys are used again only for the same input.

A unit names the file of its trace; jobs are read where the unit runs. A worker that finds other
jobs there, or is of another version of this project, refuses the unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from socket import gethostname

import msgspec

from extender.config.preemption_policy import build_policy, read_policy_source
from extender.config.strict_decoding import ConfigError
from extender.terminal.log_output import LogFormat, LogLevel, log_to_stderr
from extender.terminal.program import program_version
from fakeapi.backtest.resource_use import PODS
from fakeapi.backtest.results import LeftOut, UnitResult, WorkloadSummary
from fakeapi.backtest.simulated_scheduler import STOCK, SimulatedPolicy
from fakeapi.backtest.simulation import DRAIN_NS, SimulationPlan, simulate, simulated_ns
from fakeapi.backtest.traces.trace import Trace
from policies.kubernetes.input_error import InputError
from policies.kubernetes.releases import NEWEST


class UnitError(InputError):
    """A worker cannot run a unit; the text names the worker and what was expected."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What is equal in all units: the release of kube-scheduler, and ``drain_ns`` of the plan."""

    upstream: str = NEWEST.name
    drain_ns: int = DRAIN_NS


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit, which can be pickled. ``digest`` is that of the trace, ``version`` the project's."""

    trace: Trace
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
    segments: Sequence[Trace],
    policies: Sequence[SimulatedPolicy],
    seeds: int,
    options: RunOptions,
) -> tuple[Unit, ...]:
    """Return the units of a backtest, all of the first seed first. Raise TraceError.

    So if the backtest is interrupted, most seeds have results of either all policies or none.
    """
    digests, version = [trace_digest(each) for each in segments], program_version()
    return tuple(
        Unit(trace, segment, policy, seed, options, digests[segment], version)
        for seed in range(seeds)
        for segment, trace in enumerate(segments)
        for policy in policies
    )


def run_unit(unit: Unit) -> UnitResult:
    """Run a unit in this process, which then logs no more than warnings.

    Raise UnitError, TraceError and ConfigError.
    """
    log_to_stderr(LogLevel.WARNING, LogFormat.TEXT)
    if program_version() != unit.version:
        raise UnitError(
            f"worker {gethostname()}: expected version {unit.version} of reprieve, found "
            f"{program_version()}"
        )
    if trace_digest(unit.trace) != unit.digest:
        raise UnitError(
            f"{unit.trace.name}: expected the same content on all workers during the backtest; it "
            f"differs on {gethostname()}"
        )
    plan = SimulationPlan(
        unit.trace,
        unit.policy,
        unit.seed,
        unit.options.upstream,
        drain_ns=unit.options.drain_ns,
    )
    return UnitResult(unit.policy.name, unit.seed, unit.segment, simulate(plan))


def trace_digest(trace: Trace) -> str:
    """Return a hash of the nodes, priority classes, jobs and times of a trace. Raise TraceError."""
    head = (trace.nodes, trace.priority_classes, simulated_ns(trace))
    digest = sha256(msgspec.json.encode(head))
    for job in trace.jobs():
        digest.update(msgspec.json.encode(job))
    return digest.hexdigest()


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


def summarize_workload(trace: Trace) -> WorkloadSummary:
    """Return what a report says about a whole trace."""
    capacity: Counter[str] = Counter()
    for node in trace.nodes:
        capacity.update({name: n for name, n in node.allocatable.items() if name != PODS})
    return WorkloadSummary(
        trace.name,
        len(trace.nodes),
        trace.summary.job_count,
        simulated_ns(trace),
        dict(capacity),
        trace.assumptions,
        tuple(_left_out(trace)),
    )


def _left_out(trace: Trace) -> Iterator[LeftOut]:
    for reason, found in trace.left_out.items():
        yield LeftOut(reason, found.count, found.first)
