"""The state of a recording or a world: current and deleted objects, and the causes of deletions.

It is updated by one event after another. A replay keeps two, one of the recording and one of the
world, with the same rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from extender.recording.format import EventType
from fakeapi.replaying.decisions import DecisionLog
from fakeapi.replaying.objects import (
    Document,
    Place,
    controller_of,
    is_active,
    is_deleting,
    key_of,
    uid_of,
)
from fakeapi.replaying.subsets import subset_of


@dataclass(frozen=True, slots=True)
class Deletion:
    """The deletion of an object, graceful or immediate; ``cause`` is the component behind it."""

    resource: str
    key: str
    uid: str
    hand: str


@dataclass(slots=True)
class Ledger:
    """The state after the events so far. ``deletion_cause`` returns the cause of a deletion.

    ``created`` are the UIDs of objects by their controller's UID, in the order of creation;
    ``deleting`` those of existing objects with a deletion timestamp; ``removed`` those of objects
    that no longer exist; ``names`` are the keys of all pods so far, ``subsets`` their subsets of
    WorkloadSpreads. Objects without UID are identified by their location.
    """

    whose: Callable[[Ledger, str, Document], str]
    present: dict[Place, Document] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    born: dict[str, list[str]] = field(default_factory=dict)
    going: dict[str, Deletion] = field(default_factory=dict)
    deletions: list[Deletion] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    subsets: dict[str, str] = field(default_factory=dict)
    decisions: DecisionLog = field(default_factory=DecisionLog)
    _active: dict[str, set[str]] = field(default_factory=dict)

    def apply(self, kind: EventType, resource: str, document: Document) -> Deletion | None:
        """Apply an event; return the deletion of its object if the event starts it."""
        if kind in ("BOOKMARK", "RELISTED"):
            return None
        place, uid = (resource, key_of(document)), _identity(resource, document)
        begun = None
        leaves = kind == "DELETED"
        if (leaves or is_deleting(document)) and uid not in self.going:
            begun = Deletion(*place, uid, self.whose(self, resource, document))
            self.going[uid] = begun
            self.deletions.append(begun)
        if resource == "pods":
            self.names[uid], self.subsets[uid] = place[1], subset_of(document)
            self.decisions.note(document, begun.hand if begun else "")
        if leaves:
            self._forget(place, uid)
        else:
            self._note(place, uid, document)
        return begun

    def get(self, place: Place) -> Document | None:
        """Return the object at a location, or None."""
        return self.present.get(place)

    def find(self, uid: str) -> Document | None:
        """Return the object with a UID, or None."""
        place = self.places.get(uid)
        return None if place is None else self.present.get(place)

    def active(self, controller: str) -> int:
        """Return the number of a controller's active pods."""
        return len(self._active.get(controller, ()))

    def _note(self, place: Place, uid: str, document: Document) -> None:
        before = self.present.get(place)
        if before is not None and _identity(place[0], before) != uid:
            self._forget(place, _identity(place[0], before))
        self.present[place] = document
        self.places[uid] = place
        self.gone.discard(uid)
        controller = controller_of(document)
        if controller is None:
            return
        owner = str(controller.get("uid"))
        born = self.born.setdefault(owner, [])
        if before is None or controller_of(before) is None:
            born.append(uid)
        members = self._active.setdefault(owner, set())
        if place[0] == "pods" and is_active(document):
            members.add(uid)
        else:
            members.discard(uid)

    def _forget(self, place: Place, uid: str) -> None:
        before = self.present.pop(place, None)
        self.places.pop(uid, None)
        self.going.pop(uid, None)
        self.gone.add(uid)
        controller = None if before is None else controller_of(before)
        if controller is not None:
            self._active.get(str(controller.get("uid")), set()).discard(uid)


def _identity(resource: str, document: Document) -> str:
    return uid_of(document) or f"{resource}/{key_of(document)}"
