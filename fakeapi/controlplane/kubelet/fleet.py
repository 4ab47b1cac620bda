"""The hollow nodes: all simulated nodes and pods as observed, and their work items.

Every node is simulated, except those annotated ``kubelet.fakeapi/simulated: "false"``. Pods wait
until their node is observed. A change adds a work item to a queue, by the name of the node or the
UID of the pod; the sync of that item makes the decisions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from extender.kube.clock import Clock
from extender.kube.decoding import ObjectError
from extender.kube.objects import decode_node as decode_facts
from extender.kube.workqueue import WorkQueue
from fakeapi.controlplane.kubelet.addresses import Blocks, NodeAddresses, PodAddresses
from fakeapi.controlplane.kubelet.durations import SECOND
from fakeapi.controlplane.kubelet.hosts import Guest, Host
from fakeapi.controlplane.kubelet.outfits import ScriptError
from fakeapi.controlplane.kubelet.parsing import parse_node_script, parse_pod_script
from fakeapi.controlplane.kubelet.scripts import NodeScript, Playbook, PodScript
from fakeapi.controlplane.kubelet.shapes import SCRIPT, SIMULATED, Meta, Node, Pod, Seen
from policies.eviction.configuration import INTERVAL_NS
from policies.model import Node as Facts


@dataclass(frozen=True, slots=True)
class Work:
    """A work item of the kubelet.

    ``pod`` by its UID; ``node`` and ``pressure`` by the node's name; ``lease`` and ``beat`` by the
    number of a slot.
    """

    what: str
    name: str = ""


REGISTER: Final = Work("register")


@dataclass(slots=True)
class Newcomer:
    """A pod that has not been admitted yet; ``waits`` are the UIDs of its victims.

    ``passed`` is set once it is found to fit without them.
    """

    seen: Seen[Pod]
    waits: dict[str, None] = field(default_factory=dict)
    passed: bool = False


class Fleet:
    """The simulated nodes by name, and their pods by UID; work items are added to ``queue``.

    ``deleted_nodes`` are the names of deleted nodes: the pods of a node that is recreated may
    still exist.
    """

    def __init__(self, playbook: Playbook, clock: Clock, queue: WorkQueue[Work]) -> None:
        self.playbook = playbook
        self.hosts: dict[str, Host] = {}
        self.guests: dict[str, tuple[Host, Guest]] = {}
        self.newcomers: dict[str, Newcomer] = {}
        self.returning: dict[str, None] = {}
        self.nodes = NodeSink(self)
        self.pods = PodSink(self)
        self._strays: dict[str, dict[str, Seen[Pod]]] = {}
        self._awaited: dict[str, list[Newcomer]] = {}
        self._clock = clock
        self._queue = queue
        self.add = queue.add
        self._blocks = Blocks()
        self._addresses = NodeAddresses()

    def node_script(self, node: Node) -> NodeScript:
        """Return a node's script; ignore an invalid annotation."""
        own = (node.metadata.annotations or {}).get(SCRIPT)
        if own is not None:
            try:
                return parse_node_script(own)
            except ScriptError:
                pass
        return self.playbook.for_node(node.metadata.name, node.metadata.labels)

    def pod_script(self, pod: Pod) -> PodScript:
        """Return a pod's script; ignore an invalid annotation."""
        meta = pod.metadata
        own = (meta.annotations or {}).get(SCRIPT)
        if own is not None:
            try:
                return parse_pod_script(own)
            except ScriptError:
                pass
        return self.playbook.for_pod(meta.name, meta.namespace, pod.spec.node_name, meta.labels)

    def see_node(self, seen: Seen[Node]) -> None:
        """Add or update an observed node, unless a newer version is known."""
        node = seen.object
        name, meta = node.metadata.name, node.metadata
        host = self.hosts.get(name)
        given_away = (meta.annotations or {}).get(SIMULATED) == "false"
        if host is not None and (host.node.metadata.uid != meta.uid or given_away):
            self.lose_node(name)
            host = None
        if given_away:
            return
        if host is None:
            self._take_on(seen)
        else:
            self.take_over_node(host, seen)

    def take_over_node(self, host: Host, seen: Seen[Node]) -> None:
        """Update a node to a newer version; enqueue it, as other clients may have written it."""
        meta = seen.object.metadata
        if meta.uid != host.node.metadata.uid or _version(meta) <= host.version:
            return
        host.node, host.facts, host.version = seen.object, _facts(seen), _version(meta)
        script = self.node_script(seen.object)
        if script != host.script:
            host.play(script, self._clock.now_ns())
            self.look_for_pressure(host)
        self.add(Work("node", host.name))

    def turn_back_node(self, meta: Meta) -> None:
        """Reset a node whose known version is newer than this one: it registers again."""
        host = self.hosts.get(meta.name)
        if host is not None and _version(meta) < host.version:
            host.version = 0
            host.held = {}

    def turn_back_pod(self, meta: Meta) -> None:
        """Reset a pod whose known version is newer than this one: its status is written again."""
        _, guest = self.guests.get(meta.uid, (None, None))
        if guest is not None and _version(meta) < guest.version:
            guest.version = guest.shown = 0
            guest.left = False

    def look_for_pressure(self, host: Host, guest: Guest | None = None) -> None:
        """Enqueue a round of a node's eviction manager, after a change of a pod's usage, or all."""
        now = self._clock.now_ns()
        host.note_unrest(now, guest)
        left = INTERVAL_NS - (now - host.began) % INTERVAL_NS
        self._queue.add_after(Work("pressure", host.name), left / SECOND)

    def settle_down(self, host: Host) -> None:
        """Allocate an address for a node without one, once all other addresses are known."""
        host.address = host.address or self._addresses.give(host.name)

    def speaks(self, name: str) -> bool:
        """Return whether a node's kubelet is not silent now."""
        host = self.hosts.get(name)
        return host is not None and not host.silent(self._clock.now_ns())

    def look_at_pods(self, host: Host) -> None:
        """Enqueue all pods of a node."""
        for uid in (*host.guests, *host.waiting):
            self.add(Work("pod", uid))

    def lose_node(self, name: str) -> None:
        """Remove a deleted node; its pods are kept."""
        host = self.hosts.pop(name, None)
        if host is None:
            return
        for uid in host.guests:
            del self.guests[uid]
        self._addresses.release(name, host.address)
        for uid in host.waiting:
            self._strays.setdefault(name, {})[uid] = self.newcomers.pop(uid).seen
        self.returning[name] = None
        self.add(Work("node", name))

    def see_pod(self, seen: Seen[Pod]) -> None:
        """Add or update an observed pod, unless a newer version is known."""
        pod = seen.object
        uid, name = pod.metadata.uid, pod.spec.node_name
        known = self.guests.get(uid)
        if known is not None:
            self.take_over_pod(*known, seen)
        elif uid in self.newcomers:
            self.newcomers[uid].seen = seen
        elif not name or (pod.finished and not pod.metadata.deleting):
            self._strays.get(name, {}).pop(uid, None)
        elif name not in self.hosts:
            self._keep_address(pod)
            self._strays.setdefault(name, {})[uid] = seen
        else:
            self._keep_address(pod)
            self.newcomers[uid] = Newcomer(seen)
            self.hosts[name].waiting[uid] = None
            self.add(Work("pod", uid))

    def take_over_pod(self, host: Host, guest: Guest, seen: Seen[Pod]) -> None:
        """Update a pod to a newer version; enqueue it, as other clients may have written it."""
        pod = seen.object
        if _version(pod.metadata) <= guest.version:
            return
        if _evicted_by(pod) != _evicted_by(guest.pod):
            guest.evictable = None
        guest.life.pod, guest.version = pod, _version(pod.metadata)
        script = self.pod_script(pod)
        if script != guest.life.script:
            guest.life.play(script, self._clock.now_ns())
            self.look_for_pressure(host, guest)
        if guest.report.contradicted(pod.status.conditions) or pod.status.phase != guest.phase:
            guest.shown = 0
        pod.forget_details()
        self.add(Work("pod", pod.metadata.uid))

    def lose_pod(self, pod: Pod) -> None:
        """Remove a deleted pod."""
        uid = pod.metadata.uid
        self.turn_away(pod)
        self._strays.get(pod.spec.node_name, {}).pop(uid, None)
        known = self.guests.pop(uid, None)
        if known is not None:
            host, guest = known
            del host.guests[uid]
            host.evicting.pop(uid, None)
            host.addresses.release(uid, guest.address)
            host.room.leave(uid)
        self._blocks.release(uid, pod.status.pod_ip)
        self.make_way(uid)

    def turn_away(self, pod: Pod) -> None:
        """Remove a pod from those that wait for admission."""
        uid = pod.metadata.uid
        if self.newcomers.pop(uid, None) is not None:
            self.hosts[pod.spec.node_name].waiting.pop(uid, None)

    def wait_for(self, newcomer: Newcomer, victims: Collection[str]) -> None:
        """Let a pod that fits without its victims wait until they have ended."""
        newcomer.passed = True
        newcomer.waits = dict.fromkeys(victims)
        for uid in victims:
            self._awaited.setdefault(uid, []).append(newcomer)

    def make_way(self, uid: str) -> None:
        """Enqueue the pods that waited for the end of a pod."""
        for newcomer in self._awaited.pop(uid, ()):
            newcomer.waits.pop(uid, None)
            if not newcomer.waits:
                self.add(Work("pod", newcomer.seen.object.metadata.uid))

    def known_pods(self) -> Iterator[Pod]:
        """List all known pods, admitted or not."""
        yield from (guest.pod for _, guest in self.guests.values())
        yield from (newcomer.seen.object for newcomer in self.newcomers.values())
        yield from (seen.object for strays in self._strays.values() for seen in strays.values())

    def settle_in(self, host: Host, guest: Guest) -> None:
        """Record that a pod has been admitted."""
        uid = guest.pod.metadata.uid
        self.turn_away(guest.pod)
        self.guests[uid] = host, guest
        host.guests[uid] = guest
        host.room.enter(guest.tenant)

    def _take_on(self, seen: Seen[Node]) -> None:
        node, now = seen.object, self._clock.now_ns()
        name = node.metadata.name
        told = [a.address for a in node.status.addresses or () if a.type == "InternalIP"]
        if told:
            self._addresses.keep(name, told[0])
        self.hosts[name] = Host(
            node=node,
            facts=_facts(seen),
            script=self.node_script(node),
            began=now,
            address=told[0] if told else "",
            addresses=PodAddresses(self._blocks, node.spec.pod_cidr),
            version=_version(node.metadata),
        )
        self.add(Work("node", name))
        for stray in self._strays.pop(name, {}).values():
            self.see_pod(stray)

    def _keep_address(self, pod: Pod) -> None:
        """Reserve the address that a pod has from an earlier kubelet."""
        if pod.status.pod_ip and not pod.spec.host_network:
            self._blocks.keep(pod.metadata.uid, pod.status.pod_ip)


class NodeSink:
    """The reflector's store of nodes, which forwards them to the hollow nodes."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def replace(self, items: Sequence[Seen[Node]]) -> None:
        """Replace all nodes."""
        present = {each.object.metadata.name for each in items}
        for name in [name for name in self._fleet.hosts if name not in present]:
            self._fleet.lose_node(name)
        for each in items:
            self._fleet.turn_back_node(each.object.metadata)
            self._fleet.see_node(each)

    def upsert(self, item: Seen[Node]) -> None:
        """Add or update a node."""
        self._fleet.see_node(item)

    def remove(self, item: Seen[Node]) -> None:
        """Remove a node."""
        self._fleet.lose_node(item.object.metadata.name)


class PodSink:
    """The reflector's store of pods, which forwards them to the hollow nodes."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def replace(self, items: Sequence[Seen[Pod]]) -> None:
        """Replace all pods."""
        present = {each.object.metadata.uid for each in items}
        for pod in [pod for pod in self._fleet.known_pods() if pod.metadata.uid not in present]:
            self._fleet.lose_pod(pod)
        for each in items:
            self._fleet.turn_back_pod(each.object.metadata)
            self._fleet.see_pod(each)

    def upsert(self, item: Seen[Pod]) -> None:
        """Add or update a pod."""
        self._fleet.see_pod(item)

    def remove(self, item: Seen[Pod]) -> None:
        """Remove a pod."""
        self._fleet.lose_pod(item.object)


def _evicted_by(pod: Pod) -> tuple[object, ...]:
    """Return the fields whose change requires that eviction decodes the pod again."""
    return pod.metadata.generation, pod.metadata.annotations


def _version(meta: Meta) -> int:
    return int(meta.resource_version or 0)


def _facts(seen: Seen[Node]) -> Facts:
    """Return the node as admission reads it; no pod fits on a malformed one."""
    try:
        return decode_facts(seen.raw)
    except ObjectError:
        return Facts(seen.object.metadata.name)
