"""NodeVolumeLimits up to 1.30: disks of EBS, GCE and Azure on nodes without a CSINode."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from policies import RELEASES, SchedulerRules, decide_filter
from policies.kubernetes.csi_migration import AWS_EBS, AZURE_DISK, GCE_PD, translate_volume
from policies.kubernetes.storage import (
    ClaimVolume,
    CsiNode,
    Disk,
    PersistentVolume,
    StorageClass,
)
from policies.preemption.filtering import filters_named
from policies.preemption.filtering.status import Code, Rejection, refused
from policies.testing.storage import StorageObject
from tests.builders import claim, node, pod, snapshot, volume, without_causes

FILTER = filters_named(["NodeVolumeLimits"])
TOO_MANY = refused(Code.TOO_MANY_VOLUMES)
NEW = claim("new", "pv-new"), volume("pv-new", "vol-new", "ebs.csi.aws.com")


def in_tree(name: str) -> tuple[StorageObject, ...]:
    """Build a claim and the EBS volume that it is bound to."""
    translated = translate_volume(Disk(AWS_EBS, f"vol-{name}"), {}, None)
    return claim(name, f"pv-{name}"), PersistentVolume(f"pv-{name}", migration=translated)


AWS_CLASS = StorageClass("aws", AWS_EBS)
TEN = tuple(Disk(AWS_EBS, f"vol-{n}") for n in range(10))


def many(plugin: str, count: int) -> tuple[Disk, ...]:
    return tuple(Disk(plugin, str(n)) for n in range(count))


@dataclass(frozen=True)
class DiskCase:
    """The volumes of a pending pod and of a pod on a node without a CSINode, and its limit."""

    asking: tuple[str | ClaimVolume | Disk, ...]
    used: tuple[str | ClaimVolume | Disk, ...] = ()
    things: tuple[StorageObject, ...] = ()
    limit: int | None = 1
    instance_type: str = ""
    fits: bool = False


# As upstream's TestEBSLimits, TestGCEPDLimits and TestAzureDiskLimits.
DISKS = {
    "two disks": DiskCase(TEN[:2]),
    "one disk": DiskCase(TEN[:1], fits=True),
    "a disk twice": DiskCase(TEN[:1], TEN[:1], fits=True),
    "beside another": DiskCase(TEN[:1], TEN[1:2]),
    "beside a disk of another plugin": DiskCase(TEN[:1], (Disk(GCE_PD, "x"),), fits=True),
    "no disk, beside too many": DiskCase((Disk(GCE_PD, "x"),), TEN, fits=True),
    "a bound claim": DiskCase(("new",), TEN[:1], in_tree("new")),
    "a claim of the disk itself": DiskCase(("0",), TEN[:1], in_tree("0"), fits=True),
    "a claim of a CSI volume": DiskCase(("new",), TEN[:1], NEW, fits=True),
    "a claim without a volume": DiskCase(
        ("new",), TEN[:1], (claim("new", storage_class="aws"), AWS_CLASS)
    ),
    "a claim of another class": DiskCase(
        ("new",), TEN[:1], (claim("new", storage_class="none"),), fits=True
    ),
    "a claim whose volume is gone": DiskCase(
        ("new",), TEN[:1], (claim("new", "gone", storage_class="aws"), AWS_CLASS)
    ),
    "a claim of another pod that is gone": DiskCase(TEN[:1], ("gone",), fits=True),
    "two unmanaged disks": DiskCase(
        (Disk(AZURE_DISK, "/a", name="a"),), (Disk(AZURE_DISK, "/a", name="b"),)
    ),
    "within the default": DiskCase(many(GCE_PD, 16), limit=None, fits=True),
    "beyond the default": DiskCase(many(GCE_PD, 17), limit=None),
    "within the default of EBS": DiskCase(many(AWS_EBS, 39), limit=None, fits=True),
    "beyond the default of EBS": DiskCase(many(AWS_EBS, 40), limit=None),
    "within that of a newer instance": DiskCase(
        many(AWS_EBS, 25),
        limit=None,
        instance_type="m5.large",
        fits=True,
    ),
    "beyond that of a newer instance": DiskCase(
        many(AWS_EBS, 26), limit=None, instance_type="t3.micro"
    ),
}


def disk_refusal(case: DiskCase, release: str, *things: StorageObject) -> Rejection | None:
    """Return why the node refuses the pod in ``release``."""
    plugins = ("aws-ebs", "gce-pd", "azure-disk")
    limits = {} if case.limit is None else dict.fromkeys(plugins, str(case.limit))
    full = node(
        "node-1",
        others={f"attachable-volumes-{plugin}": limit for plugin, limit in limits.items()},
        labels={"node.kubernetes.io/instance-type": case.instance_type},
    )
    other = CsiNode("other", frozenset())  # without any, they count as unknown
    moment = snapshot(full, other, pod("a", on="node-1", volumes=case.used), *case.things, *things)
    rules = SchedulerRules(RELEASES[release], FILTER)
    return decide_filter(pod(volumes=case.asking), moment, rules).rejected.get("node-1")


@pytest.mark.parametrize("case", DISKS.values(), ids=DISKS)
def test_older_releases_limit_disks_on_nodes_without_csi(case: DiskCase) -> None:
    found = disk_refusal(case, "1.30")
    assert (None if found is None else without_causes(found)) == (None if case.fits else TOO_MANY)
    assert disk_refusal(case, "1.31") is None
    assert disk_refusal(case, "1.30", CsiNode("node-1", frozenset())) is None
