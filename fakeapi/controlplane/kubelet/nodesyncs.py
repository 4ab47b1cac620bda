"""The sync of one node: its registration, its status and its events."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import orjson

from extender.kube.api_error import ApiError, MalformedError
from extender.kube.client import Client, PatchType, Selection
from extender.kube.clock import Clock
from extender.kube.events import EventRecorder
from extender.kube.resources import NODES, PODS, ObjectPath
from extender.kube.transport import TransportError
from fakeapi.controlplane.kubelet.durations import SECOND
from fakeapi.controlplane.kubelet.fleet import HollowNodes
from fakeapi.controlplane.kubelet.hosts import HollowNode
from fakeapi.controlplane.kubelet.nodestatuses import (
    CONDITION_EVENTS,
    PRESSURES,
    Document,
    conditions,
    full_status,
    heartbeat_patch,
    node_object,
)
from fakeapi.controlplane.kubelet.parsing import parse_node_script, script_error
from fakeapi.controlplane.kubelet.shapes import decode_node, decode_pod

_TYPES: Final = (*PRESSURES, "Ready")


class NodeStatusWorker:
    """Syncs hollow nodes; ``recorder`` is None if no events are recorded."""

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

    async def register(self) -> None:
        """Create the node objects of the script, unless they exist."""
        for registration in self._hollow_nodes.script.register:
            for index in range(len(registration.names)):
                body = orjson.dumps(node_object(registration, index))
                try:
                    await self._client.create(NODES.collection(), body, bytes)
                except ApiError as error:
                    if error.reason != "AlreadyExists":
                        raise

    async def sync(self, name: str) -> float | None:
        """Sync a node; return the seconds until the next sync."""
        host = self._hollow_nodes.nodes_by_name.get(name)
        if host is None:
            return None
        now = self._clock.now_ns()
        if not host.record_if_silent(now):
            await self._write_status(host, now)
            if host.missed_events:
                host.missed_events = False
                self._hollow_nodes.enqueue_pods(host)
        moment = host.next_transition(now)
        return None if moment is None else max(moment - now, 1) / SECOND

    async def write_heartbeat(self, name: str) -> None:
        """Write a node's heartbeat, if it has registered and is not silent."""
        host, now = self._hollow_nodes.nodes_by_name.get(name), self._clock.now_ns()
        if host is None or not host.written_conditions or host.is_silent(now):
            return
        # The next heartbeat is in five minutes; the watch reports a deleted node.
        with suppress(ApiError, MalformedError, TransportError):
            path, body = _status_of(name), orjson.dumps(heartbeat_patch(_TYPES, now))
            seen = await self._client.patch(path, PatchType.STRATEGIC, body, decode_node)
            self._hollow_nodes.update_node(host, seen)  # with earlier writes of other clients

    async def _write_status(self, host: HollowNode, now: int) -> None:
        """Write the changed conditions of a node; the whole status of a new one."""
        held = {
            **{type_: type_ in host.pressures for type_ in PRESSURES},
            "Ready": host.is_ready(now),
        }
        if not host.written_conditions:
            await self._start(host, held, now)
        elif host.missed_events or held != host.written_conditions or _contradicted(host):
            before = host.written_conditions
            await self._patch(host, {"status": {"conditions": conditions(host.node, held, now)}})
            host.written_conditions = held
            for type_ in [each for each in _TYPES if held[each] != before[each]]:
                self._record_event(host, CONDITION_EVENTS[type_][held[type_]])
        problem = script_error(host.node.metadata.annotations, parse_node_script)
        if problem and problem != host.problem:
            self._record_warning(host, "InvalidScript", problem)
        host.problem = problem

    async def _start(self, host: HollowNode, held: dict[str, bool], now: int) -> None:
        """Register a node: write its whole status, as a starting kubelet does."""
        if host.name in self._hollow_nodes.deleted_nodes:
            await self._list_pods(host)
            del self._hollow_nodes.deleted_nodes[host.name]
        self._hollow_nodes.assign_address(host)
        listed = conditions(host.node, held, now)
        status = {**full_status(host.node, host.address), "conditions": listed}
        await self._patch(host, {"status": status})
        host.written_conditions = held
        self._record_event(host, "Starting", "Starting kubelet.")
        self._record_event(host, CONDITION_EVENTS["Ready"][held["Ready"]])
        self._hollow_nodes.enqueue_pods(host)  # those that existed before the kubelet
        self._hollow_nodes.enqueue_eviction_round(host)

    async def _list_pods(self, host: HollowNode) -> None:
        """List the pods that a node had when it was deleted."""
        selection = Selection(field_selector=f"spec.nodeName={host.name}")
        for seen in (await self._client.list(PODS, decode_pod, selection)).items:
            self._hollow_nodes.observe_pod(seen)

    async def _patch(self, host: HollowNode, patch: Document) -> None:
        """Patch a node's status, and update the node by the response. Raise ApiError."""
        path, body = _status_of(host.name), orjson.dumps(patch)
        seen = await self._client.patch(path, PatchType.STRATEGIC, body, decode_node)
        self._hollow_nodes.update_node(host, seen)

    def _record_event(self, host: HollowNode, reason: str, message: str = "") -> None:
        if self._recorder is not None:
            told = message or f"Node {host.name} status is now: {reason}"
            self._recorder.normal(host.node.reference, reason, told)

    def _record_warning(self, host: HollowNode, reason: str, message: str) -> None:
        if self._recorder is not None:
            self._recorder.warning(host.node.reference, reason, message)


def _status_of(name: str) -> ObjectPath:
    return NODES.object(name).subresource("status")


def _contradicted(host: HollowNode) -> bool:
    """Return whether another client has written a different status of a condition."""
    said = {each.type: each.status for each in host.node.status.conditions or ()}
    return any(said.get(type_) != str(held) for type_, held in host.written_conditions.items())
