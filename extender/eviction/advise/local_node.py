"""Observation of the local machine: periodic, as by its kubelet, and on memory notifications.

Memory is read from the kernel: that of the machine, and that of all pods if their control group is
visible. With access to a cluster the rest comes from the node's kubelet: its configuration, its
pods and their usage. Notifications of the kernel trigger a round before the next one is due.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from extender.eviction.advise.kubelet_client import KubeletAnswer, KubeletClient, KubeletReadError
from extender.eviction.advise.node_inventory import NodeInventory
from extender.eviction.advise.rounds import ObservationRound, node_pod_facts, with_stats_uid
from extender.eviction.memory.cgroups import (
    ROOT_CGROUP,
    Cgroup,
    MemoryReader,
    MemoryReadError,
    find_cgroup,
)
from extender.eviction.memory.notification_loop import CgroupNotifiers, NotifierListener
from extender.kube.rest.clock import Clock
from policies.eviction.config import ResolvedConfig
from policies.eviction.forecast import NO_HISTORY, forecast_node
from policies.eviction.manager import SyncInput
from policies.eviction.observations import notification_usage
from policies.eviction.pods import EvictablePod
from policies.eviction.proactive_eviction import NodePodFacts
from policies.eviction.signals import Signal
from policies.eviction.stats import MemoryStats, NodeStats, Summary

PROC: Final = Path("/proc")

_ALL_PODS: Final = ("/kubepods.slice", "/kubepods")


@dataclass(frozen=True, slots=True)
class NodeClusterContext:
    """The cluster that the machine is a node of."""

    inventory: NodeInventory
    kubelets: KubeletClient


@dataclass(frozen=True, slots=True)
class LocalNode:
    """The local node: the machine, or one control group; and all pods, if they have a group."""

    node: str
    reader: MemoryReader
    pods: MemoryReader | None = None

    def read(self, now_ns: int) -> tuple[MemoryStats, MemoryStats | None]:
        """Return both measurements. Raise MemoryReadError."""
        together = None if self.pods is None else self.pods.read(now_ns)
        return self.reader.read(now_ns), together


def find_local_node(node: str, name: str = ROOT_CGROUP, proc: Path = PROC) -> LocalNode:
    """Return the local node, or the control group called ``name``. Raise MemoryReadError."""
    pods = _pods_cgroup(proc) if name == ROOT_CGROUP else None
    return LocalNode(
        node,
        MemoryReader(proc, find_cgroup(proc, name)),
        None if pods is None else MemoryReader(proc, pods),
    )


def _pods_cgroup(proc: Path) -> Cgroup | None:
    for name in _ALL_PODS:
        try:
            return find_cgroup(proc, name)
        except MemoryReadError:
            continue
    return None


class LocalRounds:
    """Observes one machine, periodically and on notifications of the kernel."""

    def __init__(
        self,
        machine: LocalNode,
        config: ResolvedConfig,
        clock: Clock,
        listener: NotifierListener,
        cluster: NodeClusterContext | None = None,
    ) -> None:
        self._machine = machine
        self._config = config
        self._clock = clock
        self._listener = listener
        self._cluster = cluster
        self._history = NO_HISTORY
        self._notifications: list[str] = []
        self._notifiers = CgroupNotifiers(listener, machine.reader.proc, machine.reader.cgroup)

    async def observe(self) -> ObservationRound:
        """Measure memory, and register thresholds with the kernel. Raise MemoryReadError."""
        node, problem = self._machine.node, ""
        answer = KubeletAnswer(Summary(NodeStats()), self._config)
        if self._cluster is not None:
            try:
                answer = await self._cluster.kubelets.get(node)
            except KubeletReadError as error:
                problem = f"{error}; only memory is reported"
        now_ns = self._clock.now_ns()
        memory, together = self._machine.read(now_ns)
        self._notifiers.set_thresholds(_levels(answer.config, memory))
        measured = replace(
            answer.summary.node,
            memory=memory,
            allocatable=together or answer.summary.node.allocatable,
        )
        summary = replace(answer.summary, node=measured)
        pods, facts = self._read_pods(summary)
        sample = SyncInput(now_ns, pods, summary)
        forecast = forecast_node(node, answer.config, self._history, sample)
        self._history = forecast.history
        notifications, self._notifications = self._notifications, []
        notes = [each for each in (answer.note, problem, *self._notifiers.unavailable) if each]
        return ObservationRound(
            now_ns,
            [forecast],
            notes={node: notes},
            pressures={node: forecast.sync.state.pressures},
            pod_facts={node: facts},
            notifications=notifications,
        )

    async def wait(self, seconds: float) -> None:
        """Return after ``seconds``, or as soon as the kernel notifies of memory pressure."""
        self._notifications = await self._listener.wait(seconds)

    def _read_pods(self, summary: Summary) -> tuple[list[EvictablePod], NodePodFacts]:
        if self._cluster is None:
            return [], NodePodFacts()
        advised = self._cluster.inventory.pods_on(self._machine.node)
        node = self._cluster.inventory.nodes.get(self._machine.node)
        pods = [pod for each in advised if (pod := with_stats_uid(each, summary)) is not None]
        return pods, node_pod_facts(advised, cordoned=node is not None and node.unschedulable)


def _levels(config: ResolvedConfig, memory: MemoryStats) -> list[int]:
    """Return the usages at which thresholds of the machine's memory are met."""
    thresholds = [each for each in config.thresholds if each.signal is Signal.MEMORY]
    levels = {notification_usage(each, memory) for each in thresholds}
    return sorted(level for level in levels if level > 0)


@asynccontextmanager
async def open_listener(clock: Clock) -> AsyncIterator[NotifierListener]:
    """Open a listener, and close it on exit."""
    listener = NotifierListener(clock)
    try:
        yield listener
    finally:
        listener.close()
