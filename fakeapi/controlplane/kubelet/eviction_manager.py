"""The eviction manager of hollow nodes, whose rules are in :mod:`policies.eviction`.

A round observes the node first. Only if it is under pressure, or if pods write to its disks, the
round observes the pods one by one, so that other nodes cost little. Rounds do not run periodically:
they run ten seconds apart, from a change of usage until usage is constant and no condition is left
to be cleared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from extender.kube.decoders.kubelet.pods import decode_evictable_pod
from extender.kube.decoders.kubelet.summary_stats import SummaryV1Alpha1, summary_of
from extender.kube.decoders.typed_decoder import ObjectError
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.resources import PODS
from fakeapi.controlplane.kubelet.hollow_node import HollowNode
from fakeapi.controlplane.kubelet.hollow_nodes import KubeletWorker, KubeletWorkItem
from fakeapi.controlplane.kubelet.pod_admission import Rejection
from fakeapi.controlplane.kubelet.pod_lifecycle import Termination
from fakeapi.controlplane.kubelet.summary_stats import Document, node_and_pods_summary, node_summary
from fakeapi.controlplane.kubelet.types import KubeletObjectMeta
from fakeapi.controlplane.kubelet.usage_curves import SECOND
from policies.eviction.config import CLEANUP_NS, INTERVAL_NS
from policies.eviction.kubelet_releases import NEWEST_EVICTION
from policies.eviction.manager import (
    SyncInput,
    SyncOutcome,
    SyncResult,
    finish_after_reclaim,
    synchronize,
)
from policies.eviction.messages import REASON, THRESHOLD_MET, Eviction
from policies.eviction.node_conditions import admit
from policies.eviction.pods import EvictablePod
from policies.eviction.signals import Pressure
from policies.eviction.stats import Summary

_WRITTEN = ("disk", "logs")
_CALM = (SyncOutcome.CALM, SyncOutcome.UNWATCHED, SyncOutcome.REFUSED)


def observe(hollow: HollowNode, now: int) -> SyncResult | None:
    """Run a round without the pods; return None if the pods have to be observed."""
    writes = any(
        container.run.volumes or any(name in container.run.steps for name in _WRITTEN)
        for running in hollow.pods.values()
        for container in running.lifecycle.containers
    )
    sync = synchronize(
        hollow.script.plan, hollow.eviction, _sample(now, (), node_summary(hollow, now))
    )
    return None if writes or sync.outcome not in _CALM else sync


def run_round(hollow: HollowNode, pods: Sequence[EvictablePod], now: int) -> SyncResult:
    """Run a round with the active pods of the node, and reclaim node-level resources if needed."""
    sample = _sample(now, pods, node_and_pods_summary(hollow, now))
    sync = synchronize(hollow.script.plan, hollow.eviction, sample)
    if not sync.reclaim:
        return sync
    for reclaim in sync.reclaim:
        hollow.reclaim(reclaim, now)
    return finish_after_reclaim(sync, _measured(node_summary(hollow, now)))


def is_at_rest(hollow: HollowNode, now: int) -> bool:
    """Return whether no further round can have another result."""
    state = hollow.eviction
    return now >= hollow.usage_changes_until and not (state.pressures or state.first_observed_at)


def pressure_rejection(raw: bytes, pressures: Sequence[str]) -> Rejection | None:
    """Return the rejection of a pod by a node under pressure; None if it is admitted."""
    if not pressures:
        return None
    try:
        pod = decode_evictable_pod(raw, NEWEST_EVICTION)
    except ObjectError as error:
        return Rejection("UnexpectedAdmissionError", str(error))
    admission = admit(pod, [Pressure(each) for each in pressures])
    return None if admission.admitted else Rejection(admission.reason, admission.message)


def _sample(now: int, pods: Sequence[EvictablePod], measured: Document) -> SyncInput:
    return SyncInput(now, pods, _measured(measured))


def _measured(document: Document) -> Summary:
    return summary_of(msgspec.convert(document, SummaryV1Alpha1))


_POLL_SECONDS: Final = 1.0


class EvictionManager(KubeletWorker):
    """Runs the eviction managers of nodes."""

    async def sync(self, name: str) -> float | None:
        """Run a round for a node; return the seconds until the next one."""
        hollow = self._hollow_nodes.nodes_by_name.get(name)
        if hollow is None or not hollow.written_conditions:
            return None
        now = self._clock.now_ns()
        if any(now - since < CLEANUP_NS for since in hollow.evicting.values()):
            return _POLL_SECONDS
        sync = observe(hollow, now) or run_round(hollow, await self._active(hollow), now)
        hollow.eviction = sync.state
        if sync.event and self._recorder is not None and not hollow.is_silent(now):
            self._recorder.warning(hollow.node.reference, THRESHOLD_MET, sync.event)
        for eviction in sync.evictions:
            self._evict(hollow, eviction, now)
        pressures = tuple(map(str, sync.state.pressures))
        if pressures != hollow.pressures:
            hollow.pressures = pressures
            self._hollow_nodes.add(KubeletWorkItem("node", name))
        if sync.evictions:
            return _POLL_SECONDS
        if is_at_rest(hollow, now):
            return None
        return (INTERVAL_NS - (now - hollow.began) % INTERVAL_NS) / SECOND

    def _evict(self, hollow: HollowNode, eviction: Eviction, now: int) -> None:
        """Evict a pod; the next round waits until it has ended."""
        running = hollow.pods.get(eviction.pod.uid)
        if running is None:
            return  # it was deleted while other pods were read
        deadline = now + eviction.grace_seconds * SECOND
        disruption = eviction.message if eviction.condition is not None else ""
        running.lifecycle.advance(now)
        running.lifecycle.terminate(
            Termination(now, deadline, REASON, eviction.message, disruption)
        )
        hollow.evicting[eviction.pod.uid] = now
        self._hollow_nodes.add(KubeletWorkItem("pod", eviction.pod.uid))

    async def _active(self, hollow: HollowNode) -> Sequence[EvictablePod]:
        """Return the pods that have not ended, as the API server returned them at first."""
        active = []
        for running in [each for each in hollow.pods.values() if each.lifecycle.ended is None]:
            if running.evictable is None:
                running.evictable = await self._read_pod(running.pod.metadata)
            if running.evictable is not None:
                active.append(running.evictable)
        return active

    async def _read_pod(self, meta: KubeletObjectMeta) -> EvictablePod | None:
        """Return a pod as eviction reads it; None if it is gone or malformed."""
        try:
            raw = await self._client.get(PODS.object(meta.name, meta.namespace), bytes)
            pod = decode_evictable_pod(raw, NEWEST_EVICTION)
        except ApiError as error:
            if error.status != 404:
                raise
            return None
        except ObjectError:
            return None
        return pod if pod.uid == meta.uid else None
