"""The figures of a run, which have budgets: ratios to the echo, refusals, memory."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.bench.budgets import Figure, NamedFigures, untimed
from tests.bench.timing import Latency, latency, milliseconds
from tests.load.answer_check import Checked
from tests.load.error_counts import error_counts
from tests.load.mixes import (
    ABOVE,
    CAPACITY,
    CHANGES_PER_SECOND,
    ECHO_CAPACITY,
    FILTERS,
    FILTERS_BESIDE,
    KINDS,
    OPEN,
    STEADY,
)
from tests.load.records import ANSWERED, ECHO, REPRIEVE, Call, select

NEVER_NOISE: Final = frozenset({"wrong", "unchecked", "errors", "unclean-above"})
"""Figures that no noise of the machine excuses; others over their limit are measured once more."""

MIB: Final = 2**20
_SETTLING: Final = 0.25
"""The share of the steady phase in which memory may still grow."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The resident memory of the extender at a time, in bytes."""

    phase: str
    at: float
    resident: int


@dataclass(frozen=True, slots=True)
class Share:
    """Processor seconds by process in a phase that took so many seconds."""

    phase: str
    seconds: float
    processor: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of a run; ``due`` is the number of answers to be checked by kind.

    ``preempting`` are the seconds of the preempt decisions beside filter calls.
    """

    calls: Sequence[Call]
    moments: Sequence[Moment]
    shares: Sequence[Share]
    checked: Checked
    due: Mapping[str, float]
    changes: int
    change_seconds: float
    preempting: Sequence[float] = ()


def figures(found: Outcome) -> dict[str, Figure]:
    """Return every figure by its name."""
    return dict(
        [
            *_latencies(found.calls),
            *_bursts(found.calls),
            *_filter_wait(found),
            *_capacity(found.calls),
            *_processor(found),
            *error_counts(found.calls),
            *_open(found.calls),
            *_memory(found.moments),
            *_answers(found.checked),
            *_evidence(found),
            *_around(found),
        ]
    )


def rate(calls: Sequence[Call]) -> float:
    """Return the number of calls that were answered in a second."""
    answered = [call for call in calls if call.outcome == ANSWERED]
    if len(answered) < 2:
        return 0.0
    begun = min(call.started for call in answered)
    return len(answered) / (max(call.ended for call in answered) - begun)


def _latencies(calls: Sequence[Call]) -> NamedFigures:
    for kind in KINDS:
        ours, echo = (
            _latency(select(calls, STEADY, target, "Closed", kind.name))
            for target in (REPRIEVE, ECHO)
        )
        if ours is None or echo is None:
            continue
        both = {
            "p50": (ours.p50, echo.p50),
            "p95": (ours.p95, echo.p95),
            "p99": (ours.p99, echo.p99),
        }
        for name, (taken, bare) in both.items():
            shown = f"{taken / bare:.2f}: {milliseconds(taken)} by {milliseconds(bare)}"
            what = f"{kind.name} by the echo: {name} of {ours.rounds:,}"
            yield f"{kind.name}-{name}", untimed(what, shown, taken / bare)


def _bursts(calls: Sequence[Call]) -> NamedFigures:
    ours, echo = (_latency(select(calls, STEADY, each, "Burst")) for each in (REPRIEVE, ECHO))
    if ours is not None and echo is not None:
        shown = f"{ours.p99 / echo.p99:.2f}: {milliseconds(ours.p99)} by {milliseconds(echo.p99)}"
        yield "burst-p99", untimed("bursts by the echo: p99", shown, ours.p99 / echo.p99)


def _filter_wait(found: Outcome) -> NamedFigures:
    """Compare what filter calls wait longer beside preempt calls with one of their decisions."""
    alone, beside = (
        _latency(select(found.calls, phase, user="Filtering"))
        for phase in (FILTERS, FILTERS_BESIDE)
    )
    if alone is None or beside is None or not found.preempting:
        return
    waited, decision = beside.p99 - alone.p99, latency(found.preempting).p99
    shown = f"{waited / decision:.2f}: {milliseconds(waited)} by {milliseconds(decision)}"
    what = f"wait of filter calls for preempt calls, by one decision: p99 of {beside.rounds:,}"
    yield "filter-wait", untimed(what, shown, waited / decision)


def _latency(calls: Sequence[Call]) -> Latency | None:
    taken = [call.seconds for call in calls if call.outcome == ANSWERED]
    return latency(taken) if taken else None


def _capacity(calls: Sequence[Call]) -> NamedFigures:
    ours = rate(select(calls, CAPACITY))
    echo = rate(select(calls, ECHO_CAPACITY, ECHO))
    if ours and echo:
        shown = f"{echo / ours:.2f}: {ours:,.0f} a second, the echo {echo:,.0f}"
        yield "capacity", untimed("the echo's answers in a second by ours", shown, echo / ours)
    above = rate(select(calls, ABOVE))
    if ours and above:
        shown = f"{above:,.0f} a second"
        what = "answers in a second flat out, by those above saturation"
        yield "above-rate", untimed(what, shown, ours / above)


def _open(calls: Sequence[Call]) -> NamedFigures:
    taken = _latency(select(calls, OPEN, user="OpenLoop"))
    if taken is not None:
        shown = f"p50 {milliseconds(taken.p50)}, p99 {milliseconds(taken.p99)} of {taken.rounds:,}"
        yield "open", untimed("open loop at 0.4 of the capacity", shown, taken.p99)


def _memory(moments: Sequence[Moment]) -> NamedFigures:
    steady = [each for each in moments if each.phase == STEADY]
    settled = steady[int(len(steady) * _SETTLING) :]
    if len(settled) < 2:
        return
    pace, minutes = slope(settled), (settled[-1].at - settled[0].at) / 60
    sizes = [each.resident / MIB for each in moments]
    shown = f"{pace:+.2f} MiB a minute; {sizes[0]:,.0f} at first, {max(sizes):,.0f} at most"
    what = f"resident memory, growth in {minutes:.1f} minutes at an even pace"
    yield "memory-growth", untimed(what, shown, pace * minutes)
    yield "memory", untimed("resident memory at most", f"{max(sizes):,.0f} MiB", max(sizes))


def slope(moments: Sequence[Moment]) -> float:
    """Return the growth in MiB a minute: the median of the slopes between the two halves.

    Each moment of the first half is paired with its like in the second, so that a few outliers do
    not count.
    """
    half = len(moments) // 2
    pairs = zip(moments[:half], moments[-half:], strict=True)
    return statistics.median(
        (later.resident - earlier.resident) / MIB / ((later.at - earlier.at) / 60)
        for earlier, later in pairs
    )


def _answers(checked: Checked) -> NamedFigures:
    right = ", ".join(f"{count} {kind}" for kind, count in sorted(checked.right.items()))
    what = "wrong answers among those checked"
    total = sum(checked.right.values())
    shown = (
        f"{len(checked.wrong)} of {total + len(checked.wrong)}; right: {right}; "
        f"{checked.cut_short} cut short"
    )
    yield "wrong", untimed(what, shown, len(checked.wrong))
    if checked.behind:
        lag = latency(checked.behind)
        shown = f"p50 {milliseconds(lag.p50)}, p99 {milliseconds(lag.p99)}"
        yield "behind", untimed("answers behind what another watch had shown", shown, lag.p99)


def _evidence(found: Outcome) -> NamedFigures:
    """Compare the answers due to be checked with those checked."""
    right = found.checked.right
    short = {
        name: due / right[name] if right.get(name) else math.inf for name, due in found.due.items()
    }
    scarcest = max(short, key=lambda name: short[name])
    shown = (
        f"{short[scarcest]:.2f}: {found.due[scarcest]:.0f} {scarcest} by {right.get(scarcest, 0)}"
    )
    what = "answers to be checked by those found right, of the scarcest kind"
    yield "unchecked", untimed(what, shown, short[scarcest])


def _processor(found: Outcome) -> NamedFigures:
    """Compare the processor time of an answer, which does not depend on other processes."""
    costs = []
    for phase, target, process in ((CAPACITY, REPRIEVE, "extender"), (ECHO_CAPACITY, ECHO, "echo")):
        answered = sum(call.outcome == ANSWERED for call in select(found.calls, phase, target))
        taken = {share.phase: share.processor.get(process, 0.0) for share in found.shares}
        if answered and taken.get(phase):
            costs.append(taken[phase] / answered)
    if len(costs) == 2:
        ours, echo = costs
        shown = f"{ours / echo:.2f}: {milliseconds(ours)} by {milliseconds(echo)}"
        yield "processor", untimed("processor time for an answer by the echo's", shown, ours / echo)


def _around(found: Outcome) -> NamedFigures:
    pace = found.changes / found.change_seconds if found.change_seconds else 0.0
    short = CHANGES_PER_SECOND / pace if pace else float("inf")
    shown = f"{pace:.1f} a second, {found.changes:,} in all"
    yield "changes", untimed("changes of pods", shown, short)
    for share in found.shares:
        if share.phase in {STEADY, ABOVE}:
            parts = {name: taken / share.seconds for name, taken in share.processor.items()}
            shown = ", ".join(f"{name} {100 * part:.0f} %" for name, part in parts.items())
            what = f"processor, of one core, {share.phase}"
            yield f"processor-{share.phase}", untimed(what, shown, parts.get("locust", 0.0))
