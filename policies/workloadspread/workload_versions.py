"""Versions of a workload: during a rollout each version is spread separately.

A pod's version is its template hash, from its labels; a workload's newest version is that of the
pods that it creates now. Only some kinds are distinguished by version; all other pods have the
version ``versionIgnored``.

Source: openkruise/kruise pkg/util/workloadspread/workloadspread.go (GetPodVersion,
GetWorkloadVersion, enableVersionedStatus).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from policies.workloadspread.model import VERSION_IGNORED, SpreadPod
from policies.workloadspread.quirks import REVERSED_STANDALONE_COSTS, Quirks
from policies.workloadspread.workloads import TargetWorkload

TEMPLATE_HASH: Final = "pod-template-hash"
REVISION_HASH: Final = "controller-revision-hash"


class CurrentRevisionUnknownError(LookupError):
    """The newest version of a workload cannot be determined yet; the text is the reason."""


def versioned_kinds(names: Iterable[str]) -> frozenset[str]:
    """Return the kinds with versions, in lower case; Deployments imply ReplicaSets."""
    kinds = frozenset(name.lower() for name in names)
    return kinds | {"replicaset"} if "deployment" in kinds else kinds


DEFAULT_VERSIONED_KINDS: Final = versioned_kinds(("deployment", "replicaset"))


def pod_version(pod: SpreadPod, kinds: frozenset[str]) -> str:
    """Return the version of a pod, from its labels if its controller's kind has versions."""
    if pod.controller is None or pod.controller.kind.lower() not in kinds:
        return VERSION_IGNORED
    if TEMPLATE_HASH in pod.labels:
        return pod.labels[TEMPLATE_HASH]
    if REVISION_HASH in pod.labels:
        return short_hash(pod.labels[REVISION_HASH])
    return VERSION_IGNORED


def newest_version(
    workload: TargetWorkload | None,
    replica_sets: Iterable[TargetWorkload],
    kinds: frozenset[str],
    quirks: Quirks,
) -> str:
    """Return the version of the pods that a workload creates now; "" if it does not exist.

    ``replica_sets`` are those of its namespace. Raise CurrentRevisionUnknownError.
    """
    if workload is None:
        return ""
    if not _has_versions(workload, kinds):
        return VERSION_IGNORED
    match workload.identity.kind:
        case "ReplicaSet":
            absent = "" if REVERSED_STANDALONE_COSTS in quirks else VERSION_IGNORED
            return workload.labels.get(TEMPLATE_HASH, absent)
        case "CloneSet":
            if workload.generation > workload.observed_generation:
                raise CurrentRevisionUnknownError(
                    f"{workload.key}: its last change is not observed yet"
                )
            return short_hash(workload.update_revision)
        case "Deployment":
            return _newest_of_deployment(workload, replica_sets)
    return VERSION_IGNORED


def short_hash(revision: str) -> str:
    """Return the hash at the end of a ControllerRevision's name."""
    return revision.rpartition("-")[2]


def _has_versions(workload: TargetWorkload, kinds: frozenset[str]) -> bool:
    owner = workload.controller
    return workload.identity.kind.lower() in kinds or (
        owner is not None and owner.kind.lower() in kinds
    )


def _newest_of_deployment(workload: TargetWorkload, replica_sets: Iterable[TargetWorkload]) -> str:
    for each in replica_sets:
        if is_controlled_by(each, workload) and each.template == workload.template:
            return each.labels.get(TEMPLATE_HASH, "")
    raise CurrentRevisionUnknownError(f"{workload.key}: no ReplicaSet has its template yet")


def is_controlled_by(replica_set: TargetWorkload, deployment: TargetWorkload) -> bool:
    """Return whether a live ReplicaSet that a Deployment selects is controlled by it."""
    controller = replica_set.controller
    return (
        not replica_set.terminating
        and controller is not None
        and controller.uid == deployment.uid
        and deployment.selector is not None
        and deployment.selector.matches(replica_set.labels)
    )
