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
from fakeapi.controlplane.kubelet.admission import Rejection, admit
from fakeapi.controlplane.kubelet.adopting import adopt
from fakeapi.controlplane.kubelet.durations import SECOND
from fakeapi.controlplane.kubelet.fleet import Fleet, Newcomer, Work
from fakeapi.controlplane.kubelet.hosts import Guest, Host
from fakeapi.controlplane.kubelet.lives import Ending, PodLife
from fakeapi.controlplane.kubelet.preemption import DISRUPTION, MESSAGE, PREEMPTING
from fakeapi.controlplane.kubelet.pressure import under_pressure
from fakeapi.controlplane.kubelet.rooms import Tenant
from fakeapi.controlplane.kubelet.shapes import Meta, Pod, Seen, decode_pod
from fakeapi.controlplane.kubelet.statuses import Report, rejection_patch, status_patch
from fakeapi.controlplane.kubelet.stories import Story, stories
from policies.upstream import NEWEST


class PodSyncs:
    """Syncs the pods of the hollow nodes; ``recorder`` is None if no events are recorded."""

    def __init__(
        self, fleet: Fleet, client: Client, clock: Clock, recorder: EventRecorder | None
    ) -> None:
        self._fleet = fleet
        self._client = client
        self._clock = clock
        self._recorder = recorder

    async def sync(self, uid: str) -> float | None:
        """Sync a pod; return the seconds until the next sync."""
        newcomer = self._fleet.newcomers.get(uid)
        if newcomer is not None and not await self._let_in(newcomer):
            return None
        host, guest = self._fleet.guests.get(uid, (None, None))
        if host is None or guest is None:
            return None
        now = self._clock.now_ns()
        if host.falls_silent(now):
            return None  # when the node is no longer silent, all of its pods are enqueued
        guest.life.advance(now)
        self._heed_others(guest, now)
        guest.life.advance(now)
        await self._report(host, guest, now)
        if guest.life.ended is not None:
            self._check_out(host, guest)
            await self._delete(guest)
            return None
        moment = guest.life.next_moment(now)
        return None if moment is None else max(moment - now, 1) / SECOND

    async def _let_in(self, newcomer: Newcomer) -> bool:
        """Admit a pod, reject it, or let it wait for the end of its victims."""
        pod, now = newcomer.seen.object, self._clock.now_ns()
        host = self._fleet.hosts.get(pod.spec.node_name)
        if host is None or not host.held or newcomer.waits or host.falls_silent(now):
            return False
        try:
            model = decode_model(newcomer.seen.raw, NEWEST)
        except ObjectError as error:
            await self._reject(pod, Rejection("UnexpectedAdmissionError", str(error)), now)
            return False
        tenant = Tenant.of(model, pod)
        if not (_has_lived(pod) or newcomer.passed or pod.metadata.deleting):
            decision = under_pressure(newcomer.seen.raw, host.pressures) or admit(
                model, tenant, host.facts, host.room, NEWEST
            )
            if isinstance(decision, Rejection):
                await self._reject(pod, decision, now)
                return False
            if decision.victims:
                self._fleet.wait_for(newcomer, decision.victims)
                self._preempt(host, decision.victims, now)
                return False
        self._welcome(host, pod, tenant, now)
        return True

    def _welcome(self, host: Host, pod: Pod, tenant: Tenant, now: int) -> None:
        """Start the lifecycle of an admitted pod, or restore it."""
        script, report = self._fleet.pod_script(pod), Report.read(pod.status.conditions)
        begin = adopt if _has_lived(pod) else PodLife.admit
        life = begin(pod, script, now)
        pod.forget_details()
        self._fleet.settle_in(host, Guest(life, report, tenant, address=pod.status.pod_ip))

    def _heed_others(self, guest: Guest, now: int) -> None:
        """Terminate a pod that is being deleted, or that another client has finished."""
        meta, life = guest.pod.metadata, guest.life
        if guest.pod.finished and life.ending is None:
            life.end(Ending(now, now + life.grace))
        grace = (meta.deletion_grace_period_seconds or 0) * SECOND
        if meta.deleting and guest.heeded != grace:
            guest.heeded = grace
            life.end(Ending(now, now + grace))

    async def _report(self, host: Host, guest: Guest, now: int) -> None:
        """Write a pod's status if it has changed, and record its events."""
        patch = status_patch(guest.life, guest.report, host.place(guest), now)
        body = orjson.dumps(patch)
        if hash(body) != guest.shown:
            seen = await self._patch(guest.pod, body)
            if seen is None:
                return
            guest.shown, guest.phase = hash(body), patch["status"]["phase"]
            self._fleet.take_over_pod(host, guest, seen)  # with earlier writes of other clients
            self._fleet.look_for_pressure(host, guest)
        told = {story.key: story for story in stories(guest.life, now)}
        new = [story for key, story in told.items() if key not in guest.told]
        guest.told = dict.fromkeys(told)
        for story in new:
            self._tell(guest.pod, story)

    async def _delete(self, guest: Guest) -> None:
        """Delete a terminating pod, now that its containers have stopped."""
        meta = guest.pod.metadata
        if not meta.deleting or guest.left:
            return
        try:
            await self._client.delete(_path(meta), uid=meta.uid, grace_period_seconds=0)
        except ApiError as error:
            if error.status != 404:
                raise
        guest.left = True

    def _check_out(self, host: Host, guest: Guest) -> None:
        """Release the resources and the address of a pod that has ended."""
        uid = guest.pod.metadata.uid
        host.evicting.pop(uid, None)
        host.room.leave(uid)
        host.addresses.release(uid, guest.address)
        self._fleet.make_way(uid)

    async def _reject(self, pod: Pod, why: Rejection, now: int) -> None:
        meta = pod.metadata
        patch = rejection_patch(meta.uid, meta.generation, why.reason, why.message, now)
        await self._patch(pod, orjson.dumps(patch))
        self._fleet.turn_away(pod)
        self._tell(pod, Story("rejected", why.reason, why.message, warning=True))

    def _preempt(self, host: Host, victims: Iterable[str], now: int) -> None:
        """Terminate the victims of a critical pod."""
        for uid in victims:
            guest = host.guests[uid]
            guest.life.advance(now)
            deadline = now + guest.life.grace
            guest.life.end(Ending(now, deadline, PREEMPTING, MESSAGE, DISRUPTION))
            self._fleet.add(Work("pod", uid))

    async def _patch(self, pod: Pod, body: bytes) -> Seen[Pod] | None:
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

    def _tell(self, pod: Pod, story: Story) -> None:
        if self._recorder is None:
            return
        tell = self._recorder.warning if story.warning else self._recorder.normal
        tell(pod.reference, story.reason, story.message)


def _has_lived(pod: Pod) -> bool:
    """Return whether a kubelet has admitted the pod before."""
    return bool(pod.status.start_time) or pod.status.phase == "Running" or pod.finished


def _path(meta: Meta) -> ObjectPath:
    return PODS.object(meta.name, meta.namespace)
