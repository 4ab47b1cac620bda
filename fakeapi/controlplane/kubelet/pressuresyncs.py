"""The sync of a node's eviction manager."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from extender.kube.api_error import ApiError
from extender.kube.client import Client
from extender.kube.clock import Clock
from extender.kube.decoding import ObjectError
from extender.kube.events import EventRecorder
from extender.kube.evictable import decode_evictable_pod
from extender.kube.resources import PODS
from fakeapi.controlplane.kubelet.durations import SECOND
from fakeapi.controlplane.kubelet.fleet import HollowNodes, KubeletWorkItem
from fakeapi.controlplane.kubelet.hosts import HollowNode
from fakeapi.controlplane.kubelet.lives import Termination
from fakeapi.controlplane.kubelet.pressure import is_at_rest, observe, run_round
from fakeapi.controlplane.kubelet.shapes import KubeletObjectMeta
from policies.eviction.configuration import CLEANUP_NS, INTERVAL_NS
from policies.eviction.messages import REASON, THRESHOLD_MET, Eviction
from policies.eviction.pods import EvictablePod
from policies.eviction.releases import NEWEST_EVICTION

_POLL_SECONDS: Final = 1.0


class EvictionManager:
    """Runs the eviction managers of nodes; ``recorder`` is None if no events are recorded."""

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

    async def sync(self, name: str) -> float | None:
        """Run a round for a node; return the seconds until the next one."""
        host = self._hollow_nodes.nodes_by_name.get(name)
        if host is None or not host.written_conditions:
            return None
        now = self._clock.now_ns()
        if any(now - since < CLEANUP_NS for since in host.evicting.values()):
            return _POLL_SECONDS
        sync = observe(host, now) or run_round(host, await self._active(host), now)
        host.eviction = sync.state
        if sync.event and self._recorder is not None and not host.is_silent(now):
            self._recorder.warning(host.node.reference, THRESHOLD_MET, sync.event)
        for eviction in sync.evictions:
            self._evict(host, eviction, now)
        pressures = tuple(map(str, sync.state.pressures))
        if pressures != host.pressures:
            host.pressures = pressures
            self._hollow_nodes.add(KubeletWorkItem("node", name))
        if sync.evictions:
            return _POLL_SECONDS
        if is_at_rest(host, now):
            return None
        return (INTERVAL_NS - (now - host.began) % INTERVAL_NS) / SECOND

    def _evict(self, host: HollowNode, eviction: Eviction, now: int) -> None:
        """Evict a pod; the next round waits until it has ended."""
        guest = host.pods.get(eviction.pod.uid)
        if guest is None:
            return  # it was deleted while other pods were read
        deadline = now + eviction.grace_seconds * SECOND
        disruption = eviction.message if eviction.condition is not None else ""
        guest.lifecycle.advance(now)
        guest.lifecycle.terminate(Termination(now, deadline, REASON, eviction.message, disruption))
        host.evicting[eviction.pod.uid] = now
        self._hollow_nodes.add(KubeletWorkItem("pod", eviction.pod.uid))

    async def _active(self, host: HollowNode) -> Sequence[EvictablePod]:
        """Return the pods that have not ended, as the API server returned them at first."""
        active = []
        for guest in [each for each in host.pods.values() if each.lifecycle.ended is None]:
            if guest.evictable is None:
                guest.evictable = await self._read_pod(guest.pod.metadata)
            if guest.evictable is not None:
                active.append(guest.evictable)
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
