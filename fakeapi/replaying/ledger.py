"""The state of a recording or a world: current and deleted objects, and the causes of deletions.

It is updated by one event after another. A replay keeps two, one of the recording and one of the
world, with the same rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from extender.recording.format import EventType
from fakeapi.replaying.decisions import SchedulingDecisionLog
from fakeapi.replaying.objects import (
    Document,
    ObjectLocation,
    controller_of,
    is_active,
    is_deleting,
    key_of,
    uid_of,
)
from fakeapi.replaying.subsets import subset_of


@dataclass(frozen=True, slots=True)
class ObservedDeletion:
    """The deletion of an object, graceful or immediate; ``cause`` is the component behind it."""

    resource: str
    key: str
    uid: str
    cause: str


@dataclass(slots=True)
class RecordedState:
    """The state after the events so far. ``deletion_cause`` returns the cause of a deletion.

    ``created`` are the UIDs of objects by their controller's UID, in the order of creation;
    ``deleting`` those of existing objects with a deletion timestamp; ``removed`` those of objects
    that no longer exist; ``names`` are the keys of all pods so far, ``subsets`` their subsets of
    WorkloadSpreads. Objects without UID are identified by their location.
    """

    deletion_cause: Callable[[RecordedState, str, Document], str]
    present: dict[ObjectLocation, Document] = field(default_factory=dict)
    places: dict[str, ObjectLocation] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    created: dict[str, list[str]] = field(default_factory=dict)
    deleting: dict[str, ObservedDeletion] = field(default_factory=dict)
    deletions: list[ObservedDeletion] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    subsets: dict[str, str] = field(default_factory=dict)
    decisions: SchedulingDecisionLog = field(default_factory=SchedulingDecisionLog)
    _active: dict[str, set[str]] = field(default_factory=dict)

    def apply(self, kind: EventType, resource: str, document: Document) -> ObservedDeletion | None:
        """Apply an event; return the deletion of its object if the event starts it."""
        if kind in ("BOOKMARK", "RELISTED"):
            return None
        place, uid = (resource, key_of(document)), _identity(resource, document)
        begun = None
        leaves = kind == "DELETED"
        if (leaves or is_deleting(document)) and uid not in self.deleting:
            begun = ObservedDeletion(*place, uid, self.deletion_cause(self, resource, document))
            self.deleting[uid] = begun
            self.deletions.append(begun)
        if resource == "pods":
            self.names[uid], self.subsets[uid] = place[1], subset_of(document)
            self.decisions.record(document, begun.cause if begun else "")
        if leaves:
            self._remove(place, uid)
        else:
            self._store(place, uid, document)
        return begun

    def get(self, place: ObjectLocation) -> Document | None:
        """Return the object at a location, or None."""
        return self.present.get(place)

    def find(self, uid: str) -> Document | None:
        """Return the object with a UID, or None."""
        place = self.places.get(uid)
        return None if place is None else self.present.get(place)

    def active(self, controller: str) -> int:
        """Return the number of a controller's active pods."""
        return len(self._active.get(controller, ()))

    def _store(self, place: ObjectLocation, uid: str, document: Document) -> None:
        before = self.present.get(place)
        if before is not None and _identity(place[0], before) != uid:
            self._remove(place, _identity(place[0], before))
        self.present[place] = document
        self.places[uid] = place
        self.removed.discard(uid)
        controller = controller_of(document)
        if controller is None:
            return
        owner = str(controller.get("uid"))
        born = self.created.setdefault(owner, [])
        if before is None or controller_of(before) is None:
            born.append(uid)
        members = self._active.setdefault(owner, set())
        if place[0] == "pods" and is_active(document):
            members.add(uid)
        else:
            members.discard(uid)

    def _remove(self, place: ObjectLocation, uid: str) -> None:
        before = self.present.pop(place, None)
        self.places.pop(uid, None)
        self.deleting.pop(uid, None)
        self.removed.add(uid)
        controller = None if before is None else controller_of(before)
        if controller is not None:
            self._active.get(str(controller.get("uid")), set()).discard(uid)


def _identity(resource: str, document: Document) -> str:
    return uid_of(document) or f"{resource}/{key_of(document)}"
