"""Scheduling decisions: the nodes on which pods were placed, nominated and preempted.

A replay keeps two logs, one of the recording and one of the world, with the same rules. A pod that
was created with a node was not placed. The nomination is the last one of a pod, even if it was
cleared later. Preemptions are identified as in :mod:`fakeapi.replay.recorded_state`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from fakeapi.replay.object_fields import Document, read_field, uid_of

SCHEDULER: Final = "scheduler"
"""The component's name, and the cause of the deletion of preempted pods."""

_NODE: Final = ("spec", "nodeName")
_NOMINATION: Final = ("status", "nominatedNodeName")


class DecisionDifference(Struct, frozen=True, rename="camel"):
    """A pod with different decisions: the two nodes; "" is no decision."""

    name: str
    recorded: str
    replayed: str


class DecisionComparison(Struct, frozen=True, rename="camel"):
    """The numbers of pods with a decision, and the pods with different decisions."""

    recorded: int
    replayed: int
    differences: list[DecisionDifference] = []

    @property
    def equal_percent(self) -> float:
        """How many of the pods with a decision, in either of the two, have equal ones."""
        differing = len(self.differences)
        equal = self.recorded - sum(bool(each.recorded) for each in self.differences)
        return 100 * equal / (equal + differing) if equal + differing else 100.0


class SchedulingComparison(Struct, frozen=True, rename="camel"):
    """Compared decisions: pods placed, nominated and preempted, each with the node."""

    placed: DecisionComparison
    nominated: DecisionComparison
    preempted: DecisionComparison

    @property
    def same(self) -> bool:
        """Whether all decisions are as recorded."""
        return not any(each.differences for each in (self.placed, self.nominated, self.preempted))


@dataclass(slots=True)
class SchedulingDecisionLog:
    """Nodes by pod UID: where each pod was placed, nominated and preempted."""

    placed: dict[str, str] = field(default_factory=dict)
    nominated: dict[str, str] = field(default_factory=dict)
    preempted: dict[str, str] = field(default_factory=dict)
    _unplaced: set[str] = field(default_factory=set)

    def record(self, pod: Document, cause: str) -> None:
        """Record the current state of a pod; ``cause`` is that of a deletion that starts now."""
        uid, node = uid_of(pod), read_field(pod, _NODE) or ""
        if not node:
            self._unplaced.add(uid)
        elif uid in self._unplaced:
            self._unplaced.discard(uid)
            self.placed[uid] = node
        nomination = read_field(pod, _NOMINATION)
        if nomination:
            self.nominated[uid] = nomination
        if cause == SCHEDULER:
            self.preempted[uid] = node


def compare_decisions(
    recorded: SchedulingDecisionLog, replayed: SchedulingDecisionLog, name: Callable[[str], str]
) -> SchedulingComparison:
    """Compare two logs, both by recorded UIDs; ``name`` returns the name of a UID's pod."""
    return SchedulingComparison(
        _compare(recorded.placed, replayed.placed, name),
        _compare(recorded.nominated, replayed.nominated, name),
        _compare(recorded.preempted, replayed.preempted, name),
    )


def _compare(
    recorded: Mapping[str, str], replayed: Mapping[str, str], name: Callable[[str], str]
) -> DecisionComparison:
    differences = [
        DecisionDifference(name(uid), recorded.get(uid, ""), replayed.get(uid, ""))
        for uid in dict.fromkeys((*recorded, *replayed))
        if recorded.get(uid) != replayed.get(uid)
    ]
    return DecisionComparison(len(recorded), len(replayed), differences)
