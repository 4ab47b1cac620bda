"""The status of a Deployment: the sums of its ReplicaSets' statuses, and its conditions.

Source: kubernetes/pkg/controller/deployment (sync.go, progress.go, util/deployment_util.go).
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from extender.kube.decoders.object_meta import NS_PER_SECOND, parse_time
from fakeapi.controlplane.workloads.deployment_rollout import (
    PROGRESSING,
    Deployment,
    DeploymentStatus,
    Rollout,
)
from fakeapi.controlplane.workloads.types import (
    Conditions,
    WorkloadCondition,
    get_condition,
    with_condition,
    without_condition,
)

_REPLICA_FAILURE: Final = "ReplicaFailure"
_AVAILABLE: Final = "NewReplicaSetAvailable"
_TIMED_OUT: Final = "ProgressDeadlineExceeded"
_PAUSED: Final = "DeploymentPaused"


def paused_conditions(deployment: Deployment, now_ns: int) -> Conditions:
    """Return the conditions with one that says that the Deployment was paused or resumed."""
    conditions = deployment.status.conditions
    found = get_condition(conditions, PROGRESSING)
    if not deployment.has_deadline or (found is not None and found.reason == _TIMED_OUT):
        return conditions
    if deployment.spec.paused:
        what = (_PAUSED, "Deployment is paused")
    elif found is not None and found.reason == _PAUSED:
        what = ("DeploymentResumed", "Deployment is resumed")
    else:
        return conditions
    return with_condition(conditions, PROGRESSING, "Unknown", *what, now_ns)


def calculate_status(rollout: Rollout, now_ns: int) -> DeploymentStatus:
    """Return the status by the ReplicaSets' statuses; the condition Progressing is as before."""
    deployment, statuses = rollout.deployment, [each.status for each in rollout.all]
    available = sum(each.available_replicas for each in statuses)
    terminating = [each.terminating_replicas for each in statuses]
    if available >= deployment.spec.desired - deployment.max_unavailable:
        what = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        message = "Deployment does not have minimum availability."
        what = ("False", "MinimumReplicasUnavailable", message)
    return DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(each.replicas for each in statuses),
        updated_replicas=rollout.new.status.replicas if rollout.new else 0,
        ready_replicas=sum(each.ready_replicas for each in statuses),
        available_replicas=available,
        unavailable_replicas=max(0, rollout.replicas - available),
        terminating_replicas=None
        if None in terminating
        else sum(each or 0 for each in terminating),
        collision_count=deployment.status.collision_count,
        conditions=with_condition(rollout.conditions, "Available", *what, now_ns),
    )


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Return whether all replicas are updated and available, and no old pods exist."""
    counts = {status.updated_replicas, status.replicas, status.available_replicas}
    observed = status.observed_generation >= deployment.metadata.generation
    return observed and counts == {deployment.spec.desired}


def rollout_status(rollout: Rollout, now_ns: int) -> DeploymentStatus:
    """Return the status with the conditions Progressing and ReplicaFailure."""
    status = calculate_status(rollout, now_ns)
    conditions = _with_progress(rollout, status, now_ns)
    failure = _replica_failure(rollout)
    if failure is None:
        conditions = without_condition(conditions, _REPLICA_FAILURE)
    else:
        conditions = with_condition(
            conditions, failure.type, failure.status, failure.reason, failure.message, now_ns
        )
    return replace(status, conditions=conditions)


def _with_progress(rollout: Rollout, status: DeploymentStatus, now_ns: int) -> Conditions:
    deployment, conditions = rollout.deployment, status.conditions
    if not deployment.has_deadline:
        return without_condition(conditions, PROGRESSING)
    found = get_condition(conditions, PROGRESSING)
    done = found is not None and found.reason == _AVAILABLE
    if done and status.replicas == status.updated_replicas:
        return conditions
    what = f'Deployment "{deployment.metadata.name}"'
    if rollout.new is not None:
        what = f'ReplicaSet "{rollout.new.metadata.name}"'
    if is_complete(deployment, status):
        outcome = ("True", _AVAILABLE, f"{what} has successfully progressed.")
    elif _is_progressing(deployment.status, status):
        outcome = ("True", "ReplicaSetUpdated", f"{what} is progressing.")
        conditions = _without_reason(conditions)
    elif found is not None and not done and _deadline_ns(deployment, found) < now_ns:
        outcome = ("False", _TIMED_OUT, f"{what} has timed out progressing.")
    else:
        return conditions
    return with_condition(conditions, PROGRESSING, *outcome, now_ns)


def _without_reason(conditions: Conditions) -> Conditions:
    """Return the conditions so that Progressing gets a new time of update in any case."""
    return tuple(
        replace(each, reason="") if each.type == PROGRESSING else each for each in conditions
    )


def _is_progressing(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    return (
        after.updated_replicas > before.updated_replicas
        or after.replicas - after.updated_replicas < before.replicas - before.updated_replicas
        or after.ready_replicas > before.ready_replicas
        or after.available_replicas > before.available_replicas
    )


def _deadline_ns(deployment: Deployment, progressing: WorkloadCondition) -> int:
    seconds = deployment.spec.progress_deadline_seconds or 0
    return parse_time(progressing.last_update_time) + seconds * NS_PER_SECOND


def seconds_until_deadline(
    deployment: Deployment, status: DeploymentStatus, now_ns: int
) -> float | None:
    """Return the seconds until a check of the progress; None if the rollout is done or failed."""
    found = get_condition(status.conditions, PROGRESSING)
    if found is None or found.reason in (_TIMED_OUT, _AVAILABLE):
        return None
    if deployment.spec.paused or not deployment.has_deadline:
        return None
    return max(0.0, (_deadline_ns(deployment, found) - now_ns) / NS_PER_SECOND) + 1


def _replica_failure(rollout: Rollout) -> WorkloadCondition | None:
    for each in (*((rollout.new,) if rollout.new else ()), *rollout.old):
        for found in each.status.conditions or ():
            if found.type == _REPLICA_FAILURE:
                return WorkloadCondition(found.type, found.status, found.reason, found.message)
    return None
