"""Volumes, volume claims and resource claims, decoded to the decisions' model.

An annotation may name a claim's class, as older clients write it; it takes precedence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from extender.kube.decoders import storage_types as shapes
from extender.kube.decoders.in_tree_volumes import disks_of
from extender.kube.decoders.pods import node_selector
from extender.kube.decoders.typed_decoder import decode_object
from policies.kubernetes.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, translate_volume
from policies.kubernetes.selectors import Labels
from policies.kubernetes.storage import (
    CsiDriver,
    CsiNode,
    CsiVolume,
    PersistentVolume,
    PersistentVolumeClaim,
    ResourceClaim,
    StorageClass,
    VolumeAttachment,
)

_CLASS = "volume.beta.kubernetes.io/storage-class"
_BOUND = "pv.kubernetes.io/bind-completed"
_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
_TOPOLOGY = (BETA_ZONE, BETA_REGION, ZONE, REGION)


_claims = msgspec.json.Decoder(shapes.PersistentVolumeClaimV1)
_volumes = msgspec.json.Decoder(shapes.PersistentVolumeV1)
_classes = msgspec.json.Decoder(shapes.StorageClassV1)
_csi_nodes = msgspec.json.Decoder(shapes.CsiNodeV1)
_drivers = msgspec.json.Decoder(shapes.CsiDriverV1)
_attachments = msgspec.json.Decoder(shapes.VolumeAttachmentV1)
_device_claims = msgspec.json.Decoder(shapes.ResourceClaimV1)


def decode_claim(raw: bytes) -> PersistentVolumeClaim:
    """Decode a v1.PersistentVolumeClaim. Raise ObjectError."""
    return decode_object("PersistentVolumeClaim", _claims, raw, _claim)


def decode_volume(raw: bytes) -> PersistentVolume:
    """Decode a v1.PersistentVolume. Raise ObjectError."""
    return decode_object("PersistentVolume", _volumes, raw, _volume)


def decode_storage_class(raw: bytes) -> StorageClass:
    """Decode a storage.k8s.io/v1.StorageClass; the default mode is Immediate. Raise ObjectError."""
    return decode_object(
        "StorageClass",
        _classes,
        raw,
        lambda shape: StorageClass(
            shape.metadata.name,
            shape.provisioner,
            waits_for_first_consumer=shape.volumeBindingMode == "WaitForFirstConsumer",
        ),
    )


def decode_csi_node(raw: bytes) -> CsiNode:
    """Decode a storage.k8s.io/v1.CSINode. Raise ObjectError."""
    return decode_object("CSINode", _csi_nodes, raw, _csi_node)


def decode_csi_driver(raw: bytes) -> CsiDriver:
    """Decode a storage.k8s.io/v1.CSIDriver. Raise ObjectError."""
    return decode_object(
        "CSIDriver",
        _drivers,
        raw,
        lambda shape: CsiDriver(
            shape.metadata.name,
            required=bool((shape.spec or shapes.CsiDriverSpecV1()).preventPodSchedulingIfMissing),
        ),
    )


def decode_volume_attachment(raw: bytes) -> VolumeAttachment:
    """Decode a storage.k8s.io/v1.VolumeAttachment. Raise ObjectError."""
    return decode_object("VolumeAttachment", _attachments, raw, _attachment)


def decode_resource_claim(raw: bytes) -> ResourceClaim:
    """Decode a resource.k8s.io ResourceClaim. Raise ObjectError."""
    return decode_object("ResourceClaim", _device_claims, raw, _resource_claim)


def _claim(shape: shapes.PersistentVolumeClaimV1) -> PersistentVolumeClaim:
    meta, spec = shape.metadata, shape.spec or shapes.PersistentVolumeClaimSpecV1()
    notes = meta.annotations or {}
    return PersistentVolumeClaim(
        namespace=meta.namespace or "default",
        name=meta.name,
        volume=spec.volumeName or "",
        storage_class=notes.get(_CLASS, spec.storageClassName or ""),
        bound=_BOUND in notes,
        lost=(shape.status or shapes.PersistentVolumeClaimStatusV1()).phase == "Lost",
        deleting=meta.deletionTimestamp is not None,
        read_write_once_pod="ReadWriteOncePod" in (spec.accessModes or ()),
        owner=_controller(meta),
    )


def _volume(shape: shapes.PersistentVolumeV1) -> PersistentVolume:
    meta, spec = shape.metadata, shape.spec or shapes.PersistentVolumeSpecV1()
    labels: Mapping[str, str] = meta.labels or {}
    affinity = None
    if spec.nodeAffinity and spec.nodeAffinity.required:
        affinity = node_selector("spec.nodeAffinity.required", spec.nodeAffinity.required)
    csi = CsiVolume(spec.csi.driver, spec.csi.volumeHandle) if spec.csi else None
    disk = next(disks_of(spec), None)
    return PersistentVolume(
        name=meta.name,
        affinity=affinity,
        topology=tuple(_topology(labels)),
        csi=csi,
        migration=None if disk is None or csi else translate_volume(disk, labels, affinity),
    )


def _topology(labels: Labels) -> Iterator[tuple[str, frozenset[str]]]:
    """Return the values of each zone and region label; a label with an empty value is ignored."""
    for key in _TOPOLOGY:
        if key in labels:
            values = frozenset(value.strip() for value in labels[key].split("__"))
            if "" not in values:
                yield key, values


def _csi_node(shape: shapes.CsiNodeV1) -> CsiNode:
    drivers = (shape.spec or shapes.CsiNodeSpecV1()).drivers or ()
    migrated = (shape.metadata.annotations or {}).get(_MIGRATED, "")
    return CsiNode(
        name=shape.metadata.name,
        drivers=frozenset(driver.name for driver in drivers),
        limits={
            driver.name: driver.allocatable.count
            for driver in drivers
            if driver.allocatable and driver.allocatable.count is not None
        },
        migrated=frozenset(migrated.split(",")) - {""},
    )


def _attachment(shape: shapes.VolumeAttachmentV1) -> VolumeAttachment:
    spec = shape.spec or shapes.VolumeAttachmentSpecV1()
    source = spec.source or shapes.VolumeAttachmentSourceV1()
    return VolumeAttachment(
        shape.metadata.name, spec.nodeName, spec.attacher, source.persistentVolumeName or ""
    )


def _resource_claim(shape: shapes.ResourceClaimV1) -> ResourceClaim:
    meta, status = shape.metadata, shape.status or shapes.ResourceClaimStatusV1()
    allocation = status.allocation or shapes.AllocationResultV1()
    nodes = allocation.nodeSelector
    results = (allocation.devices or shapes.DeviceAllocationResultV1()).results or ()
    return ResourceClaim(
        namespace=meta.namespace or "default",
        name=meta.name,
        owner=_controller(meta),
        deleting=meta.deletionTimestamp is not None,
        allocated=status.allocation is not None,
        nodes=None if nodes is None else node_selector("status.allocation.nodeSelector", nodes),
        conditional=any(result.bindingConditions for result in results),
        reserved_for=frozenset(consumer.uid for consumer in status.reservedFor or ()),
    )


def _controller(meta: shapes.StorageMetaV1) -> str:
    owners = meta.ownerReferences or ()
    return next((owner.uid for owner in owners if owner.controller), "")
