"""Random clusters with volumes and devices, and with what these refer to."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from msgspec import structs

from policies.kubernetes.devices import ExtendedRequest
from policies.kubernetes.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    equals_all,
    node_requirement,
)
from policies.kubernetes.snapshot import Pod, Snapshot
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
from policies.testing.storage import build_storage
from policies.testing.strategies import DEVICE, NODES, rich_clusters
from tests.builders import LATE, claim, late_claim, volume
from tests.builders.devices import GPU, gpu, gpu_claim, gpus, held_by, request, same

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


@st.composite
def clusters_with_volumes(draw: st.DrawFn) -> tuple[Pod, Snapshot]:
    """Draw a preemptor and a cluster whose pods have volumes and devices, most of them known."""

    def claiming(pod: Pod) -> Pod:
        return structs.replace(pod, namespace="default", storage=draw(behind_pods))

    cluster = draw(rich_clusters())
    pods = tuple(claiming(pod) for pod in cluster.pods)
    storage = replace(draw(storages), unreadable=draw(unreadable))
    snapshot = replace(replace(cluster, pods=pods).snapshot, storage=storage)
    return claiming(cluster.preemptor), snapshot


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


@st.composite
def clusters_with_devices(draw: st.DrawFn) -> tuple[Pod, Snapshot]:
    """Draw a preemptor that needs devices, and a cluster that publishes some."""
    names = draw(st.lists(st.sampled_from(["one", "alike", "every"]), unique=True, max_size=2))
    behind = PodStorage(devices=tuple(DeviceClaim(name, name) for name in names))
    cluster = draw(rich_clusters())
    asked = cluster.preemptor
    count = asked.requests.scalars.get(DEVICE, 0)
    extended = (ExtendedRequest("container-0-request-0", DEVICE, count),) if count else ()
    asking = structs.replace(asked, namespace="default", storage=behind, extended_requests=extended)
    return asking, replace(cluster.snapshot, storage=draw(published_devices()))
