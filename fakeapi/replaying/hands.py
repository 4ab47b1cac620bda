"""The cause of a deletion, as far as it follows from the recorded objects.

An object does not contain the client that deleted it. But components that disrupt pods set the
condition DisruptionTarget, and deletions by controllers follow from the state:

    the condition DisruptionTarget               by its reason, see CAUSES_BY_REASON
    its namespace is being deleted               namespaces
    all its owners are deleted or deleting       gc
    its controller has more pods than replicas   the controller: replicaset, statefulset, …
    it was unschedulable for longer than its     workloadspread
      WorkloadSpread allows
    otherwise                                    somebody

Sources: k8s.io/api/core/v1 (PodReasonPreemptionByScheduler and its like), pkg/apis/core/types.go.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from extender.kube.times import parse_time
from fakeapi.replaying.ledger import RecordedState
from fakeapi.replaying.objects import (
    Document,
    controller_of,
    is_active,
    is_deleting,
    owners_of,
    read_field,
)
from fakeapi.replaying.subsets import SPREADING, SPREADS, spread_of, unschedulable_limit_seconds

UNKNOWN_CAUSE: Final = "somebody"
CAUSES_BY_REASON: Final = MappingProxyType(
    {
        "PreemptionByScheduler": "scheduler",
        "PreemptionByKubeScheduler": "scheduler",
        "EvictionByEvictionAPI": "eviction",
        "DeletionByTaintManager": "tainteviction",
        "DeletionByPodGC": "podgc",
        "TerminationByKubelet": "kubelet",
    }
)


def deletion_cause(before: RecordedState, resource: str, document: Document) -> str:
    """Return the cause of an object's deletion; ``before`` is the state before the event."""
    disrupted = _disruption(document)
    if disrupted:
        return CAUSES_BY_REASON.get(disrupted, UNKNOWN_CAUSE)
    namespace = before.get(("namespaces", str(document["metadata"].get("namespace", ""))))
    if namespace is not None and is_deleting(namespace):
        return "namespaces"
    owners = owners_of(document)
    if owners and all(_is_owner_deleted(before, str(owner.get("uid"))) for owner in owners):
        return "gc"
    if resource != "pods":
        return UNKNOWN_CAUSE
    # Only a deletion timestamp shows that the limit of the WorkloadSpread was over.
    hands = (
        (_workloadspread_cause, _controller_cause)
        if is_deleting(document)
        else (_controller_cause, _workloadspread_cause)
    )
    return next(filter(None, (hand(before, document) for hand in hands)), UNKNOWN_CAUSE)


def _disruption(document: Document) -> str:
    for condition in read_field(document, ("status", "conditions")) or ():
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            return str(condition.get("reason", ""))
    return ""


def _is_owner_deleted(before: RecordedState, uid: str) -> bool:
    owner = before.find(uid)
    return uid in before.removed if owner is None else is_deleting(owner)


def _controller_cause(before: RecordedState, pod: Document) -> str:
    reference = controller_of(pod)
    if reference is None:
        return ""
    uid = str(reference.get("uid"))
    wanted = read_field(before.find(uid) or {}, ("spec", "replicas"))
    known = before.find(str(pod["metadata"].get("uid")))
    counted = known is not None and is_active(known)
    if counted and isinstance(wanted, int) and before.active(uid) > wanted:
        return str(reference.get("kind", "")).lower()
    return ""


def _workloadspread_cause(before: RecordedState, pod: Document) -> str:
    """Return the component's name if a WorkloadSpread deletes a pod as unschedulable, else ""."""
    known = before.find(str(pod["metadata"].get("uid")))
    spread = before.get((SPREADS, spread_of(pod)))
    if known is None or spread is None or not _is_unschedulable(known):
        return ""
    seconds = unschedulable_limit_seconds(spread, pod)
    if seconds is None:
        return ""
    told, created = (pod["metadata"].get(f"{each}Timestamp") for each in ("deletion", "creation"))
    return SPREADING if not told or _seconds(told) >= _seconds(created) + seconds else ""


def _is_unschedulable(pod: Document) -> bool:
    scheduled = read_field(pod, ("status", "conditions", "type=PodScheduled")) or {}
    said = scheduled.get("status"), scheduled.get("reason")
    return said == ("False", "Unschedulable") and not read_field(pod, ("spec", "nodeName"))


def _seconds(time: str | None) -> int:
    return parse_time(time) // 10**9
