"""In-tree volume sources, which a pod's volume and a PersistentVolume write alike.

Defaults are the API server's. A volume that has no CSI translation (an unmanaged Azure disk) has no
identity.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from policies.kubernetes.csi_migration import (
    AWS_EBS,
    AZURE_DISK,
    CINDER,
    GCE_PD,
    ISCSI,
    PORTWORX,
    RBD,
)
from policies.kubernetes.storage import Disk


class GceDisk(Struct):
    """v1.GCEPersistentDiskVolumeSource."""

    pdName: str = ""
    readOnly: bool | None = None


class CloudVolume(Struct):
    """The sources that name a volume by its ID: EBS, Cinder, Portworx."""

    volumeID: str = ""
    readOnly: bool | None = None


class AzureDisk(Struct):
    """v1.AzureDiskVolumeSource."""

    diskName: str = ""
    diskURI: str = ""
    kind: str | None = None
    readOnly: bool | None = None


class IscsiVolume(Struct):
    """v1.ISCSIVolumeSource."""

    iqn: str = ""
    readOnly: bool | None = None


class RbdImage(Struct):
    """v1.RBDVolumeSource."""

    monitors: list[str] | None = None
    pool: str | None = None
    image: str = ""
    readOnly: bool | None = None


class InTreeVolumeSources(Struct):
    """The fields of v1.VolumeSource and v1.PersistentVolumeSource that filter plugins read."""

    gcePersistentDisk: GceDisk | None = None
    awsElasticBlockStore: CloudVolume | None = None
    azureDisk: AzureDisk | None = None
    cinder: CloudVolume | None = None
    portworxVolume: CloudVolume | None = None
    iscsi: IscsiVolume | None = None
    rbd: RbdImage | None = None


def disks_of(sources: InTreeVolumeSources) -> Iterator[Disk]:
    """Return the in-tree volume of the sources, if there is one; no object has two."""
    if sources.gcePersistentDisk:
        gce = sources.gcePersistentDisk
        yield Disk(GCE_PD, gce.pdName, bool(gce.readOnly))
    if sources.azureDisk:
        azure = sources.azureDisk
        managed = azure.kind is None or azure.kind.lower() == "managed"
        identity = azure.diskURI if managed else ""
        yield Disk(AZURE_DISK, identity, bool(azure.readOnly), name=azure.diskName)
    if sources.iscsi:
        yield Disk(ISCSI, sources.iscsi.iqn, bool(sources.iscsi.readOnly))
    if sources.rbd:
        rbd = sources.rbd
        identity = f"{rbd.pool or 'rbd'}/{rbd.image}"
        yield Disk(RBD, identity, bool(rbd.readOnly), frozenset(rbd.monitors or ()))
    named = (
        (AWS_EBS, sources.awsElasticBlockStore),
        (CINDER, sources.cinder),
        (PORTWORX, sources.portworxVolume),
    )
    for plugin, volume in named:
        if volume:
            yield Disk(plugin, volume.volumeID, bool(volume.readOnly))
