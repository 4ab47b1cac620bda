"""Evictions as tables: thresholds, the ranking of pods, and its criteria."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from extender.eviction import explanation
from extender.eviction.scenario import ScenarioStepResult
from extender.terminal.output import TableRows
from extender.terminal.plain_tables import plain_table
from policies.eviction.manager import SyncResult
from policies.eviction.observations import BYTE_SIGNALS
from policies.eviction.ranking import PodUsage, ranking_steps
from policies.eviction.signals import Signal
from policies.eviction.thresholds import Threshold
from policies.kubernetes.duration import format_duration

_SHOWN_PODS: Final = 40
_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_COUNTS: Final = ("", "k", "M", "G", "T", "P", "E")


def evict_table(node: str, rounds: Sequence[SyncResult], rows: TableRows) -> RenderableType:
    """Return the last round as a table: thresholds, pods in eviction order, messages."""
    last = rounds[-1]
    parts: list[RenderableType] = [Text(_headline(node, last), style="bold")]
    if last.config.config.thresholds:
        parts.append(_thresholds(last))
    if last.ranking:
        evicted = {each.pod.uid for each in last.evictions}
        signal = last.triggered[0].signal
        table = RankingTable(signal, evicted, rows.at_most(_SHOWN_PODS))
        parts.append(table.render(last.ranking))
    parts.extend(Text(each.message.strip(), style="italic") for each in last.evictions)
    if last.evictions:
        parts.extend(Text(note, style="yellow") for note in explanation.result_notes(last))
    return Group(*parts)


def scenario_table(results: Sequence[ScenarioStepResult]) -> RenderableType:
    """Return the result of each step as a table."""
    table = plain_table("step", "at", "conditions", "reclaimed", "evicted", "admitted")
    for number, each in enumerate(results):
        sync = each.sync
        table.add_row(
            str(number),
            format_duration(sync.input.now_ns),
            ", ".join(sync.state.pressures),
            ", ".join(reclaim.name.lower() for reclaim in each.reclaimed),
            "\n".join(f"{each.pod.name} ({each.grace_seconds} s)" for each in sync.evictions)
            or explanation.result_message(sync),
            ", ".join("yes" if admitted else "no" for admitted in each.admitted),
        )
    return table


def _headline(node: str, sync: SyncResult) -> str:
    pods = ", ".join(f"{each.pod.key} ({each.grace_seconds} s)" for each in sync.evictions)
    pressures = f" under {', '.join(sync.state.pressures)}" if sync.state.pressures else ""
    what = f"evicts {pods}" if pods else f"evicts no pod: {explanation.result_message(sync)}"
    return f"{node}{pressures} {what}"


def _thresholds(sync: SyncResult) -> Table:
    table = plain_table("", "threshold", "available", "of", "grace")
    for threshold in sync.config.thresholds:
        found = sync.state.observations.get(threshold.signal)
        table.add_row(
            _mark(sync, threshold),
            str(threshold),
            "" if found is None else format_amount(threshold.signal, found.available),
            "" if found is None else format_amount(threshold.signal, found.capacity),
            "" if threshold.hard else format_duration(threshold.grace_ns),
        )
    return table


def _mark(sync: SyncResult, threshold: Threshold) -> str:
    if sync.triggered and threshold == sync.triggered[0]:
        return "→"
    if threshold in sync.state.first_observed_at:
        return "met"
    return "" if threshold.signal in sync.state.observations else "?"


@dataclass(frozen=True, slots=True)
class RankingTable:
    """A table of pods in eviction order; ``marked`` has the UIDs of the pods with an arrow."""

    signal: Signal
    marked: Collection[str]
    max_pods: int

    def render(self, ranking: Sequence[PodUsage]) -> Table:
        """Return the table of a ranking."""
        criteria = {step.pod.uid: step.criterion for step in ranking_steps(ranking, self.signal)}
        table = plain_table("", "pod", "priority", "usage", "request", "ahead of the next by")
        for each in ranking[: self.max_pods]:
            table.add_row(*self._cells(each), criteria.get(each.pod.uid, ""))
        if len(ranking) > self.max_pods:
            table.add_row("", f"and {len(ranking) - self.max_pods} more", "", "", "", "")
        return table

    def _cells(self, usage: PodUsage) -> Iterator[str]:
        pod, signal = usage.pod, self.signal
        yield "→" if pod.uid in self.marked else "never" if pod.critical else ""
        yield pod.key
        yield str(pod.priority)
        yield "no stats" if usage.usage is None else format_amount(signal, usage.usage)
        yield "" if signal is Signal.PIDS else format_amount(signal, usage.request)


def format_amount(signal: Signal, number: int) -> str:
    """Format an amount of a signal with three digits: ``1.21Gi``, ``-740Mi``, ``6.5M``."""
    base, units = (1024, _UNITS) if signal in BYTE_SIGNALS else (1000, _COUNTS)
    return _format_rounded(number, base, units)


def _format_rounded(number: int, base: int, units: Sequence[str]) -> str:
    """Format a number with three digits, rounded towards zero; units differ by ``base``."""
    unit, left = 0, abs(number)
    while left >= 1000 * base**unit and unit < len(units) - 1:
        unit += 1
    whole, rest = divmod(left, base**unit)
    fraction = f"{rest * 100 // base**unit:02}"[: max(0, 3 - len(str(whole)))]
    shown = f"{whole}.{fraction}".rstrip("0").rstrip(".") if fraction else str(whole)
    return f"{'-' if number < 0 else ''}{shown}{units[unit]}"
