"""The pod worker: one sync of a pod admits it, advances its lifecycle, and writes its status.

A pod that was admitted before (after a restart of the kubelet, in a fork, from a dump) is restored:
its status is taken as its state. A container that was started by a simulated kubelet (by its ID)
continues in its script where it was; other containers begin their scripts now.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from extender.kube.decoders.object_meta import parse_time
from extender.kube.decoders.pods import decode_pod as decode_model
from extender.kube.decoders.typed_decoder import ObjectError
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import PatchType
from extender.kube.rest.resources import PODS, ObjectPath
from fakeapi.controlplane.kubelet.container_lifecycle import (
    INITIAL_BACKOFF,
    MAX_BACKOFF,
    ContainerBackoff,
    ContainerLifecycle,
    ContainerRunning,
    ContainerTerminated,
    Role,
)
from fakeapi.controlplane.kubelet.eviction_manager import pressure_rejection
from fakeapi.controlplane.kubelet.hollow_node import HollowNode, RunningPod
from fakeapi.controlplane.kubelet.hollow_nodes import KubeletWorker, KubeletWorkItem, UnadmittedPod
from fakeapi.controlplane.kubelet.pod_admission import (
    PREEMPTING,
    PREEMPTION_DISRUPTION_MESSAGE,
    PREEMPTION_MESSAGE,
    AllocatedPod,
    Rejection,
    admit_pod,
)
from fakeapi.controlplane.kubelet.pod_lifecycle import PodLifecycle, Termination
from fakeapi.controlplane.kubelet.pod_status import (
    PodEvent,
    WrittenConditions,
    is_status_written,
    pod_events,
    rejection_patch,
    status_patch,
)
from fakeapi.controlplane.kubelet.scripts import PodScript
from fakeapi.controlplane.kubelet.types import (
    ContainerStatus,
    DecodedObject,
    KubeletObjectMeta,
    KubeletPod,
    TerminatedState,
    decode_pod,
)
from fakeapi.controlplane.kubelet.usage_curves import SECOND
from policies.kubernetes.releases import NEWEST


def restore_pod(pod: KubeletPod, script: PodScript, now: int) -> PodLifecycle:
    """Return the lifecycle of a pod that has a start time, or is running, as its status tells."""
    admitted = parse_time(pod.status.start_time) or now
    lifecycle = PodLifecycle.admit(pod, script, min(admitted, now))
    listed = (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ()))
    by_name = {status.name: status for status in listed}
    for container in lifecycle.containers:
        status = by_name.get(container.spec.name)
        if status is not None:
            _restore_container(container, status, now)
        elif pod.status.phase == "Running":
            _assume_state(container, lifecycle.admitted, now)
    lifecycle.sandbox = any(container.ever_started for container in lifecycle.containers)
    lifecycle.initialized = any(container.ever_started for container in lifecycle.apps)
    return lifecycle


def _restore_container(container: ContainerLifecycle, status: ContainerStatus, now: int) -> None:
    container.restarts = status.restart_count
    before = _exited(status.last_state.terminated)
    state = status.state
    if state.running is not None:
        since = parse_time(state.running.started_at) or now
        container.state = ContainerRunning(since)
        container.origin = since if status.container_id == container.id else now
        container.last = before
    elif state.terminated is not None:
        container.state = _exited(state.terminated) or container.state
        container.last = before
    elif before is not None:
        container.state = before
    if container.restarts:
        delay = min(INITIAL_BACKOFF << min(container.restarts - 1, 10), MAX_BACKOFF)
        container.backoff = ContainerBackoff(delay, _began(container, now))


def _assume_state(container: ContainerLifecycle, admitted: int, now: int) -> None:
    """Assume that a running pod's container without a status is running, or has completed."""
    if container.role is Role.INIT:
        container.state = ContainerTerminated(0, "Completed", admitted, admitted, container.id)
    else:
        container.state, container.origin = ContainerRunning(admitted), now


def _exited(state: TerminatedState | None) -> ContainerTerminated | None:
    if state is None:
        return None
    began, ended = parse_time(state.started_at), parse_time(state.finished_at)
    return ContainerTerminated(
        state.exit_code, state.reason, began, ended, state.container_id, state.message
    )


def _began(container: ContainerLifecycle, now: int) -> int:
    state = container.state
    if isinstance(state, ContainerRunning):
        return state.since
    return state.began if isinstance(state, ContainerTerminated) else now


class PodWorker(KubeletWorker):
    """Syncs the pods of the hollow nodes."""

    async def sync(self, uid: str) -> float | None:
        """Sync a pod; return the seconds until the next sync."""
        unadmitted = self._hollow_nodes.unadmitted_pods.get(uid)
        if unadmitted is not None and not await self._admit(unadmitted):
            return None
        hollow, running = self._hollow_nodes.running_pods.get(uid, (None, None))
        if hollow is None or running is None:
            return None
        now = self._clock.now_ns()
        if hollow.record_if_silent(now):
            return None  # when the node is no longer silent, all of its pods are enqueued
        running.lifecycle.advance(now)
        self._apply_deletion(running, now)
        running.lifecycle.advance(now)
        await self._write_status(hollow, running, now)
        if running.lifecycle.ended is not None:
            self._release_resources(hollow, running)
            await self._delete(running)
            return None
        moment = running.lifecycle.next_change(now)
        return None if moment is None else max(moment - now, 1) / SECOND

    async def _admit(self, unadmitted: UnadmittedPod) -> bool:
        """Admit a pod, reject it, or let it wait for the end of its victims."""
        pod, now = unadmitted.observed.object, self._clock.now_ns()
        hollow = self._hollow_nodes.nodes_by_name.get(pod.spec.node_name)
        if (
            hollow is None
            or not hollow.written_conditions
            or unadmitted.waits
            or hollow.record_if_silent(now)
        ):
            return False
        try:
            model = decode_model(unadmitted.observed.raw, NEWEST)
        except ObjectError as error:
            await self._reject(pod, Rejection("UnexpectedAdmissionError", str(error)), now)
            return False
        allocated = AllocatedPod.of(model, pod)
        if not (_was_admitted(pod) or unadmitted.passed or pod.metadata.deleting):
            decision = pressure_rejection(unadmitted.observed.raw, hollow.pressures) or admit_pod(
                model, allocated, hollow.model, hollow.allocation, NEWEST
            )
            if isinstance(decision, Rejection):
                await self._reject(pod, decision, now)
                return False
            if decision.victims:
                self._hollow_nodes.wait_for_victims(unadmitted, decision.victims)
                self._preempt(hollow, decision.victims, now)
                return False
        self._start_pod(hollow, unadmitted.observed, allocated, now)
        return True

    def _start_pod(
        self,
        hollow: HollowNode,
        observed: DecodedObject[KubeletPod],
        allocated: AllocatedPod,
        now: int,
    ) -> None:
        """Start the lifecycle of an admitted pod, or restore it."""
        pod = observed.object
        pod.share_containers()
        script, report = (
            self._hollow_nodes.pod_script(pod),
            WrittenConditions.read(pod.status.conditions),
        )
        begin = restore_pod if _was_admitted(pod) else PodLifecycle.admit
        lifecycle = begin(pod, script, now)
        running = RunningPod(lifecycle, report, allocated, address=pod.status.pod_ip)
        if begin is restore_pod:
            self._resume(running, now)
            running.restored_from = observed.raw
        pod.drop_details()
        self._hollow_nodes.add_running_pod(hollow, running)

    def _resume(self, running: RunningPod, now: int) -> None:
        """Process what is due in a restored pod; the events of its status were recorded before."""
        lifecycle = running.lifecycle
        if self._recorder is not None:
            running.reported_events = dict.fromkeys(each.key for each in pod_events(lifecycle, now))
        lifecycle.advance(now)
        lifecycle.sync_containers(now)

    def _apply_deletion(self, running: RunningPod, now: int) -> None:
        """Terminate a pod that is being deleted, or that another client has finished."""
        meta, lifecycle = running.pod.metadata, running.lifecycle
        if running.pod.finished and lifecycle.termination is None:
            lifecycle.terminate(Termination(now, now + lifecycle.grace))
        grace = (meta.deletion_grace_period_seconds or 0) * SECOND
        if meta.deleting and running.applied_grace != grace:
            running.applied_grace = grace
            lifecycle.terminate(Termination(now, now + grace))

    async def _write_status(self, hollow: HollowNode, running: RunningPod, now: int) -> None:
        """Write a pod's status if it has changed, and record its events."""
        patch = status_patch(
            running.lifecycle, running.written_conditions, hollow.pod_ips(running), now
        )
        body = orjson.dumps(patch)
        if hash(body) != running.written_hash:
            raw, running.restored_from = running.restored_from, b""
            is_written = raw and is_status_written(raw, patch)
            observed = None if is_written else await self._patch(running.pod, body)
            if observed is None and not is_written:
                return
            running.written_hash, running.phase = hash(body), patch["status"]["phase"]
            if observed is not None:  # with earlier writes of other clients
                self._hollow_nodes.update_pod(hollow, running, observed)
            self._hollow_nodes.enqueue_eviction_round(hollow, running)
        if self._recorder is None:
            return
        by_key = {event.key: event for event in pod_events(running.lifecycle, now)}
        new = [event for key, event in by_key.items() if key not in running.reported_events]
        running.reported_events = dict.fromkeys(by_key)
        for event in new:
            self._record_event(running.pod, event)

    async def _delete(self, running: RunningPod) -> None:
        """Delete a terminating pod, now that its containers have stopped."""
        meta = running.pod.metadata
        if not meta.deleting or running.delete_sent:
            return
        try:
            await self._client.delete(_path(meta), uid=meta.uid, grace_period_seconds=0)
        except ApiError as error:
            if error.status != 404:
                raise
        running.delete_sent = True

    def _release_resources(self, hollow: HollowNode, running: RunningPod) -> None:
        """Release the resources and the address of a pod that has ended."""
        uid = running.pod.metadata.uid
        hollow.evicting.pop(uid, None)
        hollow.allocation.remove(uid)
        hollow.addresses.release(uid, running.address)
        self._hollow_nodes.notify_pod_ended(uid)

    async def _reject(self, pod: KubeletPod, rejection: Rejection, now: int) -> None:
        meta = pod.metadata
        patch = rejection_patch(meta.uid, meta.generation, rejection.reason, rejection.message, now)
        await self._patch(pod, orjson.dumps(patch))
        self._hollow_nodes.remove_unadmitted(pod)
        self._record_event(
            pod, PodEvent("rejected", rejection.reason, rejection.message, warning=True)
        )

    def _preempt(self, hollow: HollowNode, victims: Iterable[str], now: int) -> None:
        for uid in victims:
            running = hollow.pods[uid]
            running.lifecycle.advance(now)
            deadline = now + running.lifecycle.grace
            running.lifecycle.terminate(
                Termination(
                    now, deadline, PREEMPTING, PREEMPTION_MESSAGE, PREEMPTION_DISRUPTION_MESSAGE
                )
            )
            self._hollow_nodes.add(KubeletWorkItem("pod", uid))

    async def _patch(self, pod: KubeletPod, body: bytes) -> DecodedObject[KubeletPod] | None:
        """Patch a pod's status; return the updated pod, None if it is gone.

        Another pod of the same name is a conflict, and retried until the watch reports it.
        """
        path = _path(pod.metadata).subresource("status")
        try:
            return await self._client.patch(path, PatchType.STRATEGIC, body, decode_pod)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def _record_event(self, pod: KubeletPod, event: PodEvent) -> None:
        if self._recorder is None:
            return
        record = self._recorder.warning if event.warning else self._recorder.normal
        record(pod.reference, event.reason, event.message)


def _was_admitted(pod: KubeletPod) -> bool:
    """Return whether a kubelet has admitted the pod before."""
    return bool(pod.status.start_time) or pod.status.phase == "Running" or pod.finished


def _path(meta: KubeletObjectMeta) -> ObjectPath:
    return PODS.object(meta.name, meta.namespace)
