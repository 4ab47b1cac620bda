"""Volumes, volume claims, resource claims and CSI objects, decoded to the decisions' model.

An annotation may name a claim's class, as older clients write it; it takes precedence. Every
decoder raises ObjectError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from extender.kube.decoders import storage_types as shapes
from extender.kube.decoders.in_tree_volumes import disks_of
from extender.kube.decoders.pod_specs import node_selector
from extender.kube.decoders.typed_decoder import (
    amounts_of,
    label_selector_of,
    nanos_of,
    object_decoder,
)
from policies.kubernetes.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, translate_volume
from policies.kubernetes.quantity import units
from policies.kubernetes.selectors import (
    Labels,
    NodeSelector,
    NodeSelectorTerm,
    SelectorError,
    label_requirement,
)
from policies.kubernetes.storage import (
    FILESYSTEM,
    ClaimReference,
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    CsiVolume,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

_CLASS = "volume.beta.kubernetes.io/storage-class"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_BOUND = "pv.kubernetes.io/bind-completed"
_MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
_TOPOLOGY = (BETA_ZONE, BETA_REGION, ZONE, REGION)


def _claim(shape: shapes.PersistentVolumeClaimV1) -> PersistentVolumeClaim:
    meta, spec = shape.metadata, shape.spec or shapes.PersistentVolumeClaimSpecV1()
    annotations = meta.annotations or {}
    requests = (spec.resources or shapes.VolumeResourceRequirementsV1()).requests
    return PersistentVolumeClaim(
        namespace=meta.namespace or "default",
        name=meta.name,
        volume=spec.volumeName or "",
        storage_class=annotations.get(_CLASS, spec.storageClassName or ""),
        bound=_BOUND in annotations,
        lost=(shape.status or shapes.PersistentVolumeClaimStatusV1()).phase == "Lost",
        deleting=meta.deletionTimestamp is not None,
        owner=controller_uid(meta),
        uid=meta.uid or "",
        request=units(amounts_of("spec.resources.requests", requests).get("storage", 0)),
        access_modes=frozenset(spec.accessModes or ()),
        volume_mode=spec.volumeMode or FILESYSTEM,
        attributes_class=spec.volumeAttributesClassName or "",
        selector=label_selector_of("spec.selector", spec.selector),
        selected_node=annotations.get(_SELECTED_NODE),
    )


def _volume(shape: shapes.PersistentVolumeV1) -> PersistentVolume:
    meta, spec = shape.metadata, shape.spec or shapes.PersistentVolumeSpecV1()
    labels: Mapping[str, str] = meta.labels or {}
    affinity = None
    if spec.nodeAffinity and spec.nodeAffinity.required:
        affinity = node_selector("spec.nodeAffinity.required", spec.nodeAffinity.required)
    csi = CsiVolume(spec.csi.driver, spec.csi.volumeHandle) if spec.csi else None
    disk, ref = next(disks_of(spec), None), spec.claimRef
    return PersistentVolume(
        name=meta.name,
        affinity=affinity,
        topology=tuple(_topology(labels)),
        csi=csi,
        migration=None if disk is None or csi else translate_volume(disk, labels, affinity),
        available=(shape.status or shapes.PersistentVolumeStatusV1()).phase == "Available",
        deleting=meta.deletionTimestamp is not None,
        claim=None if ref is None else ClaimReference(ref.namespace, ref.name, ref.uid),
        storage_class=(meta.annotations or {}).get(_CLASS, spec.storageClassName or ""),
        capacity=units(amounts_of("spec.capacity", spec.capacity).get("storage", 0)),
        access_modes=frozenset(spec.accessModes or ()),
        volume_mode=spec.volumeMode or FILESYSTEM,
        attributes_class=spec.volumeAttributesClassName or "",
        labels=labels,
    )


def _topology(labels: Labels) -> Iterator[tuple[str, frozenset[str]]]:
    """Return the values of each zone and region label; a label with an empty value is ignored."""
    for key in _TOPOLOGY:
        if key in labels:
            values = frozenset(value.strip() for value in labels[key].split("__"))
            if "" not in values:
                yield key, values


def _storage_class(shape: shapes.StorageClassV1) -> StorageClass:
    waits = shape.volumeBindingMode == "WaitForFirstConsumer"  # the default is Immediate
    topologies = _allowed_topologies(shape.allowedTopologies or ())
    return StorageClass(shape.metadata.name, shape.provisioner, waits, topologies)


def _allowed_topologies(terms: Iterable[shapes.TopologySelectorTermV1]) -> NodeSelector | None:
    """Compile allowedTopologies (None: no term, all nodes); an invalid term matches no node.

    Source: MatchTopologySelectorTerms in pkg/apis/core/v1/helper/helpers.go.
    """
    found: list[NodeSelectorTerm] = []
    for term in terms:
        expressions = term.matchLabelExpressions or ()
        try:
            labels = tuple(label_requirement(e.key, "In", e.values or ()) for e in expressions)
        except SelectorError:
            labels = ()
        found.append(NodeSelectorTerm(labels))
    return NodeSelector(tuple(found)) if found else None


def _csi_driver(shape: shapes.CsiDriverV1) -> CsiDriver:
    spec = shape.spec or shapes.CsiDriverSpecV1()
    return CsiDriver(
        shape.metadata.name,
        required=bool(spec.preventPodSchedulingIfMissing),
        storage_capacity=bool(spec.storageCapacity),
    )


def _storage_capacity(shape: shapes.CsiStorageCapacityV1) -> CsiStorageCapacity:
    meta, largest = shape.metadata, None
    if shape.maximumVolumeSize is not None:
        largest = units(nanos_of("maximumVolumeSize", shape.maximumVolumeSize))
    elif shape.capacity is not None:
        largest = units(nanos_of("capacity", shape.capacity))
    return CsiStorageCapacity(
        namespace=meta.namespace or "default",
        name=meta.name,
        storage_class=shape.storageClassName,
        nodes=label_selector_of("nodeTopology", shape.nodeTopology),
        largest=largest,
    )


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


def controller_uid(meta: shapes.StorageMetaV1) -> str:
    """Return the UID of the object that controls another, or ""."""
    owners = meta.ownerReferences or ()
    return next((owner.uid for owner in owners if owner.controller), "")


decode_claim = object_decoder("PersistentVolumeClaim", shapes.PersistentVolumeClaimV1, _claim)
decode_volume = object_decoder("PersistentVolume", shapes.PersistentVolumeV1, _volume)
decode_storage_class = object_decoder("StorageClass", shapes.StorageClassV1, _storage_class)
decode_csi_node = object_decoder("CSINode", shapes.CsiNodeV1, _csi_node)
decode_csi_driver = object_decoder("CSIDriver", shapes.CsiDriverV1, _csi_driver)
decode_storage_capacity = object_decoder(
    "CSIStorageCapacity", shapes.CsiStorageCapacityV1, _storage_capacity
)
decode_volume_attachment = object_decoder(
    "VolumeAttachment", shapes.VolumeAttachmentV1, _attachment
)
