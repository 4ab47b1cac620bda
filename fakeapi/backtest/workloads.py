"""Workloads of backtests: traces, recordings and ledgers, cut into segments that run alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Final, Protocol

import msgspec

from extender.kube.decoders.cluster_objects import decode_node
from extender.recording.files import Recording, RecordingError, read_recording
from fakeapi.backtest.ledger.decisions import decide_again
from fakeapi.backtest.ledger.workload import (
    LedgerWorkload,
    is_ledger,
    ledger_segments,
    open_ledger_workload,
)
from fakeapi.backtest.results import LeftOut, WorkloadSummary
from fakeapi.backtest.simulation.recording_simulation import RecordedPlan, simulate_recording
from fakeapi.backtest.simulation.resource_use import PODS, amounts_of
from fakeapi.backtest.simulation.simulated_scheduler import SimulatedPolicy
from fakeapi.backtest.simulation.trace_simulation import (
    DRAIN_NS,
    SimulationPlan,
    simulate,
    simulated_ns,
)
from fakeapi.backtest.statistics import RunStatistics
from fakeapi.backtest.traces.formats import open_trace
from fakeapi.backtest.traces.trace import Trace, TraceError, segments
from policies.kubernetes.releases import NEWEST

_RECORDING_SUFFIXES: Final = (".jsonl", ".jsonl.gz")
_RECORDED_ASSUMPTIONS: Final = (
    "Pods that did not end by themselves in the recording run until they are deleted.",
    "A pod that is stopped keeps no work.",
    "The Pods of ReplicaSets are replaced; those of other controllers only as in the recording.",
    "kube-scheduler has its default configuration.",
)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What is equal in all units: the release of kube-scheduler, and ``drain_ns`` of the plan."""

    upstream: str = NEWEST.name
    drain_ns: int = DRAIN_NS


class Workload(Protocol):
    """A segment of a workload, which can be pickled and is read where it is simulated."""

    @property
    def name(self) -> str:
        """The name, for messages."""
        ...

    def digest(self) -> str:
        """Return a hash of all that the result depends on. Raise InputError."""
        ...

    def simulate(self, policy: SimulatedPolicy, seed: int, options: RunOptions) -> RunStatistics:
        """Simulate the segment under a policy. Raise InputError and ConfigError."""
        ...


@dataclass(frozen=True, slots=True)
class OpenedWorkload:
    """A workload: its segments, and what a report says about it.

    ``seeds`` is how many seeds can lead to different results; None: any number.
    """

    summary: WorkloadSummary
    segments: tuple[Workload, ...]
    seeds: int | None = None


def open_workload(
    address: str, number: int = 1, format_name: str | None = None, nodes: Path | None = None
) -> OpenedWorkload:
    """Open a workload, and cut it into at most ``number`` segments.

    ``address`` is the file of a recording, a ledger, or a trace, see
    :func:`fakeapi.backtest.traces.formats.open_trace`. A recording is one segment, since its later
    events need the earlier ones. Raise TraceError and LedgerError.
    """
    if format_name is None and is_ledger(address):
        return _open_ledger(address, number, nodes)
    if format_name is None and address.endswith(_RECORDING_SUFFIXES):
        return _open_recording(address, number, nodes)
    trace = open_trace(address, format_name, nodes)
    parts = tuple(TraceWorkload(each) for each in segments(trace, number))
    return OpenedWorkload(summarize_trace(trace), parts)


@dataclass(frozen=True, slots=True)
class TraceWorkload:
    """A trace, or a part of it."""

    trace: Trace

    @property
    def name(self) -> str:
        """The name of the trace."""
        return self.trace.name

    def digest(self) -> str:
        """Return a hash of the nodes, priority classes, jobs and times. Raise TraceError."""
        trace = self.trace
        head = (trace.nodes, trace.priority_classes, simulated_ns(trace))
        digest = sha256(msgspec.json.encode(head))
        for job in trace.jobs():
            digest.update(msgspec.json.encode(job))
        return digest.hexdigest()

    def simulate(self, policy: SimulatedPolicy, seed: int, options: RunOptions) -> RunStatistics:
        """Simulate the jobs under a policy. Raise TraceError and ConfigError."""
        plan = SimulationPlan(self.trace, policy, seed, options.upstream, drain_ns=options.drain_ns)
        return simulate(plan)


@dataclass(frozen=True, slots=True)
class RecordedWorkload:
    """A recording, by the path of its file."""

    path: str

    @property
    def name(self) -> str:
        """The path."""
        return self.path

    def digest(self) -> str:
        """Return a hash of the events. Raise TraceError."""
        recording = _recording(self.path)
        digest = sha256(msgspec.json.encode(recording.header.start_ns))
        for event in recording.events:
            digest.update(msgspec.json.encode((event.at_ns, event.type, event.resource)))
            digest.update(event.raw)
        return digest.hexdigest()

    def simulate(self, policy: SimulatedPolicy, seed: int, options: RunOptions) -> RunStatistics:
        """Play the recording under a policy. Raise TraceError, ReplayError and ConfigError."""
        plan = RecordedPlan(_recording(self.path), policy, seed, options.upstream)
        return simulate_recording(plan)


@dataclass(frozen=True, slots=True)
class LedgerSegment:
    """A ledger, or a part of it. Its decisions are made by the release that made them."""

    part: LedgerWorkload

    @property
    def name(self) -> str:
        """The location of the ledger."""
        return self.part.summary.name

    def digest(self) -> str:
        """Return a hash of the decisions, which name their inputs by digests."""
        return sha256(msgspec.json.encode((self.part.decisions, self.part.start_ns))).hexdigest()

    def simulate(self, policy: SimulatedPolicy, seed: int, options: RunOptions) -> RunStatistics:  # noqa: ARG002
        """Make the decisions again under a policy. Raise LedgerError and ConfigError."""
        return decide_again(self.part, policy)


def summarize_trace(trace: Trace) -> WorkloadSummary:
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


def _open_recording(path: str, number: int, nodes: Path | None) -> OpenedWorkload:
    if nodes is not None or number > 1:
        option = "--nodes" if nodes is not None else "--segments"
        raise TraceError(f"{option}: a recording has its own nodes, and is one segment")
    recording = _recording(path)
    listed = [
        decode_node(event.raw)
        for event in recording.events
        if event.type == "LISTED" and event.kind == "Node"
    ]
    capacity: Counter[str] = Counter()
    for node in listed:
        capacity.update(amounts_of(node.allocatable))
    pods = {event.metadata.uid for event in recording.events if event.kind == "Pod"}
    summary = WorkloadSummary(
        path,
        len(listed),
        len(pods),
        recording.duration_ns,
        dict(capacity),
        _RECORDED_ASSUMPTIONS,
        (LeftOut("truncated", 1, recording.truncated_at),) if recording.truncated_at else (),
    )
    return OpenedWorkload(summary, (RecordedWorkload(path),))


def _open_ledger(location: str, number: int, nodes: Path | None) -> OpenedWorkload:
    if nodes is not None:
        raise TraceError("--nodes: a ledger has its own nodes")
    ledger = open_ledger_workload(location)
    parts = tuple(LedgerSegment(each) for each in ledger_segments(ledger, number))
    return OpenedWorkload(ledger.summary, parts, seeds=1)


@lru_cache(maxsize=1)
def _recording(path: str) -> Recording:
    try:
        return read_recording(path)
    except RecordingError as error:
        raise TraceError(str(error)) from None
