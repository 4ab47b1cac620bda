"""VolumeBinding: bound claims and their volumes' affinity, and claims that cannot be evaluated."""

from __future__ import annotations

import pytest

from policies import RELEASES, SchedulerRules, decide_filter
from policies.kubernetes.csi_migration import AWS_EBS, ZONE, translate_volume
from policies.kubernetes.releases import NEWEST
from policies.kubernetes.selectors import NodeSelector, NodeSelectorTerm, Requirement
from policies.kubernetes.snapshot import Pod
from policies.kubernetes.storage import (
    ClaimVolume,
    CsiNode,
    Disk,
    PersistentVolume,
    StorageClass,
    StorageKind,
)
from policies.preemption.filtering import filters_named
from policies.preemption.filtering.status import Code, Rejection, unresolvable
from policies.testing.storage import StorageObject
from tests.builders import LATE, MEASURED, claim, late_claim, node, pod, snapshot

RULES = SchedulerRules(filters=filters_named(["VolumeBinding"]))
EBS_ZONE = "topology.ebs.csi.aws.com/zone"


def within(key: str, value: str) -> NodeSelector:
    return NodeSelector((NodeSelectorTerm((Requirement(key, "In", (value,)),)),))


HERE = PersistentVolume("here", affinity=within("disk", "here"))
THERE = PersistentVolume("there", affinity=within("disk", "there"))
ANYWHERE = PersistentVolume("anywhere")
NODE = node("node-1", labels={"disk": "here"})
NOW = StorageClass("now")
EPHEMERAL = ClaimVolume("pod-scratch", ephemeral=True)


def claiming(*claims: str) -> Pod:
    return pod(volumes=claims)


# As upstream's TestVolumeBinding, and podHasPVCs.
CASES: dict[str, tuple[Pod, tuple[StorageObject, ...], Rejection | None]] = {
    "a pod without claims fits": (pod(), (), None),
    "a claim that is bound to a volume within reach fits": (
        claiming("data"),
        (claim("data", "here"), HERE),
        None,
    ),
    "a volume without affinity is within every node's reach": (
        claiming("data"),
        (claim("data", "anywhere"), ANYWHERE),
        None,
    ),
    "a volume out of reach does not fit": (
        claiming("data"),
        (claim("data", "there"), THERE),
        unresolvable(Code.VOLUME_AFFINITY, "claim default/data, volume there"),
    ),
    "one of two volumes out of reach is enough": (
        claiming("data", "more"),
        (claim("data", "here"), claim("more", "there"), HERE, THERE),
        unresolvable(Code.VOLUME_AFFINITY, "claim default/more, volume there"),
    ),
    "a volume that is not there does not fit": (
        claiming("data"),
        (claim("data", "none"),),
        unresolvable(Code.VOLUME_MISSING, "claim default/data"),
    ),
    "the first volume that fails decides": (
        claiming("data", "more"),
        (claim("data", "none"), claim("more", "there"), THERE),
        unresolvable(Code.VOLUME_MISSING, "claim default/data"),
    ),
    "a claim that does not exist": (claiming("data"), (), unresolvable(Code.NO_CLAIM, "data")),
    "one of two claims that does not exist": (
        claiming("data", "none"),
        (claim("data", "here"), HERE),
        unresolvable(Code.NO_CLAIM, "none"),
    ),
    "a claim whose volume is lost": (
        claiming("data"),
        (claim("data", "gone", lost=True),),
        unresolvable(Code.CLAIM_LOST, "data", "gone"),
    ),
    "a claim that is being deleted": (
        claiming("data"),
        (claim("data", "here", deleting=True), HERE),
        unresolvable(Code.CLAIM_DELETED, "data"),
    ),
    "an unbound claim of a class that binds at once": (
        claiming("data"),
        (claim("data", storage_class="now"), NOW),
        unresolvable(Code.CLAIM_UNBOUND, "claim default/data"),
    ),
    "an unbound claim without a class": (
        claiming("data"),
        (claim("data"),),
        unresolvable(Code.CLAIM_UNBOUND, "claim default/data"),
    ),
    "an unbound claim of a class that is not there": (
        claiming("data"),
        (claim("data", storage_class="none"),),
        unresolvable(Code.CLAIM_UNBOUND, "claim default/data"),
    ),
    "a claim that names its volume and is not bound yet counts as one that should be": (
        claiming("data"),
        (claim("data", "here", bound=False, storage_class="late"), HERE, LATE),
        unresolvable(Code.CLAIM_UNBOUND, "claim default/data"),
    ),
    "an ephemeral volume's claim that is not made yet": (
        pod(volumes=[EPHEMERAL]),
        (),
        unresolvable(Code.NO_EPHEMERAL_CLAIM, "pod-scratch"),
    ),
    "an ephemeral volume's claim that is the pod's": (
        pod(volumes=[EPHEMERAL]),
        (claim("pod-scratch", "there", owner="pod"), THERE),
        unresolvable(Code.VOLUME_AFFINITY, "claim default/pod-scratch, volume there"),
    ),
    "an ephemeral volume's claim with another owner": (
        pod(volumes=[EPHEMERAL]),
        (claim("pod-scratch", "here", owner="other"), HERE),
        unresolvable(Code.CLAIM_OF_OTHER, "default/pod-scratch", "default/pod"),
    ),
}


@pytest.mark.parametrize(("asking", "things", "expected"), CASES.values(), ids=CASES)
def test_bound_claims(
    asking: Pod, things: tuple[StorageObject, ...], expected: Rejection | None
) -> None:
    decision = decide_filter(asking, snapshot(NODE, *things), RULES)
    assert decision.rejected.get("node-1") == expected
    assert decision.not_evaluated == set()


def test_bound_claims_are_evaluated_beside_one_that_cannot_be() -> None:
    waiting = late_claim("late"), LATE, MEASURED
    moment = snapshot(
        NODE, *waiting, claim("data", "there"), THERE, unknown=[StorageKind.CAPACITIES]
    )
    decision = decide_filter(claiming("late", "data"), moment, RULES)
    away = unresolvable(Code.VOLUME_AFFINITY, "claim default/data, volume there")
    assert decision.rejected == {"node-1": away}
    assert decision.not_evaluated == {"VolumeBinding"}


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ("1.32", "node(s) had volume node affinity conflict"),
        ("1.33", "node(s) didn't match PersistentVolume's node affinity"),
    ],
)
def test_the_messages_of_each_release(release: str, words: str) -> None:
    moment = snapshot(NODE, claim("data", "there"), THERE)
    rules = SchedulerRules(RELEASES[release], RULES.filters)
    assert str(decide_filter(claiming("data"), moment, rules).rejected["node-1"]) == words


def in_tree(identity: str) -> PersistentVolume:
    affinity = within(ZONE, "a")
    translated = translate_volume(Disk(AWS_EBS, identity), {}, affinity)
    return PersistentVolume("pv", affinity=affinity, migration=translated)


@pytest.mark.parametrize(
    ("migrated", "labels", "fits"),
    [
        (None, {ZONE: "a"}, True),
        (None, {EBS_ZONE: "a"}, False),
        (frozenset(), {ZONE: "a"}, True),
        (frozenset([AWS_EBS]), {ZONE: "a"}, False),
        (frozenset([AWS_EBS]), {EBS_ZONE: "a"}, True),
    ],
)
def test_a_migrated_volume_matches_its_drivers_label(
    migrated: frozenset[str] | None, labels: dict[str, str], *, fits: bool
) -> None:
    csi_node = [] if migrated is None else [CsiNode("node-1", migrated=migrated)]
    data = claim("data", "pv"), in_tree("vol-1")
    moment = snapshot(node("node-1", labels=labels), *data, *csi_node)
    assert bool(decide_filter(claiming("data"), moment, RULES).feasible) is fits


@pytest.mark.parametrize(
    ("things", "unknown"),
    [
        ((), StorageKind.CLAIMS),
        ((claim("data", "pv"),), StorageKind.VOLUMES),
        ((claim("data", storage_class="x"),), StorageKind.CLASSES),
        ((claim("data", "pv"), in_tree("vol-1")), StorageKind.CSI_NODES),
        ((claim("data", "pv"), in_tree("aws://a/b")), StorageKind.DEVICES),
    ],
    ids=["claim", "volume", "class", "node of an in-tree volume", "a volume that makes no sense"],
)
def test_unknown_storage_objects_leave_the_pod_unevaluated(
    things: tuple[StorageObject, ...], unknown: StorageKind
) -> None:
    moment = snapshot(node("node-1", labels={ZONE: "a"}), *things, unknown=[unknown])
    decision = decide_filter(claiming("data"), moment, RULES)
    assert decision.feasible == ("node-1",)
    assert decision.not_evaluated == {"VolumeBinding"}


def test_an_affinity_for_a_node_by_name_matches_none_as_upstream() -> None:
    term = NodeSelectorTerm(fields=(Requirement("metadata.name", "In", ("node-1",)),))
    by_name = PersistentVolume("pv", affinity=NodeSelector((term,)))
    prepared = filters_named(["VolumeBinding"])[0].pre_filter(
        claiming("data"), snapshot(NODE, claim("data", "pv"), by_name), NEWEST
    )
    assert prepared.plugin is not None
    assert prepared.plugin.refuse(snapshot(NODE).nodes["node-1"]) is not None
