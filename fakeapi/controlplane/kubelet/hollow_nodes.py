"""The hollow nodes: all simulated nodes and pods as observed, and their work items.

Every node is simulated, except those annotated ``kubelet.fakeapi/simulated: "false"``. Pods wait
until their node is observed. A change adds a work item to a queue, by the name of the node or the
UID of the pod; the sync of that item makes the decisions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from extender.kube.controller_runtime.event_recorder import EventRecorder
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.decoders.cluster_objects import decode_node as decode_facts
from extender.kube.decoders.typed_decoder import ObjectError
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock
from fakeapi.controlplane.kubelet.hollow_node import HollowNode, RunningPod
from fakeapi.controlplane.kubelet.ip_allocator import NodeIPAllocator, PodCIDRPool, PodIPAllocator
from fakeapi.controlplane.kubelet.script_parser import parse_node_script, parse_pod_script
from fakeapi.controlplane.kubelet.scripts import (
    NodeScript,
    PodScript,
    ScriptError,
    SimulationScript,
)
from fakeapi.controlplane.kubelet.types import (
    SCRIPT,
    SIMULATED,
    DecodedObject,
    KubeletNode,
    KubeletObjectMeta,
    KubeletPod,
)
from fakeapi.controlplane.kubelet.usage_curves import SECOND
from policies.eviction.config import INTERVAL_NS
from policies.kubernetes.snapshot import Node as Facts


@dataclass(frozen=True, slots=True)
class KubeletWorkItem:
    """A work item of the kubelet.

    ``pod`` by its UID; ``node`` and ``pressure`` by the node's name; ``lease`` and ``beat`` by the
    number of a slot.
    """

    kind: str
    name: str = ""


REGISTER: Final = KubeletWorkItem("register")


@dataclass(slots=True)
class UnadmittedPod:
    """A pod that has not been admitted yet; ``waits`` are the UIDs of its victims.

    ``passed`` is set once it is found to fit without them.
    """

    observed: DecodedObject[KubeletPod]
    waits: dict[str, None] = field(default_factory=dict)
    passed: bool = False


class HollowNodes:
    """The simulated nodes by name, and their pods by UID; work items are added to ``queue``.

    ``deleted_nodes`` are the names of deleted nodes: the pods of a node that is recreated may
    still exist.
    """

    def __init__(
        self, script: SimulationScript, clock: Clock, queue: WorkQueue[KubeletWorkItem]
    ) -> None:
        self.script = script
        self.nodes_by_name: dict[str, HollowNode] = {}
        self.running_pods: dict[str, tuple[HollowNode, RunningPod]] = {}
        self.unadmitted_pods: dict[str, UnadmittedPod] = {}
        self.deleted_nodes: dict[str, None] = {}
        self.nodes = NodeStore(self)
        self.pods = PodStore(self)
        self._unassigned: dict[str, dict[str, DecodedObject[KubeletPod]]] = {}
        self._awaited: dict[str, list[UnadmittedPod]] = {}
        self._clock = clock
        self._queue = queue
        self.add = queue.add
        self._blocks = PodCIDRPool()
        self._addresses = NodeIPAllocator()

    def node_script(self, node: KubeletNode) -> NodeScript:
        """Return a node's script; ignore an invalid annotation."""
        own = (node.metadata.annotations or {}).get(SCRIPT)
        if own is not None:
            try:
                return parse_node_script(own)
            except ScriptError:
                pass
        return self.script.for_node(node.metadata.name, node.metadata.labels)

    def pod_script(self, pod: KubeletPod) -> PodScript:
        """Return a pod's script; ignore an invalid annotation."""
        meta = pod.metadata
        own = (meta.annotations or {}).get(SCRIPT)
        if own is not None:
            try:
                return parse_pod_script(own)
            except ScriptError:
                pass
        return self.script.for_pod(meta.name, meta.namespace, pod.spec.node_name, meta.labels)

    def observe_node(self, observed: DecodedObject[KubeletNode]) -> None:
        """Add or update an observed node, unless a newer version is known."""
        node = observed.object
        name, meta = node.metadata.name, node.metadata
        hollow = self.nodes_by_name.get(name)
        excluded = (meta.annotations or {}).get(SIMULATED) == "false"
        if hollow is not None and (hollow.node.metadata.uid != meta.uid or excluded):
            self.remove_node(name)
            hollow = None
        if excluded:
            return
        if hollow is None:
            self._add_node(observed)
        else:
            self.update_node(hollow, observed)

    def update_node(self, hollow: HollowNode, observed: DecodedObject[KubeletNode]) -> None:
        """Update a node to a newer version; enqueue it, as other clients may have written it."""
        meta = observed.object.metadata
        if meta.uid != hollow.node.metadata.uid or _version(meta) <= hollow.version:
            return
        hollow.node, hollow.model = observed.object, _model_node(observed)
        hollow.version = _version(meta)
        script = self.node_script(observed.object)
        if script != hollow.script:
            hollow.start_script(script, self._clock.now_ns())
            self.enqueue_eviction_round(hollow)
        self.add(KubeletWorkItem("node", hollow.name))

    def reset_node_if_older(self, meta: KubeletObjectMeta) -> None:
        """Reset a node whose known version is newer than this one: it registers again."""
        hollow = self.nodes_by_name.get(meta.name)
        if hollow is not None and _version(meta) < hollow.version:
            hollow.version = 0
            hollow.written_conditions = {}

    def reset_pod_if_older(self, meta: KubeletObjectMeta) -> None:
        """Reset a pod whose known version is newer than this one: its status is written again."""
        _, running = self.running_pods.get(meta.uid, (None, None))
        if running is not None and _version(meta) < running.version:
            running.version = running.written_hash = 0
            running.delete_sent = False

    def enqueue_eviction_round(self, hollow: HollowNode, running: RunningPod | None = None) -> None:
        """Enqueue a round of a node's eviction manager, after a change of a pod's usage, or all."""
        if not self.script.evictions:
            return
        now = self._clock.now_ns()
        hollow.record_usage_change(now, running)
        left = INTERVAL_NS - (now - hollow.began) % INTERVAL_NS
        self._queue.add_after(KubeletWorkItem("pressure", hollow.name), left / SECOND)

    def assign_address(self, hollow: HollowNode) -> None:
        """Allocate an address for a node without one, once all other addresses are known."""
        hollow.address = hollow.address or self._addresses.allocate(hollow.name)

    def is_speaking(self, name: str) -> bool:
        """Return whether a node's kubelet is not silent now."""
        hollow = self.nodes_by_name.get(name)
        return hollow is not None and not hollow.is_silent(self._clock.now_ns())

    def enqueue_pods(self, hollow: HollowNode) -> None:
        """Enqueue all pods of a node."""
        for uid in (*hollow.pods, *hollow.waiting):
            self.add(KubeletWorkItem("pod", uid))

    def remove_node(self, name: str) -> None:
        """Remove a deleted node; its pods are kept."""
        hollow = self.nodes_by_name.pop(name, None)
        if hollow is None:
            return
        for uid in hollow.pods:
            del self.running_pods[uid]
        self._addresses.release(name, hollow.address)
        for uid in hollow.waiting:
            self._unassigned.setdefault(name, {})[uid] = self.unadmitted_pods.pop(uid).observed
        self.deleted_nodes[name] = None
        self.add(KubeletWorkItem("node", name))

    def observe_pod(self, observed: DecodedObject[KubeletPod]) -> None:
        """Add or update an observed pod, unless a newer version is known."""
        pod = observed.object
        uid, name = pod.metadata.uid, pod.spec.node_name
        running_pod = self.running_pods.get(uid)
        if running_pod is not None:
            self.update_pod(*running_pod, observed)
        elif uid in self.unadmitted_pods:
            self.unadmitted_pods[uid].observed = observed
        elif not name or (pod.finished and not pod.metadata.deleting):
            self._unassigned.get(name, {}).pop(uid, None)
        elif name not in self.nodes_by_name:
            self._reserve_address(pod)
            self._unassigned.setdefault(name, {})[uid] = observed
        else:
            self._reserve_address(pod)
            self.unadmitted_pods[uid] = UnadmittedPod(observed)
            self.nodes_by_name[name].waiting[uid] = None
            self.add(KubeletWorkItem("pod", uid))

    def update_pod(
        self, hollow: HollowNode, running: RunningPod, observed: DecodedObject[KubeletPod]
    ) -> None:
        """Update a pod to a newer version; enqueue it, as other clients may have written it."""
        pod = observed.object
        if _version(pod.metadata) <= running.version:
            return
        if _eviction_fields(pod) != _eviction_fields(running.pod):
            running.evictable = None
        if pod.spec == running.pod.spec:
            pod.spec = running.pod.spec  # which the containers share
        running.lifecycle.pod, running.version = pod, _version(pod.metadata)
        script = self.pod_script(pod)
        if script != running.lifecycle.script:
            running.lifecycle.start_script(script, self._clock.now_ns())
            self.enqueue_eviction_round(hollow, running)
        if (
            running.written_conditions.record_foreign(pod.status.conditions)
            or pod.status.phase != running.phase
        ):
            running.written_hash = 0
        pod.drop_details()
        self.add(KubeletWorkItem("pod", pod.metadata.uid))

    def remove_pod(self, pod: KubeletPod) -> None:
        """Remove a deleted pod."""
        uid = pod.metadata.uid
        self.remove_unadmitted(pod)
        self._unassigned.get(pod.spec.node_name, {}).pop(uid, None)
        running_pod = self.running_pods.pop(uid, None)
        if running_pod is not None:
            hollow, running = running_pod
            del hollow.pods[uid]
            hollow.evicting.pop(uid, None)
            hollow.addresses.release(uid, running.address)
            hollow.allocation.remove(uid)
        self._blocks.release(uid, pod.status.pod_ip)
        self.notify_pod_ended(uid)

    def remove_unadmitted(self, pod: KubeletPod) -> None:
        """Remove a pod from those that wait for admission."""
        uid = pod.metadata.uid
        if self.unadmitted_pods.pop(uid, None) is not None:
            self.nodes_by_name[pod.spec.node_name].waiting.pop(uid, None)

    def wait_for_victims(self, unadmitted: UnadmittedPod, victims: Collection[str]) -> None:
        """Let a pod that fits without its victims wait until they have ended."""
        unadmitted.passed = True
        unadmitted.waits = dict.fromkeys(victims)
        for uid in victims:
            self._awaited.setdefault(uid, []).append(unadmitted)

    def notify_pod_ended(self, uid: str) -> None:
        """Enqueue the pods that waited for the end of a pod."""
        for unadmitted in self._awaited.pop(uid, ()):
            unadmitted.waits.pop(uid, None)
            if not unadmitted.waits:
                self.add(KubeletWorkItem("pod", unadmitted.observed.object.metadata.uid))

    def all_pods(self) -> Iterator[KubeletPod]:
        """List all known pods, admitted or not."""
        yield from (running.pod for _, running in self.running_pods.values())
        yield from (unadmitted.observed.object for unadmitted in self.unadmitted_pods.values())
        yield from (
            observed.object for pods in self._unassigned.values() for observed in pods.values()
        )

    def add_running_pod(self, hollow: HollowNode, running: RunningPod) -> None:
        """Record that a pod has been admitted."""
        uid = running.pod.metadata.uid
        self.remove_unadmitted(running.pod)
        self.running_pods[uid] = hollow, running
        hollow.pods[uid] = running
        hollow.allocation.add(running.allocation)

    def _add_node(self, observed: DecodedObject[KubeletNode]) -> None:
        node, now = observed.object, self._clock.now_ns()
        name = node.metadata.name
        addresses = [a.address for a in node.status.addresses or () if a.type == "InternalIP"]
        if addresses:
            self._addresses.reserve(name, addresses[0])
        self.nodes_by_name[name] = HollowNode(
            node=node,
            model=_model_node(observed),
            script=self.node_script(node),
            began=now,
            address=addresses[0] if addresses else "",
            addresses=PodIPAllocator(self._blocks, node.spec.pod_cidr),
            version=_version(node.metadata),
        )
        self.add(KubeletWorkItem("node", name))
        for pod in self._unassigned.pop(name, {}).values():
            self.observe_pod(pod)

    def _reserve_address(self, pod: KubeletPod) -> None:
        """Reserve the address that a pod has from an earlier kubelet."""
        if pod.status.pod_ip and not pod.spec.host_network:
            self._blocks.reserve(pod.metadata.uid, pod.status.pod_ip)


class KubeletWorker:
    """Base of the components that process work items of the hollow kubelets.

    ``recorder`` is None if no events are recorded.
    """

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


class NodeStore:
    """The reflector's store of nodes, which forwards them to the hollow nodes."""

    def __init__(self, hollow_nodes: HollowNodes) -> None:
        self._hollow_nodes = hollow_nodes

    def replace(self, items: Sequence[DecodedObject[KubeletNode]]) -> None:
        """Replace all nodes."""
        present = {each.object.metadata.name for each in items}
        for name in [name for name in self._hollow_nodes.nodes_by_name if name not in present]:
            self._hollow_nodes.remove_node(name)
        for each in items:
            self._hollow_nodes.reset_node_if_older(each.object.metadata)
            self._hollow_nodes.observe_node(each)

    def upsert(self, item: DecodedObject[KubeletNode]) -> None:
        """Add or update a node."""
        self._hollow_nodes.observe_node(item)

    def remove(self, item: DecodedObject[KubeletNode]) -> None:
        """Remove a node."""
        self._hollow_nodes.remove_node(item.object.metadata.name)


class PodStore:
    """The reflector's store of pods, which forwards them to the hollow nodes."""

    def __init__(self, hollow_nodes: HollowNodes) -> None:
        self._hollow_nodes = hollow_nodes

    def replace(self, items: Sequence[DecodedObject[KubeletPod]]) -> None:
        """Replace all pods."""
        present = {each.object.metadata.uid for each in items}
        for pod in [
            pod for pod in self._hollow_nodes.all_pods() if pod.metadata.uid not in present
        ]:
            self._hollow_nodes.remove_pod(pod)
        for each in items:
            self._hollow_nodes.reset_pod_if_older(each.object.metadata)
            self._hollow_nodes.observe_pod(each)

    def upsert(self, item: DecodedObject[KubeletPod]) -> None:
        """Add or update a pod."""
        self._hollow_nodes.observe_pod(item)

    def remove(self, item: DecodedObject[KubeletPod]) -> None:
        """Remove a pod."""
        self._hollow_nodes.remove_pod(item.object)


def _eviction_fields(pod: KubeletPod) -> tuple[object, ...]:
    """Return the fields whose change requires that eviction decodes the pod again."""
    return pod.metadata.generation, pod.metadata.annotations


def _version(meta: KubeletObjectMeta) -> int:
    return int(meta.resource_version or 0)


def _model_node(observed: DecodedObject[KubeletNode]) -> Facts:
    """Return the node as admission reads it; no pod fits on a malformed one."""
    try:
        return decode_facts(observed.raw)
    except ObjectError:
        return Facts(observed.object.metadata.name)
