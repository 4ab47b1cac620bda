"""VolumeZone: volumes with zones and regions on nodes with and without them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from policies import SchedulerRules, decide_filter
from policies.kubernetes.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE
from policies.kubernetes.storage import (
    ClaimVolume,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageKind,
)
from policies.preemption.filtering import filters_named
from policies.preemption.filtering.status import Code, Rejection, unresolvable
from policies.testing.storage import StorageObject
from tests.builders import LATE, claim, late_claim, node, pod, snapshot, without_causes

RULES = SchedulerRules(filters=filters_named(["VolumeZone"]))
REFUSED = unresolvable(Code.VOLUME_ZONE)


def labelled(**topology: set[str]) -> PersistentVolume:
    """Build a volume with these zones and regions."""
    keys = {"zone": ZONE, "region": REGION, "beta_zone": BETA_ZONE, "beta_region": BETA_REGION}
    found = tuple((keys[key], frozenset(values)) for key, values in topology.items())
    return PersistentVolume("pv", topology=found)


# As upstream's TestSingleZone and TestMultiZone.
CASES: dict[str, tuple[PersistentVolume, Mapping[str, str], bool]] = {
    "a node without labels takes it": (labelled(beta_zone={"a"}), {}, True),
    "other labels are no matter": (labelled(zone={"a"}), {"useless": "none"}, True),
    "beta zone matched": (labelled(beta_zone={"a"}), {BETA_ZONE: "a"}, True),
    "beta zone not matched": (labelled(beta_zone={"a"}), {BETA_ZONE: "b"}, False),
    "beta region matched": (labelled(beta_region={"w"}), {BETA_REGION: "w"}, True),
    "beta region not matched": (labelled(beta_region={"w"}), {BETA_REGION: "x"}, False),
    "zone matched": (labelled(zone={"a"}), {ZONE: "a"}, True),
    "zone not matched": (labelled(zone={"a"}), {ZONE: "b"}, False),
    "region matched": (labelled(region={"w"}), {REGION: "w"}, True),
    "region not matched": (labelled(region={"w"}), {REGION: "x"}, False),
    "one label of two on the node is not enough": (
        labelled(zone={"a"}, region={"w"}),
        {ZONE: "a"},
        False,
    ),
    "a volume's new label is not matched by a node's old one": (
        labelled(zone={"a"}),
        {BETA_ZONE: "a"},
        False,
    ),
    "a volume's old label is matched by a node's new one": (
        labelled(beta_zone={"a"}),
        {ZONE: "a"},
        True,
    ),
    "unless its value differs": (labelled(beta_zone={"a"}), {ZONE: "b"}, False),
    "a node's own old label comes first": (
        labelled(beta_zone={"a"}),
        {BETA_ZONE: "b", ZONE: "a"},
        False,
    ),
    "one of several zones is enough": (labelled(zone={"c", "a"}), {ZONE: "a"}, True),
    "none of several zones is not": (labelled(zone={"c", "a"}), {ZONE: "b"}, False),
    "a volume without labels matches any node": (labelled(), {ZONE: "b"}, True),
}


@pytest.mark.parametrize(("behind", "labels", "fits"), CASES.values(), ids=CASES)
def test_zones(behind: PersistentVolume, labels: Mapping[str, str], *, fits: bool) -> None:
    moment = snapshot(node("node-1", labels=labels), claim("data", "pv"), behind)
    decision = decide_filter(pod(volumes=["data"]), moment, RULES)
    assert without_causes(decision.rejected.get("node-1")) == (None if fits else REFUSED)


NOW = StorageClass("now")
# As upstream's TestWithBinding, and its lookups that fail.
CLAIMS: dict[
    str, tuple[PersistentVolumeClaim | None, tuple[StorageObject, ...], Rejection | None]
] = {
    "no such claim": (None, (), unresolvable(Code.NO_CLAIM, "data")),
    "bound to a volume that is not there": (
        claim("data", "none"),
        (),
        unresolvable(Code.NO_VOLUME, "none"),
    ),
    "unbound, without a class": (claim("data"), (), unresolvable(Code.CLAIM_WITHOUT_CLASS)),
    "unbound, of a class that is not there": (
        claim("data", storage_class="none"),
        (),
        unresolvable(Code.NO_CLASS, "none"),
    ),
    "unbound, of a class that binds at once": (
        claim("data", storage_class="now"),
        (NOW,),
        unresolvable(Code.NO_VOLUME_NAME),
    ),
    "unbound, of a class that waits": (late_claim("data"), (LATE,), None),
    "named, though not bound yet": (
        claim("data", "pv", bound=False),
        (PersistentVolume("pv"),),
        None,
    ),
}


@pytest.mark.parametrize(("data", "others", "conflict"), CLAIMS.values(), ids=CLAIMS)
def test_the_volume_or_class_of_a_claim_decides(
    data: PersistentVolumeClaim | None,
    others: tuple[StorageObject, ...],
    conflict: Rejection | None,
) -> None:
    moment = snapshot(node("node-1"), *([data] if data else []), *others)
    decision = decide_filter(pod(volumes=["data"]), moment, RULES)
    assert decision.conflict == conflict
    assert decision.not_evaluated == set()


def test_ephemeral_claims_of_the_pod_are_not_evaluated() -> None:
    asking = pod(volumes=[ClaimVolume("none", ephemeral=True)])
    assert decide_filter(asking, snapshot(node("node-1")), RULES).feasible == ("node-1",)


@pytest.mark.parametrize("kind", [StorageKind.CLAIMS, StorageKind.VOLUMES])
def test_unknown_storage_objects_leave_the_pod_unevaluated(kind: StorageKind) -> None:
    things = [] if kind is StorageKind.CLAIMS else [claim("data", "pv")]
    moment = snapshot(node("node-1"), *things, unknown=[kind])
    decision = decide_filter(pod(volumes=["data"]), moment, RULES)
    assert decision.conflict is None
    assert decision.not_evaluated == {"VolumeZone"}
