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
from fakeapi.replaying.hands import whose_deletion
from fakeapi.replaying.ledger import Deletion, Ledger
from fakeapi.replaying.objects import (
    Document,
    FieldPath,
    Place,
    controller_of,
    copy_field,
    drop_empty_marks,
    is_deleting,
    read_field,
    uid_of,
    with_changes,
)
from fakeapi.replaying.parts import Attached

IDENTITY: Final[tuple[FieldPath, ...]] = tuple(
    ("metadata", name)
    for name in ("name", "generateName", "uid", "creationTimestamp", "managedFields", "generation")
)
PATIENCE_NS: Final = 10**9
_DELETION: Final[tuple[FieldPath, ...]] = (
    ("metadata", "deletionTimestamp"),
    ("metadata", "deletionGracePeriodSeconds"),
)


@dataclass(frozen=True, slots=True)
class Act:
    """One action: write ``document``, or, with ``removes``, remove it."""

    document: Document
    removes: bool = False


@dataclass(frozen=True, slots=True)
class Birth:
    """The initial state of a recorded object, and the time of its creation in nanoseconds."""

    document: Document
    at_ns: int


@dataclass(slots=True)
class Cast:
    """The UIDs of counterparts in the world by recorded UIDs (``roles``), and the inverse.

    The inverse is ``actors``. ``waiting`` are the locations of objects without a counterpart,
    ``names`` the recorded names; ``needed`` are waiting objects that accept any counterpart.
    """

    roles: dict[str, str] = field(default_factory=dict)
    actors: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, Place] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    births: dict[str, Birth] = field(default_factory=dict)
    needed: set[str] = field(default_factory=set)

    def expect(self, uid: str, place: Place, birth: Birth) -> None:
        """Wait for a counterpart of a recorded object."""
        self.waiting[uid], self.names[uid], self.births[uid] = place, place[1], birth

    def press(self, uid: str, at_ns: int) -> None:
        """Record that an action is due for a waiting object, after which it may accept any."""
        if at_ns - self.births[uid].at_ns > PATIENCE_NS:
            self.needed.add(uid)

    def stand_in(self, uid: str) -> str:
        """Return the UID of a recorded object's counterpart: its own, unless it was awaited."""
        return self.roles.get(uid, uid)

    def engage(self, uid: str, actor: str) -> None:
        """Make an object of the world the counterpart of a recorded one."""
        self.roles[uid], self.actors[actor] = actor, uid
        del self.waiting[uid]


class Director:
    """Plans actions; ``world`` is the state of the world, which the caller updates.

    ``left`` counts the events that were left to each component.
    """

    def __init__(self, attached: Attached, world: Ledger) -> None:
        self._attached = attached
        self.world = world
        self.recorded = Ledger(whose_deletion)
        self.cast = Cast()
        self.left: Counter[str] = Counter()
        self._played: set[str] = set()
        self._released: set[str] = set()
        self._theirs: dict[str, str] = {}
        self._others: dict[str, str] = {}
        self._owed: list[Document] = []
        self._held: dict[str, Place] = {}

    def direct(self, event: RecordedEvent) -> Iterator[Act]:
        """Apply an event to the recorded state, and yield the actions that are due."""
        if not event.changes:
            yield from self.catch_up()
            return
        document = event.document()
        place, uid = (event.resource, event.key), uid_of(document)
        before = self.recorded.get(place)
        was_going = before is not None and is_deleting(before)
        begun = self.recorded.apply(event.type, event.resource, document)
        yield from self.catch_up()
        maker = self._attached.maker(event.resource, document) if event.type == "ADDED" else ""
        if begun is not None:
            self._note(begun)
        if maker:
            self.left[maker] += 1
            self.cast.expect(uid, place, Birth(document, event.at_ns))
            yield from self.catch_up()
        elif event.type == "DELETED":
            yield from self._end(place, document, graceful=was_going)
        elif uid in self.cast.waiting:
            self.cast.press(uid, event.at_ns)
            yield from self.catch_up()
        else:
            yield from self._change(place, document, new=event.type in ("LISTED", "ADDED"))

    @property
    def waits(self) -> bool:
        """Whether an action waits for a component."""
        return bool(self._owed or self._held or self.cast.waiting)

    def settle(self) -> Iterator[Act]:
        """Assign any counterparts to the objects that still wait, at the end of the replay."""
        self.cast.needed.update(self.cast.waiting)
        yield from self.catch_up()

    def catch_up(self) -> Iterator[Act]:
        """Assign counterparts to waiting objects, and yield the actions that were due for them.

        Yield also removals whose recorded objects ended before a component deleted one.
        """
        for last in tuple(self._owed):
            going = self._longest(last, self._theirs[uid_of(last)])
            if going is not None:
                self._owed.remove(last)
                yield self._release(going)
        for uid, place in tuple(self._held.items()):
            document = self.recorded.find(uid)
            if document is not None and self._goes_by_part(self.cast.stand_in(uid)):
                del self._held[uid]
                yield from self._change(place, document, new=False)
        for uid, place in tuple(self.cast.waiting.items()):
            actor = self._free_actor(uid, place)
            if actor:
                self.cast.engage(uid, actor)
                document = self.recorded.find(uid)
                if document is not None:
                    yield from self._change(place, document, new=False)

    def _note(self, begun: Deletion) -> None:
        part = self._attached.deleter(begun.hand)
        if part:
            self.left[part] += 1
            self._theirs[begun.uid] = begun.hand
        else:
            self._others[begun.uid] = begun.hand

    def hand_of(self, actor: str) -> str:
        """Return the cause of a played deletion of an object of the world; "" if not played."""
        return self._others.get(self.cast.actors.get(actor, actor), "")

    def _free_actor(self, uid: str, place: Place) -> str:
        document = self.recorded.find(uid)
        if document is None:  # it was removed before it had a counterpart
            return ""
        controller = controller_of(document)
        if controller is None:
            there = self.world.get(place)
            return "" if there is None else uid_of(there)
        taken = self._played, self.cast.actors
        born = self.world.born.get(str(controller.get("uid")), ())
        free = [each for each in born if not any(each in of for of in taken)]
        if self._attached.spreads and uid not in self.cast.needed:
            subset = self.recorded.subsets.get(uid)
            free = [each for each in free if self.world.subsets.get(each) == subset]
        return free[0] if free else ""

    def _change(self, place: Place, recorded: Document, *, new: bool) -> Iterator[Act]:
        uid = uid_of(recorded)
        actor = self.cast.stand_in(uid)
        there = self.world.find(actor) or (self.world.get(place) if actor == uid else None)
        if there is None and not new and self._attached.names:
            return
        if uid in self._theirs and there is not None and not self._goes_by_part(actor):
            self._held[uid] = place
            return
        if actor == uid:
            self._played.add(uid)
        document = self._dressed(place[0], recorded, there, actor)
        if not self._attached.names or _by_anybody(document) != _by_anybody(there):
            yield Act(document)

    def _dressed(
        self, resource: str, recorded: Document, there: Document | None, actor: str
    ) -> Document:
        """Return a recorded object with the world's values of fields that are not played."""
        if there is None or not self._attached.names:
            return recorded
        uid = uid_of(recorded)
        birth = self.cast.births.get(uid) if self._attached.spreads and actor != uid else None
        if birth is None:
            document = deepcopy(_unversioned(recorded) or {})
        else:
            document = deepcopy(_unversioned(with_changes(there, birth.document, recorded)) or {})
        kept = (
            *self._attached.writes(resource),
            *(IDENTITY if actor != uid else ()),
            *(_DELETION if uid in self._theirs or self._goes_by_part(actor) else ()),
        )
        for path in kept:
            copy_field(path, there, document)
        drop_empty_marks(document)
        return document

    def _goes_by_part(self, actor: str) -> bool:
        """Return whether a component is deleting an object of the world."""
        going = self.world.going.get(actor)
        return going is not None and bool(self._attached.deleter(going.hand))

    def _end(self, place: Place, last: Document, *, graceful: bool) -> Iterator[Act]:
        uid = uid_of(last)
        self.cast.waiting.pop(uid, None)
        self._held.pop(uid, None)
        there, hand = self.world.find(self.cast.stand_in(uid)), self._theirs.get(uid, "")
        ender = self._attached.ender(place[0]) if graceful else ""
        if ender and not _is_unplaced(place[0], there or last):
            self.left[ender] += 1
        elif not hand:
            if there is not None:
                yield Act(self._dressed(place[0], last, there, uid_of(there)), removes=True)
        else:
            yield from self._end_by_part(last, hand, there)

    def _end_by_part(self, last: Document, hand: str, there: Document | None) -> Iterator[Act]:
        actor = self.cast.stand_in(uid_of(last))
        if there is None and actor in self.world.gone and actor not in self._released:
            return  # the component removed it immediately
        going = there if there is not None and is_deleting(there) else self._longest(last, hand)
        if going is not None:
            yield self._release(going)
        elif self._comes_later(hand):
            self._owed.append(last)

    def _release(self, going: Document) -> Act:
        """Return the removal of an object that a component is deleting."""
        self._released.add(uid_of(going))
        return Act(going, removes=True)

    def _comes_later(self, hand: str) -> bool:
        """Return whether a component has deleted fewer objects than were recorded as removed."""
        ended = sum(self._theirs.get(uid) == hand for uid in self.recorded.gone)
        told = sum(deletion.hand == hand for deletion in self.world.deletions)
        return told < ended

    def _longest(self, last: Document, hand: str) -> Document | None:
        """Return the matching object that has been deleting longest, or None."""
        for deletion in self.world.going.values():
            document = self.world.find(deletion.uid)
            if document is not None and self._may_hit(deletion, document, last, hand):
                return document
        return None

    def _may_hit(self, going: Deletion, document: Document, last: Document, hand: str) -> bool:
        if self._attached.chooses(hand):
            return going.hand == hand
        controller = controller_of(document)
        wanted = (controller_of(last) or {}).get("uid")
        return controller is not None and controller.get("uid") == wanted


def _is_unplaced(resource: str, document: Document) -> bool:
    """Return whether an object is a pod without a node."""
    return resource == "pods" and not read_field(document, ("spec", "nodeName"))


def _unversioned(document: Document | None) -> Document | None:
    """Return an object without its resourceVersion."""
    if document is None:
        return None
    metadata = {k: v for k, v in document["metadata"].items() if k != "resourceVersion"}
    return {**document, "metadata": metadata}


def _by_anybody(document: Document | None) -> Document | None:
    """Return an object without its resourceVersion and managedFields."""
    found = _unversioned(document)
    if found is not None:
        found["metadata"].pop("managedFields", None)
    return found
