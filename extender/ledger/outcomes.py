"""What follows a decision, as the watch shows it: victims, their replacements, and the preemptor.

The replacement of a victim is the next new pod of its owner once the victim is terminating or gone.
Without an owner, it is the next new pod of its name. If several victims of an owner wait for
theirs, the first new pod replaces the first of them that left. Times are those at which the watch
showed a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from extender.kube.decoders.typed_decoder import Unreadable
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
        self._awaited: dict[str, dict[str, None]] = {}  # the UIDs of victims by owner
        self._replacements: dict[str, str] = {}  # the UID of the victim by that of a pending pod
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
        self._add(entry, Outcome(victims=tuple(self._known(pod.uid) for pod in entry.victims)))

    def resume(self, records: Iterable[LedgerRecord], pods: Mapping[str, Pod | Unreadable]) -> None:
        """Follow again what an earlier process followed; ``pods`` are those that exist, by key.

        ``records`` are in any order.
        """
        for record in sorted(records, key=lambda each: -each.entry.id):
            if record.entry.id in self._followed:
                continue
            self._add(record.entry, record.outcome)
            for named in (record.entry.pod, *record.entry.victims):
                pod = pods.get(named.key)
                if pod is None or pod.uid != named.uid:
                    self._observe_end(named.uid)
                elif isinstance(pod, Pod):
                    self.observe(pod, pod)
            self._resume_replacements(record, pods)
        self._followed = dict(sorted(self._followed.items()))  # the earliest first

    def observe(self, old: Pod | None, pod: Pod) -> None:
        """Record a pod from the watch; ``old`` is the same pod as it was before, if it is known."""
        if pod.finished:
            self._observe_end(pod.uid)
            return
        if old is None:
            self._observe_creation(pod)
        if pod.terminating or pod.preempted:
            self._await_replacement(pod.uid)
        if pod.node_name is not None and (old is None or old.node_name is None or old is pod):
            self._observe_binding(pod, pod.node_name)

    def observe_deletion(self, uid: str) -> None:
        """Record that a pod was deleted."""
        self._observe_end(uid)

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
            self._drop(number)
        self._changed.clear()
        return changed

    def _add(self, entry: LedgerEntry, outcome: Outcome) -> None:
        self._followed[entry.id] = _Followed(entry, outcome)
        if outcome.state is State.OPEN:
            newest = self._preemptors.setdefault(entry.pod.uid, entry.id)
            if newest != entry.id:
                self._end(entry.id, State.SUPERSEDED)
        for place, pod in enumerate(entry.victims):
            self._victims.setdefault(pod.uid, []).append(_Victim(entry.id, place))

    def _resume_replacements(
        self, record: LedgerRecord, pods: Mapping[str, Pod | Unreadable]
    ) -> None:
        """Follow replacements again that were pending when an earlier process followed them."""
        for victim, found in zip(record.entry.victims, record.outcome.victims, strict=False):
            if not found.replacement or found.bound_ns:
                continue
            pod = pods.get(f"{victim.namespace}/{found.replacement}")
            if pod is None:
                self._update(victim.uid, replacement="")
                self._await_replacement(victim.uid)
                continue
            self._replacements[pod.uid] = victim.uid
            if isinstance(pod, Pod):
                self.observe(pod, pod)

    def _known(self, uid: str) -> VictimOutcome:
        """Return what is known of a victim from earlier decisions."""
        if uid not in self._victims:
            return VictimOutcome()
        entry, place = self._victims[uid][0]  # the others are equal
        return self._followed[entry].outcome.victims[place]

    def _await_replacement(self, uid: str) -> None:
        """Record that a victim, if the pod is one, has left: its owner may replace it."""
        if uid in self._victims and not self._known(uid).replacement:
            self._awaited.setdefault(self._owner_of(uid), {})[uid] = None

    def _owner_of(self, uid: str) -> str:
        victim = self._victims[uid][0]
        return self._followed[victim.entry].entry.victims[victim.place].owner_key

    def _observe_creation(self, pod: Pod) -> None:
        owner = f"Pod/{pod.name}" if pod.owner is None else f"{pod.owner.kind}/{pod.owner.name}"
        uid = next(iter(self._awaited.get(f"{pod.namespace}/{owner}", ())), None)
        if uid is not None and pod.uid not in self._victims:
            self._end_wait(uid)
            self._replacements[pod.uid] = uid
            self._update(uid, replacement=pod.name)

    def _end_wait(self, uid: str) -> None:
        """Record that a victim does not wait for a replacement, or no longer."""
        owner = self._owner_of(uid)
        waiting = self._awaited.get(owner, {})
        waiting.pop(uid, None)
        if not waiting:
            self._awaited.pop(owner, None)

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
        if uid in self._victims and not self._known(uid).gone_ns:
            self._update(uid, gone_ns=self._now_ns())
            self._await_replacement(uid)
        replaced = self._replacements.pop(uid, None)
        if replaced is not None:
            self._update(replaced, replacement="")
            self._await_replacement(replaced)

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

    def _update(self, uid: str, **changes: str | int) -> None:
        """Change the outcome of a victim in each entry that names it."""
        for entry, place in self._victims.get(uid, ()):
            followed = self._followed[entry]
            victims = list(followed.outcome.victims)
            victims[place] = msgspec.structs.replace(victims[place], **changes)
            followed.outcome = msgspec.structs.replace(followed.outcome, victims=tuple(victims))
            self._changed.add(entry)

    def _drop(self, number: int) -> None:
        """No longer follow an entry.

        The victim of a replacement may stay behind until the replacement is bound or deleted.
        """
        for uid in {victim.uid for victim in self._followed[number].entry.victims}:
            others = [each for each in self._victims[uid] if each.entry != number]
            if others:
                self._victims[uid] = others
            else:
                self._end_wait(uid)
                del self._victims[uid]
        del self._followed[number]
