"""A unit of which another pod may be on a node is named only as kube-scheduler offers it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import msgspec
import pytest
from msgspec import structs

from extender.cluster.scheduler_cache import SchedulerCache
from extender.kube.decoders.pods import decode_pod
from extender.kube.decoders.typed_decoder import Unreadable, tolerant_decoder
from extender.protocol.extender_v1 import CandidateVictims
from extender.protocol.preempt_verb import PreemptArgs
from extender.protocol.verb_context import CallContext, Search, VerbResult
from policies.kubernetes.pod_groups import PodGroup
from policies.kubernetes.releases import release
from policies.kubernetes.snapshot import Pod
from policies.preemption.policy import SchedulerRules
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import encoded, node, pod, pod_group, pod_json

RULES: Final = SchedulerRules(release("1.37", {"GenericWorkload": True, "CompositePodGroup": True}))
VIP: Final = pod("vip", cpu="2", priority=100)
G1: Final = pod("g1", on="n1", cpu="4", priority=10, group="g")
G2: Final = pod("g2", cpu="2", priority=10, group="g")
X: Final = pod("x", on="n2", cpu="4", priority=90)
GANG: Final = pod_group("g", priority=10)


def malformed(name: str, on: str, group: str = "g", phase: str = "Running") -> Pod | Unreadable:
    """Return a pod whose start time cannot be decoded, as a reflector reads it."""
    spec = {"schedulingGroup": {"podGroupName": group}}
    document = pod_json(name, on=on, spec=spec, status={"phase": phase, "startTime": "yesterday"})
    return tolerant_decoder("Pod", lambda raw: decode_pod(raw, RULES.release))(encoded(document))


@dataclass(frozen=True)
class Call:
    """A preempt call on a cluster of two nodes, and its answer."""

    pods: Collection[Pod | Unreadable]
    groups: Collection[PodGroup] = (GANG,)
    composites: Collection[PodGroup] = ()

    def answered(self, search: Search, **offers: tuple[str, ...]) -> VerbResult:
        cluster = SchedulerCache(lambda: 0.0)
        for name in ("n1", "n2", "n3"):
            cluster.nodes.upsert(node(name, cpu="4"))
        for each in self.pods:
            cluster.pods.upsert(each)
        for group in self.groups:
            cluster.pod_groups.groups.upsert(group)
        for group in self.composites:
            cluster.pod_groups.composites.upsert(group)
        engine = VectorizedEngine(RULES)
        pending = cluster.pods.pending
        context = CallContext(cluster.snapshot(), engine, search, pending_pods=pending)
        args = PreemptArgs(VIP, {n: CandidateVictims(uids, 0) for n, uids in offers.items()})
        return args.decide(context)

    def named(self, search: Search, **offers: tuple[str, ...]) -> dict[str, set[str]]:
        body = msgspec.json.decode(self.answered(search, **offers).body)
        entries = body["NodeNameToMetaVictims"].items()
        return {name: {each["UID"] for each in entry["Pods"]} for name, entry in entries}


FULL: Final = pod("full", on="n3", cpu="4", priority=100)
UNCERTAIN: Final = {
    "not decoded": malformed("g2", on="n3"),
    "may be assumed on its nominated node": structs.replace(
        G2, nominated_node="n3", may_be_assumed=True
    ),
    "may be assumed on any node": G2,
}


@pytest.mark.parametrize("member", UNCERTAIN.values(), ids=UNCERTAIN)
def test_an_own_search_never_names_the_unit(member: Pod | Unreadable) -> None:
    call = Call([G1, member, X, FULL])
    assert call.named(Search.CLUSTER, n2=("x",)) == {"n2": {"x"}}
    notes = call.answered(Search.CLUSTER, n2=("x",)).notes
    assert any("Pod default/g2" in note and "default/g" in note for note in notes)
    assert Call([G1, member, FULL, structs.replace(X, priority=100)]).named(Search.CLUSTER) == {}


@pytest.mark.parametrize("member", UNCERTAIN.values(), ids=UNCERTAIN)
def test_an_offer_is_passed_on_if_the_unit_is_whole_without_the_pod(
    member: Pod | Unreadable,
) -> None:
    call = Call([G1, member, X, FULL])
    assert call.named(Search.OFFERED, n1=("g1",)) == {"n1": {"g1"}}
    assert call.named(Search.OFFERED, n1=("g1", "g2")) == {}


CERTAIN: Final = {
    "of another group": structs.replace(G2, group="other"),
    "of another namespace": structs.replace(G2, namespace="other"),
    "of no group": structs.replace(G2, group=""),
    "waits for victims": structs.replace(G2, nominated_node="n3"),
    "finished, not decoded": malformed("g2", on="n3", phase="Failed"),
    "of another group, not decoded": malformed("g2", on="n2", group="other"),
}


@pytest.mark.parametrize("other", CERTAIN.values(), ids=CERTAIN)
def test_other_pods_do_not_matter(other: Pod | Unreadable) -> None:
    call = Call([G1, other, FULL], groups=[GANG, pod_group("other")])
    assert call.named(Search.CLUSTER, n1=("g1",)) == {"n1": {"g1"}}


def test_a_pod_of_mode_single_is_certain_whatever_its_group_has() -> None:
    call = Call([G1, G2, X, FULL], groups=[pod_group("g", "single", priority=10)])
    assert call.named(Search.CLUSTER, n1=("g1",)) == {"n1": {"g1"}}


def test_the_unit_is_certain_again_once_the_pod_is_known() -> None:
    cluster = SchedulerCache(lambda: 0.0)
    cluster.pods.upsert(G2)
    assert cluster.snapshot().unplaced_members == {"default/g": ("default/g2",)}
    cluster.pods.upsert(malformed("g2", on="n3"))
    assert cluster.snapshot().unplaced_members == {"default/g": ("default/g2",)}
    cluster.pods.upsert(structs.replace(G2, node_name="n3"))
    assert cluster.snapshot().unplaced_members == {}
    cluster.pods.upsert(structs.replace(G2, finished=True))
    assert cluster.snapshot().unplaced_members == {}


def test_an_offered_pod_that_is_assumed_completes_the_unit() -> None:
    assumed = structs.replace(G2, nominated_node="n1", may_be_assumed=True)
    call = Call(
        [structs.replace(G1, requests=X.requests), assumed, FULL, structs.replace(X, priority=100)]
    )
    assert call.named(Search.OFFERED, n1=("g1", "g2")) == {"n1": {"g1", "g2"}}


def test_a_group_that_may_belong_to_the_same_tree_makes_its_unit_uncertain() -> None:
    top, below = pod_group("top", priority=10), pod_group("g", "single", parent="top")
    members = [G1, structs.replace(G2, node_name="n3", group="h"), X]
    known = Call(members, [below, pod_group("h", "single")], [top])
    assert known.named(Search.CLUSTER) == {"n1": {"g1"}}
    for groups in ([below], [below, pod_group("h", "single", parent="missing")]):
        unknown = Call(members, groups, [top])
        assert unknown.named(Search.CLUSTER, n2=("x",)) == {"n2": {"x"}}
