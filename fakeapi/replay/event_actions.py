"""Plans the actions in the world for each event of a recording.

Without attached components every event is applied as recorded. Otherwise components do their own
work, and its recorded events are not applied but expected:

- An object that a component creates is awaited. The first object that the component creates for the
  same controller (or with the same name) is its *counterpart*, the second that of the next, and so
  on. Later changes by others to the recorded object are applied to its counterpart, which keeps its
  own identity. If there is no counterpart yet, they are applied once there is one.
- A deletion by a component is not applied. When the recorded object is removed, an object that the
  component is deleting is removed: the counterpart, or else the one that has been deleting longest
  of the same controller (for a scheduler: of all pods that it preempts).
- Changes by others to a terminating object are applied once a component deletes its counterpart.
- Fields that a component writes keep the world's values.
- No action is planned for objects that a component has removed.

With ``workloadspread`` attached, the counterpart must be in the same subset. Webhooks may inject
any field of a pod, so the counterpart keeps its initial fields, and only the *changes* to the
recorded pod are applied to it. A recorded object that has waited for more than a second, and for
which an action is due, accepts a counterpart in any subset.

This module only decides; :mod:`fakeapi.replay.player` carries out the actions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Final

from extender.recording.format import RecordedEvent
from fakeapi.replay.component_effects import AttachedComponents
from fakeapi.replay.object_fields import (
    Document,
    FieldPath,
    ObjectLocation,
    controller_of,
    copy_field,
    drop_empty_metadata_maps,
    is_deleting,
    read_field,
    uid_of,
    with_changes,
)
from fakeapi.replay.recorded_state import ObservedDeletion, RecordedState, deletion_cause

IDENTITY: Final[tuple[FieldPath, ...]] = tuple(
    ("metadata", name)
    for name in ("name", "generateName", "uid", "creationTimestamp", "managedFields", "generation")
)
SAME_SUBSET_TIMEOUT_NS: Final = 10**9
_DELETION: Final[tuple[FieldPath, ...]] = (
    ("metadata", "deletionTimestamp"),
    ("metadata", "deletionGracePeriodSeconds"),
)


@dataclass(frozen=True, slots=True)
class Action:
    """One action: write ``document``, or, with ``removes``, remove it."""

    document: Document
    removes: bool = False


@dataclass(frozen=True, slots=True)
class RecordedCreation:
    """The initial state of a recorded object, and the time of its creation in nanoseconds."""

    document: Document
    at_ns: int


@dataclass(slots=True)
class UidMap:
    """The UIDs of counterparts in the world by recorded UIDs (``counterparts``), and the inverse.

    The inverse is ``recorded_uids``. ``waiting`` are the locations of objects without a
    counterpart, ``names`` the recorded names; ``urgent`` are waiting objects that accept any
    counterpart.
    """

    counterparts: dict[str, str] = field(default_factory=dict)
    recorded_uids: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, ObjectLocation] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    creations: dict[str, RecordedCreation] = field(default_factory=dict)
    urgent: set[str] = field(default_factory=set)

    def expect(self, uid: str, place: ObjectLocation, birth: RecordedCreation) -> None:
        """Wait for a counterpart of a recorded object."""
        self.waiting[uid], self.names[uid], self.creations[uid] = place, place[1], birth

    def mark_due(self, uid: str, at_ns: int) -> None:
        """Record that an action is due for a waiting object, after which it may accept any."""
        if at_ns - self.creations[uid].at_ns > SAME_SUBSET_TIMEOUT_NS:
            self.urgent.add(uid)

    def counterpart(self, uid: str) -> str:
        """Return the UID of a recorded object's counterpart: its own, unless it was awaited."""
        return self.counterparts.get(uid, uid)

    def assign(self, uid: str, counterpart: str) -> None:
        """Make an object of the world the counterpart of a recorded one."""
        self.counterparts[uid], self.recorded_uids[counterpart] = counterpart, uid
        del self.waiting[uid]


class ActionPlanner:
    """Plans actions; ``world`` is the state of the world, which the caller updates.

    ``left`` counts the events that were left to each component.
    """

    def __init__(self, attached: AttachedComponents, world: RecordedState) -> None:
        self._attached = attached
        self.world = world
        self.recorded = RecordedState(deletion_cause)
        self.uid_map = UidMap()
        self.left: Counter[str] = Counter()
        self._played: set[str] = set()
        self._released: set[str] = set()
        self._component_deletions: dict[str, str] = {}
        self._played_deletions: dict[str, str] = {}
        self._pending_removals: list[Document] = []
        self._pending_changes: dict[str, ObjectLocation] = {}

    def plan(self, event: RecordedEvent) -> Iterator[Action]:
        """Apply an event to the recorded state, and yield the actions that are due."""
        if not event.is_object_event:
            yield from self.catch_up()
            return
        document = event.document()
        place, uid = (event.resource, event.key), uid_of(document)
        before = self.recorded.get(place)
        was_going = before is not None and is_deleting(before)
        deletion = self.recorded.apply(event.type, event.resource, document)
        yield from self.catch_up()
        maker = (
            self._attached.creating_component(event.resource, document)
            if event.type == "ADDED"
            else ""
        )
        if deletion is not None:
            self._record_deletion(deletion)
        if maker:
            self.left[maker] += 1
            self.uid_map.expect(uid, place, RecordedCreation(document, event.at_ns))
            yield from self.catch_up()
        elif event.type == "DELETED":
            yield from self._end(place, document, graceful=was_going)
        elif uid in self.uid_map.waiting:
            self.uid_map.mark_due(uid, event.at_ns)
            yield from self.catch_up()
        else:
            yield from self._change(place, document, new=event.type in ("LISTED", "ADDED"))

    @property
    def is_waiting(self) -> bool:
        """Whether an action waits for a component."""
        return bool(self._pending_removals or self._pending_changes or self.uid_map.waiting)

    def finish(self) -> Iterator[Action]:
        """Assign any counterparts to the objects that still wait, at the end of the replay."""
        self.uid_map.urgent.update(self.uid_map.waiting)
        yield from self.catch_up()

    def catch_up(self) -> Iterator[Action]:
        """Assign counterparts to waiting objects, and yield the actions that were due for them.

        Yield also removals whose recorded objects ended before a component deleted one.
        """
        for last in tuple(self._pending_removals):
            found = self._longest_deleting(last, self._component_deletions[uid_of(last)])
            if found is not None:
                self._pending_removals.remove(last)
                yield self._release(found)
        for uid, place in tuple(self._pending_changes.items()):
            document = self.recorded.find(uid)
            if document is not None and self._is_deleted_by_component(
                self.uid_map.counterpart(uid)
            ):
                del self._pending_changes[uid]
                yield from self._change(place, document, new=False)
        for uid, place in tuple(self.uid_map.waiting.items()):
            actor = self._free_counterpart(uid, place)
            if actor:
                self.uid_map.assign(uid, actor)
                document = self.recorded.find(uid)
                if document is not None:
                    yield from self._change(place, document, new=False)

    def _record_deletion(self, deletion: ObservedDeletion) -> None:
        part = self._attached.deleting_component(deletion.cause)
        if part:
            self.left[part] += 1
            self._component_deletions[deletion.uid] = deletion.cause
        else:
            self._played_deletions[deletion.uid] = deletion.cause

    def played_cause(self, actor: str) -> str:
        """Return the cause of a played deletion of an object of the world; "" if not played."""
        return self._played_deletions.get(self.uid_map.recorded_uids.get(actor, actor), "")

    def _free_counterpart(self, uid: str, place: ObjectLocation) -> str:
        document = self.recorded.find(uid)
        if document is None:  # it was removed before it had a counterpart
            return ""
        controller = controller_of(document)
        if controller is None:
            there = self.world.get(place)
            return "" if there is None else uid_of(there)
        taken = self._played, self.uid_map.recorded_uids
        born = self.world.created.get(str(controller.get("uid")), ())
        free = [each for each in born if not any(each in of for of in taken)]
        if self._attached.assigns_subsets and uid not in self.uid_map.urgent:
            subset = self.recorded.subsets.get(uid)
            free = [each for each in free if self.world.subsets.get(each) == subset]
        return free[0] if free else ""

    def _change(self, place: ObjectLocation, recorded: Document, *, new: bool) -> Iterator[Action]:
        uid = uid_of(recorded)
        actor = self.uid_map.counterpart(uid)
        there = self.world.find(actor) or (self.world.get(place) if actor == uid else None)
        if there is None and not new and self._attached.names:
            return
        if (
            uid in self._component_deletions
            and there is not None
            and not self._is_deleted_by_component(actor)
        ):
            self._pending_changes[uid] = place
            return
        if actor == uid:
            self._played.add(uid)
        document = self._merged(place[0], recorded, there, actor)
        if not self._attached.names or _without_managed_fields(document) != _without_managed_fields(
            there
        ):
            yield Action(document)

    def _merged(
        self, resource: str, recorded: Document, there: Document | None, actor: str
    ) -> Document:
        """Return a recorded object with the world's values of fields that are not played."""
        if there is None or not self._attached.names:
            return recorded
        uid = uid_of(recorded)
        birth = (
            self.uid_map.creations.get(uid)
            if self._attached.assigns_subsets and actor != uid
            else None
        )
        if birth is None:
            document = deepcopy(_unversioned(recorded) or {})
        else:
            document = deepcopy(_unversioned(with_changes(there, birth.document, recorded)) or {})
        kept = (
            *self._attached.written_fields(resource),
            *(IDENTITY if actor != uid else ()),
            *(
                _DELETION
                if uid in self._component_deletions or self._is_deleted_by_component(actor)
                else ()
            ),
        )
        for path in kept:
            copy_field(path, there, document)
        drop_empty_metadata_maps(document)
        return document

    def _is_deleted_by_component(self, actor: str) -> bool:
        """Return whether a component is deleting an object of the world."""
        deletion = self.world.deleting.get(actor)
        return deletion is not None and bool(self._attached.deleting_component(deletion.cause))

    def _end(self, place: ObjectLocation, last: Document, *, graceful: bool) -> Iterator[Action]:
        uid = uid_of(last)
        self.uid_map.waiting.pop(uid, None)
        self._pending_changes.pop(uid, None)
        there, component = (
            self.world.find(self.uid_map.counterpart(uid)),
            self._component_deletions.get(uid, ""),
        )
        ender = self._attached.removing_component(place[0]) if graceful else ""
        if ender and not _is_unplaced(place[0], there or last):
            self.left[ender] += 1
        elif not component:
            if there is not None:
                yield Action(self._merged(place[0], last, there, uid_of(there)), removes=True)
        else:
            yield from self._end_by_component(last, component, there)

    def _end_by_component(
        self, last: Document, component: str, there: Document | None
    ) -> Iterator[Action]:
        actor = self.uid_map.counterpart(uid_of(last))
        if there is None and actor in self.world.removed and actor not in self._released:
            return  # the component removed it immediately
        found = (
            there
            if there is not None and is_deleting(there)
            else self._longest_deleting(last, component)
        )
        if found is not None:
            yield self._release(found)
        elif self._comes_later(component):
            self._pending_removals.append(last)

    def _release(self, document: Document) -> Action:
        """Return the removal of an object that a component is deleting."""
        self._released.add(uid_of(document))
        return Action(document, removes=True)

    def _comes_later(self, component: str) -> bool:
        """Return whether a component has deleted fewer objects than were recorded as removed."""
        causes = map(self._component_deletions.get, self.recorded.removed)
        recorded = sum(cause == component for cause in causes)
        return sum(each.cause == component for each in self.world.deletions) < recorded

    def _longest_deleting(self, last: Document, component: str) -> Document | None:
        """Return the matching object that has been deleting longest, or None."""
        for deletion in self.world.deleting.values():
            document = self.world.find(deletion.uid)
            if document is not None and self._may_remove(deletion, document, last, component):
                return document
        return None

    def _may_remove(
        self, deletion: ObservedDeletion, document: Document, last: Document, component: str
    ) -> bool:
        if self._attached.chooses_victims(component):
            return deletion.cause == component
        controller = controller_of(document)
        wanted = (controller_of(last) or {}).get("uid")
        return controller is not None and controller.get("uid") == wanted


def _is_unplaced(resource: str, document: Document) -> bool:
    return resource == "pods" and not read_field(document, ("spec", "nodeName"))


def _unversioned(document: Document | None) -> Document | None:
    if document is None:
        return None
    metadata = {k: v for k, v in document["metadata"].items() if k != "resourceVersion"}
    return {**document, "metadata": metadata}


def _without_managed_fields(document: Document | None) -> Document | None:
    found = _unversioned(document)
    if found is not None:
        found["metadata"].pop("managedFields", None)
    return found
