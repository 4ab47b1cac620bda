"""Compares the final state of the world with the recording.

A recorded object is compared with its counterpart (:class:`fakeapi.replay.event_actions.UidMap`),
else with the object of the same resource, namespace and name. ``metadata.resourceVersion`` is never
compared, because it is the world's own. With components attached, managed fields are not compared,
all timestamps are equal, because components write their own times, and of ``creatingPods`` and
``deletingPods`` only the lengths are compared (:mod:`fakeapi.replay.object_fields`). Identifying
fields of an object and its counterpart are not compared either.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec import Struct

from extender.recording.format import Header, RecordedResource
from fakeapi.replay.component_effects import AttachedComponents
from fakeapi.replay.event_actions import IDENTITY, UidMap
from fakeapi.replay.object_fields import (
    Document,
    FieldPath,
    ObjectLocation,
    comparable,
    key_of,
    uid_of,
)
from fakeapi.replay.recorded_state import ObservedDeletion, RecordedState
from fakeapi.replay.scheduling_decisions import (
    SchedulingComparison,
    SchedulingDecisionLog,
    compare_decisions,
)

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", re.ASCII)
_VERSION: Final[FieldPath] = ("metadata", "resourceVersion")
_MANAGED: Final[FieldPath] = ("metadata", "managedFields")


class ChangedObject(Struct, frozen=True, rename="camel"):
    """An object that differs; ``stand_in`` is the name of its counterpart, if it is another."""

    name: str
    fields: list[str]
    stand_in: str = ""


class ResourceDifferences(Struct, frozen=True, rename="camel"):
    """The differences of one resource; ``recorded`` and ``replayed`` are the final counts."""

    recorded: int
    replayed: int
    only_recorded: list[str] = []
    only_replayed: list[str] = []
    changed: list[ChangedObject] = []

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not (self.only_recorded or self.only_replayed or self.changed)


class DeletedPod(Struct, frozen=True, rename="camel"):
    """A pod that was deleted in only one of the two, or for different causes; "": not deleted."""

    name: str
    recorded: str
    replayed: str


class Deletions(Struct, frozen=True, rename="camel"):
    """The numbers of deleted pods by cause, and the differences between the two."""

    recorded: dict[str, int]
    replayed: dict[str, int]
    differences: list[DeletedPod] = []


@dataclass(frozen=True, slots=True)
class ComparedStates:
    """The final states of a recording and of the world, and the attached components."""

    recorded: RecordedState
    world: RecordedState
    uid_map: UidMap
    attached: AttachedComponents

    @property
    def exact(self) -> bool:
        """Whether no component was attached."""
        return not self.attached.names


def compare_objects(header: Header, both: ComparedStates) -> dict[str, ResourceDifferences]:
    """Compare all recorded resources, by resource."""
    followed = {each.name: each for each in header.resources}
    names = dict.fromkeys((*followed, *(place[0] for place in both.recorded.present)))
    found = {}
    for name in names:
        of = followed.get(name)
        recorded = [d for p, d in both.recorded.present.items() if p[0] == name]
        world = {
            p: d for p, d in both.world.present.items() if p[0] == name and _in_scope(header, of, d)
        }
        if recorded or world:
            found[name] = _compare_resource(name, recorded, world, both)
    return found


def compare_deletions(both: ComparedStates) -> Deletions:
    """Compare the deleted pods and the causes of their deletions."""
    recorded, replayed = _pods(both.recorded.deletions), _pods(both.world.deletions)
    hands = {each.uid: each for each in recorded}
    roles = {both.uid_map.recorded_uids.get(each.uid, each.uid): each for each in replayed}
    differences = [
        DeletedPod(_pod_name(uid, hands, roles, both), _cause(hands, uid), _cause(roles, uid))
        for uid in dict.fromkeys((*hands, *roles))
        if _cause(hands, uid) != _cause(roles, uid)
    ]
    return Deletions(_count(recorded), _count(replayed), differences)


def compare_scheduling(both: ComparedStates) -> SchedulingComparison:
    """Compare the schedulers' decisions; counterparts count as their recorded pods."""
    actors, world = both.uid_map.recorded_uids, both.world

    def by_role(nodes: dict[str, str]) -> dict[str, str]:
        return {actors.get(uid, uid): node for uid, node in nodes.items()}

    def name(uid: str) -> str:
        return both.recorded.names.get(uid) or world.names[uid]

    of = world.decisions
    log = SchedulingDecisionLog(by_role(of.placed), by_role(of.nominated), by_role(of.preempted))
    return compare_decisions(both.recorded.decisions, log, name)


def _count(deletions: Sequence[ObservedDeletion]) -> dict[str, int]:
    return dict(Counter(each.cause for each in deletions))


def _pods(deletions: Sequence[ObservedDeletion]) -> list[ObservedDeletion]:
    return [each for each in deletions if each.resource == "pods"]


def _cause(deletions: dict[str, ObservedDeletion], uid: str) -> str:
    found = deletions.get(uid)
    return "" if found is None else found.cause


def _pod_name(
    uid: str,
    recorded: dict[str, ObservedDeletion],
    replayed: dict[str, ObservedDeletion],
    both: ComparedStates,
) -> str:
    """Return the recorded name of a pod, or else its name in the world."""
    there = both.recorded.find(uid)
    if uid in recorded:
        return recorded[uid].key
    return replayed[uid].key if there is None else key_of(there)


def _in_scope(header: Header, followed: RecordedResource | None, document: Document) -> bool:
    metadata = document["metadata"]
    namespace = metadata.get("namespace")
    if namespace and header.namespace not in ("", namespace):
        return False
    # The header does not name the resources of definitions that were created later.
    return followed is None or followed.only in ("", metadata["name"])


def _compare_resource(
    resource: str,
    recorded: Sequence[Document],
    world: dict[ObjectLocation, Document],
    both: ComparedStates,
) -> ResourceDifferences:
    count = len(world)
    only_recorded: list[str] = []
    changed: list[ChangedObject] = []
    rest = dict(world)
    for document in recorded:
        place = _counterpart(resource, document, both)
        there = rest.pop(place, None)
        if there is None:
            only_recorded.append(key_of(document))
            continue
        fields = sorted(_differing(resource, document, there, both))
        if fields:
            name = key_of(document)
            changed.append(ChangedObject(name, fields, place[1] if place[1] != name else ""))
    only_replayed = [_name_here(document, both) for document in rest.values()]
    return ResourceDifferences(len(recorded), count, only_recorded, only_replayed, changed)


def _counterpart(resource: str, document: Document, both: ComparedStates) -> ObjectLocation:
    """Return the location of a recorded object's counterpart in the world."""
    uid = uid_of(document)
    actor = both.uid_map.counterpart(uid)
    if actor == uid:
        return resource, key_of(document)
    return both.world.places.get(actor, (resource, ""))


def _name_here(document: Document, both: ComparedStates) -> str:
    """Return the name of an object of the world, with the name of its recorded counterpart."""
    name, role = key_of(document), both.uid_map.recorded_uids.get(uid_of(document))
    born = None if role is None else both.uid_map.names.get(role)
    return f"{name} (for {born})" if born and born != name else name


def _differing(
    resource: str, recorded: Document, there: Document, both: ComparedStates
) -> Iterator[str]:
    ignored = {_VERSION, *both.attached.excluded_fields(resource)}
    if not both.exact:
        ignored.add(_MANAGED)
    if uid_of(recorded) != uid_of(there):
        ignored.update(IDENTITY)
    if not both.exact:
        recorded, there = (comparable(_by_type(each)) for each in (recorded, there))
    for path, one, other in _leaves(recorded, there, ()):
        by_time = not both.exact and _is_time(one) and _is_time(other)
        if not by_time and not any(_is_below(path, each) for each in ignored):
            yield ".".join(path)


def _is_below(path: FieldPath, top: FieldPath) -> bool:
    """Return whether a path equals ``top`` or is below it; "*" matches any step."""
    return len(top) <= len(path) and all(
        wanted in ("*", step) for step, wanted in zip(path, top, strict=False)
    )


def _by_type(document: Document) -> Document:
    """Return an object with conditions indexed by type: components write them in any order."""
    status = document.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    if not isinstance(status, dict) or not isinstance(conditions, list):
        return document
    return {**document, "status": {**status, "conditions": {c["type"]: c for c in conditions}}}


def _leaves(one: Any, other: Any, path: FieldPath) -> Iterator[tuple[FieldPath, Any, Any]]:
    """Yield the paths and values where two values differ, as deep as both have the structure."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys((*one, *other)):
            yield from _leaves(one.get(key), other.get(key), (*path, key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (ours, theirs) in enumerate(zip(one, other, strict=True)):
            yield from _leaves(ours, theirs, (*path, str(index)))
    elif one != other:
        yield path, one, other


def _is_time(value: object) -> bool:
    return isinstance(value, str) and _TIME.fullmatch(value) is not None
