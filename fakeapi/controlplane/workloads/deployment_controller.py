"""The Deployment controller: one ReplicaSet for each pod template, and rollouts between them.

The sizes and the status are calculated in
:mod:`fakeapi.controlplane.workloads.deployment_rollout` and
:mod:`fakeapi.controlplane.workloads.deployment_status`. A template that an old ReplicaSet has
already makes that one new again, with a new revision.

Source: kubernetes/pkg/controller/deployment (deployment_controller.go, sync.go, recreate.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from extender.controllers.context import ControllerContext
from extender.controllers.replicaset.pod_control import (
    SYNC_ERRORS,
    SyncError,
    error_message,
    is_namespace_terminating,
)
from extender.kube.controller_runtime.controller import Controller
from extender.kube.rest.api_errors import ApiError
from fakeapi.controlplane.workloads.deployment_rollout import (
    DEPLOYMENTS,
    OWNED_REPLICA_SETS,
    PROGRESSING,
    REVISION,
    Deployment,
    DeploymentStatus,
    Rollout,
    is_scaled,
    new_annotations,
    new_replica_set,
    old_pods_run,
    plan_rollout,
    rolling_replicas,
    scaled_replicas,
    sets_to_clean_up,
    size_annotations,
)
from fakeapi.controlplane.workloads.deployment_status import (
    calculate_status,
    is_complete,
    paused_conditions,
    rollout_status,
    seconds_until_deadline,
)
from fakeapi.controlplane.workloads.types import get_condition, with_condition
from fakeapi.controlplane.workloads.workload_caches import WorkloadCaches


class DeploymentController:
    """The component ``deployment``."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock = context.clock
        self._recorder = context.events.recorder("deployment-controller")
        self._caches = WorkloadCaches(context, DEPLOYMENTS, OWNED_REPLICA_SETS)
        self.controller = Controller("deployment", self._caches.queue, self._sync)

    async def run(self) -> None:
        """Reconcile Deployments until cancelled."""
        await self._caches.start()
        await self.controller.run()

    async def _sync(self, key: str) -> float | None:
        deployment = self._caches.current(key)
        if deployment is None:
            return None
        rollout = plan_rollout(deployment, await self._caches.claim(deployment))
        if deployment.metadata.deleting:
            return await self._write(rollout, calculate_status(rollout, self._clock.now_ns()))
        conditions = paused_conditions(deployment, self._clock.now_ns())
        rollout = await self._sync_revision(replace(rollout, conditions=conditions))
        if deployment.spec.paused or is_scaled(rollout):
            return await self._scale(rollout)
        if deployment.spec.strategy.type == "Recreate":
            return await self._recreate(rollout)
        return await self._roll(rollout)

    async def _sync_revision(self, rollout: Rollout) -> Rollout:
        """Bring the annotations and minReadySeconds of the new ReplicaSet up to date."""
        if rollout.new is None:
            return rollout
        present = rollout.new.metadata.annotations or {}
        seconds = rollout.deployment.spec.min_ready_seconds
        annotations = new_annotations(rollout, present)
        if annotations != present or rollout.new.spec.min_ready_seconds != seconds:
            spec = {"minReadySeconds": seconds or None}
            patch = {"metadata": {"annotations": annotations}, "spec": spec}
            new = await self._caches.patch(rollout.deployment, rollout.new, patch)
            return replace(rollout, new=new)
        if get_condition(rollout.conditions, PROGRESSING) is None:
            message = f'Found new replica set "{rollout.new.metadata.name}"'
            return self._progressing(rollout, "True", "FoundNewReplicaSet", message)
        return rollout

    async def _scale(self, rollout: Rollout) -> float | None:
        rollout = await self._resize(rollout, scaled_replicas(rollout))
        if rollout.deployment.spec.paused:
            for each in sets_to_clean_up(rollout):
                await self._caches.delete(each)
        return await self._write(rollout, calculate_status(rollout, self._clock.now_ns()))

    async def _roll(self, rollout: Rollout) -> float | None:
        rollout = rollout if rollout.new else await self._create(rollout)
        return await self._finish(rollout, rolling_replicas(rollout))

    async def _recreate(self, rollout: Rollout) -> float | None:
        ended = {each.metadata.name: 0 for each in rollout.old if each.spec.desired}
        if ended or old_pods_run(rollout):
            return await self._finish(rollout, ended)
        return await self._roll(rollout)

    async def _finish(self, rollout: Rollout, sizes: Mapping[str, int]) -> float | None:
        resized = await self._resize(rollout, sizes)
        if resized is rollout and is_complete(rollout.deployment, rollout.deployment.status):
            for each in sets_to_clean_up(rollout):
                await self._caches.delete(each)
        return await self._write(resized, rollout_status(resized, self._clock.now_ns()))

    async def _resize(self, rollout: Rollout, sizes: Mapping[str, int]) -> Rollout:
        """Scale the ReplicaSets that have a size, and set the annotations of that size."""
        annotations, resized = size_annotations(rollout.deployment), {}
        for each in rollout.all:
            name, before = each.metadata.name, each.spec.desired
            noted = annotations.items() <= (each.metadata.annotations or {}).items()
            if name in sizes and (sizes[name] != before or not noted):
                patch = {
                    "metadata": {"annotations": annotations},
                    "spec": {"replicas": sizes[name]},
                }
                resized[name] = await self._caches.patch(rollout.deployment, each, patch)
                self._record_scaling(rollout.deployment, name, before, sizes[name])
        if not resized:
            return rollout
        old = tuple(resized.get(each.metadata.name, each) for each in rollout.old)
        new = rollout.new and resized.get(rollout.new.metadata.name, rollout.new)
        return replace(rollout, new=new, old=old)

    def _record_scaling(self, deployment: Deployment, name: str, before: int, after: int) -> None:
        if before != after:
            direction = "up" if after > before else "down"
            message = f"Scaled {direction} replica set {name} from {before} to {after}"
            self._recorder.normal(deployment.reference, "ScalingReplicaSet", message)

    async def _create(self, rollout: Rollout) -> Rollout:
        """Create the new ReplicaSet; raises one of ``SYNC_ERRORS``."""
        deployment = rollout.deployment
        name, document = new_replica_set(rollout)
        try:
            new = await self._caches.create(deployment, document)
        except SYNC_ERRORS as error:
            await self._report_failure(rollout, name, error)
            raise
        self._record_scaling(deployment, name, 0, new.spec.desired)
        message = f'Created new replica set "{name}"'
        rollout = replace(rollout, new=new)
        return self._progressing(rollout, "True", "NewReplicaSetCreated", message)

    async def _report_failure(self, rollout: Rollout, name: str, error: SyncError) -> None:
        """Write why the new ReplicaSet was not created; a taken name gives another hash."""
        deployment = rollout.deployment
        status = msgspec.structs.replace(deployment.status, conditions=rollout.conditions)
        if isinstance(error, ApiError) and error.reason == "AlreadyExists":
            count = (status.collision_count or 0) + 1
            await self._write(rollout, msgspec.structs.replace(status, collision_count=count))
        elif not is_namespace_terminating(error):
            reason = "ReplicaSetCreateError"
            message = f'Failed to create new replica set "{name}": {error_message(error)}'
            self._recorder.warning(deployment.reference, reason, message)
            failed = self._progressing(rollout, "False", reason, message)
            await self._write(
                rollout, msgspec.structs.replace(status, conditions=failed.conditions)
            )

    def _progressing(self, rollout: Rollout, status: str, reason: str, message: str) -> Rollout:
        """Set the condition Progressing if the Deployment has a deadline."""
        if not rollout.deployment.has_deadline:
            return rollout
        what = (status, reason, message, self._clock.now_ns())
        return replace(rollout, conditions=with_condition(rollout.conditions, PROGRESSING, *what))

    async def _write(self, rollout: Rollout, status: DeploymentStatus) -> float | None:
        deployment = rollout.deployment
        revision = str(rollout.new.revision) if rollout.new else None
        present = (deployment.metadata.annotations or {}).get(REVISION)
        if status != deployment.status or (revision is not None and revision != present):
            annotations = {REVISION: revision} if revision else None
            await self._caches.write_status(
                deployment, status, ("terminatingReplicas",), annotations
            )
        return seconds_until_deadline(deployment, status, self._clock.now_ns())
