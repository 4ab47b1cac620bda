"""What follows a decision, as the watch shows it: victims, their replacements, and the preemptor.

The replacement of a victim is the next new pod of its owner, or, without an owner, the next new pod
of its name. If several victims of an owner wait for theirs, the earliest gets the first. Times are
those at which the watch showed a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from extender.ledger.entry import LedgerEntry, LedgerRecord, Outcome, State, VictimOutcome
from policies.kubernetes.snapshot import Pod

FOLLOWED_NS: Final = 3600 * 10**9
"""An hour: for so long the outcome of a decision is followed."""

MOST_FOLLOWED: Final = 10_000


class _Victim(NamedTuple):
    """A victim by its entry and its place there."""

    entry: int
    place: int


@dataclass(slots=True)
class _Followed:
    """An entry whose outcome is not complete, and that outcome so far."""

    entry: LedgerEntry
    outcome: Outcome

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to be observed."""
        return self.outcome.state is not State.OPEN and all(
            each.bound_ns for each in self.outcome.victims
        )


class OutcomeTracker:
    """Follows decisions that name victims."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._followed: dict[int, _Followed] = {}
        self._preemptors: dict[str, int] = {}
        self._victims: dict[str, list[_Victim]] = {}
        self._awaited: dict[str, list[_Victim]] = {}
        self._replacements: dict[str, _Victim] = {}
        self._changed: set[int] = set()

    def __len__(self) -> int:
        return len(self._followed)

    def follow(self, entry: LedgerEntry) -> None:
        """Follow a new decision; an earlier one about the same preemptor is superseded."""
        if not entry.victims:
            return
        earlier = self._preemptors.get(entry.pod.uid)
        if earlier is not None:
            self._end(earlier, State.SUPERSEDED)
        self._add(entry, Outcome(victims=(VictimOutcome(),) * len(entry.victims)))

    def resume(self, records: Iterable[LedgerRecord], pods: Mapping[str, Pod]) -> None:
        """Follow again what an earlier process followed; ``pods`` are those that exist, by UID.

        ``records`` are in any order.
        """
        for record in sorted(records, key=lambda each: -each.entry.id):
            if record.entry.id in self._followed:
                continue
            self._add(record.entry, record.outcome)
            for uid in (record.entry.pod.uid, *(each.uid for each in record.entry.victims)):
                if uid in pods:
                    self.observe(pods[uid], pods[uid])
                else:
                    self._observe_end(uid)

    def observe(self, old: Pod | None, pod: Pod) -> None:
        """Record a pod from the watch; ``old`` is the same pod as it was before, if it is known."""
        if pod.finished:
            self._observe_end(pod.uid)
            return
        if old is None:
            self._observe_creation(pod)
        if pod.node_name is not None and (old is None or old.node_name is None or old is pod):
            self._observe_binding(pod, pod.node_name)

    def observe_deletion(self, pod: Pod) -> None:
        """Record that a pod was deleted."""
        self._observe_end(pod.uid)

    def changes(self) -> Mapping[int, Outcome]:
        """Return the outcomes that have changed since the last call, by the ID of their entry.

        Decisions that are complete, or older than an hour, are no longer followed.
        """
        oldest, surplus = self._now_ns() - FOLLOWED_NS, len(self._followed) - MOST_FOLLOWED
        over = set[int]()
        for number, followed in self._followed.items():  # the earliest first
            if len(over) >= surplus and followed.entry.at_ns >= oldest:
                break
            over.add(number)
        for number in over:
            self._end(number, State.UNKNOWN)
        changed = {number: self._followed[number].outcome for number in self._changed}
        complete = {number for number in changed if self._followed[number].is_complete}
        for number in over | complete:
            self._drop(self._followed.pop(number).entry)
        self._changed.clear()
        return changed

    def _add(self, entry: LedgerEntry, outcome: Outcome) -> None:
        self._followed[entry.id] = _Followed(entry, outcome)
        if outcome.state is State.OPEN:
            newest = self._preemptors.setdefault(entry.pod.uid, entry.id)
            if newest != entry.id:
                self._end(entry.id, State.SUPERSEDED)
        for place, (pod, found) in enumerate(zip(entry.victims, outcome.victims, strict=False)):
            victim = _Victim(entry.id, place)
            if not found.gone_ns:
                self._victims.setdefault(pod.uid, []).append(victim)
            if not found.replacement:
                self._awaited.setdefault(pod.owner_key, []).append(victim)

    def _observe_creation(self, pod: Pod) -> None:
        owner = "Pod/" + pod.name if pod.owner is None else f"{pod.owner.kind}/{pod.owner.name}"
        waiting = self._awaited.get(f"{pod.namespace}/{owner}")
        if not waiting or pod.uid in self._victims:
            return
        victim = waiting.pop(0)
        if not waiting:
            del self._awaited[f"{pod.namespace}/{owner}"]
        self._replacements[pod.uid] = victim
        self._update(victim, replacement=pod.name)

    def _observe_binding(self, pod: Pod, node: str) -> None:
        number = self._preemptors.get(pod.uid)
        if number is not None:
            self._end(number, State.BOUND, node)
        victim = self._replacements.pop(pod.uid, None)
        if victim is not None:
            self._update(victim, node=node, bound_ns=self._now_ns())

    def _observe_end(self, uid: str) -> None:
        """Record that a pod was deleted or has finished."""
        number = self._preemptors.get(uid)
        if number is not None:
            self._end(number, State.DELETED)
        for victim in self._victims.pop(uid, ()):
            self._update(victim, gone_ns=self._now_ns())
        replaced = self._replacements.pop(uid, None)
        if replaced is not None and replaced.entry in self._followed:
            entry = self._followed[replaced.entry].entry
            owner = entry.victims[replaced.place].owner_key
            self._awaited.setdefault(owner, []).insert(0, replaced)
            self._update(replaced, replacement="")

    def _end(self, number: int, state: State, node: str = "") -> None:
        """Record the end of a preemptor."""
        followed = self._followed[number]
        if followed.outcome.state is State.OPEN:
            ended = msgspec.structs.replace(
                followed.outcome, state=state, node=node, ended_ns=self._now_ns()
            )
            followed.outcome = ended
            self._changed.add(number)
        if self._preemptors.get(followed.entry.pod.uid) == number:
            del self._preemptors[followed.entry.pod.uid]

    def _update(self, victim: _Victim, **changes: str | int) -> None:
        followed = self._followed.get(victim.entry)
        if followed is None:
            return
        victims = list(followed.outcome.victims)
        victims[victim.place] = msgspec.structs.replace(victims[victim.place], **changes)
        followed.outcome = msgspec.structs.replace(followed.outcome, victims=tuple(victims))
        self._changed.add(victim.entry)

    def _drop(self, entry: LedgerEntry) -> None:
        """Forget the victims of an entry that is no longer followed."""
        for victim in entry.victims:
            _remove(self._victims, victim.uid, entry.id)
            _remove(self._awaited, victim.owner_key, entry.id)
        waiting = [uid for uid, each in self._replacements.items() if each.entry == entry.id]
        for uid in waiting:
            del self._replacements[uid]


def _remove(index: dict[str, list[_Victim]], key: str, entry: int) -> None:
    kept = [each for each in index.pop(key, ()) if each.entry != entry]
    if kept:
        index[key] = kept
