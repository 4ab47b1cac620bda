"""What a scheduler has decided: where pods landed, for which nodes others had to go, and who.

A log is kept of the recording and one of the world, by the same rules; a pod that came with a node
was not placed. A nomination is the last that a pod had, also when it has ended. Who was preempted
is told as in :mod:`fakeapi.replaying.hands`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from fakeapi.replaying.objects import Document, read_field, uid_of

SCHEDULER: Final = "scheduler"
"""The part that decides, and the hand by which pods are preempted."""

_NODE: Final = ("spec", "nodeName")
_NOMINATION: Final = ("status", "nominatedNodeName")


class Decided(Struct, frozen=True, rename="camel"):
    """A pod of which something else was decided: two nodes; "" is: nothing was decided."""

    name: str
    recorded: str
    replayed: str


class Decisions(Struct, frozen=True, rename="camel"):
    """How many pods it was decided of, and the pods of which it was not the same."""

    recorded: int
    replayed: int
    differences: list[Decided] = []


class Scheduling(Struct, frozen=True, rename="camel"):
    """What was decided: pods that landed, were nominated, were preempted, each with the node."""

    placed: Decisions
    nominated: Decisions
    preempted: Decisions

    @property
    def same(self) -> bool:
        """Whether all was decided as it was recorded."""
        return not any(each.differences for each in (self.placed, self.nominated, self.preempted))


@dataclass(slots=True)
class DecisionLog:
    """Nodes by the UIDs of pods: where each landed, was nominated to, was preempted."""

    placed: dict[str, str] = field(default_factory=dict)
    nominated: dict[str, str] = field(default_factory=dict)
    preempted: dict[str, str] = field(default_factory=dict)
    _unplaced: set[str] = field(default_factory=set)

    def note(self, pod: Document, hand: str) -> None:
        """Take a pod down as it is now; ``hand`` is who tells it to go with this, "" is nobody."""
        uid, node = uid_of(pod), read_field(pod, _NODE) or ""
        if not node:
            self._unplaced.add(uid)
        elif uid in self._unplaced:
            self._unplaced.discard(uid)
            self.placed[uid] = node
        nomination = read_field(pod, _NOMINATION)
        if nomination:
            self.nominated[uid] = nomination
        if hand == SCHEDULER:
            self.preempted[uid] = node


def compare_decisions(
    recorded: DecisionLog, replayed: DecisionLog, name: Callable[[str], str]
) -> Scheduling:
    """Compare what was decided; both go by recorded UIDs, and ``name`` names the pod of one."""
    return Scheduling(
        _compare(recorded.placed, replayed.placed, name),
        _compare(recorded.nominated, replayed.nominated, name),
        _compare(recorded.preempted, replayed.preempted, name),
    )


def _compare(
    recorded: Mapping[str, str], replayed: Mapping[str, str], name: Callable[[str], str]
) -> Decisions:
    differences = [
        Decided(name(uid), recorded.get(uid, ""), replayed.get(uid, ""))
        for uid in dict.fromkeys((*recorded, *replayed))
        if recorded.get(uid) != replayed.get(uid)
    ]
    return Decisions(len(recorded), len(replayed), differences)
