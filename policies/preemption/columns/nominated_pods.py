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
    """The UIDs of the nominated pods by the number of their kind, each at its place on a node."""

    def __init__(self) -> None:
        self._kinds = InternTable(_kind)
        self._by_node: dict[str, Sequence[int]] = {}
        self._uids: dict[int, dict[tuple[str, int], str]] = {}

    @property
    def nodes(self) -> Iterator[str]:
        """The names of the nodes with nominated pods."""
        return iter(self._by_node)

    def set(self, node: str, pods: Sequence[Pod]) -> None:
        """Replace the pods that are nominated to a node."""
        for place, number in enumerate(self._by_node.pop(node, ())):
            del self._uids[number][node, place]
            if self._kinds.release(number) is not None:
                del self._uids[number]
        if pods:
            self._by_node[node] = [self._kinds.acquire(pod)[0] for pod in pods]
            for place, number in enumerate(self._by_node[node]):
                self._uids.setdefault(number, {})[node, place] = pods[place].uid

    def nodes_of(self, uid: str) -> Sequence[str]:
        """Return the nodes that a pod is nominated to, by its UID."""
        of_kinds = self._uids.values()
        return [node for uids in of_kinds for (node, _), other in uids.items() if other == uid]

    def others(self, uid: str, index: Mapping[str, int]) -> Iterator[tuple[Pod, Ints]]:
        """Yield a pod of each kind, and the rows of the pods of that kind without those of a UID.

        ``index`` maps names of nodes to rows.
        """
        for number, uids in self._uids.items():
            sample = self._kinds.samples[number]
            rows = [index[node] for (node, _), other in uids.items() if other != uid]
            if sample is not None and rows:
                yield sample, np.array(rows, np.int64)


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
