"""Simulations of policies on some segments of a workload, as the search asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from extender.terminal.program import log_line
from fakeapi.backtest.executors import Finished, Workers, run_units
from fakeapi.backtest.results import BacktestResults
from fakeapi.backtest.simulation.simulated_scheduler import SimulatedPolicy
from fakeapi.backtest.tuning.search import StoppedError
from fakeapi.backtest.units import plan_units
from fakeapi.backtest.workloads import OpenedWorkload, RunOptions


@dataclass(frozen=True, slots=True)
class SegmentRunner:
    """Runs units on workers with so many seeds, and calls ``advance`` after each."""

    workload: OpenedWorkload
    seeds: int
    options: RunOptions
    workers: Workers
    finished: Finished
    advance: Callable[[], None]

    def __call__(self, policies: Sequence[SimulatedPolicy], segments: range) -> BacktestResults:
        """Return the results of all policies but those whose workers have ended too often.

        Raise StoppedError if ``finished`` stops it, UnitError, ConfigError, and InputError for the
        workload.
        """
        parts = self.workload.segments[segments.start : segments.stop]
        units = plan_units(parts, policies, self.seeds, self.options)
        results = []
        for _, result in run_units(self.workers, units, self.finished):
            self.advance()
            results.append(result)
        if len(results) < len(units):
            raise StoppedError
        found = [each for each in results if each is not None]
        missing = len(units) - len(found)
        if missing:
            log_line(f"{missing} of {len(units)} units have no result: their workers ended")
        found.sort(key=lambda result: (result.policy, result.seed, result.segment))
        names = tuple(each.name for each in policies)
        return BacktestResults(
            self.workload.summary, names, self.seeds, len(parts), tuple(found), missing
        )
