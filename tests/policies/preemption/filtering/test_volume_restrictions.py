"""VolumeRestrictions: claims for one pod, disks for one writer, and victims that free them."""

from __future__ import annotations

import pytest

from policies import RELEASES, SchedulerRules, decide_filter, decide_preemption
from policies.kubernetes.csi_migration import AWS_EBS, AZURE_DISK, GCE_PD, ISCSI, RBD
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.kubernetes.storage import ClaimVolume, Disk, StorageKind
from policies.preemption.filtering import filters_named
from policies.preemption.filtering.status import Code, Rejection, refused, unresolvable
from tests.builders import claim, node, pod, snapshot, without_causes

RULES = SchedulerRules(filters=filters_named(["VolumeRestrictions"]))
ONE_POD_MODE = frozenset({"ReadWriteOncePod"})
ONE_POD = claim("rwop-1", access_modes=ONE_POD_MODE)
SECOND = claim("rwop-2", access_modes=ONE_POD_MODE)
SHARED = claim("rwx")
MONITORS = frozenset({"a", "b"})
READ_ONLY = Disk(RBD, "p/i", read_only=True, monitors=MONITORS)


def answer(asking: Pod, moment: Snapshot, rules: SchedulerRules = RULES) -> Rejection | None:
    """Return why the pod does not fit node-1; None if it does."""
    return decide_filter(asking, moment, rules).rejected.get("node-1")


def claiming(*users: Pod) -> Snapshot:
    return snapshot(node("node-1"), node("node-2"), ONE_POD, SECOND, SHARED, *users)


# As upstream's TestGCEDiskConflicts, TestAWSDiskConflicts, TestRBDDiskConflicts,
# TestISCSIDiskConflicts.
DISKS = [
    (Disk(GCE_PD, "foo"), Disk(GCE_PD, "foo"), False),
    (Disk(GCE_PD, "foo"), Disk(GCE_PD, "bar"), True),
    (Disk(GCE_PD, "foo", read_only=True), Disk(GCE_PD, "foo"), False),
    (Disk(GCE_PD, "foo", read_only=True), Disk(GCE_PD, "foo", read_only=True), True),
    (Disk(AWS_EBS, "foo"), Disk(AWS_EBS, "foo"), False),
    (Disk(AWS_EBS, "foo"), Disk(AWS_EBS, "bar"), True),
    (Disk(AWS_EBS, "foo", read_only=True), Disk(AWS_EBS, "foo", read_only=True), False),
    (Disk(RBD, "p/i", monitors=MONITORS), Disk(RBD, "p/i", monitors=MONITORS), False),
    (Disk(RBD, "p/i", monitors=MONITORS), Disk(RBD, "p/i", monitors=frozenset({"b"})), False),
    (Disk(RBD, "p/i", monitors=MONITORS), Disk(RBD, "p/i", monitors=frozenset({"c"})), True),
    (Disk(RBD, "p/i", monitors=MONITORS), Disk(RBD, "q/i", monitors=MONITORS), True),
    (READ_ONLY, READ_ONLY, True),
    (Disk(ISCSI, "iqn.2016"), Disk(ISCSI, "iqn.2016"), False),
    (Disk(ISCSI, "iqn.2016"), Disk(ISCSI, "iqn.2017"), True),
    (Disk(ISCSI, "iqn.2016", read_only=True), Disk(ISCSI, "iqn.2016", read_only=True), True),
    (Disk(GCE_PD, "foo"), Disk(AWS_EBS, "foo"), True),
    (Disk(AZURE_DISK, "foo"), Disk(AZURE_DISK, "foo"), True),
]


@pytest.mark.parametrize(("requested", "used", "fits"), DISKS)
def test_a_disk_is_shared_only_by_readers(requested: Disk, used: Disk, *, fits: bool) -> None:
    moment = snapshot(node("node-1"), pod("web", on="node-1", volumes=[used]))
    found = answer(pod(volumes=[requested]), moment)
    assert found == (None if fits else refused(Code.NO_DISK))


def test_a_disk_unused_on_the_node_does_not_conflict() -> None:
    disk = Disk(GCE_PD, "foo")
    moment = snapshot(node("node-1"), node("node-2"), pod("web", on="node-2", volumes=[disk]))
    assert answer(pod(volumes=[disk]), moment) is None
    assert answer(pod(volumes=[Disk(GCE_PD, "bar"), disk]), snapshot(node("node-1"))) is None


IN_USE = refused(Code.CLAIM_IN_USE)
ACCESS = {
    "a pod without volumes fits": (pod(), (pod("a", on="node-1", volumes=["rwop-1"]),), None),
    "a claim that does not exist fits nowhere": (
        pod(volumes=["none"]),
        (),
        unresolvable(Code.NO_CLAIM, "none"),
    ),
    "many may use a claim that is not for one pod": (
        pod(volumes=["rwx"]),
        (pod("a", on="node-1", volumes=["rwx"]),),
        None,
    ),
    "a claim for one pod without a user is free": (pod(volumes=["rwop-1"]), (), None),
    "a claim for one pod is used once": (
        pod(volumes=["rwop-1"]),
        (pod("a", on="node-1", volumes=["rwop-1"]),),
        IN_USE,
    ),
    "wherever its user is": (
        pod(volumes=["rwop-1"]),
        (pod("a", on="node-2", volumes=["rwop-1"]),),
        IN_USE,
    ),
    "even if its user is on the way out": (
        pod(volumes=["rwop-1"]),
        (pod("a", on="node-2", volumes=["rwop-1"], terminating=True),),
        IN_USE,
    ),
    "one of two claims in use is one too many": (
        pod(volumes=["rwop-1", "rwop-2"]),
        (pod("a", on="node-1", volumes=["rwop-2"]),),
        IN_USE,
    ),
    "a user that has finished is none": (
        pod(volumes=["rwop-1"]),
        (pod("a", on="node-1", volumes=["rwop-1"], finished=True),),
        None,
    ),
    "a user on a node that is not there is none": (
        pod(volumes=["rwop-1"]),
        (pod("a", on="gone", volumes=["rwop-1"]),),
        None,
    ),
    "another namespace's claim of the same name is another": (
        pod(volumes=["rwop-1"]),
        (pod("a", on="node-1", volumes=["rwop-1"], namespace="other"),),
        None,
    ),
    "an ephemeral volume's claim is not looked at": (
        pod(volumes=[ClaimVolume("none", ephemeral=True)]),
        (),
        None,
    ),
}


@pytest.mark.parametrize(("asking", "users", "expected"), ACCESS.values(), ids=ACCESS)
def test_claims(asking: Pod, users: tuple[Pod, ...], expected: Rejection | None) -> None:
    assert without_causes(answer(asking, claiming(*users))) == expected


def test_the_messages_of_older_releases() -> None:
    moment = claiming(pod("a", on="node-1", volumes=["rwop-1"]))
    reasons = {
        name: str(answer(pod(volumes=["rwop-1"]), moment, SchedulerRules(release, RULES.filters)))
        for name, release in RELEASES.items()
    }
    assert reasons["1.33"] == (
        "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod "
        "access mode"
    )
    assert reasons["1.34"] == (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod"
    )


def victims(preemptor: Pod, *users: Pod) -> dict[str, list[str]]:
    decision = decide_preemption(preemptor, claiming(*users), RULES)
    return {
        name: [each.name for each in found.victims.pods]
        for name, found in decision.candidates.items()
    }


def test_only_evicting_the_user_frees_its_claim() -> None:
    user = pod("user", on="node-1", volumes=["rwop-1"])
    bystander, other = pod("bystander", on="node-1"), pod("other", on="node-2")
    asking = pod(priority=10, volumes=["rwop-1"])
    assert victims(asking, user, bystander, other) == {"node-1": ["user"]}


def test_two_claims_are_freed_by_evicting_their_users() -> None:
    users = pod("a", on="node-1", volumes=["rwop-1"]), pod("b", on="node-1", volumes=["rwop-2"])
    asking = pod(priority=10, volumes=["rwop-1", "rwop-2"])
    assert set(victims(asking, *users)["node-1"]) == {"a", "b"}


def test_users_on_two_nodes_cannot_be_evicted_at_once() -> None:
    users = pod("a", on="node-1", volumes=["rwop-1"]), pod("b", on="node-2", volumes=["rwop-2"])
    assert victims(pod(priority=10, volumes=["rwop-1", "rwop-2"]), *users) == {}


def test_a_user_of_higher_priority_keeps_its_claim() -> None:
    user = pod("user", on="node-1", volumes=["rwop-1"], priority=20)
    low = pod("low", on="node-1")
    assert victims(pod(priority=10, volumes=["rwop-1"]), user, low) == {}


def test_in_a_dry_run_a_claim_of_the_same_name_elsewhere_counts_as_upstream_counts_it() -> None:
    # Taking away the namesake in another namespace hides the user on the other node.
    user = pod("user", on="node-2", volumes=["rwop-1"], priority=20)
    namesake = pod("namesake", on="node-1", volumes=["rwop-1"], namespace="other")
    assert victims(pod(priority=10, volumes=["rwop-1"]), user, namesake) == {"node-1": ["namesake"]}


def test_a_nominated_pod_uses_its_claim() -> None:
    user = pod("user", on="node-2", volumes=["rwop-1"], priority=20)
    nominated = pod("next", nominated_node="node-1", volumes=["rwop-1"], priority=30)
    gone = claiming(user, nominated, pod("low", on="node-2", volumes=["rwop-2"]))
    assert answer(pod(priority=10, volumes=["rwop-1"]), gone) == refused(
        Code.CLAIM_IN_USE, "claim default/rwop-1"
    )


def test_an_unknown_claim_leaves_the_pod_unevaluated() -> None:
    moment = snapshot(node("node-1"), unknown=[StorageKind.CLAIMS])
    decision = decide_filter(pod(volumes=["rwop-1"]), moment, RULES)
    assert decision.feasible == ("node-1",)
    assert decision.not_evaluated == {"VolumeRestrictions"}
