"""Claims that wait for their first consumer: volumes to bind, provisioning, and its capacity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from policies import RELEASES, SchedulerRules, Snapshot, decide_filter, decide_preemption
from policies.kubernetes.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
    equals_all,
)
from policies.kubernetes.snapshot import Pod
from policies.kubernetes.storage import (
    ClaimReference,
    ClaimVolume,
    CsiDriver,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    StorageKind,
    UnreadableObject,
)
from policies.preemption.filtering import filters_named
from policies.preemption.filtering.status import Code, Reason, Rejection, unresolvable
from policies.preemption.filtering.unbound_claims import FirstByLabels
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.vectorized import VectorizedEngine
from policies.testing.storage import StorageObject
from tests.builders import claim, node, pod, snapshot, without_causes

RULES = SchedulerRules(filters=filters_named(["VolumeBinding"]))
NO_VOLUME = unresolvable(Code.NO_VOLUME_TO_BIND)
NO_STORAGE = unresolvable(Code.NOT_ENOUGH_STORAGE)

NODES = (
    node("n1", labels={"host": "n1", "zone": "a"}),
    node("n2", labels={"host": "n2", "zone": "b"}),
)
STATIC = StorageClass("static", "kubernetes.io/no-provisioner", waits_for_first_consumer=True)
DYNAMIC = StorageClass("dynamic", "csi.example.com", waits_for_first_consumer=True)
MEASURING = CsiDriver("csi.example.com", storage_capacity=True)
GIB = 2**30
RWO = frozenset({"ReadWriteOnce"})


def term(**labels: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(equals_all(labels))


def on(name: str) -> NodeSelector:
    return NodeSelector((term(host=name),))


def waiting(name: str = "data", size: int = 40, **fields: Any) -> PersistentVolumeClaim:
    defaults = {"storage_class": "static", "request": size * GIB, "access_modes": RWO}
    return claim(name, **{**defaults, **fields})


def disk(name: str = "pv", size: int = 50, **fields: Any) -> PersistentVolume:
    defaults = {
        "storage_class": "static",
        "capacity": size * GIB,
        "access_modes": RWO | {"ReadOnlyMany"},
        "available": True,
    }
    return PersistentVolume(name, **{**defaults, **fields})


def room(name: str, size: int | None, /, **labels: str) -> CsiStorageCapacity:
    largest = None if size is None else size * GIB
    return CsiStorageCapacity(
        "kube-system", name, "dynamic", LabelSelector(equals_all(labels)), largest
    )


def kept_for(name: str, uid: str = "") -> ClaimReference:
    return ClaimReference("default", name, uid)


@dataclass(frozen=True)
class Case:
    """Storage, and the rejections of n1 and n2 (None: the node fits) of a pod with its claims."""

    things: Sequence[StorageObject]
    n1: Rejection | None
    n2: Rejection | None

    @property
    def pod(self) -> Pod:
        claims = (each for each in self.things if isinstance(each, PersistentVolumeClaim))
        return pod(volumes=[each.name for each in claims])

    @property
    def cluster(self) -> Snapshot:
        return snapshot(*NODES, STATIC, DYNAMIC, *self.things)


def fits_both(*things: StorageObject) -> Case:
    return Case(things, None, None)


def fits_n1(*things: StorageObject, otherwise: Rejection = NO_VOLUME) -> Case:
    return Case(things, None, otherwise)


def fits_none(*things: StorageObject, because: Rejection = NO_VOLUME) -> Case:
    return Case(things, because, because)


FAST = LabelSelector(equals_all({"tier": "fast"}))
HERE = disk(affinity=on("n1"))
ZONAL = replace(DYNAMIC, topologies=NodeSelector((term(zone="a"),)))
NEW = waiting(storage_class="dynamic")

MATCHING = {
    "a volume of one node": fits_n1(waiting(), HERE),
    "a volume without affinity": fits_both(waiting(), disk()),
    "no volume": fits_none(waiting()),
    "a volume of exactly the requested size": fits_both(waiting(size=50), disk(size=50)),
    "a volume that is too small": fits_none(waiting(size=51), disk(size=50)),
    "a volume of another class": fits_none(waiting(), disk(storage_class="other")),
    "a volume that is bound": fits_none(waiting(), disk(available=False, claim=kept_for("other"))),
    "a volume that is kept for another claim": fits_none(waiting(), disk(claim=kept_for("other"))),
    "a volume that is not available": fits_none(waiting(), disk(available=False)),
    "a volume that is being deleted": fits_none(waiting(), disk(deleting=True)),
    "a volume of another mode": fits_none(waiting(), disk(volume_mode="Block")),
    "a volume of another attributes class": fits_none(waiting(), disk(attributes_class="gold")),
    "a volume of the same attributes class": fits_both(
        waiting(attributes_class="gold"), disk(attributes_class="gold")
    ),
    "a volume with the selected labels": fits_both(
        waiting(selector=FAST), disk(labels={"tier": "fast"})
    ),
    "a volume with other labels": fits_none(waiting(selector=FAST), disk(labels={"tier": "slow"})),
    "a volume with one of the access modes": fits_none(
        waiting(access_modes=RWO | {"ReadWriteMany"}), disk()
    ),
    "a volume of one zone, or of another node if it is elsewhere": fits_n1(
        waiting(), disk(affinity=NodeSelector((term(zone="a"), term(host="n2", zone="c"))))
    ),
    "a volume of one zone, or of a zone that is not another one": fits_n1(
        waiting(),
        disk(
            affinity=NodeSelector(
                (term(zone="a"), NodeSelectorTerm((Requirement("zone", "NotIn", ("b",)),)))
            )
        ),
    ),
    "a volume of either of two nodes": fits_both(
        waiting(), disk(affinity=NodeSelector((term(host="n1"), term(host="n2"))))
    ),
    "a volume of a node by two labels": fits_none(
        waiting(), disk(affinity=NodeSelector((term(host="n1", zone="b"),)))
    ),
    "a volume of all nodes with a label": fits_both(
        waiting(),
        disk(affinity=NodeSelector((NodeSelectorTerm((Requirement("zone", "Exists"),)),))),
    ),
    "a volume of a node by its name, which upstream does not pass": fits_none(
        waiting(),
        disk(
            affinity=NodeSelector(
                (NodeSelectorTerm(fields=(Requirement("metadata.name", "In", ("n1",)),)),)
            )
        ),
    ),
    "an affinity without terms": fits_none(waiting(), disk(affinity=NodeSelector())),
    "two claims and a volume": fits_none(waiting("a"), waiting("b"), disk()),
    "two claims and two volumes": fits_both(waiting("a"), waiting("b"), disk("x"), disk("y")),
    "two claims and volumes on two nodes": fits_none(
        waiting("a"), waiting("b"), disk("x", affinity=on("n1")), disk("y", affinity=on("n2"))
    ),
    "the smallest claim is matched first, whatever their order": fits_both(
        waiting("a", 45), waiting("b", 40), disk("x", 50), disk("y", 100)
    ),
    "a claim takes the smallest volume that fits": fits_both(
        waiting("a", 40), waiting("b", 60), disk("x", 100), disk("y", 50)
    ),
    "the first of the smallest volumes is taken, although the other claim needs it": fits_none(
        waiting("a", 40), waiting("b", 45, selector=FAST), disk("x", labels={"tier": "fast"}),
        disk("y"),
    ),
}  # fmt: skip

RESERVED = {
    "a volume that is kept for the claim": fits_both(waiting(), disk(claim=kept_for("data"))),
    "it may have any phase": fits_both(
        waiting(), disk(claim=kept_for("data"), available=False, access_modes=frozenset())
    ),
    "it may have the claim's UID": fits_both(
        waiting(uid="u"), disk(claim=kept_for("data", "u"))
    ),
    "it is not for an earlier claim of the same name": fits_none(
        waiting(uid="u"), disk(claim=kept_for("data", "old"))
    ),
    "it must be large enough": fits_none(waiting(), disk(size=30, claim=kept_for("data"))),
    "no other is used where its affinity does not match": fits_n1(
        waiting(), disk("kept", affinity=on("n1"), claim=kept_for("data")), disk("other")
    ),
    "it is used although another is smaller": fits_both(
        waiting("a", 40),
        waiting("b", 45),
        disk("small", 50),
        disk("kept", 100, claim=kept_for("a")),
    ),
}  # fmt: skip

PROVISIONING = {
    "a class with a provisioner": fits_both(NEW),
    "a class without a provisioner": fits_none(NEW, replace(DYNAMIC, provisioner="")),
    "a class for one zone": fits_n1(NEW, ZONAL),
    "a class for either zone": fits_both(
        NEW, replace(DYNAMIC, topologies=NodeSelector((term(zone="a"), term(zone="b"))))
    ),
    "a class with an empty term": fits_none(
        NEW, replace(DYNAMIC, topologies=NodeSelector((NodeSelectorTerm(),)))
    ),
    "a volume is preferred to provisioning": fits_both(
        NEW, ZONAL, disk(storage_class="dynamic", affinity=on("n2"))
    ),
    "a claim of each class": fits_n1(waiting("b"), HERE, replace(NEW, name="a")),
    "a selected node": fits_n1(replace(NEW, selected_node="n1")),
    "a selected node that is not allowed": fits_none(replace(NEW, selected_node="n2"), ZONAL),
    "a selected node without a name": fits_none(replace(NEW, selected_node="")),
    "a selected node and a volume": fits_none(waiting(selected_node="n1"), disk()),
    "claims with two selected nodes": fits_none(
        replace(NEW, name="a", selected_node="n1"), replace(NEW, name="b", selected_node="n2")
    ),
}

CAPACITY = {
    "enough in one zone": fits_n1(NEW, MEASURING, room("x", 40, zone="a"), otherwise=NO_STORAGE),
    "enough on every node": fits_both(NEW, MEASURING, room("x", 40)),
    "too little": fits_none(NEW, MEASURING, room("x", 39), because=NO_STORAGE),
    "enough in one of two": fits_both(NEW, MEASURING, room("x", 39), room("y", 40)),
    "an unknown amount": fits_none(NEW, MEASURING, room("x", None), because=NO_STORAGE),
    "no access from any node": fits_none(
        NEW, MEASURING, replace(room("x", 40), nodes=None), because=NO_STORAGE
    ),
    "of another class": fits_none(
        NEW, MEASURING, replace(room("x", 40), storage_class="other"), because=NO_STORAGE
    ),
    "no capacity object": fits_none(NEW, MEASURING, because=NO_STORAGE),
    "a driver that reports none": fits_both(NEW, replace(MEASURING, storage_capacity=False)),
    "claims are compared one by one": fits_both(
        waiting("a", 60, storage_class="dynamic"),
        waiting("b", 60, storage_class="dynamic"),
        MEASURING,
        room("x", 100),
    ),
    "a claim without a size": fits_both(replace(NEW, request=0), MEASURING),
    "the topology is compared first": fits_none(
        NEW,
        MEASURING,
        replace(DYNAMIC, topologies=NodeSelector((term(zone="c"),))),
    ),
}


@pytest.mark.parametrize(
    "case",
    [*MATCHING.values(), *RESERVED.values(), *PROVISIONING.values(), *CAPACITY.values()],
    ids=[*MATCHING, *RESERVED, *PROVISIONING, *CAPACITY],
)
@pytest.mark.parametrize("engine", [ReferenceEngine, VectorizedEngine])
def test_unbound_claims(case: Case, engine: type[ReferenceEngine | VectorizedEngine]) -> None:
    decision = engine(RULES).filter_nodes(case.pod, case.cluster)
    found = (without_causes(decision.rejected.get(name)) for name in ("n1", "n2"))
    assert tuple(found) == (case.n1, case.n2)
    assert decision.not_evaluated == set()


def test_reasons_of_bound_and_unbound_claims_are_combined_in_upstreams_order() -> None:
    away = PersistentVolume("away", affinity=on("n3"))
    moment = snapshot(*NODES, STATIC, waiting(), claim("bound", "away"), away)
    decision = decide_filter(pod(volumes=["data", "bound"]), moment, RULES)
    unbound = Reason(Code.NO_VOLUME_TO_BIND, "claim default/data")
    both = Reason(Code.VOLUME_AFFINITY, "claim default/bound, volume away"), unbound
    assert decision.rejected["n1"] == Rejection(both, resolvable=False)
    missing = snapshot(*NODES, STATIC, waiting(), claim("bound", "none"))
    decision = decide_filter(pod(volumes=["data", "bound"]), missing, RULES)
    both = unbound, Reason(Code.VOLUME_MISSING, "claim default/bound")
    assert decision.rejected["n1"] == Rejection(both, resolvable=False)


def test_a_claim_that_a_pod_mounts_twice_needs_two_volumes_as_upstream() -> None:
    twice = pod(volumes=["data", "data"])
    assert not decide_filter(twice, snapshot(*NODES, STATIC, waiting(), disk()), RULES).feasible
    two = snapshot(*NODES, STATIC, waiting(), disk("x"), disk("y"))
    assert decide_filter(twice, two, RULES).feasible == ("n1", "n2")


def test_the_claim_of_an_ephemeral_volume_is_found_a_volume() -> None:
    asking = pod(volumes=[ClaimVolume("pod-scratch", ephemeral=True)])
    moment = snapshot(*NODES, STATIC, waiting("pod-scratch", owner="pod"), HERE)
    assert decide_filter(asking, moment, RULES).feasible == ("n1",)


def test_only_a_node_with_a_volume_is_a_candidate() -> None:
    full = [pod(f"low-{name}", on=name, cpu="1") for name in ("n1", "n2")]
    nodes = [structs.replace(each, allocatable=node(cpu="1").allocatable) for each in NODES]
    moment = snapshot(*nodes, *full, STATIC, waiting(), HERE)
    asking = pod("vip", cpu="1", priority=10, volumes=["data"])
    decision = decide_preemption(asking, moment)
    assert set(decision.candidates) == {"n1"}
    assert without_causes(decision.rejected["n2"]) == NO_VOLUME


UNREADABLE_VOLUME = UnreadableObject(StorageKind.VOLUMES, "broken")
UNREADABLE_CAPACITY = UnreadableObject(StorageKind.CAPACITIES, "kube-system/broken")


@pytest.mark.parametrize(
    ("things", "unknown", "evaluated"),
    [
        ((waiting(), HERE), StorageKind.VOLUMES, False),
        ((waiting(), HERE), UNREADABLE_VOLUME, False),
        ((waiting(), HERE), StorageKind.DRIVERS, True),
        ((waiting(), HERE), StorageKind.CAPACITIES, True),
        ((replace(NEW, selected_node="n1"),), StorageKind.VOLUMES, True),
        ((NEW,), StorageKind.DRIVERS, False),
        ((NEW,), UnreadableObject(StorageKind.DRIVERS, "csi.example.com"), False),
        ((NEW,), UnreadableObject(StorageKind.DRIVERS, "other"), True),
        ((NEW,), StorageKind.CAPACITIES, True),
        ((NEW, MEASURING), StorageKind.CAPACITIES, False),
        ((NEW, MEASURING, room("x", 40)), UNREADABLE_CAPACITY, False),
    ],
)
def test_a_pod_whose_volumes_may_be_unknown_is_not_evaluated(
    things: Sequence[StorageObject], unknown: StorageKind | UnreadableObject, *, evaluated: bool
) -> None:
    case = Case(things, None, None)
    storage = case.cluster.storage
    if isinstance(unknown, StorageKind):
        storage = replace(storage, unknown=frozenset([unknown]))
    else:
        storage = replace(storage, unreadable=frozenset([unknown]))
    decision = decide_filter(case.pod, replace(case.cluster, storage=storage), RULES)
    assert decision.not_evaluated == (set() if evaluated else {"VolumeBinding"})
    assert evaluated or decision.feasible == ("n1", "n2")


@pytest.mark.parametrize(("release", "evaluated"), [("1.33", False), ("1.34", True)])
def test_an_attributes_class_is_an_error_where_the_feature_is_off(
    release: str, *, evaluated: bool
) -> None:
    case = fits_none(waiting(attributes_class="gold"))
    rules = SchedulerRules(RELEASES[release], RULES.filters)
    decision = decide_filter(case.pod, case.cluster, rules)
    assert decision.not_evaluated == (set() if evaluated else {"VolumeBinding"})


LABEL_VALUES = st.sampled_from("abc")
REQUIREMENTS = st.builds(
    Requirement,
    st.sampled_from(["zone", "host"]),
    st.sampled_from(["In", "In", "NotIn"]),
    st.lists(LABEL_VALUES, min_size=1, max_size=2, unique=True).map(tuple),
) | st.builds(Requirement, st.just("zone"), st.sampled_from(["Exists", "DoesNotExist"]))
ALTERNATIVES = st.lists(st.lists(REQUIREMENTS, max_size=2), max_size=2)


def meets(labels: Mapping[str, str], alternatives: Sequence[Sequence[Requirement]]) -> bool:
    return any(all(each.matches(labels) for each in required) for required in alternatives)


@given(
    st.lists(ALTERNATIVES, max_size=4),
    st.dictionaries(st.sampled_from(["zone", "host"]), LABEL_VALUES),
    st.sets(st.sampled_from("0123")),
)
def test_the_first_name_is_found_by_labels_as_by_comparing_all(
    several: list[list[list[Requirement]]], labels: dict[str, str], excluded: set[str]
) -> None:
    entries = [(str(place), alternatives) for place, alternatives in enumerate(several)]
    index = FirstByLabels(entries)
    fitting = [name for name, alternatives in entries if meets(labels, alternatives)]
    expected = next((name for name in fitting if name not in excluded), None)
    assert index.first(labels, excluded) == expected
    passing = index.passing_values()
    if passing is not None and labels.get(passing.key) in passing.values:
        assert fitting
