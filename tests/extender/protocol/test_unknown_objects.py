"""An object that is missing, forbidden or half-written never lets preemption choose a node by it.

The pod fits on two nodes. With all objects, a search over the cluster chooses the node with the
less important pod. Without one of them, the answer is what kube-scheduler offers on the other node,
and the decision names the object, or its kind where all of them are unknown.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from extender.cluster.object_stores import ObjectStore
from extender.cluster.scheduler_cache import SchedulerCache
from extender.kube.decoders.typed_decoder import Unreadable
from extender.protocol.extender_v1 import CandidateVictims
from extender.protocol.preempt_verb import PreemptArgs
from extender.protocol.verb_context import CallContext, Search, VerbResult
from policies.kubernetes.pod_groups import PodGroup
from policies.kubernetes.releases import release
from policies.kubernetes.selectors import LabelSelector, equals_all
from policies.kubernetes.snapshot import Pod
from policies.kubernetes.storage import (
    CsiNode,
    CsiStorageCapacity,
    DeviceClaim,
    VolumeAttachment,
)
from policies.preemption.engine import Engine
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine
from policies.preemption.vectorized import VectorizedEngine
from policies.testing.storage import StorageObject
from tests.builders import LATE, MEASURED, claim, late_claim, node, pod, pod_group, volume
from tests.builders.devices import GPU, gpu, gpu_claim, gpus, uses

RULES: Final = SchedulerRules(release("1.38", {"CompositePodGroup": True}))
ZONES: Final = {"n1": {"zone": "a"}, "n2": {"zone": "b"}}
LESS: Final = pod("less", on="n1", cpu="4", priority=1)
MORE: Final = pod("more", on="n2", cpu="4", priority=2)
PLAIN: Final = pod("vip", cpu="4", priority=10)
OFFER: Final = {"n2": CandidateVictims(("more",), 0)}
ANSWER: Final = {"n2": {"more"}}

Object = StorageObject | PodGroup
STORES: Final = {
    "PersistentVolumeClaim": "claims",
    "PersistentVolume": "volumes",
    "StorageClass": "classes",
    "CSINode": "csi_nodes",
    "CSIDriver": "drivers",
    "CSIStorageCapacity": "capacities",
    "VolumeAttachment": "attachments",
    "ResourceClaim": "devices",
    "ResourceSlice": "slices",
    "DeviceClass": "device_classes",
    "DeviceTaintRule": "taint_rules",
}
"""The stores of kinds behind volumes and device claims."""


class Stage(NamedTuple):
    """The preemptor, the less important pod, and the objects that they need, by kind."""

    vip: Pod
    less: Pod = LESS
    objects: tuple[tuple[str, Object], ...] = ()


def capacity(zone: str) -> CsiStorageCapacity:
    zones = LabelSelector(equals_all({"zone": zone}))
    return CsiStorageCapacity("default", f"room-{zone}", LATE.name, zones, largest=2**40)


BOUND: Final = Stage(
    replace(PLAIN, storage=pod(volumes=["data"]).storage),
    objects=(
        ("PersistentVolumeClaim", claim("data", "pv-1")),
        ("PersistentVolume", volume("pv-1", "handle")),
        ("CSINode", CsiNode("n1", frozenset({"csi.example.com"}), {"csi.example.com": 3})),
        ("VolumeAttachment", VolumeAttachment("at-1", "n1", "csi.example.com", "pv-9")),
    ),
)
LATE_BOUND: Final = Stage(
    BOUND.vip,
    objects=(
        ("PersistentVolumeClaim", late_claim(request=1)),
        ("StorageClass", LATE),
        ("CSIDriver", MEASURED),
        ("CSIStorageCapacity", capacity("a")),
        ("CSIStorageCapacity", capacity("b")),
    ),
)
DEVICES: Final = Stage(
    replace(PLAIN, storage=pod(devices=uses("gpu-claim")).storage),
    objects=(
        ("ResourceClaim", gpu_claim("gpu-claim")),
        ("DeviceClass", GPU),
        ("ResourceSlice", gpus("n1", gpu("gpu-0"), count=1)),
        ("ResourceSlice", gpus("n2", gpu("gpu-0"), count=1)),
    ),
)
GROUPED: Final = Stage(
    PLAIN,
    replace(LESS, group="g"),
    (
        ("PodGroup", pod_group("g", "single", priority=1, parent="top")),
        ("CompositePodGroup", pod_group("top", "single", priority=1)),
    ),
)
UNMADE: Final = Stage(
    replace(PLAIN, storage=pod(devices=[DeviceClaim("gpu-claim", None, templated=True)]).storage)
)
"""A pod whose claim has not been made from its ResourceClaimTemplate."""


class Unknown(NamedTuple):
    """A cluster of which ``kind`` is forbidden, or one object of it not readable or missing."""

    stage: Stage
    kind: str = ""
    state: str = ""
    name: str = ""

    def cluster(self) -> SchedulerCache:
        cluster = SchedulerCache(lambda: 0.0)
        for name, labels in ZONES.items():
            cluster.nodes.upsert(node(name, cpu="4", labels=labels))
        for each in (self.stage.less, MORE):
            cluster.pods.upsert(each)
        for kind in STORES:
            if (kind, "forbidden") != (self.kind, self.state):
                self._store(cluster, kind).replace([])
        for kind, thing in self.stage.objects:
            self._put(self._store(cluster, kind), kind, thing)
        if self.state == "half-written":  # also where no valid object is needed
            self._put_broken(self._store(cluster, self.kind))
        return cluster

    def _store(self, cluster: SchedulerCache, kind: str) -> ObjectStore[Any]:
        groups = {"PodGroup": "groups", "CompositePodGroup": "composites"}
        owner = cluster.pod_groups if kind in groups else cluster.storage
        store: ObjectStore[Any] = getattr(owner, {**STORES, **groups}[kind])
        return store

    def _put(self, store: ObjectStore[Any], kind: str, thing: Object) -> None:
        name = thing.name
        if kind != self.kind or (self.state != "forbidden" and name != self.name):
            store.upsert(thing)

    def _put_broken(self, store: ObjectStore[Any]) -> None:
        namespaced = self.kind.endswith(("Claim", "Capacity", "Group"))
        namespace = "default" if namespaced else ""
        store.upsert(Unreadable(self.kind, namespace, self.name, "", None, "why"))

    def answered(
        self, engine: Engine, search: Search, offers: dict[str, CandidateVictims]
    ) -> VerbResult:
        context = CallContext(self.cluster().snapshot(), engine, search)
        return PreemptArgs(self.stage.vip, offers).decide(context)


def named(result: VerbResult) -> dict[str, set[str]]:
    entries = msgspec.json.decode(result.body)["NodeNameToMetaVictims"].items()
    return {name: {each["UID"] for each in entry["Pods"]} for name, entry in entries}


def told(result: VerbResult) -> str:
    """Return the texts of a decision."""
    return "\n".join([*result.notes, *map(str, result.decision.rejected.values())])


engines = pytest.mark.parametrize("engine", [ReferenceEngine(RULES), VectorizedEngine(RULES)])


@engines
@pytest.mark.parametrize("stage", [BOUND, LATE_BOUND, DEVICES, GROUPED])
def test_with_all_objects_the_search_chooses_the_better_node(stage: Stage, engine: Engine) -> None:
    assert named(Unknown(stage).answered(engine, Search.CLUSTER, OFFER)) == {"n1": {"less"}}


CASES: Final = [
    *[
        Unknown(stage, kind, state, name)
        for stage, kind, name in (
            (BOUND, "PersistentVolumeClaim", "data"),
            (BOUND, "PersistentVolume", "pv-1"),
            (LATE_BOUND, "PersistentVolumeClaim", "data"),
            (LATE_BOUND, "StorageClass", "late"),
            (LATE_BOUND, "CSIStorageCapacity", "room-a"),
            (DEVICES, "ResourceClaim", "gpu-claim"),
            (DEVICES, "DeviceClass", "gpu"),
            (DEVICES, "ResourceSlice", "n1-gpus"),
            (GROUPED, "PodGroup", "g"),
            (GROUPED, "CompositePodGroup", "top"),
        )
        for state in ("missing", "forbidden", "half-written")
    ],
    # kube-scheduler takes a missing object of these kinds for one that does not limit anything.
    *[
        Unknown(stage, kind, state, name)
        for stage, kind, name in (
            (BOUND, "CSINode", "n1"),
            (BOUND, "VolumeAttachment", "at-1"),
            (LATE_BOUND, "CSIDriver", "csi.example.com"),
            (LATE_BOUND, "PersistentVolume", "pv-2"),
            (DEVICES, "DeviceTaintRule", "rule"),
        )
        for state in ("forbidden", "half-written")
    ],
    Unknown(UNMADE, "ResourceClaimTemplate", "missing", "vip"),
]


@engines
@pytest.mark.parametrize("search", Search)
@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"{case.kind} {case.name} {case.state}".strip()
)
def test_the_answer_is_kube_schedulers_own_and_names_the_object(
    case: Unknown, search: Search, engine: Engine
) -> None:
    result = case.answered(engine, search, OFFER)
    assert named(result) == ANSWER
    if search is Search.CLUSTER:
        plural = f"{case.kind.lower()}s".replace("classs", "classes").replace("ys", "ies")
        text = told(result)
        # Nothing refers to a slice or a capacity: a missing one cannot be named.
        nameless = case.state == "missing" and case.name in ("n1-gpus", "room-a")
        assert nameless or case.name in text or (case.state == "forbidden" and plural in text)
        assert "n1" not in named(case.answered(engine, search, {}))
