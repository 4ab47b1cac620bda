"""Builders of storage: the volumes, claims and drivers of a cluster from single objects."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from policies.kubernetes.devices import DeviceClass, DeviceTaintRule, ResourceSlice
from policies.kubernetes.storage import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    ResourceClaim,
    Storage,
    StorageClass,
    StorageKind,
    VolumeAttachment,
)

StorageObject = (
    PersistentVolumeClaim
    | PersistentVolume
    | StorageClass
    | CsiNode
    | CsiDriver
    | CsiStorageCapacity
    | VolumeAttachment
    | ResourceClaim
    | ResourceSlice
    | DeviceClass
    | DeviceTaintRule
)


def build_storage(
    objects: Iterable[StorageObject], unknown: Collection[StorageKind] = ()
) -> Storage:
    """Build a storage from single objects, in any order."""
    items = tuple(objects)
    return Storage(
        claims={each.key: each for each in items if isinstance(each, PersistentVolumeClaim)},
        volumes={each.name: each for each in items if isinstance(each, PersistentVolume)},
        classes={each.name: each for each in items if isinstance(each, StorageClass)},
        csi_nodes={each.name: each for each in items if isinstance(each, CsiNode)},
        drivers={each.name: each for each in items if isinstance(each, CsiDriver)},
        capacities={each.key: each for each in items if isinstance(each, CsiStorageCapacity)},
        attachments=attachments_by_node(
            each for each in items if isinstance(each, VolumeAttachment)
        ),
        devices={each.key: each for each in items if isinstance(each, ResourceClaim)},
        slices={each.name: each for each in items if isinstance(each, ResourceSlice)},
        device_classes={each.name: each for each in items if isinstance(each, DeviceClass)},
        taint_rules={each.name: each for each in items if isinstance(each, DeviceTaintRule)},
        unknown=frozenset(unknown),
    )


def attachments_by_node(
    attachments: Iterable[VolumeAttachment],
) -> Mapping[str, tuple[VolumeAttachment, ...]]:
    """Return the attachments by node."""
    found: dict[str, list[VolumeAttachment]] = {}
    for each in attachments:
        found.setdefault(each.node, []).append(each)
    return {node: tuple(each) for node, each in found.items()}
