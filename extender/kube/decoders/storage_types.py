"""Types of the storage and resource kinds with the fields that are read, for partial decoding."""

from __future__ import annotations

from msgspec import Struct

from extender.kube.decoders import core_v1_types
from extender.kube.decoders.in_tree_volumes import InTreeVolumeSources


class StorageMetaV1(core_v1_types.ObjectMetaV1):
    """metadata, with the annotations of a claim's class and binding."""

    annotations: dict[str, str] | None = None


class PersistentVolumeClaimSpecV1(Struct):
    """v1.PersistentVolumeClaimSpec."""

    accessModes: list[str] | None = None  # noqa: N815 - the key as Kubernetes writes it
    storageClassName: str | None = None  # noqa: N815
    volumeName: str | None = None  # noqa: N815


class PersistentVolumeClaimStatusV1(Struct):
    """v1.PersistentVolumeClaimStatus."""

    phase: str | None = None


class PersistentVolumeClaimV1(Struct):
    """v1.PersistentVolumeClaim."""

    metadata: StorageMetaV1
    spec: PersistentVolumeClaimSpecV1 | None = None
    status: PersistentVolumeClaimStatusV1 | None = None


class CsiVolumeSourceV1(Struct):
    """v1.CSIPersistentVolumeSource."""

    driver: str = ""
    volumeHandle: str = ""  # noqa: N815


class VolumeNodeAffinityV1(Struct):
    """v1.VolumeNodeAffinity."""

    required: core_v1_types.NodeSelectorV1 | None = None


class PersistentVolumeSpecV1(InTreeVolumeSources):
    """v1.PersistentVolumeSpec."""

    csi: CsiVolumeSourceV1 | None = None
    nodeAffinity: VolumeNodeAffinityV1 | None = None  # noqa: N815


class PersistentVolumeV1(Struct):
    """v1.PersistentVolume."""

    metadata: StorageMetaV1
    spec: PersistentVolumeSpecV1 | None = None


class StorageClassV1(Struct):
    """storage.k8s.io/v1.StorageClass."""

    metadata: StorageMetaV1
    provisioner: str = ""
    volumeBindingMode: str | None = None  # noqa: N815


class VolumeNodeResourcesV1(Struct):
    """storage.k8s.io/v1.VolumeNodeResources."""

    count: int | None = None


class CsiNodeDriverV1(Struct):
    """storage.k8s.io/v1.CSINodeDriver."""

    name: str = ""
    allocatable: VolumeNodeResourcesV1 | None = None


class CsiNodeSpecV1(Struct):
    """storage.k8s.io/v1.CSINodeSpec."""

    drivers: list[CsiNodeDriverV1] | None = None


class CsiNodeV1(Struct):
    """storage.k8s.io/v1.CSINode."""

    metadata: StorageMetaV1
    spec: CsiNodeSpecV1 | None = None


class CsiDriverSpecV1(Struct):
    """storage.k8s.io/v1.CSIDriverSpec."""

    preventPodSchedulingIfMissing: bool | None = None  # noqa: N815


class CsiDriverV1(Struct):
    """storage.k8s.io/v1.CSIDriver."""

    metadata: StorageMetaV1
    spec: CsiDriverSpecV1 | None = None


class VolumeAttachmentSourceV1(Struct):
    """storage.k8s.io/v1.VolumeAttachmentSource."""

    persistentVolumeName: str | None = None  # noqa: N815


class VolumeAttachmentSpecV1(Struct):
    """storage.k8s.io/v1.VolumeAttachmentSpec."""

    attacher: str = ""
    nodeName: str = ""  # noqa: N815
    source: VolumeAttachmentSourceV1 | None = None


class VolumeAttachmentV1(Struct):
    """storage.k8s.io/v1.VolumeAttachment."""

    metadata: StorageMetaV1
    spec: VolumeAttachmentSpecV1 | None = None


class DeviceRequestAllocationResultV1(Struct):
    """resource.k8s.io/v1.DeviceRequestAllocationResult."""

    bindingConditions: list[str] | None = None  # noqa: N815


class DeviceAllocationResultV1(Struct):
    """resource.k8s.io/v1.DeviceAllocationResult."""

    results: list[DeviceRequestAllocationResultV1] | None = None


class AllocationResultV1(Struct):
    """resource.k8s.io/v1.AllocationResult."""

    devices: DeviceAllocationResultV1 | None = None
    nodeSelector: core_v1_types.NodeSelectorV1 | None = None  # noqa: N815


class ResourceClaimConsumerV1(Struct):
    """resource.k8s.io/v1.ResourceClaimConsumerReference."""

    uid: str = ""


class ResourceClaimStatusV1(Struct):
    """resource.k8s.io/v1.ResourceClaimStatus."""

    allocation: AllocationResultV1 | None = None
    reservedFor: list[ResourceClaimConsumerV1] | None = None  # noqa: N815


class ResourceClaimV1(Struct):
    """resource.k8s.io/v1.ResourceClaim; its older versions have the same keys."""

    metadata: StorageMetaV1
    status: ResourceClaimStatusV1 | None = None
