"""Objects that kube-scheduler does not read, and some policies do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

RESOURCE_QUOTA: Final = "ResourceQuota"
EVENT: Final = "Event"

NO_NODE_ANNOUNCED: Final = "NotTriggerScaleUp"
NODE_ANNOUNCED: Final = ("TriggeredScaleUp", "Nominated")
"""The reasons of the events of pods by which cluster-autoscaler and Karpenter announce a node.

Sources: processors/status/eventing_scale_up_processor.go of cluster-autoscaler, and
pkg/controllers/provisioning/scheduling/events.go of sigs.k8s.io/karpenter.
"""
AUTOSCALER_REASONS: Final = (*NODE_ANNOUNCED, NO_NODE_ANNOUNCED)


@dataclass(frozen=True, slots=True)
class ResourceQuota:
    """A ResourceQuota: what the pods of its namespace may request together.

    ``hard`` maps resources to amounts, CPU in milliCPU. It is empty for a quota with scopes, which
    counts some pods of the namespace only.
    """

    namespace: str
    name: str
    hard: Mapping[str, int]

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class AutoscalerEvent:
    """An event of a pod with one of AUTOSCALER_REASONS, and when it was last observed.

    ``key`` is ``namespace/name`` of the event, ``pod`` the UID of the pod.
    """

    key: str
    pod: str
    reason: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class PolicyObjects:
    """These objects in a snapshot; a kind is present only if a policy reads it.

    ``quotas`` are the ResourceQuotas by namespace. ``announced_ns`` has by the UID of a pod when an
    autoscaler last announced a node for it.
    """

    quotas: Mapping[str, tuple[ResourceQuota, ...]] = field(default_factory=dict)
    announced_ns: Mapping[str, int] = field(default_factory=dict)


def announcements(events: Iterable[AutoscalerEvent]) -> Mapping[str, int]:
    """Return when a node was last announced for each pod, by UID.

    A pod is left out if an autoscaler has found later that it has no node for it.
    """
    announced, denied = dict[str, int](), dict[str, int]()
    for each in events:
        newest = denied if each.reason == NO_NODE_ANNOUNCED else announced
        newest[each.pod] = max(each.at_ns, newest.get(each.pod, 0))
    return {pod: at_ns for pod, at_ns in announced.items() if at_ns >= denied.get(pod, 0)}


NO_POLICY_OBJECTS: Final = PolicyObjects()
