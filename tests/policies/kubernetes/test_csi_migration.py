"""In-tree volumes as their drivers see them: handles, zones, and on which nodes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from policies.kubernetes.csi_migration import (
    AWS_EBS,
    AZURE_DISK,
    BETA_REGION,
    BETA_ZONE,
    CINDER,
    GCE_PD,
    ISCSI,
    PORTWORX,
    REGION,
    ZONE,
    is_csi_migration_on,
    is_in_tree,
    is_translated,
    translate_to_csi,
    translate_volume,
)
from policies.kubernetes.releases import NEWEST, RELEASES
from policies.kubernetes.selectors import NodeSelector, NodeSelectorTerm, Requirement
from policies.kubernetes.storage import CsiNode, CsiVolume, Disk

EBS_ZONE = "topology.ebs.csi.aws.com/zone"
EBS, GCE = "ebs.csi.aws.com", "pd.csi.storage.gke.io"
UNZONED = "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"


@pytest.mark.parametrize(
    ("disk", "zones", "expected"),
    [
        (Disk(AWS_EBS, "vol-1"), "", CsiVolume(EBS, "vol-1")),
        (Disk(AWS_EBS, "aws://us-east-1a/vol-1"), "", CsiVolume(EBS, "vol-1")),
        (Disk(AWS_EBS, "aws:///vol-1"), "", CsiVolume(EBS, "vol-1")),
        (Disk(AWS_EBS, "aws://us-east-1a/disk-1"), "", None),
        (Disk(AWS_EBS, "aws://vol-1"), "", None),
        (Disk(GCE_PD, "d"), "", CsiVolume(GCE, UNZONED)),
        (Disk(GCE_PD, "d"), "a", CsiVolume(GCE, "projects/UNSPECIFIED/zones/a/disks/d")),
        (
            Disk(GCE_PD, "d"),
            "us-west1-a__us-west1-b",
            CsiVolume(GCE, "projects/UNSPECIFIED/regions/us-west1/disks/d"),
        ),
        (Disk(GCE_PD, "d"), "us-west1-a__us-east1-b", None),
        (Disk(GCE_PD, "d"), "a__b", None),
        (Disk(AZURE_DISK, "/x"), "", CsiVolume("disk.csi.azure.com", "/x")),
        (Disk(AZURE_DISK, ""), "", None),
        (Disk(CINDER, "c"), "", CsiVolume("cinder.csi.openstack.org", "c")),
        (Disk(PORTWORX, "p"), "", CsiVolume("pxd.portworx.com", "p")),
        (Disk(ISCSI, "iqn"), "", None),
    ],
)
def test_handles(disk: Disk, zones: str, expected: CsiVolume | None) -> None:
    assert translate_to_csi(disk, zones) == expected


def within(**asked: str) -> NodeSelector:
    """Build a node affinity of one term that requires these labels."""
    keys = {"zone": ZONE, "beta": BETA_ZONE, "region": BETA_REGION, "new": REGION, "ebs": EBS_ZONE}
    requirements = tuple(Requirement(keys.get(key, key), "In", (it,)) for key, it in asked.items())
    return NodeSelector((NodeSelectorTerm(requirements),))


# As upstream's TestTranslateTopologyFromInTreeToCSI.
ZONES: dict[str, tuple[Mapping[str, str], NodeSelector | None, NodeSelector | None]] = {
    "no zone at all": ({}, None, None),
    "a zone in the affinity": ({}, within(zone="a"), within(ebs="a")),
    "an old one": ({}, within(beta="a"), within(ebs="a")),
    "an old region beside it": ({}, within(beta="a", region="r"), within(ebs="a", new="r")),
    "a label alone": ({ZONE: "a"}, None, within(ebs="a")),
    "an old label alone": ({BETA_ZONE: "a"}, None, within(ebs="a")),
    "the affinity goes before the label": ({ZONE: "b"}, within(zone="a"), within(ebs="a")),
    "a label joins what else is asked": ({ZONE: "a"}, within(x="y"), within(x="y", ebs="a")),
    "an empty label adds nothing": ({ZONE: ""}, within(x="y"), within(x="y")),
    "an empty selector gets a term": ({ZONE: "a"}, NodeSelector(), within(ebs="a")),
}


@pytest.mark.parametrize(("labels", "before", "after"), ZONES.values(), ids=ZONES)
def test_zones_become_the_drivers(
    labels: Mapping[str, str], before: NodeSelector | None, after: NodeSelector | None
) -> None:
    found = translate_volume(Disk(AWS_EBS, "vol-1"), labels, before)
    assert found is not None
    assert found.affinity == after


def test_several_zones_of_a_label_are_alternatives() -> None:
    found = translate_volume(Disk(AWS_EBS, "vol-1"), {ZONE: "b__a"}, None)
    required = Requirement(EBS_ZONE, "In", ("a", "b"))
    assert found is not None
    assert found.affinity == NodeSelector((NodeSelectorTerm((required,)),))


def test_a_gce_disk_is_named_by_its_old_zone_label_first() -> None:
    found = translate_volume(Disk(GCE_PD, "d"), {BETA_ZONE: "old", ZONE: "new"}, None)
    assert found is not None
    assert found.volume == CsiVolume(GCE, "projects/UNSPECIFIED/zones/old/disks/d")


def test_disks_without_zones_keep_their_affinity() -> None:
    found = translate_volume(Disk(AZURE_DISK, "/x"), {ZONE: "a"}, within(zone="b"))
    assert found is not None
    assert found.affinity == within(zone="b")
    assert translate_volume(Disk(ISCSI, "iqn"), {}, None) is None


def test_counting_needs_a_csi_node_and_reaching_its_annotation_as_well() -> None:
    bare, annotated = CsiNode("n"), CsiNode("n", migrated=frozenset([AWS_EBS]))
    assert [is_csi_migration_on(AWS_EBS, each, NEWEST) for each in (None, bare, annotated)] == [
        False,
        True,
        True,
    ]
    assert [is_translated(AWS_EBS, each, NEWEST) for each in (None, bare, annotated)] == [
        False,
        False,
        True,
    ]


def test_portworx_follows_its_driver_since_1_31() -> None:
    annotated = CsiNode("n", migrated=frozenset([PORTWORX]))
    reached = {name: is_translated(PORTWORX, annotated, it) for name, it in RELEASES.items()}
    assert [name for name, found in reached.items() if not found] == ["1.30"]


def test_other_plugins_are_never_migrated() -> None:
    node = CsiNode("n", migrated=frozenset(["kubernetes.io/vsphere-volume"]))
    assert is_in_tree("kubernetes.io/vsphere-volume")
    assert not is_csi_migration_on("kubernetes.io/vsphere-volume", node, NEWEST)
    assert not is_in_tree("ebs.csi.aws.com")
