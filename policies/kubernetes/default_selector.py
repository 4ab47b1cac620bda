"""The default selector of a pod: its Services and its controller.

kube-scheduler's own topology spread constraints have no selector. They count the pods that the
pod's Services and its controller select together: with a Service for ``app: web`` and a ReplicaSet
for ``app: web, hash: 5d4``, the pods of that ReplicaSet.

Source: DefaultSelector in pkg/scheduler/framework/plugins/helper/spread.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from policies.kubernetes.selectors import Labels, LabelSelector, Requirement

SERVICE = "Service"
REPLICATION_CONTROLLER = "ReplicationController"
REPLICA_SET = "ReplicaSet"
STATEFUL_SET = "StatefulSet"
WORKLOAD_KINDS = (SERVICE, REPLICATION_CONTROLLER, REPLICA_SET, STATEFUL_SET)


class PodOwner(NamedTuple):
    """The controller that owns a pod."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class PodSelectingObject:
    """A Service or a controller, as far as it selects pods; ``selector`` None selects none."""

    kind: str
    namespace: str
    name: str
    selector: LabelSelector | None

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


def default_selector(
    labels: Labels, controller: PodOwner | None, workloads: Iterable[PodSelectingObject]
) -> LabelSelector:
    """Return the selector that a pod's ``workloads``, all of its namespace, form; or an empty one.

    Services count if they match the pod's labels, a controller if the pod names it. Plain maps are
    merged key by key, a ReplicationController's last; expressions are added.
    """
    equal: dict[str, Requirement] = {}
    owning: LabelSelector | None = None
    for each in workloads:
        selector = each.selector
        if selector is None:
            continue
        if each.kind == SERVICE and selector.matches(labels):
            equal |= {requirement.key: requirement for requirement in selector.requirements}
        elif controller == (each.kind, each.name):
            owning = selector
    if owning is None or controller is None:
        return LabelSelector(tuple(equal.values()))
    if controller.kind == REPLICATION_CONTROLLER:
        equal |= {requirement.key: requirement for requirement in owning.requirements}
        return LabelSelector(tuple(equal.values()))
    return LabelSelector((*equal.values(), *owning.requirements))
