"""The page about events: the reasons of all Events, by the component that records them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from docs.reference.tables import code, table
from fakeapi.controlplane.kubelet.node_status import CONDITION_EVENTS
from policies.eviction.messages import REASON as EVICTED
from policies.eviction.messages import THRESHOLD_MET

PAGE: Final = "reference/events.md"

_TEXT: Final = """# Events

Components record these Events. `kubectl get events -A` lists all of them, `kubectl describe` those
of one object. Components of Kubernetes use the reasons of Kubernetes.
"""


class EventReason(NamedTuple):
    """A reason of Events, the kind of object that they are about, and when they are recorded."""

    reason: str
    kind: str
    meaning: str
    is_warning: bool = False


def _normal(reason: str, kind: str, meaning: str) -> EventReason:
    return EventReason(reason, kind, meaning)


def _warning(reason: str, kind: str, meaning: str) -> EventReason:
    return EventReason(reason, kind, meaning, is_warning=True)


EVENTS: Final[Mapping[str, Sequence[EventReason]]] = {
    "reprieve": (
        _normal("VictimsNamed", "Pod", "An answer names victims for this preemptor."),
        _normal("NamedAsVictim", "Pod", "An answer names this pod as a victim."),
    ),
    "reprieve-advisor": (
        _normal("Cordoned", "Node", "The node is cordoned, because it will reach a threshold."),
        _normal("EvictedAhead", "Pod", "The pod is evicted before the kubelet has to evict it."),
        _warning("EvictionBlocked", "Pod", "A disruption budget does not allow the eviction yet."),
    ),
    "reprieve-controllers": (
        _normal("LeaderElection", "Lease", "A process becomes the leader, or stops leading."),
    ),
    "replicaset-controller": (
        _normal("SuccessfulCreate", "ReplicaSet", "A pod is created."),
        _warning("FailedCreate", "ReplicaSet", "The API server rejects a pod."),
        _normal("SuccessfulDelete", "ReplicaSet", "A pod is deleted."),
        _warning("FailedDelete", "ReplicaSet", "The API server rejects the deletion of a pod."),
    ),
    "deployment-controller": (
        _normal("ScalingReplicaSet", "Deployment", "A ReplicaSet is created or scaled."),
        _warning("ReplicaSetCreateError", "Deployment", "The API server rejects a ReplicaSet."),
    ),
    "job-controller": (
        _normal("SuccessfulCreate", "Job", "A pod is created."),
        _normal("SuccessfulDelete", "Job", "A pod is deleted."),
        _normal("Completed", "Job", "The expected number of pods succeeded."),
        _normal("Suspended", "Job", "The Job is suspended."),
        _normal("Resumed", "Job", "The Job is not suspended any more."),
        _warning("FailedCreate", "Job", "The API server rejects a pod."),
        _warning("BackoffLimitExceeded", "Job", "More pods failed than `backoffLimit`."),
        _warning("DeadlineExceeded", "Job", "The Job ran longer than `activeDeadlineSeconds`."),
    ),
    "statefulset-controller": (
        _normal("SuccessfulCreate", "StatefulSet", "A pod or a claim is created."),
        _normal("SuccessfulDelete", "StatefulSet", "A pod is deleted."),
        _warning("FailedCreate", "StatefulSet", "The API server rejects a pod or a claim."),
    ),
    "daemonset-controller": (
        _normal("SuccessfulCreate", "DaemonSet", "A pod is created."),
        _normal("SuccessfulDelete", "DaemonSet", "A pod is deleted."),
        _warning("FailedCreate", "DaemonSet", "The API server rejects a pod."),
    ),
    "workloadspread-controller": (
        _normal("RecoverSchedulable", "WorkloadSpread", "Pods of a subset can be scheduled again."),
        _warning("CreatePodFailed", "WorkloadSpread", "An expected pod was not created in time."),
        _warning(
            "DeletePodFailed",
            "WorkloadSpread",
            "A pod was not deleted in time, or its deletion failed.",
        ),
    ),
    "default-scheduler, or the name of another profile": (
        _normal("Scheduled", "Pod", "The pod is bound to a node."),
        _warning("FailedScheduling", "Pod", "The pod fits no node, or an extender failed."),
        _normal("Preempted", "Pod", "The pod is deleted for a pod with a higher priority."),
    ),
    "kubelet": (
        _normal("Starting", "Node", "The simulated kubelet starts."),
        *(
            _normal(reason, "Node", f"The condition {condition} becomes {value}.")
            for condition, reasons in CONDITION_EVENTS.items()
            for value, reason in reasons.items()
        ),
        _warning(THRESHOLD_MET, "Node", "The kubelet attempts to reclaim a resource."),
        _warning("InvalidScript", "Node, Pod", "The annotation with the script is invalid."),
        _normal("Pulled", "Pod", "The image of a container is present."),
        _normal("Created", "Pod", "A container is created."),
        _normal("Started", "Pod", "A container is started."),
        _normal("Killing", "Pod", "A container is stopped."),
        _warning("Failed", "Pod", "An image cannot be pulled, by the script."),
        _warning("BackOff", "Pod", "A restart waits. A pull that waits is a Normal Event."),
        _warning("Unhealthy", "Pod", "A container stops being ready, by the script."),
        _warning(EVICTED, "Pod", "The pod is evicted, because a resource of the node ran short."),
        _warning("Preempting", "Pod", "The pod ends in favour of a critical pod on its node."),
        _warning("OutOf…", "Pod", "The node has too little of this resource, such as `OutOfcpu`."),
        _warning("NodeAffinity", "Pod", "The node does not match the affinity of the pod."),
        _warning("NodeName", "Pod", "The pod names another node."),
        _warning("NodePorts", "Pod", "A port of the node is in use."),
        _warning("TaintToleration", "Pod", "The pod does not tolerate a NoExecute taint."),
        _warning(
            "PodOSSelectorNodeLabelDoesNotMatch", "Pod", "The node has another operating system."
        ),
        _warning("UnexpectedAdmissionError", "Pod", "The kubelet cannot decide to admit the pod."),
    ),
    "node-controller": (
        _normal("RegisteredNode", "Node", "The controller sees the node for the first time."),
        _normal("RemovingNode", "Node", "The node is deleted."),
        _normal("NodeNotReady", "Node, Pod", "The kubelet stops reporting; on pods as a warning."),
    ),
    "taint-eviction-controller": (
        _normal("TaintManagerEviction", "Pod", "A taint evicts the pod, or does not any more."),
    ),
    "garbage-collector-controller": (
        _warning("OwnerRefInvalidNamespace", "any", "An owner is named in the wrong namespace."),
    ),
    "controllermanager": (
        _normal("NoPods", "PodDisruptionBudget", "No pod matches; a wrong selector is a warning."),
        _warning(
            "CalculateExpectedPodCountFailed",
            "PodDisruptionBudget",
            "The number of expected pods cannot be calculated.",
        ),
        _warning("UnmanagedPods", "PodDisruptionBudget", "Matching pods have no controller."),
        _warning("NotDeleted", "Pod", "The pod was evicted, and was not deleted in time."),
        _warning("MultiplePodDisruptionBudgets", "Pod", "Several budgets match the pod."),
    ),
}
"""The reasons by component; those that kube-controller-manager names, too, have its names."""


def page() -> str:
    """Return the page."""
    return _TEXT + "".join(map(_section, EVENTS))


def _section(component: str) -> str:
    rows = (
        (code(each.reason), "Warning" if each.is_warning else "Normal", each.kind, each.meaning)
        for each in EVENTS[component]
    )
    return f"\n## {component}\n\n{table(('reason', 'type', 'about', 'when'), rows)}"
