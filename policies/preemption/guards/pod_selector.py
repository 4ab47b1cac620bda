"""Which pods a guard or a rule applies to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from policies.kubernetes.selectors import LabelSelector
from policies.kubernetes.snapshot import Pod
from policies.preemption.costs.groupings import workload_of

ALL_LABELS: Final = LabelSelector()


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Selects the pods that match all of its fields; an empty field matches every pod.

    ``owners`` are kinds of workloads: ``Deployment`` instead of ``ReplicaSet`` for the pods of a
    Deployment, and ``Pod`` for pods without a controller.
    """

    namespaces: frozenset[str] = frozenset()
    labels: LabelSelector = ALL_LABELS
    priority_classes: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()

    def matches(self, pod: Pod) -> bool:
        """Return whether the selector selects ``pod``."""
        return (
            (not self.namespaces or pod.namespace in self.namespaces)
            and (not self.priority_classes or pod.priority_class in self.priority_classes)
            and (not self.owners or workload_of(pod).kind in self.owners)
            and self.labels.matches(pod.labels)
        )
