"""Clusters that change, and whose snapshots share what has not changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from policies.kubernetes.selectors import Labels
from policies.kubernetes.snapshot import DisruptionBudget, Node, NodeState, Pod, Snapshot
from tests.builders import snapshot


@dataclass
class ClusterState:
    """A cluster that changes; unchanged nodes stay the same objects."""

    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[int, Pod] = field(default_factory=dict)
    budgets: tuple[DisruptionBudget, ...] = ()
    namespaces: Mapping[str, Labels] = field(default_factory=dict)
    last: Snapshot = field(default_factory=Snapshot)

    def seen(self) -> Snapshot:
        """Return the snapshot of the cluster now."""
        whole = snapshot(
            *self.nodes.values(),
            *self.pods.values(),
            *self.budgets,
            namespaces=self.namespaces,
        )
        states = {name: self._kept(name, state) for name, state in whole.nodes.items()}
        self.last = replace(whole, nodes=states, budgets=self.budgets, namespaces=self.namespaces)
        return self.last

    def _kept(self, name: str, state: NodeState) -> NodeState:
        before = self.last.nodes.get(name)
        return before if before is not None and _same(before, state) else state


def _same(before: NodeState, after: NodeState) -> bool:
    return (
        before.node is after.node
        and [*map(id, before.pods)] == [*map(id, after.pods)]
        and [*map(id, before.nominated)] == [*map(id, after.nominated)]
    )
