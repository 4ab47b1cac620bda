"""The pod worker: one sync of a pod admits it, advances its lifecycle, and writes its status."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from extender.kube.api_error import ApiError
from extender.kube.client import Client, PatchType
from extender.kube.clock import Clock
from extender.kube.decoding import ObjectError
from extender.kube.events import EventRecorder
from extender.kube.pods import decode_pod as decode_model
from extender.kube.resources import PODS, ObjectPath
from fakeapi.controlplane.kubelet.admission import Rejection, admit_pod
from fakeapi.controlplane.kubelet.adopting import restore_pod
from fakeapi.controlplane.kubelet.durations import SECOND
from fakeapi.controlplane.kubelet.fleet import HollowNodes, KubeletWorkItem, UnadmittedPod
from fakeapi.controlplane.kubelet.hosts import HollowNode, RunningPod
from fakeapi.controlplane.kubelet.lives import PodLifecycle, Termination
from fakeapi.controlplane.kubelet.preemption import (
    PREEMPTING,
    PREEMPTION_DISRUPTION_MESSAGE,
    PREEMPTION_MESSAGE,
)
from fakeapi.controlplane.kubelet.pressure import pressure_rejection
from fakeapi.controlplane.kubelet.rooms import AllocatedPod
from fakeapi.controlplane.kubelet.shapes import (
    DecodedObject,
    KubeletObjectMeta,
    KubeletPod,
    decode_pod,
)
from fakeapi.controlplane.kubelet.statuses import WrittenConditions, rejection_patch, status_patch
from fakeapi.controlplane.kubelet.stories import PodEvent, pod_events
from policies.upstream import NEWEST


class PodWorker:
    """Syncs the pods of the hollow nodes; ``recorder`` is None if no events are recorded."""

    def __init__(
        self,
        hollow_nodes: HollowNodes,
        client: Client,
        clock: Clock,
        recorder: EventRecorder | None,
    ) -> None:
        self._hollow_nodes = hollow_nodes
        self._client = client
        self._clock = clock
        self._recorder = recorder

    async def sync(self, uid: str) -> float | None:
        """Sync a pod; return the seconds until the next sync."""
        newcomer = self._hollow_nodes.unadmitted_pods.get(uid)
        if newcomer is not None and not await self._admit(newcomer):
            return None
        host, guest = self._hollow_nodes.running_pods.get(uid, (None, None))
        if host is None or guest is None:
            return None
        now = self._clock.now_ns()
        if host.record_if_silent(now):
            return None  # when the node is no longer silent, all of its pods are enqueued
        guest.lifecycle.advance(now)
        self._apply_deletion(guest, now)
        guest.lifecycle.advance(now)
        await self._write_status(host, guest, now)
        if guest.lifecycle.ended is not None:
            self._release_resources(host, guest)
            await self._delete(guest)
            return None
        moment = guest.lifecycle.next_change(now)
        return None if moment is None else max(moment - now, 1) / SECOND

    async def _admit(self, newcomer: UnadmittedPod) -> bool:
        """Admit a pod, reject it, or let it wait for the end of its victims."""
        pod, now = newcomer.seen.object, self._clock.now_ns()
        host = self._hollow_nodes.nodes_by_name.get(pod.spec.node_name)
        if (
            host is None
            or not host.written_conditions
            or newcomer.waits
            or host.record_if_silent(now)
        ):
            return False
        try:
            model = decode_model(newcomer.seen.raw, NEWEST)
        except ObjectError as error:
            await self._reject(pod, Rejection("UnexpectedAdmissionError", str(error)), now)
            return False
        tenant = AllocatedPod.of(model, pod)
        if not (_was_admitted(pod) or newcomer.passed or pod.metadata.deleting):
            decision = pressure_rejection(newcomer.seen.raw, host.pressures) or admit_pod(
                model, tenant, host.model, host.allocation, NEWEST
            )
            if isinstance(decision, Rejection):
                await self._reject(pod, decision, now)
                return False
            if decision.victims:
                self._hollow_nodes.wait_for_victims(newcomer, decision.victims)
                self._preempt(host, decision.victims, now)
                return False
        self._start_pod(host, pod, tenant, now)
        return True

    def _start_pod(self, host: HollowNode, pod: KubeletPod, tenant: AllocatedPod, now: int) -> None:
        """Start the lifecycle of an admitted pod, or restore it."""
        script, report = (
            self._hollow_nodes.pod_script(pod),
            WrittenConditions.read(pod.status.conditions),
        )
        begin = restore_pod if _was_admitted(pod) else PodLifecycle.admit
        life = begin(pod, script, now)
        pod.drop_details()
        self._hollow_nodes.add_running_pod(
            host, RunningPod(life, report, tenant, address=pod.status.pod_ip)
        )

    def _apply_deletion(self, guest: RunningPod, now: int) -> None:
        """Terminate a pod that is being deleted, or that another client has finished."""
        meta, life = guest.pod.metadata, guest.lifecycle
        if guest.pod.finished and life.termination is None:
            life.terminate(Termination(now, now + life.grace))
        grace = (meta.deletion_grace_period_seconds or 0) * SECOND
        if meta.deleting and guest.applied_grace != grace:
            guest.applied_grace = grace
            life.terminate(Termination(now, now + grace))

    async def _write_status(self, host: HollowNode, guest: RunningPod, now: int) -> None:
        """Write a pod's status if it has changed, and record its events."""
        patch = status_patch(guest.lifecycle, guest.written_conditions, host.pod_ips(guest), now)
        body = orjson.dumps(patch)
        if hash(body) != guest.written_hash:
            seen = await self._patch(guest.pod, body)
            if seen is None:
                return
            guest.written_hash, guest.phase = hash(body), patch["status"]["phase"]
            self._hollow_nodes.update_pod(host, guest, seen)  # with earlier writes of other clients
            self._hollow_nodes.enqueue_eviction_round(host, guest)
        told = {story.key: story for story in pod_events(guest.lifecycle, now)}
        new = [story for key, story in told.items() if key not in guest.reported_events]
        guest.reported_events = dict.fromkeys(told)
        for story in new:
            self._record_event(guest.pod, story)

    async def _delete(self, guest: RunningPod) -> None:
        """Delete a terminating pod, now that its containers have stopped."""
        meta = guest.pod.metadata
        if not meta.deleting or guest.delete_sent:
            return
        try:
            await self._client.delete(_path(meta), uid=meta.uid, grace_period_seconds=0)
        except ApiError as error:
            if error.status != 404:
                raise
        guest.delete_sent = True

    def _release_resources(self, host: HollowNode, guest: RunningPod) -> None:
        """Release the resources and the address of a pod that has ended."""
        uid = guest.pod.metadata.uid
        host.evicting.pop(uid, None)
        host.allocation.remove(uid)
        host.addresses.release(uid, guest.address)
        self._hollow_nodes.notify_pod_ended(uid)

    async def _reject(self, pod: KubeletPod, why: Rejection, now: int) -> None:
        meta = pod.metadata
        patch = rejection_patch(meta.uid, meta.generation, why.reason, why.message, now)
        await self._patch(pod, orjson.dumps(patch))
        self._hollow_nodes.remove_unadmitted(pod)
        self._record_event(pod, PodEvent("rejected", why.reason, why.message, warning=True))

    def _preempt(self, host: HollowNode, victims: Iterable[str], now: int) -> None:
        """Terminate the victims of a critical pod."""
        for uid in victims:
            guest = host.pods[uid]
            guest.lifecycle.advance(now)
            deadline = now + guest.lifecycle.grace
            guest.lifecycle.terminate(
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

    def _record_event(self, pod: KubeletPod, story: PodEvent) -> None:
        if self._recorder is None:
            return
        tell = self._recorder.warning if story.warning else self._recorder.normal
        tell(pod.reference, story.reason, story.message)


def _was_admitted(pod: KubeletPod) -> bool:
    """Return whether a kubelet has admitted the pod before."""
    return bool(pod.status.start_time) or pod.status.phase == "Running" or pod.finished


def _path(meta: KubeletObjectMeta) -> ObjectPath:
    return PODS.object(meta.name, meta.namespace)
