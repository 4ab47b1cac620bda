"""Both engines make the same decisions: candidates, victims, reasons and messages."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st
from msgspec import structs

from policies import SchedulerRules, Snapshot
from policies.kubernetes.criteria import Criterion
from policies.kubernetes.releases import NEWEST, RELEASES, Release, release
from policies.kubernetes.selectors import (
    NodeSelector,
    NodeSelectorTerm,
    field_requirement,
    node_requirement,
)
from policies.kubernetes.snapshot import Pod
from policies.preemption.decision import Candidate
from policies.preemption.filtering import IN_TREE, Filter, FilterSettings, configured_filters
from policies.preemption.guards.victim_guard import protected_pods
from policies.preemption.policy import (
    CANDIDATE_CRITERIA,
    KUBE_SCHEDULER,
    POD_CRITERIA,
    Policy,
    pod_order,
)
from policies.preemption.reference_engine import filter_nodes, filter_with_terminating_pods, preempt
from policies.preemption.vectorized import VectorizedEngine
from policies.testing.strategies import (
    NODES,
    SCHEDULERS,
    Cluster,
    clusters,
    deferred_resizes,
    grouped_clusters,
    rich_clusters,
)
from tests.properties.engines import assert_agreement
from tests.properties.storages import clusters_with_devices, clusters_with_volumes

GROUPED_RELEASES = [
    NEWEST,
    release("1.38", {"CompositePodGroup": True}),
    release("1.37", {"GenericWorkload": True}),
    release(
        "1.36",
        {"GenericWorkload": True, "GangScheduling": True, "WorkloadAwarePreemption": True},
    ),
]
releases = st.sampled_from([*RELEASES.values(), release("1.37", {"AllAlpha": True})])


def agree(
    rules: SchedulerRules, pod: Pod, snapshot: Snapshot, engine: VectorizedEngine | None = None
) -> None:
    event(f"{len(assert_agreement(pod, snapshot, rules, engine).candidates)} candidate(s)")


@given(clusters(), releases)
def test_resources_and_ports(cluster: Cluster, release: Release) -> None:
    agree(SchedulerRules(release), cluster.preemptor, cluster.snapshot)


@given(rich_clusters(), releases, st.frozensets(st.sampled_from(SCHEDULERS)))
def test_all_features(cluster: Cluster, release: Release, names: frozenset[str]) -> None:
    rules = SchedulerRules(release, scheduler_names=names)
    agree(rules, cluster.preemptor, cluster.snapshot)


@given(grouped_clusters(), st.sampled_from(GROUPED_RELEASES))
def test_pod_groups(cluster: Cluster, release: Release) -> None:
    rules, pod, snapshot = SchedulerRules(release), cluster.preemptor, cluster.snapshot
    agree(rules, pod, snapshot)
    names = list(snapshot.nodes)
    lenient = filter_with_terminating_pods(pod, snapshot, rules, names)
    assert VectorizedEngine(rules).filter_with_terminating_pods(pod, snapshot, names) == lenient


@given(deferred_resizes(), releases)
def test_deferred_resizes(cluster: Cluster, release: Release) -> None:
    agree(SchedulerRules(release), cluster.preemptor, cluster.snapshot)


@given(st.lists(rich_clusters(), min_size=2, max_size=4), releases)
def test_columns_that_have_followed_one_cluster_after_another(
    history: list[Cluster], release: Release
) -> None:
    """Decide on each cluster with the columns of those before it."""
    rules = SchedulerRules(release)
    engine = VectorizedEngine(rules)
    for cluster in history:
        agree(rules, cluster.preemptor, cluster.snapshot, engine)


@given(rich_clusters(), releases, st.data())
def test_any_nodes_tried_and_any_filtered(
    cluster: Cluster, release: Release, data: st.DataObject
) -> None:
    rules, pod, snapshot = SchedulerRules(release), cluster.preemptor, cluster.snapshot
    names = list(snapshot.nodes)
    among = data.draw(st.lists(st.sampled_from([*names, "unknown"]), unique=True), label="among")
    potential = data.draw(st.lists(st.sampled_from([*NODES, "unknown"])), label="potential")
    engine = VectorizedEngine(rules)
    assert engine.filter_nodes(pod, snapshot, among) == filter_nodes(pod, snapshot, rules, among)
    lenient = filter_with_terminating_pods(pod, snapshot, rules, among)
    assert engine.filter_with_terminating_pods(pod, snapshot, among) == lenient
    assert engine.preempt(pod, snapshot, potential, among) == preempt(
        pod, snapshot, rules, potential, among
    )


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Draw criteria in any order, some left out, some home-made; and pods that are protected."""
    youngest: Criterion[Pod] = Criterion("youngest", lambda pod: -(pod.started_ns or 0))
    longest: Criterion[Candidate] = Criterion(
        "longest name", lambda candidate: -len(candidate.node)
    )
    pods = st.sampled_from([*POD_CRITERIA.values(), youngest])
    candidates = st.sampled_from([*CANDIDATE_CRITERIA.values(), longest])
    guard = protected_pods("web pods", lambda pod: pod.labels.get("app") == "web")
    return Policy(
        "drawn",
        pod_order(tuple(draw(st.lists(pods, unique_by=id)))),
        tuple(draw(st.lists(candidates, unique_by=id))),
        draw(st.sampled_from([(), (guard,)])),
    )


@given(rich_clusters(), policies())
def test_any_policy(cluster: Cluster, policy: Policy) -> None:
    rules = SchedulerRules(NEWEST, policy=policy)
    agree(rules, cluster.preemptor, cluster.snapshot)


@given(rich_clusters(), releases, st.lists(st.sampled_from(IN_TREE), unique=True))
def test_any_filters(cluster: Cluster, release: Release, chosen: list[Filter]) -> None:
    rules = SchedulerRules(
        release, tuple(each for each in IN_TREE if each in chosen), KUBE_SCHEDULER
    )
    agree(rules, cluster.preemptor, cluster.snapshot)


@given(clusters_with_volumes(), releases)
def test_volumes_and_devices(drawn: tuple[Pod, Snapshot], release: Release) -> None:
    agree(SchedulerRules(release), *drawn)


filters = st.sampled_from([IN_TREE, configured_filters(FilterSettings(frees_victims=True))])


@given(clusters_with_devices(), releases, filters)
def test_devices_to_allocate(
    drawn: tuple[Pod, Snapshot], release: Release, filters: tuple[Filter, ...]
) -> None:
    agree(SchedulerRules(release, filters), *drawn)


@st.composite
def node_affinities(draw: st.DrawFn) -> NodeSelector:
    """Draw terms for nodes by their names, their labels, or both."""
    names = st.sampled_from([*NODES, "unknown"])
    fields = st.builds(field_requirement, st.just("metadata.name"), in_or_not, names.map(_alone))
    labels = st.builds(
        node_requirement, st.sampled_from(["zone", "host"]), in_or_not, st.just(("a", "node-1"))
    ) | st.just(node_requirement("zone", "DoesNotExist", ()))
    terms = st.builds(
        NodeSelectorTerm,
        st.lists(labels, max_size=1).map(tuple),
        st.lists(fields, max_size=2).map(tuple),
    )
    return NodeSelector(tuple(draw(st.lists(terms, max_size=2))))


in_or_not = st.sampled_from(["In", "In", "NotIn"])


def _alone(name: str) -> tuple[str]:
    return (name,)


@given(
    rich_clusters(),
    releases,
    st.none() | node_affinities(),
    st.none() | node_affinities(),
    st.data(),
)
def test_node_affinity_and_node_names(
    cluster: Cluster,
    release: Release,
    affinity: NodeSelector | None,
    added: NodeSelector | None,
    data: st.DataObject,
) -> None:
    rules = SchedulerRules(release, configured_filters(FilterSettings(added_affinity=added)))
    named = data.draw(st.sampled_from([None, None, None, "node-1", "unknown"]), label="named")
    asking = structs.replace(cluster.preemptor, node_affinity=affinity, node_name=named)
    agree(rules, asking, cluster.snapshot)


@given(rich_clusters(), releases, st.data())
def test_pods_that_columns_cannot_represent(
    cluster: Cluster, release: Release, data: st.DataObject
) -> None:
    """Draw amounts beyond 64 bits, and UIDs and host ports that pods of a node share.

    The preemptor has a UID of its own: a pod that is on a node does not preempt.
    """

    def distorted(pod: Pod) -> Pod:
        amount = data.draw(st.sampled_from([0, 0, 2**52 + 1, 2**70, -(2**70), -1]))
        uid = data.draw(st.sampled_from([pod.uid, "the same"]))
        requests = structs.replace(pod.requests, memory=amount)
        return structs.replace(
            pod, uid=uid, requests=requests, host_ports=cluster.preemptor.host_ports
        )

    rules = SchedulerRules(release)
    pods = tuple(distorted(pod) for pod in cluster.pods)
    odd = replace(cluster, pods=pods)
    preemptor = structs.replace(distorted(cluster.preemptor), uid=cluster.preemptor.uid)
    agree(rules, preemptor, odd.snapshot)
