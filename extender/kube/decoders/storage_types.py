"""Types of the storage and resource kinds with the fields that are read, for partial decoding."""

from __future__ import annotations

from msgspec import Struct

from extender.kube.decoders import core_v1_types
from extender.kube.decoders.in_tree_volumes import InTreeVolumeSources


class StorageMetaV1(core_v1_types.ObjectMetaV1):
    """metadata, with the annotations of a claim's class, binding and selected node."""

    annotations: dict[str, str] | None = None


class VolumeResourceRequirementsV1(Struct):
    requests: core_v1_types.ResourceList | None = None


class PersistentVolumeClaimSpecV1(Struct):
    accessModes: list[str] | None = None
    resources: VolumeResourceRequirementsV1 | None = None
    selector: core_v1_types.LabelSelectorV1 | None = None
    storageClassName: str | None = None
    volumeAttributesClassName: str | None = None
    volumeMode: str | None = None
    volumeName: str | None = None


class PersistentVolumeClaimStatusV1(Struct):
    phase: str | None = None


class PersistentVolumeClaimV1(Struct):
    metadata: StorageMetaV1
    spec: PersistentVolumeClaimSpecV1 | None = None
    status: PersistentVolumeClaimStatusV1 | None = None


class CsiVolumeSourceV1(Struct):
    """v1.CSIPersistentVolumeSource."""

    driver: str = ""
    volumeHandle: str = ""


class VolumeNodeAffinityV1(Struct):
    required: core_v1_types.NodeSelectorV1 | None = None


class ClaimReferenceV1(Struct):
    """v1.ObjectReference, of a claim."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class PersistentVolumeSpecV1(InTreeVolumeSources):
    accessModes: list[str] | None = None
    capacity: core_v1_types.ResourceList | None = None
    claimRef: ClaimReferenceV1 | None = None
    csi: CsiVolumeSourceV1 | None = None
    nodeAffinity: VolumeNodeAffinityV1 | None = None
    storageClassName: str | None = None
    volumeAttributesClassName: str | None = None
    volumeMode: str | None = None


class PersistentVolumeStatusV1(Struct):
    phase: str | None = None


class PersistentVolumeV1(Struct):
    metadata: StorageMetaV1
    spec: PersistentVolumeSpecV1 | None = None
    status: PersistentVolumeStatusV1 | None = None


class TopologySelectorLabelRequirementV1(Struct):
    key: str = ""
    values: list[str] | None = None


class TopologySelectorTermV1(Struct):
    matchLabelExpressions: list[TopologySelectorLabelRequirementV1] | None = None


class StorageClassV1(Struct):
    metadata: StorageMetaV1
    allowedTopologies: list[TopologySelectorTermV1] | None = None
    provisioner: str = ""
    volumeBindingMode: str | None = None


class VolumeNodeResourcesV1(Struct):
    count: int | None = None


class CsiNodeDriverV1(Struct):
    name: str = ""
    allocatable: VolumeNodeResourcesV1 | None = None


class CsiNodeSpecV1(Struct):
    drivers: list[CsiNodeDriverV1] | None = None


class CsiNodeV1(Struct):
    metadata: StorageMetaV1
    spec: CsiNodeSpecV1 | None = None


class CsiDriverSpecV1(Struct):
    preventPodSchedulingIfMissing: bool | None = None
    storageCapacity: bool | None = None


class CsiDriverV1(Struct):
    metadata: StorageMetaV1
    spec: CsiDriverSpecV1 | None = None


class CsiStorageCapacityV1(Struct):
    metadata: StorageMetaV1
    capacity: core_v1_types.Quantity | None = None
    maximumVolumeSize: core_v1_types.Quantity | None = None
    nodeTopology: core_v1_types.LabelSelectorV1 | None = None
    storageClassName: str = ""


class VolumeAttachmentSourceV1(Struct):
    persistentVolumeName: str | None = None


class VolumeAttachmentSpecV1(Struct):
    attacher: str = ""
    nodeName: str = ""
    source: VolumeAttachmentSourceV1 | None = None


class VolumeAttachmentV1(Struct):
    metadata: StorageMetaV1
    spec: VolumeAttachmentSpecV1 | None = None
