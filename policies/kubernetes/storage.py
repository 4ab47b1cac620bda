"""The objects that the volume and device filters read: a pod's volumes and what they refer to.

A pod names a *claim*; a bound claim names a *volume*; the volume states on which nodes it is
accessible, which CSI driver attaches it, and under which handle. A *CSI node* states which drivers
run on a node and how many volumes each may attach there. A *storage class* and a *CSI storage
capacity* state where a driver can provision new volumes. A *resource claim* is the same for
devices (see policies.kubernetes.devices): once it is allocated, its allocation states on which
nodes the devices can be used.

``Storage`` holds all of these at one moment. Objects that a server does not serve, or that cannot
be decoded, are unknown, which is not the same as absent: a filter that needs such an object does
not evaluate the pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from policies.kubernetes.devices import (
    AllocatedDevice,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceTaintRule,
    ResourceSlice,
)
from policies.kubernetes.selectors import Labels, LabelSelector, NodeSelector

T = TypeVar("T")


class ClaimVolume(NamedTuple):
    """A volume of the PersistentVolumeClaim ``claim``; ``ephemeral``: created for the pod."""

    claim: str
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Disk:
    """A volume of an in-tree plugin: ``plugin`` is its name, such as ``kubernetes.io/gce-pd``.

    ``identity`` identifies the volume within the plugin. ``monitors`` are those of an RBD image:
    two images that share a monitor are the same. ``name`` is that of an Azure disk.
    """

    plugin: str
    identity: str
    read_only: bool = False
    monitors: frozenset[str] = frozenset()
    name: str = ""


class DeviceClaim(NamedTuple):
    """A pod's reference to the ResourceClaim ``claim``; None until that is created.

    ``reference`` is its name within the pod; ``templated``: the claim is created for the pod from a
    template.
    """

    reference: str
    claim: str | None
    templated: bool = False


@dataclass(frozen=True, slots=True)
class PodStorage:
    """The volumes of a pod that filters read, in the order of its spec, and its device claims."""

    volumes: tuple[ClaimVolume | Disk, ...] = ()
    devices: tuple[DeviceClaim, ...] = ()

    @property
    def claims(self) -> tuple[ClaimVolume, ...]:
        """The volumes that refer to claims."""
        return tuple(each for each in self.volumes if isinstance(each, ClaimVolume))

    @property
    def non_ephemeral_claims(self) -> tuple[str, ...]:
        """The names of the claims, without those that were created for the pod alone."""
        return tuple(each.claim for each in self.claims if not each.ephemeral)

    @property
    def disks(self) -> tuple[Disk, ...]:
        """The volumes that the pod spec describes itself."""
        return tuple(each for each in self.volumes if isinstance(each, Disk))


NO_POD_STORAGE = PodStorage()


class CsiVolume(NamedTuple):
    """A volume as its driver identifies it; two with the same handle are the same volume."""

    driver: str
    handle: str


FILESYSTEM = "Filesystem"
"""The default volume mode."""


class ClaimReference(NamedTuple):
    """The claim that a volume is bound to, or kept for; an empty ``uid`` matches any."""

    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class PersistentVolumeClaim:
    """A claim. ``volume`` is the volume that it names ("" for none).

    ``bound``: the binding is complete; ``lost``: the volume no longer exists. ``owner`` is the UID
    of the object that controls the claim. ``request`` is the requested size in bytes, rounded up (0
    for none). ``selected_node`` is the node that kube-scheduler has selected to provision a volume.
    """

    namespace: str
    name: str
    volume: str = ""
    storage_class: str = ""
    bound: bool = False
    lost: bool = False
    deleting: bool = False
    owner: str = ""
    uid: str = ""
    request: int = 0
    access_modes: frozenset[str] = frozenset()
    volume_mode: str = FILESYSTEM
    attributes_class: str = ""
    selector: LabelSelector | None = None
    selected_node: str | None = None

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def read_write_once_pod(self) -> bool:
        """Whether only one pod may use the claim."""
        return "ReadWriteOncePod" in self.access_modes


@dataclass(frozen=True, slots=True)
class Migration:
    """An in-tree volume translated to CSI; ``volume`` is None if it cannot be translated."""

    disk: Disk
    volume: CsiVolume | None
    affinity: NodeSelector | None


@dataclass(frozen=True, slots=True)
class PersistentVolume:
    """A volume: the nodes it is accessible from (None: all), and its zones and regions by label.

    ``csi`` is set for a volume of a CSI driver, ``migration`` for an in-tree one with a CSI driver.
    ``available``: its phase is Available. ``claim`` is the claim that it is bound to or kept for.
    ``capacity`` is in bytes, rounded up.
    """

    name: str
    affinity: NodeSelector | None = None
    topology: tuple[tuple[str, frozenset[str]], ...] = ()
    csi: CsiVolume | None = None
    migration: Migration | None = None
    available: bool = False
    deleting: bool = False
    claim: ClaimReference | None = None
    storage_class: str = ""
    capacity: int = 0
    access_modes: frozenset[str] = frozenset()
    volume_mode: str = FILESYSTEM
    attributes_class: str = ""
    labels: Labels = field(default_factory=dict)

    def is_bound_to(self, claim: PersistentVolumeClaim) -> bool:
        """Return whether the volume is bound to ``claim``, or kept for it.

        Source: IsVolumeBoundToClaim in k8s.io/component-helpers/storage/volume/pv_helpers.go.
        """
        found = self.claim
        if found is None or (found.namespace, found.name) != (claim.namespace, claim.name):
            return False
        return found.uid in ("", claim.uid)


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A storage class.

    ``waits_for_first_consumer``: volumeBindingMode is WaitForFirstConsumer. ``topologies`` are the
    nodes that new volumes are allowed for (None: all).
    """

    name: str
    provisioner: str = ""
    waits_for_first_consumer: bool = False
    topologies: NodeSelector | None = None


@dataclass(frozen=True, slots=True)
class CsiNode:
    """The drivers of a node, the volume limit of each, and the plugins migrated there."""

    name: str
    drivers: frozenset[str] = frozenset()
    limits: Mapping[str, int] = field(default_factory=dict)
    migrated: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CsiDriver:
    """A driver; ``required``: pods with its volumes must not run on nodes without it.

    ``storage_capacity``: CSIStorageCapacities state where it has room for new volumes.
    """

    name: str
    required: bool = False
    storage_capacity: bool = False


@dataclass(frozen=True, slots=True)
class CsiStorageCapacity:
    """The room for new volumes of a class on ``nodes`` (None: on no node).

    ``largest`` is the size of the largest possible volume in bytes, rounded up (None: unknown).
    """

    namespace: str
    name: str
    storage_class: str
    nodes: LabelSelector | None = None
    largest: int | None = None

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class VolumeAttachment:
    """An attachment: ``driver`` has attached, or is to attach, a persistent volume to a node."""

    name: str
    node: str
    driver: str
    volume: str


@dataclass(frozen=True, slots=True)
class ResourceClaim:
    """A claim on devices. ``nodes`` are those where its allocation can be used (None: all).

    ``requests`` and ``constraints`` are those of its spec, ``results`` its allocated devices.
    ``conditional``: the allocated devices have conditions to meet before pods are bound;
    ``reserved_for`` are the UIDs of the pods that may use them; ``used_by_others``: it is also
    reserved for objects that are no pods. ``extended``: kube-scheduler has created the claim for
    the extended resources of its owner.
    """

    namespace: str
    name: str
    owner: str = ""
    deleting: bool = False
    allocated: bool = False
    nodes: NodeSelector | None = None
    conditional: bool = False
    reserved_for: frozenset[str] = frozenset()
    used_by_others: bool = False
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    results: tuple[AllocatedDevice, ...] = ()
    extended: bool = False

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class StorageKind(StrEnum):
    """A kind of object in the storage, by its plural name in the API."""

    CLAIMS = "persistentvolumeclaims"
    VOLUMES = "persistentvolumes"
    CLASSES = "storageclasses"
    CSI_NODES = "csinodes"
    DRIVERS = "csidrivers"
    CAPACITIES = "csistoragecapacities"
    ATTACHMENTS = "volumeattachments"
    DEVICES = "resourceclaims"
    SLICES = "resourceslices"
    DEVICE_CLASSES = "deviceclasses"
    TAINT_RULES = "devicetaintrules"


class UnreadableObject(NamedTuple):
    """An object that exists and cannot be decoded."""

    kind: StorageKind
    key: str


@dataclass(frozen=True, slots=True)
class Storage:
    """The objects behind pods' volumes and devices, by name or by ``namespace/name``.

    ``attachments`` are by node. ``unknown`` are the kinds that could not be read at all.
    """

    claims: Mapping[str, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: Mapping[str, PersistentVolume] = field(default_factory=dict)
    classes: Mapping[str, StorageClass] = field(default_factory=dict)
    csi_nodes: Mapping[str, CsiNode] = field(default_factory=dict)
    drivers: Mapping[str, CsiDriver] = field(default_factory=dict)
    capacities: Mapping[str, CsiStorageCapacity] = field(default_factory=dict)
    attachments: Mapping[str, tuple[VolumeAttachment, ...]] = field(default_factory=dict)
    devices: Mapping[str, ResourceClaim] = field(default_factory=dict)
    slices: Mapping[str, ResourceSlice] = field(default_factory=dict)
    device_classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    taint_rules: Mapping[str, DeviceTaintRule] = field(default_factory=dict)
    unknown: frozenset[StorageKind] = frozenset()
    unreadable: frozenset[UnreadableObject] = frozenset()

    def knows(self, kind: StorageKind, key: str) -> bool:
        """Return whether the absence of the object means that it does not exist."""
        return kind not in self.unknown and UnreadableObject(kind, key) not in self.unreadable

    def knows_all(self, kind: StorageKind) -> bool:
        """Return whether every object of a kind is known."""
        return kind not in self.unknown and all(each.kind is not kind for each in self.unreadable)

    def knows_claim(self, key: str) -> bool:
        """Return whether a claim, and the volume or else the class that it refers to, are known."""
        claim = self.claims.get(key)
        if claim is None:
            return self.knows(StorageKind.CLAIMS, key)
        if claim.volume:
            return self.knows(StorageKind.VOLUMES, claim.volume)
        return not claim.storage_class or self.knows(StorageKind.CLASSES, claim.storage_class)


NO_STORAGE = Storage()


class Same(Generic[T]):
    """A cache key that compares a mapping by identity: a mapping of the storage never changes."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value
