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
from fakeapi.controlplane.kubelet.fleet import Fleet
from fakeapi.controlplane.kubelet.hosts import Host
from fakeapi.controlplane.kubelet.nodestatuses import (
    EVENTS,
    PRESSURES,
    Document,
    conditions,
    full_status,
    heartbeat,
    node_object,
)
from fakeapi.controlplane.kubelet.parsing import parse_node_script, wrong_script
from fakeapi.controlplane.kubelet.shapes import decode_node, decode_pod

_TYPES: Final = (*PRESSURES, "Ready")


class NodeSyncs:
    """Syncs hollow nodes; ``recorder`` is None if no events are recorded."""

    def __init__(
        self, fleet: Fleet, client: Client, clock: Clock, recorder: EventRecorder | None
    ) -> None:
        self._fleet = fleet
        self._client = client
        self._clock = clock
        self._recorder = recorder

    async def register(self) -> None:
        """Create the node objects of the script, unless they exist."""
        for registration in self._fleet.playbook.register:
            for index in range(len(registration.names)):
                body = orjson.dumps(node_object(registration, index))
                try:
                    await self._client.create(NODES.collection(), body, bytes)
                except ApiError as error:
                    if error.reason != "AlreadyExists":
                        raise

    async def sync(self, name: str) -> float | None:
        """Sync a node; return the seconds until the next sync."""
        host = self._fleet.hosts.get(name)
        if host is None:
            return None
        now = self._clock.now_ns()
        if not host.falls_silent(now):
            await self._speak(host, now)
            if host.quiet:
                host.quiet = False
                self._fleet.look_at_pods(host)
        moment = host.next_turn(now)
        return None if moment is None else max(moment - now, 1) / SECOND

    async def beat(self, name: str) -> None:
        """Write a node's heartbeat, if it has registered and is not silent."""
        host, now = self._fleet.hosts.get(name), self._clock.now_ns()
        if host is None or not host.held or host.silent(now):
            return
        # The next heartbeat is in five minutes; the watch reports a deleted node.
        with suppress(ApiError, MalformedError, TransportError):
            path, body = _status_of(name), orjson.dumps(heartbeat(_TYPES, now))
            seen = await self._client.patch(path, PatchType.STRATEGIC, body, decode_node)
            self._fleet.take_over_node(host, seen)  # with earlier writes of other clients

    async def _speak(self, host: Host, now: int) -> None:
        """Write the changed conditions of a node; the whole status of a new one."""
        held = {
            **{type_: type_ in host.pressures for type_ in PRESSURES},
            "Ready": host.ready(now),
        }
        if not host.held:
            await self._begin(host, held, now)
        elif host.quiet or held != host.held or _contradicted(host):
            before = host.held
            await self._patch(host, {"status": {"conditions": conditions(host.node, held, now)}})
            host.held = held
            for type_ in [each for each in _TYPES if held[each] != before[each]]:
                self._tell(host, EVENTS[type_][held[type_]])
        problem = wrong_script(host.node.metadata.annotations, parse_node_script)
        if problem and problem != host.problem:
            self._warn(host, "InvalidScript", problem)
        host.problem = problem

    async def _begin(self, host: Host, held: dict[str, bool], now: int) -> None:
        """Register a node: write its whole status, as a starting kubelet does."""
        if host.name in self._fleet.returning:
            await self._find_pods(host)
            del self._fleet.returning[host.name]
        self._fleet.settle_down(host)
        listed = conditions(host.node, held, now)
        status = {**full_status(host.node, host.address), "conditions": listed}
        await self._patch(host, {"status": status})
        host.held = held
        self._tell(host, "Starting", "Starting kubelet.")
        self._tell(host, EVENTS["Ready"][held["Ready"]])
        self._fleet.look_at_pods(host)  # those that existed before the kubelet
        self._fleet.look_for_pressure(host)

    async def _find_pods(self, host: Host) -> None:
        """List the pods that a node had when it was deleted."""
        selection = Selection(field_selector=f"spec.nodeName={host.name}")
        for seen in (await self._client.list(PODS, decode_pod, selection)).items:
            self._fleet.see_pod(seen)

    async def _patch(self, host: Host, patch: Document) -> None:
        """Patch a node's status, and update the node by the response. Raise ApiError."""
        path, body = _status_of(host.name), orjson.dumps(patch)
        seen = await self._client.patch(path, PatchType.STRATEGIC, body, decode_node)
        self._fleet.take_over_node(host, seen)

    def _tell(self, host: Host, reason: str, message: str = "") -> None:
        if self._recorder is not None:
            told = message or f"Node {host.name} status is now: {reason}"
            self._recorder.normal(host.node.reference, reason, told)

    def _warn(self, host: Host, reason: str, message: str) -> None:
        if self._recorder is not None:
            self._recorder.warning(host.node.reference, reason, message)


def _status_of(name: str) -> ObjectPath:
    return NODES.object(name).subresource("status")


def _contradicted(host: Host) -> bool:
    """Return whether another client has written a different status of a condition."""
    said = {each.type: each.status for each in host.node.status.conditions or ()}
    return any(said.get(type_) != str(held) for type_, held in host.held.items())
