"""Both engines make the same decisions: candidates, victims, reasons and messages."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import event, given
from hypothesis import strategies as st

from policies import SchedulerRules, Snapshot
from policies.kubernetes.criteria import Criterion
from policies.kubernetes.devices import ExtendedRequest
from policies.kubernetes.releases import NEWEST, RELEASES, Release, release
from policies.kubernetes.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    equals_all,
    field_requirement,
    node_requirement,
)
from policies.kubernetes.snapshot import Pod
from policies.kubernetes.storage import (
    NO_STORAGE,
    ClaimReference,
    ClaimVolume,
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    DeviceClaim,
    PodStorage,
    ResourceClaim,
    Storage,
    StorageKind,
    UnreadableObject,
)
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
from policies.testing.storage import build_storage
from policies.testing.strategies import (
    DEVICE,
    NODES,
    SCHEDULERS,
    Cluster,
    clusters,
    deferred_resizes,
    grouped_clusters,
    rich_clusters,
)
from tests.builders import LATE, claim, late_claim, volume
from tests.builders.devices import GPU, gpu, gpu_claim, gpus, held_by, request, same
from tests.properties.engines import assert_agreement

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


BEHIND = build_storage(
    [
        claim("data", "pv"),
        claim("single", "pv", access_modes=frozenset({"ReadWriteOncePod"})),
        late_claim("late"),
        LATE,
        volume("pv", "handle"),
        CsiNode("node-1", frozenset(["csi.example.com"]), {"csi.example.com": 0}),
        ResourceClaim("default", "gpu", allocated=True),
        ResourceClaim("default", "unallocated"),
    ]
)
UNKNOWN = build_storage([], unknown=list(StorageKind))
node_labels = st.sampled_from(
    [
        None,
        NodeSelector((NodeSelectorTerm(equals_all({"zone": "a"})),)),
        NodeSelector((NodeSelectorTerm(equals_all({"host": "node-1"})), NodeSelectorTerm())),
        NodeSelector((NodeSelectorTerm((node_requirement("zone", "Exists", ()),)),)),
    ]
)


@st.composite
def unbound_storages(draw: st.DrawFn) -> Storage:
    """Draw what the claim "late" and two others like it can be bound to, if anything."""
    names = st.sampled_from(["late", "later", "latest"])
    sizes = st.integers(0, 3)
    capacities = st.sampled_from([LabelSelector(), LabelSelector(equals_all({"zone": "b"})), None])
    provisioner = draw(st.sampled_from([LATE.provisioner, "kubernetes.io/no-provisioner"]))
    selected = st.sampled_from([None, None, None, "node-1"])
    claims = [
        late_claim(name, request=draw(sizes), selected_node=draw(selected))
        for name in ("late", "later", "latest")
    ]
    volumes = [
        volume(
            f"pv-{number}",
            affinity=draw(node_labels),
            available=True,
            storage_class=LATE.name,
            capacity=draw(sizes),
            claim=draw(st.none() | names.map(lambda name: ClaimReference("default", name))),
        )
        for number in range(draw(st.integers(0, 3)))
    ]
    driver = CsiDriver(LATE.provisioner, storage_capacity=draw(st.booleans()))
    capacity = CsiStorageCapacity("x", "x", LATE.name, draw(capacities), draw(sizes))
    storage_class = replace(LATE, provisioner=provisioner, topologies=draw(node_labels))
    return build_storage([*claims, *volumes, driver, capacity, storage_class])


storages = st.sampled_from([BEHIND, BEHIND, NO_STORAGE, UNKNOWN]) | unbound_storages()
unreadable = st.frozensets(
    st.sampled_from(
        [
            UnreadableObject(StorageKind.CLAIMS, "default/missing"),
            UnreadableObject(StorageKind.CSI_NODES, "node-2"),
            UnreadableObject(StorageKind.VOLUMES, "pv-9"),
            UnreadableObject(StorageKind.ATTACHMENTS, "attachment"),
        ]
    ),
    max_size=2,
)
claim_names = ["data", "single", "late", "later", "latest", "missing"]
claimed = st.sampled_from(claim_names).map(ClaimVolume)
devices = st.sampled_from(["gpu", "unallocated", "missing"]).map(
    lambda name: DeviceClaim(name, name)
)
behind_pods = st.none() | st.builds(
    PodStorage, st.lists(claimed, max_size=2).map(tuple), st.lists(devices, max_size=1).map(tuple)
)


@given(rich_clusters(), releases, storages, st.data())
def test_volumes_and_devices(
    cluster: Cluster, release: Release, storage: Storage, data: st.DataObject
) -> None:
    def claiming(pod: Pod) -> Pod:
        return replace(pod, namespace="default", storage=data.draw(behind_pods))

    pods = tuple(claiming(pod) for pod in cluster.pods)
    storage = replace(storage, unreadable=data.draw(unreadable))
    snapshot = replace(replace(cluster, pods=pods).snapshot, storage=storage)
    rules = SchedulerRules(release)
    agree(rules, claiming(cluster.preemptor), snapshot)


@st.composite
def published_devices(draw: st.DrawFn) -> Storage:
    """Draw devices of two kinds on some nodes, claims that hold some, and claims to allocate."""
    kinds, sizes = st.sampled_from(["a", "b"]), st.integers(0, 3)
    on = {name: [gpu(f"gpu-{n}", kind=draw(kinds)) for n in range(draw(sizes))] for name in NODES}
    odd = gpu("odd", kind="a", others={"unsupported": "compatibilityGroups"})
    slices = [
        gpus(name, *found, *draw(st.sampled_from([(), (), (odd,)])), count=draw(st.integers(1, 2)))
        for name, found in on.items()
        if found
    ]
    users = st.frozensets(st.sampled_from(["pod-0", "pod-1", "pod-2", "gone"]), max_size=2)
    held = (
        replace(
            held_by(f"{name}-{device}", name, device),
            reserved_for=draw(users),
            used_by_others=draw(st.sampled_from([False, False, False, True])),
        )
        for name in NODES
        for device in draw(st.sets(st.sampled_from(["gpu-0", "gpu-1"])))
    )
    backing = replace(GPU, resource=draw(st.sampled_from(["", DEVICE])))
    wanted = (
        gpu_claim("one"),
        gpu_claim("alike", request(count=2), constraints=(same("kind"),)),
        gpu_claim("every", request(count=None)),
    )
    unknown = draw(st.sets(st.sampled_from(list(StorageKind)), max_size=1))
    return build_storage([backing, *slices, *held, *wanted], draw(st.sampled_from([(), unknown])))


device_claims = st.lists(st.sampled_from(["one", "alike", "every"]), unique=True, max_size=2)


filters = st.sampled_from([IN_TREE, configured_filters(FilterSettings(frees_victims=True))])


@given(rich_clusters(), releases, published_devices(), device_claims, filters)
def test_devices_to_allocate(
    cluster: Cluster,
    release: Release,
    storage: Storage,
    wanted: list[str],
    filters: tuple[Filter, ...],
) -> None:
    behind = PodStorage(devices=tuple(DeviceClaim(name, name) for name in wanted))
    asked = cluster.preemptor
    count = asked.requests.scalars.get(DEVICE, 0)
    extended = (ExtendedRequest("container-0-request-0", DEVICE, count),) if count else ()
    asking = replace(asked, namespace="default", storage=behind, extended_requests=extended)
    agree(SchedulerRules(release, filters), asking, replace(cluster.snapshot, storage=storage))


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
    asking = replace(cluster.preemptor, node_affinity=affinity, node_name=named)
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
        requests = replace(pod.requests, memory=amount)
        return replace(pod, uid=uid, requests=requests, host_ports=cluster.preemptor.host_ports)

    rules = SchedulerRules(release)
    pods = tuple(distorted(pod) for pod in cluster.pods)
    odd = replace(cluster, pods=pods)
    preemptor = replace(distorted(cluster.preemptor), uid=cluster.preemptor.uid)
    agree(rules, preemptor, odd.snapshot)
