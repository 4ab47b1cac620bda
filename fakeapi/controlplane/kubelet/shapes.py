"""Types of pods and nodes with the fields that a kubelet reads, for partial decoding.

Malformed fields are ignored, as in all components of the control plane
(:mod:`fakeapi.controlplane.controllers.types`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from msgspec import Raw, Struct, ValidationError, field
from msgspec.json import Decoder

from extender.kube.events import ObjectReference
from extender.kube.metadata import ObjectMeta, decode_partial
from fakeapi.controlplane.shapes import Condition

SCRIPT: Final = "kubelet.fakeapi/script"
"""The annotation of a pod or a node with its own script."""

SIMULATED: Final = "kubelet.fakeapi/simulated"
"""The annotation of a node; "false" excludes it from simulation."""

Amounts = dict[str, str | int | float]


class Meta(ObjectMeta, rename="camel"):
    """metav1.ObjectMeta, with the grace period of a deletion."""

    deletion_grace_period_seconds: int | None = None


class Resources(Struct):
    """v1.ResourceRequirements."""

    requests: Amounts | None = None
    limits: Amounts | None = None


class Probe(Struct, rename="camel"):
    """v1.Probe: its result is simulated, its delay counts."""

    initial_delay_seconds: int = 0


class Sleep(Struct):
    """v1.SleepAction."""

    seconds: int = 0


class Handler(Struct):
    """v1.LifecycleHandler; its other actions take no time here."""

    sleep: Sleep | None = None


class Lifecycle(Struct, rename="camel"):
    """v1.Lifecycle."""

    pre_stop: Handler | None = None


class Container(Struct, rename="camel"):
    """v1.Container."""

    name: str = ""
    image: str = ""
    restart_policy: str | None = None
    resources: Resources | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None


class ReadinessGate(Struct, rename="camel"):
    """v1.PodReadinessGate."""

    condition_type: str = ""


class PodSpec(Struct, rename="camel"):
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


class PodStatus(Struct, rename={"pod_ip": "podIP"}):
    """v1.PodStatus."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[Condition] | None = None
    pod_ip: str = ""
    start_time: str | None = field(default=None, name="startTime")
    qos_class: str = field(default="", name="qosClass")
    init_container_statuses: list[ContainerStatus] | None = field(
        default=None, name="initContainerStatuses"
    )
    container_statuses: list[ContainerStatus] | None = field(default=None, name="containerStatuses")


class Pod(Struct):
    """v1.Pod."""

    metadata: Meta = field(default_factory=Meta)
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)

    @property
    def finished(self) -> bool:
        """Whether the pod has a terminal phase."""
        return self.status.phase in ("Succeeded", "Failed")

    def forget_details(self) -> None:
        """Drop the fields of the status that are read only once."""
        status = self.status
        status.conditions = status.init_container_statuses = status.container_statuses = None

    @property
    def reference(self) -> ObjectReference:
        """The involved object of events about the pod."""
        meta = self.metadata
        return ObjectReference("v1", "Pod", meta.namespace, meta.name, meta.uid)


class Address(Struct):
    """v1.NodeAddress."""

    type: str = ""
    address: str = ""


class NodeSpec(Struct, rename={"pod_cidr": "podCIDR"}):
    """v1.NodeSpec."""

    pod_cidr: str = ""


class NodeStatus(Struct):
    """v1.NodeStatus."""

    capacity: Amounts | None = None
    allocatable: Amounts | None = None
    addresses: list[Address] | None = None
    conditions: list[Condition] | None = None


class Node(Struct):
    """v1.Node."""

    metadata: Meta = field(default_factory=Meta)
    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)

    @property
    def reference(self) -> ObjectReference:
        """The involved object of events about the node: by its name, as kubelets do."""
        return ObjectReference("v1", "Node", "", self.metadata.name, self.metadata.name)


S = TypeVar("S", Pod, Node)


@dataclass(frozen=True, slots=True)
class Seen(Generic[S]):
    """An object with the fields that are read repeatedly, and its whole JSON."""

    object: S
    raw: bytes


def _seen(shape: type[S]) -> Callable[[Raw], Seen[S]]:
    decoder = Decoder(shape)

    def decode(raw: Raw) -> Seen[S]:
        whole = bytes(raw)
        try:
            return Seen(decoder.decode(whole), whole)
        except ValidationError:
            known = decode_partial(whole).metadata
            identity = (known.name, known.namespace, known.uid, known.resource_version)
            return Seen(shape(metadata=Meta(*identity)), whole)

    return decode


decode_pod: Callable[[Raw], Seen[Pod]] = _seen(Pod)
decode_node: Callable[[Raw], Seen[Node]] = _seen(Node)
