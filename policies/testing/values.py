"""Builders of the values that decisions read.

Amounts are Kubernetes quantities; resources beyond cpu, memory and storage go into ``others``. A
pod's UID is its name unless a test says otherwise, and times are whole seconds after the epoch
(``started=7``), since only their order matters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from policies.kubernetes.default_selector import PodSelectingObject
from policies.kubernetes.pod_groups import DisruptionMode, PodGroup, PodGroups
from policies.kubernetes.pod_requests import (
    ContainerRequests,
    PodResources,
    as_resources,
    extended_requests,
)
from policies.kubernetes.quantity import parse_quantity
from policies.kubernetes.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Taint,
    Toleration,
    equals_all,
    field_requirement,
)
from policies.kubernetes.snapshot import (
    DisruptionBudget,
    HostPort,
    Node,
    NodeState,
    Pod,
    Resources,
    Snapshot,
    assemble,
    build_node_state,
)
from policies.kubernetes.storage import (
    NO_POD_STORAGE,
    ClaimVolume,
    CsiDriver,
    CsiVolume,
    DeviceClaim,
    Disk,
    PersistentVolume,
    PersistentVolumeClaim,
    PodStorage,
    StorageClass,
    StorageKind,
)
from policies.preemption.filtering.status import Rejection
from policies.testing.storage import StorageObject, build_storage

SECOND = 10**9
NO_LABELS: Mapping[str, str] = {}


def amounts(
    cpu: str = "0", memory: str = "0", storage: str = "0", others: Mapping[str, str] = NO_LABELS
) -> Resources:
    """Return the model's resources from quantities."""
    listed = {"cpu": cpu, "memory": memory, "ephemeral-storage": storage, **others}
    return as_resources({name: parse_quantity(text) for name, text in listed.items()})


def pod(
    name: str = "pod",
    *,
    on: str | None = None,
    cpu: str = "0",
    memory: str = "0",
    storage: str = "0",
    others: Mapping[str, str] = NO_LABELS,
    ports: Iterable[str | int] = (),
    started: int | None = None,
    uid: str | None = None,
    namespace: str = "default",
    volumes: Iterable[str | ClaimVolume | Disk] = (),
    devices: Iterable[DeviceClaim] = (),
    **fields: Any,
) -> Pod:
    """Build a pod bound to node ``on``, or pending; ``fields`` are those of Pod.

    A volume that is a name is that of a claim.
    """
    mounted = tuple(ClaimVolume(each) if isinstance(each, str) else each for each in volumes)
    behind = PodStorage(mounted, tuple(devices))
    listed = {each: parse_quantity(amount) for each, amount in others.items()}
    return Pod(
        namespace=namespace,
        name=name,
        uid=name if uid is None else uid,
        node_name=on,
        started_ns=None if started is None else started * SECOND,
        requests=amounts(cpu, memory, storage, others),
        extended_requests=extended_requests(PodResources((ContainerRequests(listed),))),
        host_ports=frozenset(host_port(each) for each in ports),
        storage=behind if behind != NO_POD_STORAGE else None,
        **fields,
    )


def node(
    name: str = "node-1",
    *,
    cpu: str = "100",
    memory: str = "1Ti",
    storage: str = "1Ti",
    others: Mapping[str, str] = NO_LABELS,
    pods: int = 110,
    taints: Iterable[str] = (),
    **fields: Any,
) -> Node:
    """Build a node with ample room; ``taints`` are written ``key=value:Effect``."""
    return Node(
        name=name,
        taints=tuple(taint(text) for text in taints),
        allocatable=amounts(cpu, memory, storage, others),
        allowed_pods=pods,
        **fields,
    )


def budget(
    name: str = "budget",
    *,
    match: Mapping[str, str] | None = None,
    allowed: int = 0,
    namespace: str = "default",
    disrupted: Iterable[str] = (),
) -> DisruptionBudget:
    """Build a budget for pods labelled ``match``; None is an absent selector, {} an empty one."""
    selector = None if match is None else LabelSelector(equals_all(match))
    return DisruptionBudget(namespace, name, selector, allowed, frozenset(disrupted))


def claim(
    name: str = "data", volume: str = "", *, namespace: str = "default", **fields: Any
) -> PersistentVolumeClaim:
    """Build a claim, bound to ``volume`` if there is one."""
    return PersistentVolumeClaim(namespace, name, volume, **{"bound": bool(volume), **fields})


def volume(
    name: str, handle: str = "", driver: str = "csi.example.com", **fields: Any
) -> PersistentVolume:
    """Build a volume, of a CSI driver if it has a handle."""
    return PersistentVolume(name, csi=CsiVolume(driver, handle) if handle else None, **fields)


LATE = StorageClass("late", "csi.example.com", waits_for_first_consumer=True)
"""A class whose volumes are bound only when a pod that needs one is scheduled."""


MEASURED = CsiDriver("csi.example.com", storage_capacity=True)
"""The driver of the class, if it reports its capacities; they are often unknown in tests."""


def late_claim(name: str = "data", **fields: Any) -> PersistentVolumeClaim:
    """Build a claim that waits for its first pod."""
    return claim(name, **{"storage_class": LATE.name, **fields})


def snapshot(
    *things: Node | Pod | DisruptionBudget | StorageObject,
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
    unknown: Collection[StorageKind] = (),
    workloads: Iterable[PodSelectingObject] = (),
    groups: Iterable[PodGroup] = (),
    composites: Iterable[PodGroup] = (),
) -> Snapshot:
    """Put nodes, pods, budgets, claims and volumes, in any order, into a snapshot."""
    whole = assemble(
        nodes=[thing for thing in things if isinstance(thing, Node)],
        pods=[thing for thing in things if isinstance(thing, Pod)],
        budgets=[thing for thing in things if isinstance(thing, DisruptionBudget)],
        namespaces=namespaces,
        storage=build_storage(
            (thing for thing in things if isinstance(thing, StorageObject)), unknown
        ),
        workloads=workloads,
    )
    return replace(
        whole,
        pod_groups=PodGroups(
            {each.key: each for each in groups}, {each.key: each for each in composites}
        ),
    )


def pod_group(name: str = "group", mode: str = "all", **fields: Any) -> PodGroup:
    """Build a PodGroup or CompositePodGroup; ``fields`` are those of PodGroup."""
    return PodGroup(**{"namespace": "default", **fields}, name=name, mode=DisruptionMode(mode))


def workload(
    kind: str, name: str, match: Mapping[str, str] | None, namespace: str = "default"
) -> PodSelectingObject:
    """Build a Service or a controller for pods labelled ``match``; None selects none."""
    selector = None if match is None else LabelSelector(equals_all(match))
    return PodSelectingObject(kind, namespace, name, selector)


def holding(
    on: Node, *pods: Pod, nominated: Iterable[Pod] = (), unreadable: Iterable[str] = ()
) -> NodeState:
    """Return the node ``on`` with ``pods`` on it, whatever node they name themselves."""
    return build_node_state(on, pods, nominated, unreadable)


def without_causes(rejection: Rejection | None) -> Rejection | None:
    """Return a rejection without the details that its phrases leave out."""
    if rejection is None:
        return None
    bare = (
        each if "{0}" in each.code.value else replace(each, detail="") for each in rejection.reasons
    )
    return replace(rejection, reasons=tuple(bare))


def host_port(text: str | int) -> HostPort:
    """Read ``8080``, ``UDP:53`` or ``127.0.0.1:TCP:8080``; the defaults are 0.0.0.0 and TCP."""
    address, protocol, port = ("", "", *str(text).split(":"))[-3:]
    return HostPort(address or "0.0.0.0", protocol or "TCP", int(port))  # noqa: S104 - no bind


def taint(text: str) -> Taint:
    """Read ``key=value:Effect`` or ``key:Effect``."""
    mark, _, effect = text.rpartition(":")
    key, _, value = mark.partition("=")
    return Taint(key, value, effect)


def on_nodes(*names: str) -> NodeSelector:
    """Build a node affinity for nodes by their names."""
    return NodeSelector(
        tuple(
            NodeSelectorTerm(fields=(field_requirement("metadata.name", "In", [name]),))
            for name in names
        )
    )


def toleration(key: str = "", operator: str = "", value: str = "", effect: str = "") -> Toleration:
    """Build a toleration; what is left empty stands for any, as in Kubernetes."""
    return Toleration(key, operator, value, effect)
