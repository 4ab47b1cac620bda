"""Decide whether a ReplicaSet claims, adopts, releases or ignores a pod.

    controlled by                selector matches   does not match
    another UID                  ignored            ignored
    this ReplicaSet              claimed            released, unless the ReplicaSet is deleting
    none, in its namespace       adopted, unless    ignored
                                 either is deleting

Source: controller_ref_manager.go (ClaimObject), controller_utils.go (FilterClaimedPods).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Any

from fakeapi.controllers.replicaset.shapes import API_VERSION, KIND, OwnedPod, ReplicaSet


class ClaimDecision(Enum):
    """The action that a ReplicaSet takes on a pod."""

    CLAIM = auto()
    ADOPT = auto()
    RELEASE = auto()
    IGNORE = auto()


def decide_claim(replica_set: ReplicaSet, pod: OwnedPod) -> ClaimDecision:
    """Return what a ReplicaSet does with a pod."""
    controller, meta = pod.metadata.controller, replica_set.metadata
    matches = selects(replica_set, pod)
    if controller is None:
        adoptable = meta.namespace == pod.metadata.namespace and not pod.metadata.deleting
        return (
            ClaimDecision.ADOPT
            if matches and adoptable and not meta.deleting
            else ClaimDecision.IGNORE
        )
    if controller.uid != meta.uid:
        return ClaimDecision.IGNORE
    if matches:
        return ClaimDecision.CLAIM
    return ClaimDecision.IGNORE if meta.deleting else ClaimDecision.RELEASE


def terminating_pods(replica_set: ReplicaSet, pods: Iterable[OwnedPod]) -> list[OwnedPod]:
    """Return the terminating pods that a ReplicaSet owns; terminating pods are never adopted."""
    return [
        pod
        for pod in pods
        if pod.terminating and decide_claim(replica_set, pod) is ClaimDecision.CLAIM
    ]


def selects(replica_set: ReplicaSet, pod: OwnedPod) -> bool:
    """Return whether a ReplicaSet's selector matches a pod; a missing selector matches nothing."""
    selector = replica_set.selector
    return selector is not None and selector.matches(pod.labels)


def controller_reference(replica_set: ReplicaSet) -> dict[str, Any]:
    """Return the owner reference of the pods that a ReplicaSet controls."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": replica_set.metadata.name,
        "uid": replica_set.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def adoption_patch(replica_set: ReplicaSet, pod: OwnedPod) -> dict[str, Any]:
    """Return the patch that adopts a pod; the UID in it excludes another pod of the same name."""
    references = [controller_reference(replica_set)]
    return {"metadata": {"ownerReferences": references, "uid": pod.metadata.uid}}


def release_patch(owner_uid: str, pod_uid: str) -> dict[str, Any]:
    """Return the patch that releases a pod."""
    references = [{"$patch": "delete", "uid": owner_uid}]
    return {"metadata": {"uid": pod_uid, "ownerReferences": references}}
