"""The state of the cluster at any version of a run, rebuilt from the events of a watch.

This is the readable twin of the extender's cache (:mod:`extender.cluster`): the state of a changed
node is built again. The extender's assumed preemptions are applied to it: the victims last named
for a preemptor are assumed to be terminating, and the preemptor is assumed on the node, until the
next decision about the preemptor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from extender.kube.decoders.pods import decode_pod
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot, build_node_state
from tests.load.records import Change


@dataclass(frozen=True, slots=True)
class NamedFigures:
    """The last answer for a preemptor: its node, and the UIDs of the victims."""

    preemptor: Pod
    node: str
    victims: frozenset[str]


class History:
    """Advances from state to state, never back; ``changes`` are in the order of their versions."""

    def __init__(self, first: Snapshot, changes: Iterable[Change], release: Release) -> None:
        self._current = first
        self._pending = list(reversed(list(changes)))
        self._release = release
        self._pods = {
            name: {pod.key: pod for pod in state.pods} for name, state in first.nodes.items()
        }
        self._where = {key: name for name, pods in self._pods.items() for key in pods}
        self._named: dict[str, NamedFigures] = {}
        self._touched: set[str] = set()
        self.version = 0

    def advance(self, version: int) -> None:
        """Apply the changes up to a version. Raise ValueError for an older one."""
        if version < self.version:
            raise ValueError(f"version {version} comes after {self.version}")
        self.version = version
        while self._pending and self._pending[-1].version <= version:
            self._apply(self._pending.pop())

    def name(self, preemptor: Pod, node: str, victims: Sequence[str]) -> None:
        """Record an answer; ``victims`` are keys."""
        uids = frozenset(self._pods[node][key].uid for key in victims)
        self._named[preemptor.uid] = NamedFigures(preemptor, node, uids)
        self._touched.add(node)

    def forget(self, preemptor: Pod) -> None:
        """Drop the last answer for a pod."""
        older = self._named.pop(preemptor.uid, None)
        if older is not None:
            self._touched.add(older.node)

    def snapshot(self) -> Snapshot:
        """Return the current state."""
        if self._touched:
            states = {name: self._state(name) for name in self._touched}
            self._current = replace(self._current, nodes={**self._current.nodes, **states})
            self._touched.clear()
        return self._current

    def _apply(self, change: Change) -> None:
        pod = decode_pod(bytes(change.event.object), self._release)
        before = self._where.pop(pod.key, None)
        if before is not None:
            del self._pods[before][pod.key]
            self._touched.add(before)
        if change.event.type != "DELETED" and pod.node_name is not None:
            self._pods[pod.node_name][pod.key] = pod
            self._where[pod.key] = pod.node_name
            self._touched.add(pod.node_name)

    def _state(self, node: str) -> NodeState:
        named = [each for each in self._named.values() if each.node == node]
        leaving = frozenset[str]().union(*(each.victims for each in named))
        return build_node_state(
            self._current.nodes[node].node,
            [
                structs.replace(p, assumed_victim=p.uid in leaving)
                for p in self._pods[node].values()
            ],
            [structs.replace(each.preemptor, nominated_node=node) for each in named],
        )
