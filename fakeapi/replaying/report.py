"""The report of a replay; its fields are the JSON output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct

from extender.recording.files import Recording
from fakeapi.replaying.comparing import (
    ComparedStates,
    Deletions,
    ResourceDifferences,
    compare_deletions,
    compare_objects,
    compare_scheduling,
)
from fakeapi.replaying.decisions import SCHEDULER, SchedulingComparison
from fakeapi.replaying.directing import ActionPlanner
from fakeapi.replaying.objects import owners_of
from fakeapi.replaying.parts import AttachedComponents


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
    recording: Recording, attached: AttachedComponents, director: ActionPlanner
) -> Iterator[str]:
    """Yield notes about known causes of differences."""
    if "gc" in attached.names:
        yield from _unrecorded_owners(recording, director)
    spread = sum(map(bool, director.recorded.subsets.values()))
    if spread and "replicaset" in attached.names and not attached.assigns_subsets:
        yield (
            f"{spread} pods were put into subsets of WorkloadSpreads; those that replicaset makes "
            "come without, as workloadspread is not attached"
        )


def _unrecorded_owners(recording: Recording, director: ActionPlanner) -> Iterator[str]:
    known = {(each.api_version, each.kind) for each in recording.header.resources}
    lost = Counter(
        str(owner.get("kind"))
        for document in director.recorded.present.values()
        for owner in owners_of(document)
        if (owner.get("apiVersion"), owner.get("kind")) not in known
    )
    for kind, count in lost.items():
        yield f"{count} objects are owned by a {kind}, which was not recorded: gc deletes them"
