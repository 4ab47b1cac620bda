"""The nominated pods of all nodes, by what filters read of them.

A burst of preemptors is of few kinds, and replicas of one workload are of one. So a filter reads
one pod of each kind, and adds what it finds to all rows of that kind.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np

from policies.kubernetes.snapshot import Pod
from policies.preemption.columns.encoded_column import Ints
from policies.preemption.columns.label_classes import InternTable


class NominatedPods:
    """The nominated pods by node, each as the number of its kind and its UID."""

    def __init__(self) -> None:
        self._kinds = InternTable(_kind)
        self._by_node: dict[str, Sequence[tuple[int, str]]] = {}

    @property
    def nodes(self) -> Iterator[str]:
        """The names of the nodes with nominated pods."""
        return iter(self._by_node)

    def set(self, node: str, pods: Sequence[Pod]) -> None:
        """Replace the pods that are nominated to a node."""
        for number, _ in self._by_node.pop(node, ()):
            self._kinds.release(number)
        if pods:
            self._by_node[node] = [(self._kinds.acquire(pod)[0], pod.uid) for pod in pods]

    def nodes_of(self, uid: str) -> Sequence[str]:
        """Return the nodes that a pod is nominated to, by its UID."""
        return [node for node, pods in self._by_node.items() for _, other in pods if other == uid]

    def others(self, uid: str, index: Mapping[str, int]) -> Iterator[tuple[Pod, Ints]]:
        """Yield a pod of each kind, and the rows of the pods of that kind without those of a UID.

        ``index`` maps names of nodes to rows.
        """
        rows: dict[int, list[int]] = {}
        for node, pods in self._by_node.items():
            for number, other in pods:
                if other != uid:
                    rows.setdefault(number, []).append(index[node])
        for number, found in rows.items():
            sample = self._kinds.samples[number]
            if sample is not None:
                yield sample, np.array(found, np.int64)


def _kind(pod: Pod) -> Hashable:
    requests = pod.requests
    return (
        pod.namespace,
        frozenset(pod.labels.items()),
        pod.priority,
        pod.may_be_assumed,
        pod.scheduler_name,
        (requests.milli_cpu, requests.memory, requests.ephemeral_storage),
        frozenset(requests.scalars.items()),
        pod.host_ports,
        pod.anti_affinity,
        pod.storage,
    )
