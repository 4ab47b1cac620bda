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

from extender.eviction.advise.kubelet_client import KubeletAnswer, KubeletClient, KubeletReadError
from extender.eviction.advise.node_inventory import NodeInventory
from extender.kube.decoders.node_hosts import AdvisedPod
from extender.kube.rest.clock import Clock
from policies.eviction.forecast import (
    NO_HISTORY,
    NodeForecast,
    ObservationHistory,
    forecast_node,
    sort_by_urgency,
)
from policies.eviction.manager import SyncInput
from policies.eviction.observations import observe
from policies.eviction.pods import EvictablePod
from policies.eviction.proactive_eviction import NodePodFacts
from policies.eviction.signals import Signal
from policies.eviction.stats import NodeStats, Summary
from policies.kubernetes.duration import format_duration

STALE_NS: Final = 120 * 10**9

_SECOND: Final = 10**9


@dataclass(frozen=True, slots=True)
class ObservationRound:
    """The result of a round: forecasts, most urgent first, and notes on nodes.

    By node, ``unread`` is why it could not be read, ``notes`` is further information, ``pressures``
    are the conditions that it reports; ``notifications`` are those that started the round early.
    """

    at_ns: int
    forecasts: Sequence[NodeForecast]
    unread: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pressures: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pod_facts: Mapping[str, NodePodFacts] = field(default_factory=dict)
    notifications: Sequence[str] = ()


class RoundSource(Protocol):
    """A source of rounds, which waits between them."""

    async def observe(self) -> ObservationRound:
        """Run one round."""
        ...

    async def wait(self, seconds: float) -> None:
        """Return when the next round is due: after ``seconds``, or earlier on a notification."""
        ...


class ClusterRounds:
    """Observes the nodes of an inventory."""

    def __init__(self, inventory: NodeInventory, kubelets: KubeletClient, clock: Clock) -> None:
        self._inventory = inventory
        self._kubelets = kubelets
        self._clock = clock
        self._histories: dict[str, ObservationHistory] = {}

    async def wait(self, seconds: float) -> None:
        """Wait for ``seconds``."""
        await self._clock.sleep(seconds)

    async def observe(self) -> ObservationRound:
        """Observe all nodes once."""
        nodes = sorted(self._inventory.nodes)
        self._histories = {
            name: history
            for name, history in self._histories.items()
            if name in self._inventory.nodes
        }
        self._kubelets.retain(nodes)
        observation = _NodeObservation(self._inventory, self._histories, self._clock.now_ns)
        await self._kubelets.get_all(nodes, observation.add)
        self._histories.update({each.node: each.history for each in observation.forecasts})
        return observation.round(self._clock.now_ns())


class _NodeObservation:
    """A round in progress."""

    def __init__(
        self,
        inventory: NodeInventory,
        histories: Mapping[str, ObservationHistory],
        now: Callable[[], int],
    ) -> None:
        self._inventory = inventory
        self._histories = histories
        self._now = now
        self.forecasts: list[NodeForecast] = []
        self._unread: dict[str, str] = {}
        self._notes: dict[str, list[str]] = {}
        self._pressures: dict[str, Sequence[str]] = {}
        self._pod_facts: dict[str, NodePodFacts] = {}

    def add(self, node: str, answer: KubeletAnswer | KubeletReadError) -> None:
        """Add the answer of a kubelet."""
        advised = self._inventory.nodes.get(node)
        if advised is None:
            return  # it was deleted during the request
        if isinstance(answer, KubeletReadError):
            self._unread[node] = str(answer)
            return
        stale = staleness_error(answer.summary.node, self._now())
        if stale:
            self._unread[node] = stale
            return
        present = self._inventory.pods_on(node)
        pods = [
            pod for each in present if (pod := with_stats_uid(each, answer.summary)) is not None
        ]
        at_ns = measurement_time_ns(answer.summary.node, self._now())
        history = self._histories.get(node, NO_HISTORY)
        sample = SyncInput(at_ns, pods, answer.summary)
        self.forecasts.append(forecast_node(node, answer.config, history, sample))
        self._pressures[node] = advised.pressures
        self._pod_facts[node] = node_pod_facts(present, cordoned=advised.unschedulable)
        notes = [answer.note] if answer.note else []
        notes.extend(each.problem for each in present if each.pod is None)
        if notes:
            self._notes[node] = notes

    def round(self, at_ns: int) -> ObservationRound:
        """Return the round."""
        unread = dict(sorted(self._unread.items()))
        ranked = sort_by_urgency(self.forecasts)
        return ObservationRound(
            at_ns, ranked, unread, self._notes, self._pressures, self._pod_facts
        )


def with_stats_uid(advised: AdvisedPod, summary: Summary) -> EvictablePod | None:
    """Return a pod with the UID under which it has stats; None if it cannot be decoded.

    A mirror pod represents a static pod, whose UID is in its annotation.
    """
    pod = advised.pod
    if pod is None or not advised.static_uid or pod.uid in summary.pods:
        return pod
    return replace(pod, uid=advised.static_uid)


def node_pod_facts(pods: Iterable[AdvisedPod], *, cordoned: bool) -> NodePodFacts:
    """Return the facts about a node's pods that decide besides stats."""
    decoded = [(each, each.pod.uid) for each in pods if each.pod is not None]
    return NodePodFacts(
        frozenset(uid for each, uid in decoded if each.daemon),
        frozenset(uid for each, uid in decoded if each.terminating),
        cordoned,
    )


def staleness_error(node: NodeStats, now_ns: int) -> str:
    """Return an error message if stats are too old, "" otherwise."""
    observations = observe(node)
    memory = observations.get(Signal.MEMORY)
    known = [memory] if memory is not None else observations.values()
    times = [each.time_ns for each in known if each.time_ns is not None]
    age = now_ns - max(times, default=now_ns)
    if age < STALE_NS:
        return ""
    return f"stats are stale: last measured {format_duration(age // _SECOND * _SECOND)} ago"


def measurement_time_ns(node: NodeStats, now_ns: int) -> int:
    """Return when the newest of a node's stats were measured, by its own clock; now if unknown."""
    times = [each.time_ns for each in observe(node).values() if each.time_ns is not None]
    return max(times, default=now_ns)
