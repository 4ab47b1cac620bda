"""The report of a replay: its fields are the JSON output; a table and a page are for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Final

from msgspec import Struct
from rich.console import Group, RenderableType
from rich.table import Table

from extender.recording.files import Recording
from extender.terminal.output import TableRows
from fakeapi.replay.comparison import (
    ComparedStates,
    Deletions,
    ResourceDifferences,
    compare_deletions,
    compare_objects,
    compare_scheduling,
)
from fakeapi.replay.component_effects import AttachedComponents
from fakeapi.replay.event_actions import ActionPlanner
from fakeapi.replay.object_fields import owners_of
from fakeapi.replay.scheduling_decisions import SCHEDULER, DecisionComparison, SchedulingComparison


class ReplayedRecording(Struct, frozen=True, rename="camel"):
    """The recording: file, recorded server, start, duration in seconds, number of events by type.

    ``broken`` is where the file is truncated, "" if it is complete.
    """

    source: str
    server: str
    start: str
    seconds: float
    events: dict[str, int]
    broken: str


class Report(Struct, frozen=True, rename="camel"):
    """The result of a replay.

    ``left`` counts the events that were left to components; ``skipped`` those of resources that the
    world does not serve. ``resources`` compares the final states. ``scheduling`` compares the
    decisions if a scheduler is attached. ``same``: there are no differences.
    """

    recording: ReplayedRecording
    run: list[str]
    left: dict[str, int]
    skipped: dict[str, int]
    notes: list[str]
    resources: dict[str, ResourceDifferences]
    deletions: Deletions
    scheduling: SchedulingComparison | None
    same: bool


def make_report(
    recording: Recording,
    attached: AttachedComponents,
    planner: ActionPlanner,
    skipped: Mapping[str, int],
) -> Report:
    """Compare a recording with the world that it was played into."""
    both = ComparedStates(planner.recorded, planner.world, planner.uid_map, attached)
    resources = compare_objects(recording.header, both)
    deletions = compare_deletions(both)
    scheduling = compare_scheduling(both) if SCHEDULER in attached.names else None
    same = (
        all(each.same for each in resources.values())
        and not deletions.differences
        and (scheduling is None or scheduling.same)
    )
    return Report(
        _replayed(recording),
        list(attached.names),
        dict(planner.left),
        dict(skipped),
        list(_notes(recording, attached, planner)),
        {name: each for name, each in resources.items() if name not in skipped},
        deletions,
        scheduling,
        same,
    )


def _replayed(recording: Recording) -> ReplayedRecording:
    header = recording.header
    return ReplayedRecording(
        recording.source,
        header.server,
        header.start,
        recording.duration_ns / 10**9,
        dict(Counter(event.type for event in recording.events)),
        recording.truncated_at,
    )


def _notes(
    recording: Recording, attached: AttachedComponents, planner: ActionPlanner
) -> Iterator[str]:
    """Yield notes about known causes of differences."""
    if "gc" in attached.names:
        yield from _unrecorded_owners(recording, planner)
    spread = sum(map(bool, planner.recorded.subsets.values()))
    if spread and "replicaset" in attached.names and not attached.assigns_subsets:
        yield (
            f"{spread} pods were put into subsets of WorkloadSpreads; pods that replicaset creates "
            "have no subset, because workloadspread is not attached"
        )


def _unrecorded_owners(recording: Recording, planner: ActionPlanner) -> Iterator[str]:
    kinds = {(each.api_version, each.kind) for each in recording.header.resources}
    kinds |= {(each.api_version, each.kind) for each in recording.events}
    lost = Counter(
        str(owner.get("kind"))
        for document in planner.recorded.present.values()
        for owner in owners_of(document)
        if (owner.get("apiVersion"), owner.get("kind")) not in kinds
    )
    for kind, count in lost.items():
        yield f"{count} objects are owned by a {kind}, which was not recorded: gc deletes them"


_MAX_ROWS: Final = 10
_MAX_ROWS_OF_PAGE: Final = 200


def report_table(report: Report, rows: TableRows) -> RenderableType:
    """Return a renderable report: the recording, the final counts, and the differences."""
    counts = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("resource", "recorded", "here", "missing", "extra", "different"):
        counts.add_column(heading, justify="left" if heading == "resource" else "right")
    for name, each in report.resources.items():
        found = len(each.only_recorded), len(each.only_replayed), len(each.changed)
        there = str(each.recorded), str(each.replayed)
        counts.add_row(name, *there, *(str(count or "") for count in found))
    return Group(*_heading(report), counts, *_decisions(report), *_differences(report, rows))


def report_page(report: Report) -> str:
    """Return the report as one HTML document."""
    from extender.ledger_page.documents import render_document  # imports jinja2

    template = files("fakeapi.replay").joinpath("report.html").read_text()
    decisions = list(_scheduling(report))
    return render_document(template, report=report, decisions=decisions, most=_MAX_ROWS_OF_PAGE)


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
    for label, components in (
        ("recorded", report.deletions.recorded),
        ("here", report.deletions.replayed),
    ):
        if components:
            text = ", ".join(f"{count} by {component}" for component, count in components.items())
            yield f"pods deleted, {label}: {text}"


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


def _differences(report: Report, rows: TableRows) -> Iterator[str]:
    some = partial(_some, rows.at_most(_MAX_ROWS))
    if report.same:
        yield "no differences"
    for name, each in report.resources.items():
        changed = [
            f"{c.name}{f' (here {c.stand_in})' if c.stand_in else ''}: {', '.join(c.fields)}"
            for c in each.changed
        ]
        yield from some(f"{name}: missing", each.only_recorded)
        yield from some(f"{name}: extra", each.only_replayed)
        yield from some(f"{name}: different", changed)
    pods = [
        f"{each.name}: recorded {each.recorded or 'not'}, here {each.replayed or 'not'}"
        for each in report.deletions.differences
    ]
    yield from some("pods deleted otherwise", pods)
    for label, decided in _scheduling(report):
        texts = [
            f"{d.name}: recorded {d.recorded or 'not'}, here {d.replayed or 'not'}"
            for d in decided.differences
        ]
        yield from some(f"pods {label} otherwise", texts)


def _some(most: int, label: str, texts: Sequence[str]) -> Iterator[str]:
    yield from (f"{label}: {text}" for text in texts[:most])
    if len(texts) > most:
        yield f"{label}: … and {len(texts) - most} more; -o wide has them all"
