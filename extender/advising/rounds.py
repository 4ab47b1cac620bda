"""Rounds of observation of all nodes, each combined with the history of the rounds before.

    inventory ─┐
    kubelets ──┴─> round ──> forecasts, most urgent first; nodes that could not be read

A node whose memory was last measured at least two minutes ago counts as unreadable, because its
forecast would be unreliable. Its history is kept until it can be read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from extender.advising.asking import Answer, Kubelets, UnreadError
from extender.advising.inventory import Inventory
from extender.kube.clock import Clock
from extender.kube.occupants import Occupant
from policies.eviction.deciding import Sample
from policies.eviction.durations import spell_duration
from policies.eviction.forestalling import Bearing
from policies.eviction.observations import observe
from policies.eviction.outlook import UNSEEN, Outlook, Past, look_ahead, most_pressing
from policies.eviction.pods import EvictablePod
from policies.eviction.signals import Signal
from policies.eviction.stats import NodeStats, Summary

STALE_NS: Final = 120 * 10**9

_SECOND: Final = 10**9


@dataclass(frozen=True, slots=True)
class Round:
    """The result of a round: forecasts, most urgent first, and notes on nodes.

    By node, ``unread`` is why it could not be read, ``notes`` is further information, ``pressures``
    are the conditions that it reports; ``notifications`` are those that started the round early.
    """

    at_ns: int
    outlooks: Sequence[Outlook]
    unread: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pressures: Mapping[str, Sequence[str]] = field(default_factory=dict)
    bearings: Mapping[str, Bearing] = field(default_factory=dict)
    heard: Sequence[str] = ()


class Watcher(Protocol):
    """A source of rounds, which waits between them."""

    async def look(self) -> Round:
        """Run one round."""
        ...

    async def rest(self, seconds: float) -> None:
        """Return when the next round is due: after ``seconds``, or earlier on a notification."""
        ...


class Rounds:
    """Observes the nodes of an inventory."""

    def __init__(self, known: Inventory, kubelets: Kubelets, clock: Clock) -> None:
        self._known = known
        self._kubelets = kubelets
        self._clock = clock
        self._pasts: dict[str, Past] = {}

    async def rest(self, seconds: float) -> None:
        """Wait for ``seconds``."""
        await self._clock.sleep(seconds)

    async def look(self) -> Round:
        """Observe all nodes once."""
        nodes = sorted(self._known.hosts)
        self._pasts = {
            name: past for name, past in self._pasts.items() if name in self._known.hosts
        }
        self._kubelets.forget_all_but(nodes)
        looking = _Looking(self._known, self._pasts, self._clock.now_ns)
        await self._kubelets.ask_all(nodes, looking.take)
        self._pasts.update({each.node: each.past for each in looking.outlooks})
        return looking.round(self._clock.now_ns())


class _Looking:
    """A round in progress."""

    def __init__(self, known: Inventory, pasts: Mapping[str, Past], now: Callable[[], int]) -> None:
        self._known = known
        self._pasts = pasts
        self._now = now
        self.outlooks: list[Outlook] = []
        self._unread: dict[str, str] = {}
        self._notes: dict[str, list[str]] = {}
        self._pressures: dict[str, Sequence[str]] = {}
        self._bearings: dict[str, Bearing] = {}

    def take(self, node: str, answer: Answer | UnreadError) -> None:
        """Add the answer of a kubelet."""
        host = self._known.hosts.get(node)
        if host is None:
            return  # it was deleted during the request
        if isinstance(answer, UnreadError):
            self._unread[node] = str(answer)
            return
        stale = staleness(answer.summary.node, self._now())
        if stale:
            self._unread[node] = stale
            return
        there = self._known.on(node)
        pods = [pod for each in there if (pod := measured_as(each, answer.summary)) is not None]
        sample = Sample(measured_ns(answer.summary.node, self._now()), pods, answer.summary)
        past = self._pasts.get(node, UNSEEN)
        self.outlooks.append(look_ahead(node, answer.plan, past, sample))
        self._pressures[node] = host.pressures
        self._bearings[node] = bearing_of(there, closed=host.closed)
        notes = [answer.note] if answer.note else []
        notes.extend(each.problem for each in there if each.pod is None)
        if notes:
            self._notes[node] = notes

    def round(self, at_ns: int) -> Round:
        """Return the round."""
        unread = dict(sorted(self._unread.items()))
        ranked = most_pressing(self.outlooks)
        return Round(at_ns, ranked, unread, self._notes, self._pressures, self._bearings)


def measured_as(occupant: Occupant, summary: Summary) -> EvictablePod | None:
    """Return a pod with the UID under which it has stats; None if it cannot be decoded.

    A mirror pod represents a static pod, whose UID is in its annotation.
    """
    pod = occupant.pod
    if pod is None or not occupant.static_uid or pod.uid in summary.pods:
        return pod
    return replace(pod, uid=occupant.static_uid)


def bearing_of(occupants: Iterable[Occupant], *, closed: bool) -> Bearing:
    """Return the facts about a node's pods that decide besides stats."""
    there = [(each, each.pod.uid) for each in occupants if each.pod is not None]
    return Bearing(
        frozenset(uid for each, uid in there if each.daemon),
        frozenset(uid for each, uid in there if each.leaving),
        closed,
    )


def staleness(node: NodeStats, now_ns: int) -> str:
    """Return an error message if stats are too old, "" otherwise."""
    observations = observe(node)
    memory = observations.get(Signal.MEMORY)
    known = [memory] if memory is not None else observations.values()
    times = [each.time_ns for each in known if each.time_ns is not None]
    age = now_ns - max(times, default=now_ns)
    if age < STALE_NS:
        return ""
    return f"stats are stale: last measured {spell_duration(age // _SECOND * _SECOND)} ago"


def measured_ns(node: NodeStats, now_ns: int) -> int:
    """Return when the newest of a node's stats were measured, by its own clock; now if unknown."""
    times = [each.time_ns for each in observe(node).values() if each.time_ns is not None]
    return max(times, default=now_ns)
