"""Small traces, their units, and a trace that ends the workers that simulate it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fakeapi.backtest.traces.formats import open_trace
from fakeapi.backtest.traces.trace import JobSource, Trace, TraceRow, segments
from fakeapi.backtest.units import Unit, plan_units, read_policies
from fakeapi.backtest.workloads import RunOptions, TraceWorkload

SMALL = "synthetic:nodes=3,pods=20,days=1,load=3"
"""A trace with two preemptions, which takes half a second."""

NODES = "name,cpu,memory\nnode-1,8,32Gi\nnode-2,8,32Gi\n"
JOBS = """\
name,tenant,priority,submit,duration,cpu,memory,gpu,pods,checkpoint
train,research,0,0,600,4,8Gi,0,2,60
serve,web,1000,30,300,3,4Gi,0,1,0
batch,research,0,60,900,2,4Gi,0,2,
"""
POLICY = """\
apiVersion: reprieve.dev/v1alpha1
kind: PreemptionPolicy
metadata: {name: cheap}
rules: [{name: default, candidates: [least lost work]}]
"""

OPTIONS = RunOptions(drain_ns=3600 * 10**9)


def planned(
    trace: Trace, policies: Sequence[str] = ("stock",), seeds: int = 1, parts: int = 1
) -> tuple[Unit, ...]:
    """Return the units of a trace that is simulated for an hour after its last job."""
    cut = [TraceWorkload(each) for each in segments(trace, parts)]
    return plan_units(cut, read_policies(policies), seeds, OPTIONS)


def ending_workers(times: int, log: Path) -> Trace:
    """Return the small trace; the first ``times`` simulations of it are killed halfway.

    ``log`` is a file that has a byte for each of them.
    """
    trace = open_trace(SMALL)
    return replace(trace, source=EndingSource(trace.source, times, log))


@dataclass(frozen=True)
class EndingSource:
    """A source of jobs that kills the process which simulates them."""

    source: JobSource
    times: int
    log: Path

    @property
    def name(self) -> str:
        return self.source.name

    def read(self) -> Iterator[TraceRow]:
        for place, row in enumerate(self.source.read()):
            if place == 10 and is_simulating() and self._count() <= self.times:
                os.kill(os.getpid(), signal.SIGKILL)
            yield row

    def _count(self) -> int:
        """Return how many simulations have come this far."""
        with self.log.open("ab") as log:
            log.write(b".")
        return self.log.stat().st_size


def is_simulating() -> bool:
    """Return whether this is called within a simulation."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
