"""Event predicates: which changes in the cluster enqueue a WorkloadSpread.

    a pod is created or deleted                  the WorkloadSpread of its annotation
    a pod stops being active, or changes version the same
    a pod that can be adopted is on a node       the WorkloadSpread that targets its owner
    a target is created or deleted               the WorkloadSpread that targets it
    a target's replicas change                   the same
    a Deployment begins a rollout (its revision  the same
    changes), a CloneSet too
    a ReplicaSet, like the above                 also the one that targets its Deployment

A change of the WorkloadSpread itself always enqueues it.

Source: openkruise/kruise pkg/controller/workloadspread/workloadspread_event_handler.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from policies.workloadspread.model import SpreadPod, WorkloadSpread
from policies.workloadspread.object_references import (
    APPS,
    CLONE_SET,
    DEPLOYMENT,
    JOB,
    KRUISE,
    REPLICA_SET,
    STATEFUL_SET,
    TARGET_KINDS,
    ObjectKey,
)
from policies.workloadspread.quirks import (
    ADOPTABLE_PODS_IGNORED,
    STATEFUL_SETS_UNWATCHED,
    UNSCHEDULABLE_PODS_IGNORED,
    Quirks,
)
from policies.workloadspread.targets import known_replicas
from policies.workloadspread.workload_versions import pod_version
from policies.workloadspread.workloads import NO_ALLOWED_KINDS, AllowedKinds, TargetWorkload

_WATCHED: Final = ((KRUISE, CLONE_SET), (APPS, DEPLOYMENT), (APPS, REPLICA_SET), ("batch", JOB))
_STATEFUL: Final = ((APPS, STATEFUL_SET), (KRUISE, STATEFUL_SET))


def watched_kinds(allowed_kinds: AllowedKinds, quirks: Quirks) -> tuple[tuple[str, str], ...]:
    """Return the groups and kinds of workloads to watch."""
    stateful = () if STATEFUL_SETS_UNWATCHED in quirks else _STATEFUL
    return (*_WATCHED, *stateful, *((each.group, each.kind) for each in allowed_kinds.kinds))


def workloadspread_of_pod(pod: SpreadPod) -> str | None:
    """Return the name of the WorkloadSpread to enqueue when a pod is created or deleted."""
    return None if pod.injection is None else pod.injection.spread


def is_relevant_pod_update(
    old: SpreadPod, new: SpreadPod, kinds: frozenset[str], quirks: Quirks
) -> bool:
    """Return whether an update of a pod enqueues its WorkloadSpread."""
    if old.active and not new.active:
        return True
    if pod_version(old, kinds) != pod_version(new, kinds):
        return True
    newly_unschedulable = new.unschedulable and not old.unschedulable
    return newly_unschedulable and UNSCHEDULABLE_PODS_IGNORED not in quirks


def has_become_adoptable(old: SpreadPod | None, new: SpreadPod, quirks: Quirks) -> bool:
    """Return whether a pod has become adoptable; ``old`` is None for a new pod.

    A pod is adoptable if it is on a node and has no subset yet.
    """
    had_no_node = old is None or old.node == ""
    return (
        had_no_node
        and new.node != ""
        and new.active
        and new.injection is None
        and ADOPTABLE_PODS_IGNORED not in quirks
    )


def workloadspread_of_workload(
    workload: TargetWorkload, spreads: Iterable[WorkloadSpread]
) -> WorkloadSpread | None:
    """Return the WorkloadSpread that targets a workload, or the Deployment of a ReplicaSet.

    ``spreads`` are those of its namespace; the first match is returned.
    """
    targets = {workload.identity}
    owner = workload.controller
    if (
        owner is not None
        and workload.identity[:2] == (APPS, REPLICA_SET)
        and owner.lenient_identity[:2] == (APPS, DEPLOYMENT)
    ):
        targets.add(ObjectKey(APPS, DEPLOYMENT, owner.name))
    return next(
        (
            spread
            for spread in spreads
            if not spread.terminating
            and spread.target is not None
            and spread.target.lenient_identity in targets
        ),
        None,
    )


def is_relevant_workload_event(workload: TargetWorkload) -> bool:
    """Return whether the creation or deletion of a workload enqueues its WorkloadSpread.

    A whitelisted kind does not: its pods and its replicas enqueue it.
    """
    return workload.identity.group in TARGET_KINDS.get(workload.identity.kind, ())


def is_relevant_workload_update(
    old: TargetWorkload, new: TargetWorkload, allowed_kinds: AllowedKinds = NO_ALLOWED_KINDS
) -> bool:
    """Return whether an update of a workload enqueues its WorkloadSpread."""
    if known_replicas(old, allowed_kinds) != known_replicas(new, allowed_kinds):
        return True
    match new.identity[:2]:
        case ("apps.kruise.io", "CloneSet"):
            return new.update_revision != old.current_revision
        case ("apps", "Deployment"):
            return new.deployment_revision != old.deployment_revision
    return False
