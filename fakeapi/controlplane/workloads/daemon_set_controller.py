"""The DaemonSet controller: one pod on each node that the template's pods may run on.

    node                                     without a pod    with a pod
    matches, and its taints are tolerated    gets one         keeps the oldest one
    matches, with a NoSchedule taint         gets none        keeps it
    does not match, or NoExecute taint       gets none        loses it

A pod is bound to its node by an affinity to the node's name, and scheduled as others are. Left out:
maxSurge, and the delay before a failed pod is replaced.

Source: kubernetes/pkg/controller/daemon (daemon_controller.go, update.go, util/daemonset_util.go).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct, field

from extender.controllers.context import ControllerContext
from extender.controllers.replicaset.pod_control import PodControl
from extender.kube.controller_runtime.controller import Controller
from extender.kube.decoders.core_v1_types import AffinityV1, TolerationV1
from extender.kube.decoders.pod_specs import node_affinity, toleration_of
from extender.kube.decoders.typed_decoder import FieldError
from extender.kube.rest.resources import NODES, Resource
from fakeapi.controlplane.controllers.types import Node, decode_node, decode_tolerantly
from fakeapi.controlplane.workloads.controller_revisions import (
    HASH_LABEL,
    ControllerRevision,
    RevisionHistory,
)
from fakeapi.controlplane.workloads.types import (
    WORKLOAD_PODS,
    Fields,
    ObjectKind,
    PodTemplate,
    UpdateStrategy,
    Workload,
    WorkloadPod,
    WorkloadSpec,
    ceil_percent,
    pod_document,
    raw,
    seconds_until_next_available,
)
from fakeapi.controlplane.workloads.workload_caches import WorkloadCaches
from policies.kubernetes.selectors import Taint, untolerated

_GENERATION: Final = "deprecated.daemonset.template.generation"
_TAINTS: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


class DaemonSetSpec(WorkloadSpec, rename="camel"):
    """apps/v1.DaemonSetSpec."""

    update_strategy: UpdateStrategy = field(default_factory=UpdateStrategy)


class DaemonSetStatus(Struct, rename="camel", frozen=True):
    """apps/v1.DaemonSetStatus."""

    observed_generation: int = 0
    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0
    number_misscheduled: int = 0
    number_ready: int = 0
    number_available: int = 0
    number_unavailable: int = 0
    updated_number_scheduled: int = 0


class DaemonSet(Workload):
    """apps/v1.DaemonSet."""

    KIND: ClassVar[str] = "DaemonSet"

    spec: DaemonSetSpec = field(default_factory=DaemonSetSpec)
    status: DaemonSetStatus = field(default_factory=DaemonSetStatus)


class _Placement(Struct, rename="camel"):
    """The fields of a pod's spec that say on which nodes it may run."""

    node_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: AffinityV1 | None = None
    tolerations: list[TolerationV1] | None = None
    host_network: bool = False


DAEMON_SETS: Final = ObjectKind(
    "DaemonSet",
    Resource("apps", "v1", "daemonsets", namespaced=True),
    decode_tolerantly(DaemonSet),
)


@dataclass(frozen=True, slots=True)
class DaemonNode:
    """A node, its pods of a DaemonSet (the oldest first), and what the DaemonSet wants there."""

    name: str
    pods: Sequence[WorkloadPod]
    runs: bool
    keeps: bool

    @property
    def active(self) -> Sequence[WorkloadPod]:
        """The pods that are not being deleted."""
        return [pod for pod in self.pods if not pod.metadata.deleting]

    @property
    def surplus(self) -> Sequence[WorkloadPod]:
        """The pods to delete: failed ones, and all, or all but the oldest one."""
        if not self.keeps:
            return self.active
        failed = [pod for pod in self.active if pod.status.phase == "Failed"]
        return [*failed, *[pod for pod in self.active if pod not in failed][1:]]


def template_tolerations(spec: Fields) -> list[dict[str, str]]:
    """Return the tolerations that each pod of a DaemonSet has in addition."""
    on_host = bytes(spec.get("hostNetwork", b"")) == b"true"
    host = (("network-unavailable", "NoSchedule"),) if on_host else ()
    return [
        {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
        for name, effect in (*_TAINTS, *host)
    ]


def should_run(template: PodTemplate, node: Node) -> tuple[bool, bool]:
    """Return whether a pod of a template is created on a node, and whether one stays there."""
    placement = msgspec.json.decode(msgspec.json.encode(template.spec), type=_Placement)
    labels, name = node.metadata.labels or {}, node.metadata.name
    try:
        affinity = node_affinity(placement.affinity or AffinityV1())
    except FieldError:
        return False, False
    selected = (placement.node_selector or {}).items() <= labels.items()
    if placement.node_name not in ("", name) or not selected:
        return False, False
    if affinity is not None and not affinity.matches(name, labels):
        return False, False
    added = msgspec.convert(template_tolerations(template.spec), list[TolerationV1])
    tolerations = [toleration_of(each) for each in (*(placement.tolerations or ()), *added)]
    taints = [Taint(each.key, each.value or "", each.effect) for each in node.spec.taints or ()]
    lasting = [taint for taint in taints if taint.effect == "NoExecute"]
    return untolerated(taints, tolerations) is None, untolerated(lasting, tolerations) is None


def node_of(pod: WorkloadPod) -> str:
    """Return the node that a pod runs on, or that its affinity names."""
    if pod.spec.node_name:
        return pod.spec.node_name
    try:
        affinity = node_affinity(pod.spec.affinity or AffinityV1())
    except FieldError:
        return ""
    return next(iter((affinity and affinity.named()) or ()), "")


def daemon_pod(of: DaemonSet, node: str, revision: ControllerRevision) -> dict[str, Any]:
    """Return the pod of a node."""
    spec, template = of.spec.template.spec, of.spec.template
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = msgspec.json.decode(spec.get("affinity", raw({})), type=Fields)
    near = msgspec.json.decode(affinity.get("nodeAffinity", raw({})), type=Fields)
    required = raw({"nodeSelectorTerms": [term]})
    near["requiredDuringSchedulingIgnoredDuringExecution"] = required
    own = msgspec.json.decode(spec.get("tolerations", raw([])), type=list[Fields])
    tolerations = [*own, *template_tolerations(spec)]
    placed = {"affinity": raw({**affinity, "nodeAffinity": near}), "tolerations": raw(tolerations)}
    template = PodTemplate(template.metadata, {**spec, **placed}).with_label(
        HASH_LABEL, revision.hash
    )
    if generation := (of.metadata.annotations or {}).get(_GENERATION):
        template = template.with_label("pod-template-generation", generation)
    return pod_document(of, template, {"generateName": f"{of.metadata.name}-"})


def is_updated(pod: WorkloadPod, revision: ControllerRevision) -> bool:
    """Return whether a pod has a revision."""
    return (pod.metadata.labels or {}).get(HASH_LABEL) == revision.hash


def outdated_pods(
    of: DaemonSet, nodes: Sequence[DaemonNode], revision: ControllerRevision, now_ns: int
) -> Sequence[WorkloadPod]:
    """Return the old pods to delete: unavailable ones, and others up to maxUnavailable."""
    if of.spec.update_strategy.type != "RollingUpdate":
        return ()
    wanted = [node for node in nodes if node.runs]
    most = ceil_percent(of.spec.update_strategy.parameters.max_unavailable, len(wanted))
    alone = [node.active[0] for node in wanted if len(node.active) == 1]
    available = [pod for pod in alone if is_available(of, pod, now_ns)]
    budget = max(0, max(1, most) - (len(wanted) - len(available)))
    old = [pod for pod in alone if not is_updated(pod, revision)]
    unavailable = [pod for pod in old if pod not in available]
    return [*unavailable, *[pod for pod in old if pod in available][:budget]]


def is_available(of: DaemonSet, pod: WorkloadPod, now_ns: int) -> bool:
    """Return whether a pod has been ready for minReadySeconds."""
    return pod.seconds_until_available(of.spec.min_ready_seconds, now_ns) == 0


def new_status(
    of: DaemonSet, nodes: Sequence[DaemonNode], revision: ControllerRevision, now_ns: int
) -> DaemonSetStatus:
    """Return the counts of nodes by the oldest pod on each."""
    wanted = [node for node in nodes if node.runs]
    pods = [node.pods[0] for node in wanted if node.pods]
    available = sum(is_available(of, pod, now_ns) for pod in pods)
    return DaemonSetStatus(
        observed_generation=of.metadata.generation,
        desired_number_scheduled=len(wanted),
        current_number_scheduled=len(pods),
        number_misscheduled=sum(bool(node.pods) and not node.runs for node in nodes),
        number_ready=sum(pod.ready for pod in pods),
        number_available=available,
        number_unavailable=len(wanted) - available,
        updated_number_scheduled=sum(is_updated(pod, revision) for pod in pods),
    )


class DaemonSetController:
    """The component ``daemonset``."""

    def __init__(self, context: ControllerContext) -> None:
        self._clock = context.clock
        self._caches = WorkloadCaches(context, DAEMON_SETS, WORKLOAD_PODS)
        self._nodes = context.informers.of(NODES, decode_node)
        self._history = RevisionHistory(context, DAEMON_SETS, HASH_LABEL)
        recorder = context.events.recorder("daemonset-controller")
        self._pods = PodControl(context.client, recorder, self._caches.writes)
        self.controller = Controller("daemonset", self._caches.queue, self._sync)

    async def run(self) -> None:
        """Reconcile DaemonSets until cancelled."""
        await asyncio.gather(self._nodes.wait_synced(), self._history.wait_synced())
        await self._caches.start()
        self._nodes.objects.add_handler(_DaemonSetNodeEventHandler(self._caches))
        await self.controller.run()

    async def _sync(self, key: str) -> float | None:
        of = self._caches.current(key)
        if of is None or of.metadata.deleting:
            return None
        revision, now_ns = await self._history.update_revision(of), self._clock.now_ns()
        pods = await self._caches.claim(of)
        nodes = self._place(of, pods)
        status = new_status(of, nodes, revision, now_ns)
        await self._manage(of, nodes, pods, revision)
        if status != of.status:
            names = ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled")
            await self._caches.write_status(of, status, (*names, "numberReady"))
        live = {
            each.metadata.name
            for each in self._history.of(of)
            if any(is_updated(pod, each) for pod in pods)
        }
        await self._history.truncate(of, {revision.metadata.name, *live})
        return seconds_until_next_available(pods, of.spec.min_ready_seconds, now_ns)

    def _place(self, of: DaemonSet, pods: Sequence[WorkloadPod]) -> Sequence[DaemonNode]:
        """Return all nodes with their pods."""
        by_age = sorted(pods, key=lambda pod: pod.metadata.creation_timestamp or "")
        placed: dict[str, list[WorkloadPod]] = {}
        for pod in by_age:
            placed.setdefault(node_of(pod), []).append(pod)
        return [
            DaemonNode(name, placed.get(name, ()), *should_run(of.spec.template, node))
            for node in self._nodes.objects.values()
            for name in (node.metadata.name,)
        ]

    async def _manage(
        self,
        of: DaemonSet,
        nodes: Sequence[DaemonNode],
        pods: Sequence[WorkloadPod],
        revision: ControllerRevision,
    ) -> None:
        """Delete surplus pods and those without a node, create missing ones, or else update."""
        names = {node.name for node in nodes}
        lost = [pod for pod in pods if not pod.spec.node_name and node_of(pod) not in names]
        surplus = [*lost, *(pod for node in nodes for pod in node.surplus)]
        missing = [node.name for node in nodes if node.runs and not node.pods]
        if not surplus and not missing:
            surplus = list(outdated_pods(of, nodes, revision, self._clock.now_ns()))
        for pod in surplus:
            await self._pods.delete_if_present(of, pod.metadata.name)
        for name in missing:
            await self._pods.create(of, msgspec.json.encode(daemon_pod(of, name, revision)))


class _DaemonSetNodeEventHandler:
    """Enqueues all DaemonSets when a node comes, goes, or changes its labels or taints."""

    def __init__(self, caches: WorkloadCaches[DaemonSet, WorkloadPod]) -> None:
        self._caches = caches

    def added(self, _item: Node) -> None:
        for each in self._caches.workloads.objects.values():
            self._caches.queue.add(each.metadata.key)

    def updated(self, old: Node, new: Node) -> None:
        if (old.metadata.labels, old.spec) != (new.metadata.labels, new.spec):
            self.added(new)

    def removed(self, item: Node) -> None:
        self.added(item)
