"""Evictions as tables: thresholds, the ranking of pods, and its criteria."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from extender.eviction import explanation
from extender.eviction.scenario import ScenarioStepResult
from policies.eviction.manager import SyncResult
from policies.eviction.messages import format_available
from policies.eviction.ranking import PodUsage, ranking_steps
from policies.eviction.signals import Signal
from policies.eviction.thresholds import Threshold
from policies.kubernetes.duration import format_duration

_SHOWN_PODS = 40


def evict_table(node: str, rounds: Sequence[SyncResult]) -> RenderableType:
    """Return the last round as a table: thresholds, pods in eviction order, messages."""
    last = rounds[-1]
    parts: list[RenderableType] = [Text(_headline(node, last), style="bold")]
    if last.config.config.thresholds:
        parts.append(_thresholds(last))
    ranking = last.ranking
    if ranking:
        parts.append(_ranking(last, ranking))
    parts.extend(Text(each.message.strip(), style="italic") for each in last.evictions)
    if last.evictions:
        parts.extend(Text(note, style="yellow") for note in explanation.result_notes(last))
    return Group(*parts)


def scenario_table(results: Sequence[ScenarioStepResult]) -> RenderableType:
    """Return the result of each step as a table."""
    table = _table("step", "at", "conditions", "reclaimed", "evicted", "admitted")
    for number, each in enumerate(results):
        sync = each.sync
        table.add_row(
            str(number),
            format_duration(sync.input.now_ns),
            ", ".join(sync.state.pressures),
            ", ".join(reclaim.name.lower() for reclaim in each.reclaimed),
            "\n".join(f"{gone.pod.name} ({gone.grace_seconds} s)" for gone in sync.evictions)
            or explanation.result_message(sync),
            ", ".join("yes" if admitted else "no" for admitted in each.admitted),
        )
    return table


def _headline(node: str, sync: SyncResult) -> str:
    gone = ", ".join(f"{each.pod.key} ({each.grace_seconds} s)" for each in sync.evictions)
    pressures = f" under {', '.join(sync.state.pressures)}" if sync.state.pressures else ""
    what = f"evicts {gone}" if gone else f"evicts no pod: {explanation.result_message(sync)}"
    return f"{node}{pressures} {what}"


def _thresholds(sync: SyncResult) -> Table:
    table = _table("", "threshold", "available", "of", "grace")
    for threshold in sync.config.thresholds:
        found = sync.state.observations.get(threshold.signal)
        table.add_row(
            _mark(sync, threshold),
            str(threshold),
            "" if found is None else format_available(threshold.signal, found.available),
            "" if found is None else format_available(threshold.signal, found.capacity),
            "" if threshold.hard else format_duration(threshold.grace_ns),
        )
    return table


def _mark(sync: SyncResult, threshold: Threshold) -> str:
    if sync.triggered and threshold == sync.triggered[0]:
        return "→"
    if threshold in sync.state.first_observed_at:
        return "met"
    return "" if threshold.signal in sync.state.observations else "?"


def _ranking(sync: SyncResult, ranking: Sequence[PodUsage]) -> Table:
    signal = sync.triggered[0].signal
    because = {step.pod.uid: step.criterion for step in ranking_steps(ranking, signal)}
    gone = {each.pod.uid for each in sync.evictions}
    table = _table("", "pod", "priority", "usage", "request", "ahead of the next by")
    for standing in ranking[:_SHOWN_PODS]:
        table.add_row(*_row(standing, signal, gone, because))
    if len(ranking) > _SHOWN_PODS:
        table.add_row("", f"and {len(ranking) - _SHOWN_PODS} more", "", "", "", "")
    return table


def _row(
    standing: PodUsage, signal: Signal, evicted: set[str], because: Mapping[str, str]
) -> Iterator[str]:
    pod = standing.pod
    yield "→" if pod.uid in evicted else "never" if pod.critical else ""
    yield pod.key
    yield str(pod.priority)
    yield "no stats" if standing.usage is None else format_available(signal, standing.usage)
    yield "" if signal is Signal.PIDS else format_available(signal, standing.request)
    yield because.get(pod.uid, "")


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
