"""A trace: the nodes of a cluster and the jobs that are submitted to it over time.

A trace is read twice. The first pass counts its jobs and the rows that have to be left out, and
finds whether jobs are in order and names unique; after it the trace is known to be usable. Each
call of :meth:`Trace.jobs` reads the source again, so no job is kept in memory: the memory depends
on the nodes, not on the number of jobs. Jobs that are not in order are sorted in temporary files.

Times are nanoseconds since the first job was submitted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from fakeapi.backtest.traces.merge_sort import sort_externally
from policies.kubernetes.input_error import InputError

T = TypeVar("T")

HIGHEST_PRIORITY: Final = 10**9
"""The highest priority of a PriorityClass that is not the system's."""

_LONGEST_NAME: Final = 63
_MOST_PRIORITIES: Final = 1000
_SYSTEM_CLASSES: Final = {
    2_000_000_000: "system-cluster-critical",
    2_000_001_000: "system-node-critical",
}


class TraceError(InputError):
    """A trace cannot be used; the text names the file, the place and what was expected."""


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A node; ``allocatable`` is in milliCPU for ``cpu``, bytes for memory, else counts."""

    name: str
    allocatable: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TraceJob:
    """Pods that are submitted together, run and end.

    ``name`` is a DNS label, unique in the trace; ``tenant`` is the namespace. Each of the identical
    ``pods`` finishes by itself, after it has run for ``run_ns``. ``requests`` are those of one pod,
    in the units of :class:`TraceNode`. A node must have each label of ``node_labels``, with one of
    the values. Work is kept at each multiple of ``checkpoint_ns``: with None, a pod that is stopped
    loses all of it; with 0, none, as a service.
    """

    name: str
    tenant: str
    priority: int
    submitted_ns: int
    run_ns: int
    requests: Mapping[str, int]
    pods: int = 1
    node_labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    checkpoint_ns: int | None = None


class TracePriorityClass(NamedTuple):
    """A PriorityClass that jobs of a trace use."""

    name: str
    value: int


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How many rows were left out for one reason, and the first one, as ``file:line``."""

    count: int
    first: str

    def __str__(self) -> str:
        return f"{self.count}, first {self.first}"


class TraceRow(NamedTuple):
    """What was read from a line: a job, or the reason why the line is left out."""

    line: int
    outcome: TraceJob | str


class JobSource(Protocol):
    """A file or generator of jobs. It can be read any number of times, and pickled."""

    @property
    def name(self) -> str:
        """The name of the file, for messages."""
        ...

    def read(self) -> Iterator[TraceRow]:
        """Yield a row for each job and each line that is left out. Raise TraceError."""
        ...


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """What the first pass over a source found; times are those of the source."""

    job_count: int
    first_ns: int
    last_ns: int
    is_ordered: bool
    has_unique_names: bool
    left_out: Mapping[str, LeftOut]
    priorities: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """A workload of a backtest, or the part of it in which jobs were submitted in an interval.

    ``assumptions`` are sentences about what the source does not contain. ``priority_classes`` and
    ``summary`` are those of the whole source, also in a part.
    """

    name: str
    nodes: tuple[TraceNode, ...]
    priority_classes: tuple[TracePriorityClass, ...]
    assumptions: tuple[str, ...]
    source: JobSource
    summary: TraceSummary
    rate: int = 1
    start_ns: int = 0
    end_ns: int | None = None

    @property
    def left_out(self) -> Mapping[str, LeftOut]:
        """The rows of the whole source that were left out, by reason."""
        return self.summary.left_out

    def jobs(self) -> Iterator[TraceJob]:
        """Yield the jobs in order of submission. Each call reads the source. Raise TraceError."""
        jobs = self._read()
        if not self.summary.is_ordered:
            jobs = _sorted(jobs, TraceJob, lambda job: job.submitted_ns)
        for job in jobs:
            at = (job.submitted_ns - self.summary.first_ns) // self.rate - self.start_ns
            if self.end_ns is not None and at >= self.end_ns - self.start_ns:
                return
            if at >= 0:
                yield replace(job, submitted_ns=at)

    def between(self, start_ns: int, end_ns: int) -> Trace:
        """Return the part whose jobs were submitted from ``start_ns`` until before ``end_ns``.

        Its times count from ``start_ns``. It begins with an empty cluster: jobs that were submitted
        before and still run are not part of it.
        """
        start, end = self.start_ns + start_ns, self.start_ns + end_ns
        return replace(
            self, start_ns=start, end_ns=end if self.end_ns is None else min(end, self.end_ns)
        )

    def at_rate(self, times: int) -> Trace:
        """Return the whole trace with ``times`` as many jobs per time, which run as long."""
        return replace(self, rate=self.rate * times, start_ns=0, end_ns=None)

    def _read(self) -> Iterator[TraceJob]:
        for line, job in _fitting_rows(self.source, self.nodes):
            if isinstance(job, TraceJob):
                yield job if self.summary.has_unique_names else _numbered(job, line)


def segments(trace: Trace, number: int) -> tuple[Trace, ...]:
    """Cut a trace by time into ``number`` parts of about as many jobs each.

    There are fewer parts if too many jobs were submitted at the same time. See
    :meth:`Trace.between`. Raise TraceError.
    """
    count = last = 0
    for job in trace.jobs():
        count, last = count + 1, job.submitted_ns
    step = max(1, -(-count // number))
    starts = {job.submitted_ns for job in islice(trace.jobs(), 0, None, step)}
    return tuple(trace.between(start, end) for start, end in pairwise((*sorted(starts), last + 1)))


def read_trace(
    source: JobSource,
    nodes: Iterable[TraceNode],
    assumptions: Iterable[str],
    class_names: Mapping[int, str],
) -> Trace:
    """Read a source once, and return it as a trace; ``class_names`` are names of priorities.

    Raise TraceError if it cannot be read or no row of it is a valid job.
    """
    nodes = tuple(nodes)
    summary = _FirstPass(source.name).summarize(_fitting_rows(source, nodes))
    stated = [*assumptions]
    if not summary.has_unique_names:
        stated.append("Names repeat; the number of its line is appended to each.")
    names = {**_SYSTEM_CLASSES, **class_names}
    classes = [TracePriorityClass(names.get(n) or _class_name(n), n) for n in summary.priorities]
    return Trace(source.name, nodes, tuple(classes), tuple(stated), source, summary)


class _FirstPass:
    def __init__(self, source: str) -> None:
        self._source = source
        self._left_out: dict[str, LeftOut] = {}
        self._priorities: set[int] = set()
        self._count = 0
        self._first_ns: int | None = None
        self._last_ns = 0
        self._is_ordered = True

    def summarize(self, rows: Iterable[TraceRow]) -> TraceSummary:
        sorted_names = _sorted(self._names(rows), str, str)
        has_unique_names = True
        for one, next_one in pairwise(sorted_names):
            has_unique_names &= one != next_one
        if self._first_ns is None:
            found = "; ".join(f"{reason} ({each})" for reason, each in self._left_out.items())
            raise TraceError(f"{self._source}: no valid job: {found or 'it has no rows'}")
        return TraceSummary(
            self._count,
            self._first_ns,
            self._last_ns,
            self._is_ordered,
            has_unique_names,
            self._left_out,
            tuple(sorted(self._priorities)),
        )

    def _names(self, rows: Iterable[TraceRow]) -> Iterator[str]:
        for row in rows:
            if isinstance(row.outcome, TraceJob):
                self._add(row.outcome, row.line)
                yield row.outcome.name
            else:
                before = self._left_out.get(row.outcome, LeftOut(0, f"{self._source}:{row.line}"))
                self._left_out[row.outcome] = replace(before, count=before.count + 1)

    def _add(self, job: TraceJob, line: int) -> None:
        self._count += 1
        self._priorities.add(job.priority)
        if len(self._priorities) > _MOST_PRIORITIES:
            at = f"{self._source}:{line}"
            raise TraceError(f"{at}: expected at most {_MOST_PRIORITIES} different priorities")
        if self._first_ns is None:
            self._first_ns = self._last_ns = job.submitted_ns
        self._is_ordered &= job.submitted_ns >= self._last_ns
        self._first_ns = min(self._first_ns, job.submitted_ns)
        self._last_ns = max(self._last_ns, job.submitted_ns)


def _sorted(items: Iterable[T], type_: type[T], key: Callable[[T], Any]) -> Iterator[T]:
    try:
        yield from sort_externally(items, type_, key)
    except OSError as error:
        raise TraceError(f"temporary files: cannot be used: {error.strerror or error}") from None


def _class_name(priority: int) -> str:
    return f"priority-{priority}" if priority >= 0 else f"priority-minus-{-priority}"


def _numbered(job: TraceJob, line: int) -> TraceJob:
    suffix = f"-{line}"
    return replace(job, name=job.name[: _LONGEST_NAME - len(suffix)] + suffix)


def _fitting_rows(source: JobSource, nodes: tuple[TraceNode, ...]) -> Iterator[TraceRow]:
    """Yield the rows of a source; a job that fits no empty node becomes a reason."""
    fit_error = _fit_error_finder(nodes)
    for row in source.read():
        reason = fit_error(row.outcome) if isinstance(row.outcome, TraceJob) else ""
        yield TraceRow(row.line, reason) if reason else row


def _fit_error_finder(nodes: tuple[TraceNode, ...]) -> Callable[[TraceJob], str]:
    @lru_cache(maxsize=256)
    def shapes(labels: tuple[tuple[str, tuple[str, ...]], ...]) -> list[Mapping[str, int]]:
        """Return the different allocatable resources of the nodes that have the labels."""
        found = {
            tuple(sorted(node.allocatable.items()))
            for node in nodes
            if all(node.labels.get(key) in values for key, values in labels)
        }
        return [dict(each) for each in found]

    def fit_error(job: TraceJob) -> str:
        fitting = shapes(tuple(job.node_labels.items()))
        if any(
            all(amount <= node.get(name, 0) for name, amount in job.requests.items())
            for node in fitting
        ):
            return ""
        return "fits no node" if fitting else "no node has the labels"

    return fit_error
