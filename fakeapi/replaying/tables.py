"""The report of a replay as a human-readable table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table

from fakeapi.replaying.decisions import DecisionComparison
from fakeapi.replaying.report import Report

_SHOWN = 10


def report_table(report: Report) -> RenderableType:
    """Return a renderable report: the recording, the final counts, and the differences."""
    counts = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("resource", "recorded", "here", "missing", "extra", "different"):
        counts.add_column(heading, justify="left" if heading == "resource" else "right")
    for name, each in report.resources.items():
        found = len(each.only_recorded), len(each.only_replayed), len(each.changed)
        there = str(each.recorded), str(each.replayed)
        counts.add_row(name, *there, *(str(count or "") for count in found))
    return Group(*_heading(report), counts, *_decisions(report), *_differences(report))


def _heading(report: Report) -> Iterator[str]:
    of = report.recording
    lines = sum(of.events.values())
    yield f"{of.source}: {lines} events in {of.seconds:g} s from {of.start}, server {of.server}"
    left = ", ".join(f"{count} to {part}" for part, count in report.left.items())
    if report.run:
        yield f"attached: {', '.join(report.run)}; events left: {left or 'none'}"
    for name, count in report.skipped.items():
        yield f"not played: {count} events of {name}, which is not served here"
    yield from (f"note: {note}" for note in report.notes)


def _deletions(report: Report) -> Iterator[str]:
    for label, hands in (
        ("recorded", report.deletions.recorded),
        ("here", report.deletions.replayed),
    ):
        if hands:
            told = ", ".join(f"{count} by {hand}" for hand, count in hands.items())
            yield f"pods deleted, {label}: {told}"


def _decisions(report: Report) -> Iterator[str]:
    yield from _deletions(report)
    for label, each in _scheduling(report):
        if each.recorded or each.replayed:
            yield f"pods {label}: {each.recorded} recorded, {each.replayed} here"


def _scheduling(report: Report) -> Iterator[tuple[str, DecisionComparison]]:
    if report.scheduling is not None:
        yield "placed", report.scheduling.placed
        yield "nominated", report.scheduling.nominated
        yield "preempted", report.scheduling.preempted


def _differences(report: Report) -> Iterator[str]:
    if report.same:
        yield "no differences"
    for name, each in report.resources.items():
        changed = [
            f"{c.name}{f' (here {c.stand_in})' if c.stand_in else ''}: {', '.join(c.fields)}"
            for c in each.changed
        ]
        yield from _some(f"{name}: missing", each.only_recorded)
        yield from _some(f"{name}: extra", each.only_replayed)
        yield from _some(f"{name}: different", changed)
    pods = [
        f"{each.name}: recorded {each.recorded or 'not'}, here {each.replayed or 'not'}"
        for each in report.deletions.differences
    ]
    yield from _some("pods deleted otherwise", pods)
    for label, decided in _scheduling(report):
        texts = [
            f"{d.name}: recorded {d.recorded or 'not'}, here {d.replayed or 'not'}"
            for d in decided.differences
        ]
        yield from _some(f"pods {label} otherwise", texts)


def _some(label: str, texts: Sequence[str]) -> Iterator[str]:
    yield from (f"{label}: {text}" for text in texts[:_SHOWN])
    if len(texts) > _SHOWN:
        yield f"{label}: … and {len(texts) - _SHOWN} more; -o json has them all"
