"""Directing: what is to be done in the world, for each event of a recording.

Nothing attached: everything is done as it was recorded. Otherwise parts do their own work, and what
was recorded of it is not done but expected:

- An object that a part makes is waited for. The first that the part makes for the same controller
  (or under the same name) *stands in* for it, the second for the next, and so on. What others did
  to the recorded one afterwards is done to its stand-in, under that one's own identity. If none has
  come yet, it is done once one has.
- A deletion that is a part's doing is not done. When what was deleted was seen to end, something
  that the part has told to go ends: its stand-in, or else who goes longest of the same controller
  (of a scheduler: of all whom it preempts).
- What others did to something on its way out is done once a part has told its stand-in to go.
- Fields that a part writes stay as the world has them.
- Nothing is done to objects that a part has removed.

Where WorkloadSpreads are attached somebody in the same subset stands in. What webhooks put into a
pod may stand anywhere in it, so a stand-in keeps all that it came with, and what others *changed*
of the recorded one is changed of it. Who waits for more than a second, and is needed, takes
anybody.

Only this decides; who carries it out is :mod:`fakeapi.replaying.player`.
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
    """One thing to be done: ``document`` is to be there, or, with ``removes``, is to go."""

    document: Document
    removes: bool = False


@dataclass(frozen=True, slots=True)
class Birth:
    """What a recorded object looked like when it came, and when that was."""

    document: Document
    at_ns: int


@dataclass(slots=True)
class Cast:
    """Who stands in for whom: UIDs of the world by recorded UIDs, and the other way round.

    ``names`` are those under which they were recorded; ``needed`` are those who wait and take
    anybody by now.
    """

    roles: dict[str, str] = field(default_factory=dict)
    actors: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, Place] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    births: dict[str, Birth] = field(default_factory=dict)
    needed: set[str] = field(default_factory=set)

    def expect(self, uid: str, place: Place, birth: Birth) -> None:
        """Have somebody waited for."""
        self.waiting[uid], self.names[uid], self.births[uid] = place, place[1], birth

    def press(self, uid: str, at_ns: int) -> None:
        """Take notice that something is to be done to somebody who waits."""
        if at_ns - self.births[uid].at_ns > PATIENCE_NS:
            self.needed.add(uid)

    def stand_in(self, uid: str) -> str:
        """Return who stands in for a recorded object: itself, unless it was waited for."""
        return self.roles.get(uid, uid)

    def engage(self, uid: str, actor: str) -> None:
        """Have an object of the world stand in for a recorded one."""
        self.roles[uid], self.actors[actor] = actor, uid
        del self.waiting[uid]


class Director:
    """Says what is to be done. ``world`` is a ledger of the world that others keep.

    ``left`` counts the events that were left to each part.
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
        """Take an event down, and give what is to be done now."""
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
        """Whether something is to be done as soon as a part has done its own."""
        return bool(self._owed or self._held or self.cast.waiting)

    def settle(self) -> Iterator[Act]:
        """Find stand-ins for those who wait still, as well as can be: it is over."""
        self.cast.needed.update(self.cast.waiting)
        yield from self.catch_up()

    def catch_up(self) -> Iterator[Act]:
        """Find stand-ins for those who wait, and do to them what was done meanwhile.

        Who ended before a part had told anybody to go has somebody end now.
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
        """Say by whose hand an object of the world is told to go in play; "" if it is not."""
        return self._others.get(self.cast.actors.get(actor, actor), "")

    def _free_actor(self, uid: str, place: Place) -> str:
        document = self.recorded.find(uid)
        if document is None:  # it went before anybody could stand in for it
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
        """Return an object as it was recorded, but for what is not its player's to say."""
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
        """Return whether a part has told something of the world to go, which nothing undoes."""
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
            return  # the part had it go at once
        going = there if there is not None and is_deleting(there) else self._longest(last, hand)
        if going is not None:
            yield self._release(going)
        elif self._comes_later(hand):
            self._owed.append(last)

    def _release(self, going: Document) -> Act:
        """Have somebody end whom a part has told to go."""
        self._released.add(uid_of(going))
        return Act(going, removes=True)

    def _comes_later(self, hand: str) -> bool:
        """Return whether a part has told fewer to go than were seen to end."""
        ended = sum(self._theirs.get(uid) == hand for uid in self.recorded.gone)
        told = sum(deletion.hand == hand for deletion in self.world.deletions)
        return told < ended

    def _longest(self, last: Document, hand: str) -> Document | None:
        """Return who was told to go first, of those whom it may hit as well."""
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
    """Return whether it is a pod that no kubelet has ever had."""
    return resource == "pods" and not read_field(document, ("spec", "nodeName"))


def _unversioned(document: Document | None) -> Document | None:
    """Return it without its version."""
    if document is None:
        return None
    metadata = {k: v for k, v in document["metadata"].items() if k != "resourceVersion"}
    return {**document, "metadata": metadata}


def _by_anybody(document: Document | None) -> Document | None:
    """Return it without its version, and without who has written which field."""
    found = _unversioned(document)
    if found is not None:
        found["metadata"].pop("managedFields", None)
    return found
