"""The inventory of devices, which follows single changes, equals one that is built from nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import release
from policies.devices.allocations import DevicesInUse
from policies.devices.allocator import Outcome, allocate
from policies.devices.inventory import DeviceSearch, NodeGroups, device_search
from policies.devices.planning import plan_claim
from policies.devices.pools import PublishedDevices
from policies.kubernetes.devices import (
    UNUSED,
    Counters,
    DeviceClass,
    DeviceConstraint,
    DeviceNodes,
    DeviceRequest,
    DeviceTaint,
    DeviceTaintRule,
    PoolId,
    ResourceSlice,
    pool_uses,
)
from policies.kubernetes.selectors import NodeSelector, NodeSelectorTerm, Requirement
from policies.kubernetes.snapshot import Node
from policies.kubernetes.storage import ResourceClaim, Storage
from policies.testing.storage import build_storage
from tests.builders import node
from tests.builders.devices import DRIVER, GPU, gpu, gpus, held_by, request, same

GATES = release("1.37").gates
POOLS = ("node-1", "node-2", "shared")
ZONE_A = DeviceNodes(
    selector=NodeSelector((NodeSelectorTerm((Requirement("zone", "In", ("a",)),)),))
)
WHERE = (DeviceNodes("node-1"), DeviceNodes("node-2"), DeviceNodes(every=True), ZONE_A, None)
WANTED = (
    (request(),),
    (request(count=2),),
    (request(count=None),),
    (request(admin=True, count=2),),
)
CLASSES = (GPU, DeviceClass("gpu", ("false",)))
RULES = tuple(
    DeviceTaintRule("rule", DeviceTaint("bad", "", "NoSchedule"), **fields)
    for fields in ({}, {"pool": "node-1"}, {"device": "gpu-0"}, {"driver": "other"})
)

devices = st.builds(
    lambda number, numa, used, where: gpu(
        f"gpu-{number}", numa=numa, consumes={"mem": used} if used else {}, others={"nodes": where}
    ),
    st.integers(0, 2),
    st.integers(0, 1),
    st.sampled_from([0, 0, 40]),
    st.sampled_from(WHERE[:4]),
)
slices = st.builds(
    lambda pool, generation, count, nodes, found, counters: gpus(
        "",
        *found,
        pool=PoolId(DRIVER, pool),
        generation=generation,
        count=count,
        nodes=nodes,
        counters=counters,
    ),
    st.sampled_from(POOLS),
    st.sampled_from([1, 1, 2]),
    st.sampled_from([1, 1, 2]),
    st.sampled_from(WHERE),
    st.lists(devices, max_size=3),
    st.sampled_from([(), (Counters("set", (("mem", 80 * 10**9),)),)]),
)
claims = st.builds(
    lambda pool, held, shared, users: replace(
        held_by("", pool, *held, shared=shared), reserved_for=users
    ),
    st.sampled_from(POOLS),
    st.sets(st.sampled_from(["gpu-0", "gpu-1", "gpu-2"]), max_size=2),
    st.sampled_from([False, False, True]),
    st.frozensets(st.sampled_from(["pod-1", "pod-2"])),
)
names = st.sampled_from("abcd")
Change = tuple[str, str, object]
changes = st.one_of(
    st.tuples(st.just("slices"), names, st.none() | slices),
    st.tuples(st.just("devices"), names, st.none() | claims),
    st.tuples(st.just("taint_rules"), names, st.none() | st.sampled_from(RULES)),
    st.tuples(st.just("device_classes"), st.just("gpu"), st.sampled_from(CLASSES)),
    st.tuples(st.just("nodes"), st.sampled_from(POOLS), st.sampled_from([None, "a", "b"])),
)


def changed(storage: Storage, change: Change) -> Storage:
    """Return the storage after one object has been set or removed."""
    kind, name, value = change
    if kind == "nodes":
        return storage
    objects = {key: each for key, each in getattr(storage, kind).items() if key != name}
    if isinstance(value, ResourceSlice | ResourceClaim | DeviceTaintRule):
        objects[name] = replace(value, name=name)
    elif value is not None:
        objects[name] = value
    fields: dict[str, Any] = {kind: objects}
    return replace(storage, **fields)


def moved(nodes: Sequence[Node], change: Change) -> list[Node]:
    """Return the nodes after one has changed its zone or is gone."""
    kind, name, zone = change
    others = [each for each in nodes if kind != "nodes" or each.name != name]
    fresh = [node(name, labels={"zone": zone})] if kind == "nodes" and zone else []
    return others + fresh


def from_nothing(search: DeviceSearch, each: Node, storage: Storage) -> Outcome:
    """Return the outcome of the allocator without anything that is kept."""
    pools = PublishedDevices(GATES).updated(storage.slices, storage.taint_rules).pools(each)
    used = pool_uses(result for claim in storage.devices.values() for result in claim.results)
    uses = [used.get(it.id, UNUSED) for it in pools]
    return allocate(search.claims, pools, uses, GATES).outcome


def prepared(
    wanted: Sequence[DeviceRequest], storage: Storage, *constraints: DeviceConstraint
) -> DeviceSearch:
    """Return the search for a claim."""
    claim = plan_claim(wanted, constraints, storage.device_classes)
    return device_search([claim], storage, GATES)


def partition(numbers: Sequence[int]) -> list[int]:
    """Return for each number where it was first."""
    return [list(numbers).index(number) for number in numbers]


Step = tuple[Storage, list[Node]]
FOUR = [gpu(f"gpu-{n}", numa=n // 2) for n in range(4)]
START: Step = (
    Storage(
        device_classes={GPU.name: GPU},
        slices={
            "a": gpus("node-1", *FOUR, name="a"),
            "b": gpus("node-2", *FOUR, name="b"),
            "c": gpus("", *FOUR, name="c", pool=PoolId(DRIVER, "shared"), nodes=ZONE_A),
        },
    ),
    [node(name, labels={"zone": "a"}) for name in POOLS[:2]],
)


def follow(step: Step, change: Change) -> Step:
    """Return the state after a change."""
    storage, nodes = step
    return changed(storage, change), moved(nodes, change)


@given(
    st.lists(changes, min_size=4, max_size=16),
    st.sampled_from(WANTED),
    st.sampled_from([(), (same("numa"),)]),
)
def test_an_inventory_that_follows_changes_equals_one_from_nothing(
    drawn: list[Change],
    wanted: Sequence[DeviceRequest],
    constraints: tuple[DeviceConstraint, ...],
) -> None:
    steps = list(accumulate(drawn, follow, initial=START))
    searches = [prepared(wanted, storage, *constraints) for storage, _ in steps]
    groups = [search.groups(nodes) for search, (_, nodes) in zip(searches, steps, strict=True)]
    for search, numbers, (storage, nodes) in zip(searches, groups, steps, strict=True):
        assert search.inventory.in_use == DevicesInUse().updated(storage.devices)
        fresh = NodeGroups(GATES, search.attributes).of(nodes, search.inventory)
        assert partition(numbers) == partition(fresh)
        for each in nodes:
            assert search.verdict(each, {}).outcome is from_nothing(search, each, storage)


def test_pools_are_kept_where_nothing_has_changed() -> None:
    both = {"a": gpus("node-1", gpu("gpu-0")), "b": gpus("node-2", gpu("gpu-0"))}
    before = PublishedDevices(GATES).updated(both, {})
    newer = {**both, "a": gpus("node-1", gpu("gpu-0"), gpu("gpu-1"))}
    after = before.updated(newer, {"rule": replace(RULES[0], pool="node-1")})
    first, second = (PoolId(DRIVER, f"node-{n}") for n in (1, 2))
    assert after.by_id[first] is not before.by_id[first]
    assert after.by_id[second] is before.by_id[second]


@pytest.mark.parametrize(
    ("names", "held"),
    [
        (("gpu-0", "gpu-1", "gpu-2"), ("gpu-1",)),
        (("gpu-2", "gpu-0", "gpu-1"), ("gpu-2",)),
        (("other", "names", "here"), ("names",)),
    ],
)
def test_equal_devices_have_one_shape_whatever_their_names_and_order(
    names: Sequence[str], held: Sequence[str]
) -> None:
    storage = build_storage(
        (
            GPU,
            gpus("node-1", *(gpu(f"gpu-{n}", uuid=n) for n in range(3))),
            gpus("node-2", *(gpu(name, uuid=9) for name in names)),
            held_by("a", "node-1", "gpu-0"),
            held_by("b", "node-2", *held),
        )
    )
    nodes = [node("node-1"), node("node-2")]
    one, other = prepared(WANTED[0], storage).groups(nodes)
    assert one == other
