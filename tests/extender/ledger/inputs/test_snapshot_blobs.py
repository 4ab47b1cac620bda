"""A snapshot is loaded as it was stored, and shares its blobs with those before it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.ledger.inputs.snapshot_blobs import FORMAT, SnapshotEncoder
from extender.ledger.inputs.snapshot_codec import BlobError, compress, digest_of, encode_value
from extender.ledger.inputs.snapshot_reader import SnapshotReader, load_snapshot
from policies.kubernetes.snapshot import PastPreemption, Snapshot
from policies.kubernetes.storage import Storage, StorageKind, UnreadableObject
from policies.testing.strategies import grouped_clusters, rich_clusters
from tests.builders import budget, claim, node, pod, pod_group, snapshot, volume, workload
from tests.builders.devices import gpu_claim, gpus, request
from tests.properties.typed_values import values_of

NODES = 150


@cache
def cluster(number: int = NODES) -> Snapshot:
    """Return a cluster with two pods on each node."""
    names = [f"node-{each}" for each in range(number)]
    pods = (pod(f"{kind}-{name}", on=name) for name in names for kind in ("web", "db"))
    return snapshot(*(node(name) for name in names), *pods)


class Ledger:
    """An encoder, and the blobs that it has returned."""

    def __init__(self) -> None:
        self.encoder = SnapshotEncoder()
        self.blobs: dict[bytes, bytes] = {}

    def store(self, stored: Snapshot) -> tuple[bytes, int]:
        """Return the root of a snapshot, and the number of blobs that were not there."""
        root, blobs = self.encoder.encode(stored)
        assert blobs.keys().isdisjoint(self.blobs)
        self.blobs |= blobs
        return root, len(blobs)

    def load(self, root: bytes) -> Snapshot:
        return load_snapshot(root, self.blobs.__getitem__)


def assert_kept(stored: Snapshot) -> None:
    ledger = Ledger()
    root, _ = ledger.store(stored)
    loaded = ledger.load(root)
    assert loaded == stored
    assert SnapshotEncoder().encode(loaded) == (root, ledger.blobs)


@given(st.one_of(rich_clusters(), grouped_clusters()))
def test_any_cluster_is_kept(drawn: Any) -> None:
    assert_kept(drawn.snapshot)


@given(values_of(Snapshot))
def test_any_snapshot_is_kept(drawn: Snapshot) -> None:
    assert_kept(drawn)


def test_every_field_of_a_snapshot_is_kept() -> None:
    stored = snapshot(
        node("node-1"),
        node("node-2", taints=["gpu:NoSchedule"]),
        pod("web", on="node-1", volumes=["data"]),
        budget("web", match={"app": "web"}),
        claim("data", volume="pv"),
        volume("pv"),
        gpu_claim("gpus", request()),
        gpus("node-2"),
        namespaces={"default": {"team": "red"}},
        workloads=[workload("Service", "web", {"app": "web"})],
        groups=[pod_group("group")],
        unknown=[StorageKind.TAINT_RULES],
    )
    unreadable = frozenset({UnreadableObject(StorageKind.CLASSES, "fast")})
    assert_kept(
        replace(
            stored,
            storage=replace(stored.storage, unreadable=unreadable),
            unplaced_members={"default/group": ("default/web",)},
            preemptions=(PastPreemption(1, pod("gone"), pod("vip")), PastPreemption(2, pod("a"))),
            generation=3,
            now_ns=2**62,
        )
    )


def test_the_order_of_nodes_does_not_change_the_root() -> None:
    stored = cluster()
    backwards = replace(stored, nodes=dict(reversed(list(stored.nodes.items()))))
    assert SnapshotEncoder().encode(backwards) == SnapshotEncoder().encode(stored)


@given(changed=st.sets(st.integers(0, NODES - 1), max_size=9), data=st.data())
def test_k_changed_nodes_add_k_states_and_k_chunks(changed: set[int], data: st.DataObject) -> None:
    ledger, first = Ledger(), cluster()
    ledger.store(first)
    states = dict(first.nodes)
    for number in changed:
        name = f"node-{number}"
        states[name] = states[name].with_pod(pod(f"new-{number}", on=name))
    removed = data.draw(st.sets(st.sampled_from(sorted(states)), max_size=3))
    for name in removed:
        del states[name]
    added = [f"added-{n}" for n in range(data.draw(st.integers(0, 3)))]
    states |= snapshot(*map(node, added)).nodes
    second = replace(first, nodes=states, generation=first.generation + 1)
    root, new = ledger.store(second)
    differing = len(changed) + len(removed)
    assert new <= 2 * differing + 3 * len(added) + len(["index of nodes", "root"])
    assert ledger.load(root) == second


def test_a_changed_node_adds_a_small_part_of_the_digests() -> None:
    """All 2,000 digests take 32 KB, which cannot be compressed; a chunk has about 64 of them."""
    encoder, names = SnapshotEncoder(), [f"node-{number}" for number in range(2000)]
    first = snapshot(*map(node, names))
    encoder.encode(first)
    for name in names[::100]:
        changed = first.nodes[name].with_pod(pod("new", on=name))
        _, blobs = encoder.encode(replace(first, nodes={**first.nodes, name: changed}))
        assert sum(map(len, blobs.values())) < 12_000


def test_a_snapshot_without_changes_adds_its_root_alone() -> None:
    ledger, first = Ledger(), cluster()
    root, _ = ledger.store(first)
    assert ledger.store(replace(first, nodes=dict(first.nodes))) == (root, 0)
    assert ledger.store(replace(first, now_ns=1))[1] == 1


def test_a_state_that_returns_is_not_returned_again() -> None:
    ledger, first = Ledger(), cluster()
    second = first.with_assumed(pod("new"), "node-7")
    root, _ = ledger.store(first)
    ledger.store(second)
    assert ledger.store(replace(first, nodes=dict(first.nodes))) == (root, 0)


def test_a_new_ledger_gets_all_blobs() -> None:
    stored = cluster(3)
    assert SnapshotEncoder().encode(stored) == SnapshotEncoder().encode(stored)


def test_a_snapshot_that_cannot_be_encoded_leaves_no_gap() -> None:
    """The blobs that were new until the error are returned with the next snapshot."""
    ledger, first = Ledger(), cluster(3)
    labels = {"app": "x" * 2**25}
    with pytest.raises(BlobError, match="expected at most 33554432 bytes"):
        ledger.store(replace(first, budgets=(budget("web", match=labels),)))
    root, _ = ledger.store(first)
    assert ledger.load(root) == first


def put(blobs: dict[bytes, bytes], value: object) -> bytes:
    data = encode_value(value)
    blobs[digest_of(data)] = compress(data)
    return digest_of(data)


def root_with(blobs: dict[bytes, bytes], nodes: object, **others: object) -> bytes:
    return put(blobs, {"format": FORMAT, "snapshot": {"nodes": nodes, **others}})


UNKNOWN = bytes(16)


@pytest.mark.parametrize(
    ("nodes", "others", "error"),
    [
        (UNKNOWN, {}, "blob 00000000000000000000000000000000: not found"),
        (None, {}, "Expected `bytes`, got `null`"),
        (b"short", {}, "Expected `bytes` of length >= 16"),
        ("no digest", {}, "Invalid base64 encoded string"),
        ([[]], {}, "Expected `bytes`, got `array`"),
        ([], {"pods": 1}, "Snapshot: unknown field 'pods'; expected nodes, budgets, "),
        ([], {"storage": 1}, "Expected `object`, got `int`"),
        ([], {"storage": {"disks": 1}}, "Storage: unknown field 'disks'; expected claims, "),
        ([], {"storage": {"unknown": ["pods"]}}, "Invalid enum value 'pods'"),
        ([], {"generation": "1"}, "Expected `int`, got `str` - at `$.generation`"),
        ([], {"budgets": UNKNOWN}, "not found"),
    ],
)
def test_an_invalid_root_is_an_error(
    nodes: object, others: Mapping[str, object], error: str
) -> None:
    blobs: dict[bytes, bytes] = {}
    root = root_with(blobs, put(blobs, nodes) if nodes == [] else nodes, **others)
    with pytest.raises(BlobError) as caught:
        load_snapshot(root, blobs.__getitem__)
    assert error in str(caught.value)


_plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(UNKNOWN)
_json = st.recursive(_plain, lambda each: st.lists(each) | st.dictionaries(st.text(), each))


@given(st.dictionaries(st.sampled_from([each.name for each in fields(Snapshot)][1:]), _json))
def test_a_hostile_root_is_a_snapshot_or_an_error(drawn: dict[str, object]) -> None:
    blobs: dict[bytes, bytes] = {}
    chunk = put(blobs, [["node-1", drawn], [["a"], drawn]])
    for nodes in (put(blobs, []), put(blobs, [chunk]), drawn):
        root = root_with(blobs, nodes, **{"budgets": chunk} | drawn)
        with suppress(BlobError):
            assert isinstance(load_snapshot(root, blobs.__getitem__), Snapshot)


@pytest.mark.parametrize(
    ("chunk", "error"),
    [
        (1, "Expected `array`, got `int`"),
        ([["node-1"]], "Expected `array` of length 2, got 1 - at `$[0]`"),
        ([[1, UNKNOWN]], "Expected `str`, got `int` - at `$[0][0]`"),
        ([["node-1", {}]], "Expected `bytes`, got `object` - at `$[0][1]`"),
        ([["node-1", UNKNOWN]], "not found"),
    ],
)
def test_an_invalid_chunk_is_an_error(chunk: object, error: str) -> None:
    blobs: dict[bytes, bytes] = {}
    root = root_with(blobs, put(blobs, [put(blobs, chunk)]))
    with pytest.raises(BlobError) as caught:
        load_snapshot(root, blobs.__getitem__)
    assert error in str(caught.value)


@pytest.mark.parametrize("version", [0, FORMAT + 1])
def test_another_format_is_an_error(version: int) -> None:
    blobs: dict[bytes, bytes] = {}
    root = put(blobs, {"format": version, "snapshot": {}})
    with pytest.raises(BlobError, match=f"format: {version}; expected 1 to {FORMAT}, as this"):
        load_snapshot(root, blobs.__getitem__)


def test_all_blobs_of_a_snapshot_together_are_bounded() -> None:
    """A chunk that an index names a million times is not read so often."""
    blobs: dict[bytes, bytes] = {}
    large = put(blobs, [["node-1", {"team": "x" * 2**19}]])
    root = root_with(blobs, put(blobs, []), namespaces=put(blobs, [large] * 1_000_000))
    with pytest.raises(BlobError, match="the snapshot has more than 67108864 bytes with it"):
        load_snapshot(root, blobs.__getitem__, max_bytes=2**26)


def test_a_field_that_is_missing_has_its_default() -> None:
    blobs: dict[bytes, bytes] = {}
    root = root_with(blobs, put(blobs, []), storage={})
    assert load_snapshot(root, blobs.__getitem__) == Snapshot(storage=Storage())


@given(st.lists(st.one_of(values_of(Snapshot), st.just(cluster(9))), min_size=2, max_size=5))
def test_consecutive_snapshots_are_read_as_each_alone(drawn: list[Snapshot]) -> None:
    ledger = Ledger()
    roots = [ledger.store(each)[0] for each in drawn]
    reader = SnapshotReader(ledger.blobs.__getitem__)
    assert [reader.read(each) for each in roots] == [ledger.load(each) for each in roots] == drawn


@given(st.lists(st.integers(0, 8), max_size=3), st.integers(0, 1))
def test_a_reader_shares_what_is_equal(changed: list[int], now_ns: int) -> None:
    ledger, first = Ledger(), cluster(9)
    states = dict(first.nodes)
    for number in changed:
        name = f"node-{number}"
        states[name] = states[name].with_pod(pod(f"new-{number}", on=name))
    second = replace(first, nodes=states, now_ns=now_ns)
    reader = SnapshotReader(ledger.blobs.__getitem__)
    before, after = (reader.read(ledger.store(each)[0]) for each in (first, second))
    assert after == second
    assert {name for name in states if after.nodes[name] is not before.nodes[name]} == {
        f"node-{number}" for number in changed
    }
    assert reader.changed == {f"node-{number}" for number in changed}
    kept = {each.uid: each for state in before.nodes.values() for each in state.pods}
    for state in after.nodes.values():
        assert all(each is kept.get(each.uid, each) for each in state.pods)
    assert after.budgets is before.budgets
    assert after.storage is before.storage


def test_a_reader_forgets_nodes_that_are_gone() -> None:
    """A node that comes back is read again, as it is then."""
    ledger, first = Ledger(), cluster(9)
    last = replace(first, nodes={"node-0": first.nodes["node-0"]})
    others = first.nodes.keys() - last.nodes.keys()
    reader = SnapshotReader(ledger.blobs.__getitem__)
    for each, changed in ((first, first.nodes.keys()), (last, others), (last, ()), (first, others)):
        assert reader.read(ledger.store(each)[0]) == each
        assert reader.changed == set(changed)
