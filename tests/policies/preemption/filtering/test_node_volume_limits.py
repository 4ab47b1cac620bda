"""NodeVolumeLimits: the volumes that count for a driver on a node, and the limits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from msgspec import structs

from policies import RELEASES, SchedulerRules, decide_filter, decide_preemption
from policies.kubernetes.csi_migration import (
    AWS_EBS,
    GCE_PD,
    PORTWORX,
    translate_volume,
)
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.kubernetes.storage import (
    ClaimVolume,
    CsiDriver,
    CsiNode,
    Disk,
    PersistentVolume,
    StorageClass,
    StorageKind,
    UnreadableObject,
    VolumeAttachment,
)
from policies.preemption.filtering import filters_named, run_pre_filters
from policies.preemption.filtering.status import Code, Rejection, refused, unresolvable
from policies.testing.storage import StorageObject
from tests.builders import claim, node, pod, snapshot, volume, without_causes

FILTER = filters_named(["NodeVolumeLimits"])
RULES = SchedulerRules(filters=FILTER)
EBS, GCE, PX = "ebs.csi.aws.com", "pd.csi.storage.gke.io", "pxd.portworx.com"
TOO_MANY = refused(Code.TOO_MANY_VOLUMES)


def limited(count: int, *drivers: str) -> CsiNode:
    names = drivers or (EBS,)
    return CsiNode("node-1", frozenset(names), dict.fromkeys(names, count))


def csi(name: str, driver: str = EBS) -> tuple[StorageObject, ...]:
    """Build a claim and the volume of ``driver`` that it is bound to."""
    return claim(name, f"pv-{name}"), volume(f"pv-{name}", f"vol-{name}", driver)


def in_tree(name: str, plugin: str = AWS_EBS) -> tuple[StorageObject, ...]:
    """Build a claim and the in-tree volume that it is bound to."""
    translated = translate_volume(Disk(plugin, f"vol-{name}"), {}, None)
    return claim(name, f"pv-{name}"), PersistentVolume(f"pv-{name}", migration=translated)


def pending(name: str, storage_class: str = "ebs", **fields: str) -> tuple[StorageObject, ...]:
    return (claim(name, storage_class=storage_class, **fields),)


def running(name: str, *volumes: str | ClaimVolume | Disk) -> Pod:
    return pod(name, on="node-1", volumes=volumes)


EBS_CLASS = StorageClass("ebs", EBS, waits_for_first_consumer=True)
OLD_CLASS = StorageClass("old", AWS_EBS, waits_for_first_consumer=True)
VSPHERE_CLASS = StorageClass("vsphere", "kubernetes.io/vsphere-volume")
SCRATCH = ClaimVolume("pod-scratch", ephemeral=True)


@dataclass(frozen=True)
class Case:
    """A pending pod, the pods of the node, and the storage objects of their volumes."""

    limit: CsiNode | None
    things: tuple[StorageObject, ...]
    asking: Pod
    users: tuple[Pod, ...] = ()
    fits: bool = True


ONE = pod(volumes=["new"])
TWO_USED = (running("a", "one"), running("b", "two"))
NEW, USED = csi("new"), (*csi("one"), *csi("two"))

# As upstream's TestCSILimits.
CASES = {
    "fits below the limit": Case(limited(3), (*NEW, *USED), ONE, TWO_USED),
    "doesn't at the limit": Case(limited(2), (*NEW, *USED), ONE, TWO_USED, fits=False),
    "a driver without a limit takes any number": Case(
        CsiNode("node-1", frozenset([EBS])), (*NEW, *USED), ONE, TWO_USED
    ),
    "so does a node without a CSINode": Case(None, (*NEW, *USED), ONE, TWO_USED),
    "a volume that two pods share counts once": Case(
        limited(2), (*NEW, *USED), ONE, (running("a", "one"), running("b", "one"))
    ),
    "a volume that is there already takes no further place": Case(
        limited(1), csi("one"), pod(volumes=["one"]), (running("a", "one"),)
    ),
    "even if the node has too many": Case(
        limited(1), (*csi("one"), *csi("two")), pod(volumes=["one"]), TWO_USED
    ),
    "two volumes of the pod need two places": Case(
        limited(2),
        (*NEW, *USED),
        pod(volumes=["new", "one"]),
        (running("b", "two"),),
        fits=False,
    ),
    "a claim that is not bound counts as one of its class": Case(
        limited(2), (*NEW, *csi("one"), *pending("late"), EBS_CLASS), ONE,
        (running("a", "one"), running("b", "late")), fits=False,
    ),
    "and once, whoever else uses it": Case(
        limited(3), (*NEW, *csi("one"), *pending("late"), EBS_CLASS), ONE,
        (running("a", "one"), running("b", "late"), running("c", "late")),
    ),
    "a claim on a volume that is not there counts as one of its class": Case(
        limited(1), (*NEW, claim("lost", "none", storage_class="ebs"), EBS_CLASS), ONE,
        (running("a", "lost"),), fits=False,
    ),
    "a claim of a class that is not there doesn't count": Case(
        limited(1), (*NEW, *pending("late", "none")), ONE, (running("a", "late"),)
    ),
    "nor does one that does not exist": Case(limited(1), NEW, ONE, (running("a", "none"),)),
    "limits are by driver": Case(
        limited(2, EBS, GCE),
        (*NEW, *csi("one", GCE), *csi("two", GCE)),
        ONE,
        TWO_USED,
    ),
    "the same type counts whatever else is there": Case(
        limited(1, EBS, GCE), (*NEW, *csi("one", GCE), *csi("two")), ONE, TWO_USED, fits=False
    ),
    "in-tree volumes count as their driver's": Case(
        limited(1), (*in_tree("new"), *in_tree("one")), ONE, (running("a", "one"),), fits=False
    ),
    "beside those of the driver itself": Case(
        limited(1), (*in_tree("new"), *csi("one")), ONE, (running("a", "one"),), fits=False
    ),
    "and are the same if their handle is": Case(
        limited(1), csi("one"), pod(volumes=[Disk(AWS_EBS, "vol-one")]), (running("a", "one"),)
    ),
    "without a CSINode nothing is migrated": Case(None, in_tree("new"), ONE),
    "disks that the pod describes count": Case(
        limited(1), csi("one"), pod(volumes=[Disk(AWS_EBS, "vol-x")]), (running("a", "one"),),
        fits=False,
    ),
    "those of other kinds don't": Case(
        limited(0), (), pod(volumes=[Disk("kubernetes.io/iscsi", "iqn")])
    ),
    "nor does a volume that no driver attaches": Case(
        limited(0), (claim("new", "pv"), PersistentVolume("pv")), ONE
    ),
    "an unbound claim of an in-tree class counts as its driver's": Case(
        limited(1), (*pending("new", "old"), OLD_CLASS, *csi("one")), ONE, (running("a", "one"),),
        fits=False,
    ),
    "but not of a plugin whose migration is never on": Case(
        limited(0, "csi.vsphere.vmware.com"), (*pending("new", "vsphere"), VSPHERE_CLASS), ONE
    ),
    "ephemeral volumes count": Case(
        limited(2),
        (*pending("pod-scratch", owner="pod"), EBS_CLASS, *csi("one"), *csi("two")),
        pod(volumes=[SCRATCH]),
        TWO_USED,
        fits=False,
    ),
    "those of others, too": Case(
        limited(1), (*NEW, *pending("a-scratch", owner="a"), EBS_CLASS), ONE,
        (running("a", ClaimVolume("a-scratch", ephemeral=True)),), fits=False,
    ),
    "but not a claim that is not the pod's own": Case(
        limited(1), (*NEW, *pending("a-scratch", owner="x"), EBS_CLASS), ONE,
        (running("a", ClaimVolume("a-scratch", ephemeral=True)),),
    ),
    "a pod without volumes fits": Case(limited(0), USED, pod(), TWO_USED),
}  # fmt: skip


def moment(case: Case) -> Snapshot:
    limit = [case.limit] if case.limit else []
    return snapshot(node("node-1"), *case.things, *case.users, *limit)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_volumes_are_counted(case: Case) -> None:
    decision = decide_filter(case.asking, moment(case), RULES)
    assert without_causes(decision.rejected.get("node-1")) == (None if case.fits else TOO_MANY)
    assert decision.not_evaluated == set()


def in_release(
    release: str, asking: Pod, *things: StorageObject, **scalars: int
) -> Rejection | None:
    plain = node("node-1")
    room = structs.replace(plain, allocatable=structs.replace(plain.allocatable, scalars=scalars))
    rules = SchedulerRules(RELEASES[release], FILTER)
    return decide_filter(asking, snapshot(room, *things), rules).rejected.get("node-1")


@pytest.mark.parametrize(("release", "fits"), [("1.31", True), ("1.32", False)])
def test_an_attached_volume_counts_without_pods_that_use_it(release: str, *, fits: bool) -> None:
    left = volume("pv-left", "vol-left", EBS), VolumeAttachment("va", "node-1", EBS, "pv-left")
    found = in_release(release, ONE, *NEW, *left, limited(1))
    assert without_causes(found) == (None if fits else TOO_MANY)


def test_an_attachment_counts_once_and_only_on_its_node() -> None:
    things = (
        VolumeAttachment("mine", "node-1", EBS, "pv-new"),
        VolumeAttachment("elsewhere", "node-2", EBS, "pv-other"),
        VolumeAttachment("unknown", "node-1", EBS, "pv-gone"),
        VolumeAttachment("inline", "node-1", EBS, ""),
        volume("pv-other", "vol-other", EBS),
    )
    used = snapshot(node("node-1"), running("a", "new"), *NEW, *things, limited(1))
    assert decide_filter(pod(volumes=["new"]), used, RULES).feasible == ("node-1",)


def test_attached_and_own_volumes_are_counted_as_upstream_counts() -> None:
    attached = VolumeAttachment("mine", "node-1", EBS, "pv-new")
    found = in_release("1.37", ONE, *NEW, attached, limited(1))
    assert without_causes(found) == TOO_MANY


@pytest.mark.parametrize(("release", "fits"), [("1.31", False), ("1.32", True)])
def test_older_releases_read_limits_from_the_node_as_well(release: str, *, fits: bool) -> None:
    things = (*NEW, CsiNode("node-1", frozenset([EBS])), StorageClass("x"))
    found = in_release(release, ONE, *things, **{f"attachable-volumes-csi-{EBS}": 0})
    assert without_causes(found) == (None if fits else TOO_MANY)


def test_the_limit_of_a_driver_with_a_long_name_is_under_a_digest_of_it() -> None:
    driver = "a-driver-with-a-rather-long-name.csi.storage.example.com"
    # sha1 of the name, its first 16 digits
    key = "attachable-volumes-csi-a-driver-with-a-rather-478236aa73485e83"
    things = claim("new", "pv"), volume("pv", "vol", driver)
    assert without_causes(in_release("1.31", ONE, *things, **{key: 0})) == TOO_MANY


@pytest.mark.parametrize(
    ("release", "annotated", "counts"),
    [
        ("1.30", True, False),
        ("1.31", False, False),
        ("1.31", True, True),
        ("1.35", False, False),
        ("1.36", False, True),
    ],
)
def test_portworx_was_migrated_last(release: str, *, annotated: bool, counts: bool) -> None:
    there = replace(limited(0, PX), migrated=frozenset([PORTWORX] if annotated else []))
    found = in_release(release, ONE, *in_tree("new", PORTWORX), there)
    assert without_causes(found) == (TOO_MANY if counts else None)


REQUIRED, OPTIONAL = CsiDriver(EBS, required=True), CsiDriver(EBS)


# As upstream's TestCSILimits_CSIDriverInstalled.
@pytest.mark.parametrize(
    ("release", "things", "expected"),
    [
        ("1.37", (REQUIRED, CsiNode("node-1")), refused(Code.NO_DRIVER, EBS)),
        ("1.37", (REQUIRED,), refused(Code.NO_DRIVER, EBS)),
        ("1.36", (REQUIRED, CsiNode("node-1")), None),
        ("1.37", (OPTIONAL, CsiNode("node-1")), None),
        ("1.37", (CsiNode("node-1"),), None),
        ("1.37", (REQUIRED, limited(1)), None),
        ("1.37", (REQUIRED, limited(0)), TOO_MANY),
    ],
)
def test_a_driver_may_be_required(
    release: str, things: tuple[StorageObject, ...], expected: Rejection | None
) -> None:
    assert without_causes(in_release(release, ONE, *NEW, *things)) == expected


def test_evicting_a_pod_with_a_volume_of_the_driver_frees_an_attachment() -> None:
    users = (
        running("bystander"),
        running("other", "pd"),
        running("first", "one"),
        running("second", "two"),
    )
    things = (*NEW, *USED, *csi("pd", GCE), limited(2, EBS, GCE))
    full = snapshot(node("node-1"), *users, *things)
    decision = decide_preemption(pod(priority=10, volumes=["new"]), full, RULES)
    assert decision.chosen is not None
    (victim,) = decision.chosen.victims.pods
    assert victim.name in {"first", "second"}


def test_a_claim_that_does_not_exist_is_refused_where_this_filter_is_alone() -> None:
    decision = decide_filter(pod(volumes=["none"]), snapshot(node("node-1")), RULES)
    assert decision.conflict == unresolvable(Code.NO_CLAIM_TO_COUNT, "default", "none")
    assert str(decision.conflict) == (
        'looking up PVC default/none: persistentvolumeclaim "none" not found'
    )


@pytest.mark.parametrize(
    "unknown",
    [
        StorageKind.CLAIMS,
        StorageKind.VOLUMES,
        StorageKind.CSI_NODES,
        StorageKind.ATTACHMENTS,
        StorageKind.DRIVERS,
    ],
)
def test_unknown_storage_objects_leave_the_pod_unevaluated(unknown: StorageKind) -> None:
    full = snapshot(node("node-1"), *NEW, limited(0), unknown=[unknown])
    decision = decide_filter(ONE, full, RULES)
    assert decision.feasible == ("node-1",)
    assert decision.not_evaluated == {"NodeVolumeLimits"}
    assert decide_filter(pod(), full, RULES).not_evaluated == set()


@pytest.mark.parametrize(
    ("limit", "unread", "undecided"),
    [
        (3, UnreadableObject(StorageKind.CSI_NODES, "node-2"), ""),
        (3, UnreadableObject(StorageKind.CLAIMS, "default/unread"), ""),
        (2, UnreadableObject(StorageKind.CLAIMS, "default/other"), ""),
        (
            2,
            UnreadableObject(StorageKind.CLAIMS, "default/unread"),
            "volume of default/b with claim unread",
        ),
        (
            2,
            UnreadableObject(StorageKind.VOLUMES, "pv-unread"),
            "volume of default/b with claim unread",
        ),
        (3, UnreadableObject(StorageKind.CSI_NODES, "node-1"), "csinodes/node-1"),
    ],
)
def test_a_node_is_undecided_if_an_object_that_is_not_decoded_may_exceed_its_limit(
    limit: int, unread: UnreadableObject, undecided: str
) -> None:
    bound = [claim("unread", "pv-unread")] if unread.kind is StorageKind.VOLUMES else []
    csi_nodes = [] if undecided.startswith("csinodes") else [limited(limit)]
    others = running("a", "data"), running("b", "unread")
    whole = snapshot(node("node-1"), *others, *csi("data"), *csi("new"), *csi_nodes, *bound)
    moment = replace(whole, storage=replace(whole.storage, unreadable=frozenset({unread})))
    asking = pod("asking", volumes=["new"])
    assert decide_filter(asking, moment, RULES).feasible == ("node-1",)
    pipeline = run_pre_filters(asking, moment, RULES.release, FILTER)
    rejection = pipeline.refuse(moment.nodes["node-1"])
    expected = unresolvable(Code.VOLUMES_UNKNOWN, undecided) if undecided else None
    assert rejection == expected


def test_an_older_release_does_not_need_objects_that_it_does_not_read() -> None:
    full = snapshot(
        node("node-1"),
        *NEW,
        limited(0),
        unknown=[StorageKind.ATTACHMENTS, StorageKind.DRIVERS, StorageKind.DEVICES],
    )
    assert decide_filter(ONE, full, SchedulerRules(RELEASES["1.31"], FILTER)).not_evaluated == set()


def test_a_disk_with_an_invalid_name_leaves_the_pod_unevaluated() -> None:
    full = snapshot(node("node-1"), limited(0))
    decision = decide_filter(pod(volumes=[Disk(AWS_EBS, "aws://a/x")]), full, RULES)
    assert decision.not_evaluated == {"NodeVolumeLimits"}
    assert decide_filter(pod(volumes=[Disk(GCE_PD, "x")]), full, RULES).not_evaluated == set()
