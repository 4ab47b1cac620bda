"""Types of the storage and resource kinds with the fields that are read, for partial decoding."""

from __future__ import annotations

from msgspec import Struct

from extender.kube import shapes
from extender.kube.disks import DiskSources


class Meta(shapes.Meta):
    """metadata, with the annotations of a claim's class and binding."""

    annotations: dict[str, str] | None = None


class ClaimSpec(Struct):
    """v1.PersistentVolumeClaimSpec."""

    accessModes: list[str] | None = None  # noqa: N815 - the key as Kubernetes writes it
    storageClassName: str | None = None  # noqa: N815
    volumeName: str | None = None  # noqa: N815


class ClaimStatus(Struct):
    """v1.PersistentVolumeClaimStatus."""

    phase: str | None = None


class ClaimShape(Struct):
    """v1.PersistentVolumeClaim."""

    metadata: Meta
    spec: ClaimSpec | None = None
    status: ClaimStatus | None = None


class CsiSource(Struct):
    """v1.CSIPersistentVolumeSource."""

    driver: str = ""
    volumeHandle: str = ""  # noqa: N815


class VolumeAffinity(Struct):
    """v1.VolumeNodeAffinity."""

    required: shapes.RequiredTerms | None = None


class VolumeSpec(DiskSources):
    """v1.PersistentVolumeSpec."""

    csi: CsiSource | None = None
    nodeAffinity: VolumeAffinity | None = None  # noqa: N815


class VolumeShape(Struct):
    """v1.PersistentVolume."""

    metadata: Meta
    spec: VolumeSpec | None = None


class ClassShape(Struct):
    """storage.k8s.io/v1.StorageClass."""

    metadata: Meta
    provisioner: str = ""
    volumeBindingMode: str | None = None  # noqa: N815


class DriverLimit(Struct):
    """storage.k8s.io/v1.VolumeNodeResources."""

    count: int | None = None


class NodeDriver(Struct):
    """storage.k8s.io/v1.CSINodeDriver."""

    name: str = ""
    allocatable: DriverLimit | None = None


class CsiNodeSpec(Struct):
    """storage.k8s.io/v1.CSINodeSpec."""

    drivers: list[NodeDriver] | None = None


class CsiNodeShape(Struct):
    """storage.k8s.io/v1.CSINode."""

    metadata: Meta
    spec: CsiNodeSpec | None = None


class DriverSpec(Struct):
    """storage.k8s.io/v1.CSIDriverSpec."""

    preventPodSchedulingIfMissing: bool | None = None  # noqa: N815


class DriverShape(Struct):
    """storage.k8s.io/v1.CSIDriver."""

    metadata: Meta
    spec: DriverSpec | None = None


class AttachmentSource(Struct):
    """storage.k8s.io/v1.VolumeAttachmentSource."""

    persistentVolumeName: str | None = None  # noqa: N815


class AttachmentSpec(Struct):
    """storage.k8s.io/v1.VolumeAttachmentSpec."""

    attacher: str = ""
    nodeName: str = ""  # noqa: N815
    source: AttachmentSource | None = None


class AttachmentShape(Struct):
    """storage.k8s.io/v1.VolumeAttachment."""

    metadata: Meta
    spec: AttachmentSpec | None = None


class AllocatedDevice(Struct):
    """resource.k8s.io/v1.DeviceRequestAllocationResult."""

    bindingConditions: list[str] | None = None  # noqa: N815


class AllocatedDevices(Struct):
    """resource.k8s.io/v1.DeviceAllocationResult."""

    results: list[AllocatedDevice] | None = None


class Allocation(Struct):
    """resource.k8s.io/v1.AllocationResult."""

    devices: AllocatedDevices | None = None
    nodeSelector: shapes.RequiredTerms | None = None  # noqa: N815


class Consumer(Struct):
    """resource.k8s.io/v1.ResourceClaimConsumerReference."""

    uid: str = ""


class DeviceClaimStatus(Struct):
    """resource.k8s.io/v1.ResourceClaimStatus."""

    allocation: Allocation | None = None
    reservedFor: list[Consumer] | None = None  # noqa: N815


class DeviceClaimShape(Struct):
    """resource.k8s.io/v1.ResourceClaim; its older versions have the same keys."""

    metadata: Meta
    status: DeviceClaimStatus | None = None
