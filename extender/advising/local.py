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

from extender.advising.asking import Answer, Kubelets, UnreadError
from extender.advising.inventory import Inventory
from extender.advising.rounds import Round, bearing_of, measured_as
from extender.kube.clock import Clock
from extender.memory.groups import MACHINE, Group, MeasureError, find_group
from extender.memory.listening import Attention, Ears
from extender.memory.measuring import Gauge
from policies.eviction.configuration import Plan
from policies.eviction.deciding import Sample
from policies.eviction.forestalling import Bearing
from policies.eviction.observations import notified_usage
from policies.eviction.outlook import UNSEEN, look_ahead
from policies.eviction.pods import EvictablePod
from policies.eviction.signals import Signal
from policies.eviction.stats import MemoryStats, NodeStats, Summary

PROC: Final = Path("/proc")

_ALL_PODS: Final = ("/kubepods.slice", "/kubepods")


@dataclass(frozen=True, slots=True)
class Beside:
    """The cluster that the machine is a node of."""

    known: Inventory
    kubelets: Kubelets


@dataclass(frozen=True, slots=True)
class Machine:
    """The local node: the machine, or one control group; and all pods, if they have a group."""

    node: str
    gauge: Gauge
    pods: Gauge | None = None

    def measure(self, now_ns: int) -> tuple[MemoryStats, MemoryStats | None]:
        """Return both measurements. Raise MemoryReadError."""
        together = None if self.pods is None else self.pods.measure(now_ns)
        return self.gauge.measure(now_ns), together


def this_machine(node: str, name: str = MACHINE, proc: Path = PROC) -> Machine:
    """Return the local node, or the control group called ``name``. Raise MemoryReadError."""
    pods = _group_of_pods(proc) if name == MACHINE else None
    return Machine(
        node, Gauge(proc, find_group(proc, name)), None if pods is None else Gauge(proc, pods)
    )


def _group_of_pods(proc: Path) -> Group | None:
    for name in _ALL_PODS:
        try:
            return find_group(proc, name)
        except MeasureError:
            continue
    return None


class LocalRounds:
    """Observes one machine, periodically and on notifications of the kernel."""

    def __init__(
        self,
        machine: Machine,
        plan: Plan,
        clock: Clock,
        ears: Ears,
        beside: Beside | None = None,
    ) -> None:
        self._machine = machine
        self._plan = plan
        self._clock = clock
        self._ears = ears
        self._beside = beside
        self._past = UNSEEN
        self._heard: list[str] = []
        self._attention = Attention(ears, machine.gauge.proc, machine.gauge.group)

    async def look(self) -> Round:
        """Measure memory, and register thresholds with the kernel. Raise MemoryReadError."""
        node, problem = self._machine.node, ""
        answer = Answer(Summary(NodeStats()), self._plan)
        if self._beside is not None:
            try:
                answer = await self._beside.kubelets.ask(node)
            except UnreadError as error:
                problem = f"{error}; only memory is known"
        now_ns = self._clock.now_ns()
        memory, together = self._machine.measure(now_ns)
        self._attention.expect(_levels(answer.plan, memory))
        measured = replace(
            answer.summary.node,
            memory=memory,
            allocatable=together or answer.summary.node.allocatable,
        )
        summary = replace(answer.summary, node=measured)
        pods, bearing = self._there(summary)
        sample = Sample(now_ns, pods, summary)
        outlook = look_ahead(node, answer.plan, self._past, sample)
        self._past = outlook.past
        said = (answer.note, problem, *self._attention.lacks)
        heard, self._heard = self._heard, []
        notes = [each for each in said if each]
        pressures = {node: outlook.sync.state.pressures}
        return Round(now_ns, [outlook], {}, {node: notes}, pressures, {node: bearing}, heard)

    async def rest(self, seconds: float) -> None:
        """Return after ``seconds``, or as soon as the kernel notifies of memory pressure."""
        self._heard = await self._ears.wait(seconds)

    def _there(self, summary: Summary) -> tuple[list[EvictablePod], Bearing]:
        if self._beside is None:
            return [], Bearing()
        there = self._beside.known.on(self._machine.node)
        host = self._beside.known.hosts.get(self._machine.node)
        pods = [pod for each in there if (pod := measured_as(each, summary)) is not None]
        return pods, bearing_of(there, closed=host is not None and host.closed)


def _levels(plan: Plan, memory: MemoryStats) -> list[int]:
    """Return the usages at which thresholds of the machine's memory are met."""
    bounds = [each for each in plan.later if each.signal is Signal.MEMORY]
    levels = {notified_usage(each, memory) for each in bounds}
    return sorted(level for level in levels if level > 0)


@asynccontextmanager
async def listening(clock: Clock) -> AsyncIterator[Ears]:
    """Open a listener, and close it on exit."""
    ears = Ears(clock)
    try:
        yield ears
    finally:
        ears.close()
