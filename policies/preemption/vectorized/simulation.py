"""Simulations beside the columns of a decision, which stay as they are.

A replacement most often fits one of the nodes with the most free CPU, or none. So the columns of
the decision name the rows that have enough free resources, and the filters of the reference engine
evaluate the first of these, and the nodes that the simulation has changed. Where that does not find
a node at once, another engine decides, whose columns follow the simulated changes: the next
simulated cluster, or the next event of the real one, takes them back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.preemption.columns import ClusterColumns
from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.columns.node_columns import STANDARD
from policies.preemption.consequences.simulation import (
    SimulatedCluster,
    Simulation,
    by_free_cpu,
    unchanged,
)
from policies.preemption.decision import PreemptionDecision
from policies.preemption.engine import Engine
from policies.preemption.filtering import NodeResourcesFit, reads_workloads, run_pre_filters
from policies.preemption.policy import SchedulerRules
from policies.preemption.time_limit import DeadlineExceededError, HasTimeLeft, no_deadline
from policies.preemption.vectorized.filtering.framework import FilterInput

_MOST_ROWS: Final = 8
"""How many rows are evaluated one by one before all are evaluated together."""
_MOST_REPELLING: Final = 64
"""With more pods with anti-affinity in the cluster, it takes long to prepare the filters."""


class SimulationEngine(Engine, Protocol):
    """An engine that also finds one node for a pod."""

    def find_node(
        self, pod: Pod, snapshot: Snapshot, has_time_left: HasTimeLeft = no_deadline
    ) -> str | None:
        """See :class:`policies.preemption.consequences.simulation.Simulation`."""
        ...


class ColumnSimulations:
    """Simulates what would follow the preemptions of one cluster, with an engine of its own.

    The columns of ``engine`` are those of a simulated cluster. ``_changed`` names its nodes that
    differ from the cluster of the last decision, or event.
    """

    def __init__(self, engine: SimulationEngine) -> None:
        self._engine = engine
        self._followed = self._current = Snapshot()
        self._changed: frozenset[str] = frozenset()

    def follow(self, snapshot: Snapshot, changed: Collection[str] | None) -> None:
        """See :meth:`policies.preemption.engine.Engine.follow`."""
        is_known = changed is not None and self._current.nodes is self._followed.nodes
        self._engine.follow(snapshot, self._changed.union(changed or ()) if is_known else None)
        self._followed = self._current = snapshot
        self._changed = frozenset()

    def simulate(self, filter_input: FilterInput) -> Simulation:
        """Return the simulation of a decision."""
        snapshot, has_time_left = filter_input.snapshot, filter_input.has_time_left
        free_rows = FreeRows(filter_input.columns, self._engine.rules)

        def find_node(pod: Pod, cluster: SimulatedCluster) -> str | None:
            if not has_time_left():
                raise DeadlineExceededError
            if free_rows.can_find(pod, cluster.snapshot):
                found = free_rows.find(pod, cluster)
                if found is not None:
                    return found or None
            self._change(cluster)
            return self._engine.find_node(pod, cluster.snapshot, has_time_left)

        def decide(pod: Pod, cluster: SimulatedCluster) -> PreemptionDecision:
            self._change(cluster)
            return self._engine.preempt(pod, cluster.snapshot, has_time_left=has_time_left)

        return Simulation(filter_input.pod, unchanged(snapshot), find_node, decide)

    def _change(self, cluster: SimulatedCluster) -> None:
        """Update the columns to a simulated cluster."""
        changed: frozenset[str] | None = self._changed.union(cluster.changed)
        if cluster.original.nodes is not self._current.nodes:
            changed, self._current = None, cluster.original
        self._engine.follow(cluster.snapshot, changed)
        self._changed = frozenset(cluster.changed)


class FreeRows:
    """The rows of the columns of a decision, by what is free on them."""

    def __init__(self, columns: ClusterColumns, rules: SchedulerRules) -> None:
        self._columns = columns
        self._rules = rules
        self._counts_pods = reads_workloads(rules.filters)
        self._counts_requests = any(isinstance(each, NodeResourcesFit) for each in rules.filters)

    def can_find(self, pod: Pod, snapshot: Snapshot) -> bool:
        """Return whether single nodes can be evaluated fast: no filter reads much else."""
        counted = (
            pod.spread or pod.affinity or pod.anti_affinity or pod.storage or self._counts_pods
        )
        repelling = len(snapshot.pods_with_anti_affinity)
        return not counted and self._counts_requests and repelling <= _MOST_REPELLING

    def find(self, pod: Pod, cluster: SimulatedCluster) -> str | None:
        """Return the node for a pod, "" if there is none, and None if that takes longer."""
        rules, snapshot = self._rules, cluster.snapshot
        rows = self._possible(pod, cluster.changed)
        changed = [name for name, state in cluster.changed.items() if _has_room(state, pod)]
        changed += [name for name in self._columns.irregular if name not in cluster.changed]
        if not (len(rows) or changed):
            return ""
        pipeline = run_pre_filters(
            pod, snapshot, rules.release, rules.filters, rules.scheduler_names
        )

        def fits(name: str) -> bool:
            rejection = pipeline.evaluate(snapshot.nodes[name])
            return rejection is None or rejection.is_undecided

        names = [self._columns.names[row] for row in rows[:_MOST_ROWS].tolist()]
        first = next(filter(fits, names), None)
        if first is None and len(rows) > _MOST_ROWS:
            return None
        found = [*filter(fits, changed), *([] if first is None else [first])]
        return next(iter(by_free_cpu(found, snapshot.nodes)), "")

    def _possible(self, pod: Pod, changed: Iterable[str]) -> Ints:
        """Return the rows with enough free resources, those with the most free CPU first."""
        columns, (order, slots, free) = self._columns, self._sorted
        possible = slots > 0
        for amount, each in zip(columns.nodes.amounts(pod.requests), free, strict=False):
            if amount > 0:
                possible &= each >= amount
        others = np.ones(len(order), np.bool_)
        others[[columns.index[name] for name in (*changed, *columns.irregular)]] = False
        rows: Ints = order[possible]
        return rows[others[rows]]

    @cached_property
    def _sorted(self) -> tuple[Ints, Ints, Ints]:
        """The rows, those with the most free CPU first, and in that order what is free on them.

        These are pod slots, and CPU, memory and ephemeral storage.
        """
        nodes, width = self._columns.nodes, len(self._columns.names)
        free = (nodes.allocatable - nodes.requested)[: len(STANDARD), :width]
        slots = nodes.allowed_pods[:width] - self._columns.pod_block.used_counts()
        order = np.lexsort((self._columns.row_names.ranks(), -free[0]))
        return order, slots[order], free[:, order]


def _has_room(state: NodeState, pod: Pod) -> bool:
    """Return whether a node has the CPU and memory that a pod requests, if it requests any."""
    requests, requested, whole = pod.requests, state.requested, state.node.allocatable
    return requests.milli_cpu <= max(
        0, whole.milli_cpu - requested.milli_cpu
    ) and requests.memory <= max(0, whole.memory - requested.memory)


def most_free_row(columns: ClusterColumns, among: Bools) -> Ints:
    """Return which of some rows has the most free CPU; all of them if a row is irregular."""
    rows = np.flatnonzero(among)
    if columns.irregular or not len(rows):
        return rows
    nodes = columns.nodes
    requested = nodes.requested[0, rows] - nodes.allocatable[0, rows]
    return rows[np.lexsort((columns.row_names.ranks()[rows], requested))[:1]]
