"""CSI migration: in-tree volumes as volumes of the CSI drivers that replace the in-tree plugins.

Kubernetes no longer attaches cloud disks itself. A volume of an in-tree plugin is translated, when
it is used, into a volume of the plugin's CSI driver. The translation assigns the handle by which
the driver counts the volume, and rewrites the zone in its node affinity to the driver's own label.

Sources: k8s.io/csi-translation-lib (translate.go, plugins/*), and isCSIMigrationOn in
pkg/scheduler/framework/plugins/nodevolumelimits/utils.go and volumebinding/binder.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from policies.kubernetes.releases import PortworxMigration, Release
from policies.kubernetes.selectors import Labels, NodeSelector, NodeSelectorTerm, Requirement
from policies.kubernetes.storage import CsiNode, CsiVolume, Disk, Migration

AWS_EBS = "kubernetes.io/aws-ebs"
GCE_PD = "kubernetes.io/gce-pd"
AZURE_DISK = "kubernetes.io/azure-disk"
CINDER = "kubernetes.io/cinder"
PORTWORX = "kubernetes.io/portworx-volume"
RBD = "kubernetes.io/rbd"
ISCSI = "kubernetes.io/iscsi"

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"

_SEPARATOR = "__"
"""The separator of zones in a volume's zone label."""

_NOT_TRANSLATED = frozenset({"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"})
"""Plugins that have a translation that the scheduler never uses."""


@dataclass(frozen=True, slots=True)
class MigrationTarget:
    """The CSI driver that replaces a plugin, and the driver's own zone label."""

    driver: str
    zone_label: str | None = None


_TARGETS = {
    AWS_EBS: MigrationTarget("ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"),
    GCE_PD: MigrationTarget("pd.csi.storage.gke.io", "topology.gke.io/zone"),
    CINDER: MigrationTarget("cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"),
    AZURE_DISK: MigrationTarget("disk.csi.azure.com"),
    PORTWORX: MigrationTarget("pxd.portworx.com"),
}

_EBS_ADDRESS = re.compile(r"aws://[^/]*/+(vol-[^/?#]*)/*(?:[?#].*)?")


def is_csi_migration_on(plugin: str, node: CsiNode | None, release: Release) -> bool:
    """Return whether ``node`` counts the plugin's volumes as its driver's (None: no CSINode)."""
    if node is None or plugin not in _TARGETS:
        return False
    if plugin != PORTWORX or release.portworx is PortworxMigration.ALWAYS:
        return True
    return release.portworx is PortworxMigration.ANNOTATED and plugin in node.migrated


def is_translated(plugin: str, node: CsiNode | None, release: Release) -> bool:
    """Return whether the plugin's volumes have the driver's node affinity on ``node``."""
    if node is None or plugin not in _TARGETS or plugin not in node.migrated:
        return False
    return plugin != PORTWORX or release.portworx is not PortworxMigration.OFF


def is_in_tree(plugin: str) -> bool:
    """Return whether ``plugin`` is an in-tree plugin that has a translation."""
    return plugin in _TARGETS or plugin in _NOT_TRANSLATED


def csi_driver_of(plugin: str) -> str:
    """Return the CSI driver that replaces a plugin that ``is_csi_migration_on`` may hold for."""
    return _TARGETS[plugin].driver


def translate_to_csi(disk: Disk, zones: str = "") -> CsiVolume | None:
    """Return the CSI volume of an in-tree disk, or None if it has none or its name is malformed.

    ``zones`` is the zone label of the persistent volume; the handle of a GCE disk depends on it.
    """
    if disk.plugin not in _TARGETS:
        return None
    handle: str | None = disk.identity
    if disk.plugin == AWS_EBS:
        handle = _ebs_handle(disk.identity)
    elif disk.plugin == GCE_PD:
        handle = _gce_handle(disk.identity, zones)
    elif disk.plugin == AZURE_DISK:
        handle = disk.identity or None  # an unmanaged disk has no identity
    return None if handle is None else CsiVolume(csi_driver_of(disk.plugin), handle)


def translate_volume(disk: Disk, labels: Labels, affinity: NodeSelector | None) -> Migration | None:
    """Translate the disk of a persistent volume; return None if its plugin has no CSI driver."""
    if disk.plugin not in _TARGETS:
        return None
    volume = translate_to_csi(disk, labels.get(BETA_ZONE) or labels.get(ZONE) or "")
    zone_label = _TARGETS[disk.plugin].zone_label
    if volume is not None and zone_label is not None:
        affinity = _affinity(affinity, labels, zone_label)
    return Migration(disk, volume, affinity)


def _ebs_handle(identity: str) -> str | None:
    """Return the volume ID of ``aws://zone/vol-…``; any other text is an ID already."""
    if not identity.startswith("aws://"):
        return identity
    address = _EBS_ADDRESS.fullmatch(identity)
    return None if address is None else address[1]


def _gce_handle(disk: str, label: str) -> str | None:
    zones = label.split(_SEPARATOR)
    if len(zones) == 1:
        return f"projects/UNSPECIFIED/zones/{zones[0] or 'UNSPECIFIED'}/disks/{disk}"
    parts = [zone.split("-") for zone in zones]
    regions = {"-".join(part[:2]) for part in parts}
    if len(regions) != 1 or any(len(part) != 3 for part in parts):
        return None
    return f"projects/UNSPECIFIED/regions/{regions.pop()}/disks/{disk}"


def _affinity(
    affinity: NodeSelector | None, labels: Labels, zone_label: str
) -> NodeSelector | None:
    """Replace the zone label by the label of the driver (translateTopologyFromInTreeToCSI)."""
    zone, region = _keys(affinity, labels)
    if affinity is not None and _asks_for(affinity, zone):
        affinity = _renamed(affinity, zone, zone_label)
    elif zone in labels:
        affinity = _with_zones(affinity, zone_label, labels[zone])
    if region == BETA_REGION and affinity is not None and _asks_for(affinity, region):
        affinity = _renamed(affinity, region, REGION)
    return affinity


def _keys(affinity: NodeSelector | None, labels: Labels) -> tuple[str, str]:
    """Return the zone and region label keys, GA or beta, that a volume uses."""
    terms = () if affinity is None else affinity.terms
    mentioned = {each.key for term in terms for each in term.labels}
    for known in (mentioned, labels):
        if ZONE in known:
            return ZONE, REGION
        if BETA_ZONE in known:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _asks_for(affinity: NodeSelector, key: str) -> bool:
    requirements = (each for term in affinity.terms for each in term.labels if each.key == key)
    return any(each.values for each in requirements)


def _renamed(affinity: NodeSelector, old: str, new: str) -> NodeSelector:
    def renamed(term: NodeSelectorTerm) -> NodeSelectorTerm:
        labels = (replace(each, key=new) if each.key == old else each for each in term.labels)
        return replace(term, labels=tuple(labels))

    return NodeSelector(tuple(map(renamed, affinity.terms)))


def _with_zones(affinity: NodeSelector | None, key: str, label: str) -> NodeSelector | None:
    zones = tuple(sorted({zone.strip() for zone in label.split(_SEPARATOR)} - {""}))
    if not zones:
        return affinity
    terms = affinity.terms if affinity is not None and affinity.terms else (NodeSelectorTerm(),)
    required = Requirement(key, "In", zones)
    return NodeSelector(tuple(replace(each, labels=(*each.labels, required)) for each in terms))
