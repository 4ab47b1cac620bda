"""Types of pods and nodes with the fields that a kubelet reads, for partial decoding.

Malformed fields are ignored, as in all components of the control plane
(:mod:`fakeapi.controlplane.controllers.types`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Generic, TypeVar

from msgspec import Raw, Struct, ValidationError, field
from msgspec.json import Decoder, decode, encode

from extender.kube.controller_runtime.event_recorder import ObjectReference
from extender.kube.decoders.object_meta import ObjectMeta, decode_partial
from fakeapi.controlplane.controllers.types import ObjectCondition

SCRIPT: Final = "kubelet.fakeapi/script"
"""The annotation of a pod or a node with its own script."""

SIMULATED: Final = "kubelet.fakeapi/simulated"
"""The annotation of a node; "false" excludes it from simulation."""

ResourceAmounts = dict[str, str | int | float]


class KubeletObjectMeta(ObjectMeta, rename="camel"):
    """metav1.ObjectMeta, with the grace period of a deletion."""

    deletion_grace_period_seconds: int | None = None


class ContainerResources(Struct):
    """v1.ResourceRequirements."""

    requests: ResourceAmounts | None = None
    limits: ResourceAmounts | None = None


class Probe(Struct, rename="camel"):
    """v1.Probe: its result is simulated, its delay counts."""

    initial_delay_seconds: int = 0


class SleepAction(Struct):
    """v1.SleepAction."""

    seconds: int = 0


class LifecycleHandler(Struct):
    """v1.LifecycleHandler; its other actions take no time here."""

    sleep: SleepAction | None = None


class Lifecycle(Struct, rename="camel"):
    """v1.Lifecycle."""

    pre_stop: LifecycleHandler | None = None


class Container(Struct, rename="camel"):
    """v1.Container."""

    name: str = ""
    image: str = ""
    restart_policy: str | None = None
    resources: ContainerResources | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None


class ReadinessGate(Struct, rename="camel"):
    """v1.PodReadinessGate."""

    condition_type: str = ""


class KubeletPodSpec(Struct, rename="camel"):
    """v1.PodSpec."""

    node_name: str = ""
    host_network: bool = False
    restart_policy: str = "Always"
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    priority: int | None = None
    readiness_gates: list[ReadinessGate] | None = None
    init_containers: list[Container] | None = None
    containers: list[Container] | None = None


class RunningState(Struct, rename="camel"):
    """v1.ContainerStateRunning."""

    started_at: str | None = None


class WaitingState(Struct):
    """v1.ContainerStateWaiting."""

    reason: str = ""
    message: str = ""


class TerminatedState(Struct, rename={"container_id": "containerID"}):
    """v1.ContainerStateTerminated."""

    exit_code: int = field(default=0, name="exitCode")
    reason: str = ""
    message: str = ""
    started_at: str | None = field(default=None, name="startedAt")
    finished_at: str | None = field(default=None, name="finishedAt")
    container_id: str = ""


class ContainerState(Struct):
    """v1.ContainerState."""

    waiting: WaitingState | None = None
    running: RunningState | None = None
    terminated: TerminatedState | None = None


class ContainerStatus(Struct, rename={"container_id": "containerID"}):
    """v1.ContainerStatus."""

    name: str = ""
    ready: bool = False
    container_id: str = ""
    restart_count: int = field(default=0, name="restartCount")
    state: ContainerState = field(default_factory=ContainerState)
    last_state: ContainerState = field(default_factory=ContainerState, name="lastState")


class KubeletPodStatus(Struct, rename={"pod_ip": "podIP"}):
    """v1.PodStatus."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[ObjectCondition] | None = None
    pod_ip: str = ""
    start_time: str | None = field(default=None, name="startTime")
    qos_class: str = field(default="", name="qosClass")
    init_container_statuses: list[ContainerStatus] | None = field(
        default=None, name="initContainerStatuses"
    )
    container_statuses: list[ContainerStatus] | None = field(default=None, name="containerStatuses")


class KubeletPod(Struct):
    """v1.Pod."""

    metadata: KubeletObjectMeta = field(default_factory=KubeletObjectMeta)
    spec: KubeletPodSpec = field(default_factory=KubeletPodSpec)
    status: KubeletPodStatus = field(default_factory=KubeletPodStatus)

    @property
    def finished(self) -> bool:
        """Whether the pod has a terminal phase."""
        return self.status.phase in ("Succeeded", "Failed")

    def drop_details(self) -> None:
        """Drop the fields of the status that are read only once."""
        status = self.status
        status.conditions = status.init_container_statuses = status.container_statuses = None

    def share_containers(self) -> None:
        """Replace the containers by those of an earlier pod that are equal, to save memory."""
        self.spec.containers = _containers(encode(self.spec.containers))

    @property
    def reference(self) -> ObjectReference:
        """The involved object of events about the pod."""
        meta = self.metadata
        return ObjectReference("v1", "Pod", meta.namespace, meta.name, meta.uid)


@lru_cache(maxsize=1024)
def _containers(encoded: bytes) -> list[Container] | None:
    return decode(encoded, type=list[Container] | None)


class NodeAddress(Struct):
    """v1.NodeAddress."""

    type: str = ""
    address: str = ""


class KubeletNodeSpec(Struct, rename={"pod_cidr": "podCIDR"}):
    """v1.NodeSpec."""

    pod_cidr: str = ""


class KubeletNodeStatus(Struct):
    """v1.NodeStatus."""

    capacity: ResourceAmounts | None = None
    allocatable: ResourceAmounts | None = None
    addresses: list[NodeAddress] | None = None
    conditions: list[ObjectCondition] | None = None


class KubeletNode(Struct):
    """v1.Node."""

    metadata: KubeletObjectMeta = field(default_factory=KubeletObjectMeta)
    spec: KubeletNodeSpec = field(default_factory=KubeletNodeSpec)
    status: KubeletNodeStatus = field(default_factory=KubeletNodeStatus)

    @property
    def reference(self) -> ObjectReference:
        """The involved object of events about the node: by its name, as kubelets do."""
        return ObjectReference("v1", "Node", "", self.metadata.name, self.metadata.name)


S = TypeVar("S", KubeletPod, KubeletNode)


@dataclass(frozen=True, slots=True)
class DecodedObject(Generic[S]):
    """An object with the fields that are read repeatedly, and its whole JSON."""

    object: S
    raw: bytes


def _decoder(shape: type[S]) -> Callable[[Raw], DecodedObject[S]]:
    decoder = Decoder(shape)

    def decode(raw: Raw) -> DecodedObject[S]:
        whole = bytes(raw)
        try:
            return DecodedObject(decoder.decode(whole), whole)
        except ValidationError:
            metadata = decode_partial(whole).metadata
            identity = (metadata.name, metadata.namespace, metadata.uid, metadata.resource_version)
            return DecodedObject(shape(metadata=KubeletObjectMeta(*identity)), whole)

    return decode


decode_pod: Callable[[Raw], DecodedObject[KubeletPod]] = _decoder(KubeletPod)
decode_node: Callable[[Raw], DecodedObject[KubeletNode]] = _decoder(KubeletNode)
