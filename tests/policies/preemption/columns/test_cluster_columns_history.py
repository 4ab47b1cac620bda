"""Columns do not depend on the history of their cluster.

``shown`` reads columns without regard to which row a node has, which number a class, and which
place a resource; these depend on the past.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from policies.kubernetes.releases import NEWEST
from policies.kubernetes.snapshot import NodeState, Resources, Snapshot
from policies.kubernetes.storage import ClaimVolume, PodStorage
from policies.preemption.columns import ClusterColumns
from policies.preemption.columns.cluster_columns import DEPARTING, READY, TERMINATING
from policies.preemption.columns.pod_block import (
    CLASS,
    EMPTY_PRIORITY,
    FIRST_RESOURCE,
    FLAGS,
    PRIORITY,
    START_TIME,
    TRAITS,
    Block,
)
from policies.preemption.columns.policy_columns import PROTECTED_UNTIL
from policies.preemption.guards.victim_guard import ALWAYS, UNPROTECTED, min_runtime
from policies.preemption.policy import (
    KUBE_SCHEDULER,
    POD_CRITERIA,
    Policy,
    pod_order,
    start_time,
)
from policies.testing.strategies import TOPOLOGIES, rich_budgets, rich_nodes, rich_residents
from tests.builders import SECOND, budget, holding, node, pod, snapshot
from tests.properties.changing_clusters import ClusterState

NAMES = ("n1", "n2", "n3", "n4", "n5")
GPU = "example.com/gpu"
STORAGES = st.sampled_from([*[None] * 4, *(PodStorage((ClaimVolume(each),)) for each in "ab")])


def following(*snapshots: Snapshot, policy: Policy = KUBE_SCHEDULER) -> ClusterColumns:
    columns = ClusterColumns(policy, NEWEST)
    for each in snapshots:
        columns.follow(each)
    return columns


def shown(columns: ClusterColumns) -> dict[str, object]:
    samples = columns.classes._interned.samples
    return {
        "nodes": {name: _node(columns, row) for row, name in enumerate(columns.names)},
        "marks": [set(columns.nominated.nodes), set(columns.departing), set(columns.irregular)],
        "allowed": columns.budgets.allowed.tolist(),
        "disrupted": columns.budgets.disrupted,
        "classes": {
            (each.namespace, frozenset(each.labels.items()), *_covering(columns, number))
            for number, each in enumerate(samples)
            if each is not None
        },
        "unbounded": {each.uid for each in columns._unbounded.values()},
    }


def _node(columns: ClusterColumns, row: int) -> dict[str, object]:
    nodes = columns.nodes
    labels = {key: nodes.labels(key) for key in TOPOLOGIES}
    return {
        "taints": nodes.taints.values[int(nodes.taints.rows()[row])],
        "labels": {key: each.values[int(each.rows()[row])] for key, each in labels.items()},
        "unschedulable": bool(nodes.unschedulable[row]),
        "allowed pods": int(nodes.allowed_pods[row]),
        "allocatable": _amounts(columns, nodes.allocatable[:, row].tolist()),
        "requested": _amounts(columns, nodes.requested[:, row].tolist()),
        "pods": columns.pods[row],
        "cells": [
            _cell(columns, columns.pod_block.block[:, at, row]) for at in _depths(columns, row)
        ],
    }


def _depths(columns: ClusterColumns, row: int) -> range:
    return range(int(columns.pod_block.counts[row]))


def _cell(columns: ClusterColumns, cell: Block) -> dict[str, object]:
    of_class = columns.classes._interned.samples[int(cell[CLASS])]
    assert of_class is not None
    traits = columns.traits._interned.samples[int(cell[TRAITS])] if cell[TRAITS] else pod()
    assert traits is not None
    return {
        "class": (of_class.namespace, of_class.labels),
        "traits": (traits.host_ports, traits.anti_affinity, traits.storage),
        "facts": cell[[PRIORITY, START_TIME, FLAGS]].tolist(),
        "requests": _amounts(columns, cell[FIRST_RESOURCE:].tolist()),
    }


def _amounts(columns: ClusterColumns, amounts: list[int]) -> Mapping[str, int]:
    assert len(amounts) == len(columns.nodes.resources)
    known = dict(zip(columns.nodes.resources, amounts, strict=True))
    # A resource that no pod or node has may be known or not.
    return {name: amount for name, amount in known.items() if amount and "/" not in name} | {
        name: amount for name, amount in known.items() if "/" in name and _counts(columns, name)
    }


def _counts(columns: ClusterColumns, name: str) -> bool:
    return any(name in each.requests.scalars for pods in columns.pods for each in pods)


def _covering(columns: ClusterColumns, number: int) -> list[str]:
    places = columns.budgets.covering[:, number].tolist()
    return [columns.budgets.budgets[place].key for place in places if place >= 0]


def check(columns: ClusterColumns, now: Snapshot) -> None:
    """Assert that the columns are consistent and show ``now``."""
    assert columns.snapshot is now
    assert sorted(columns.names) == sorted(now.nodes)
    assert columns.index == {name: row for row, name in enumerate(columns.names)}
    assert columns.states == [now.nodes[name] for name in columns.names]
    for row, state in enumerate(columns.states):
        expected = KUBE_SCHEDULER.victims.sort(state.pods)
        assert list(columns.pods[row]) == expected
        assert columns.pod_block.block[PRIORITY, : len(expected), row].tolist() == [
            each.priority for each in expected
        ]
        assert columns.pod_block.block[START_TIME, : len(expected), row].tolist() == [
            start_time(each) for each in expected
        ]
    for row, count in enumerate(columns.pod_block.counts.tolist()):
        assert count == (len(columns.pods[row]) if row < len(columns.names) else 0)
        assert (columns.pod_block.block[PRIORITY, count:, row] == EMPTY_PRIORITY).all()
        assert not columns.pod_block.block[PRIORITY + 1 :, count:, row].any()


@st.composite
def histories(draw: st.DrawFn) -> list[Snapshot]:
    """Draw snapshots between which nodes, pods and budgets come, change and go."""
    world, snapshots = ClusterState(), list[Snapshot]()
    for _ in range(draw(st.integers(1, 6))):
        for name in draw(st.sets(st.sampled_from(NAMES))):
            if name in world.nodes and draw(st.booleans()):
                del world.nodes[name]
            else:
                world.nodes[name] = draw(rich_nodes(name))
        for number in draw(st.sets(st.integers(0, 9), max_size=6)):
            if number in world.pods and draw(st.booleans()):
                del world.pods[number]
            else:
                drawn = draw(rich_residents(number, NAMES))
                world.pods[number] = structs.replace(drawn, storage=draw(STORAGES))
        if draw(st.booleans()):
            count = draw(st.integers(0, 3))
            world.budgets = tuple(draw(rich_budgets(f"budget-{each}")) for each in range(count))
        snapshots.append(world.seen())
    return snapshots


@given(histories())
def test_any_history_ends_in_the_state_of_its_last_snapshot(history: list[Snapshot]) -> None:
    columns = ClusterColumns(KUBE_SCHEDULER, NEWEST)
    for each in history:
        columns.follow(each)
        check(columns, each)
    assert shown(columns) == shown(following(history[-1]))


@given(histories())
def test_a_list_of_changes_makes_no_difference(history: list[Snapshot]) -> None:
    columns = ClusterColumns(KUBE_SCHEDULER, NEWEST)
    for before, now in zip([Snapshot(), *history], history, strict=False):
        changed = [
            name
            for name in {**before.nodes, **now.nodes}
            if before.nodes.get(name) is not now.nodes.get(name)
        ]
        columns.follow(now, changed)
        check(columns, now)
    assert shown(columns) == shown(following(history[-1]))


@given(histories())
def test_no_data_remains_after_all_are_deleted(history: list[Snapshot]) -> None:
    no_nodes = Snapshot(budgets=history[-1].budgets)
    columns = following(*history, no_nodes)
    check(columns, no_nodes)
    assert shown(columns) == shown(following(no_nodes))
    assert not columns.classes._interned._number_of
    assert not any(vars(columns.classes._index).values())
    assert not columns.traits._interned._number_of
    assert not any(vars(columns.traits._repelling).values())
    assert not columns.traits._with_ports
    assert not columns.traits._with_storage
    assert (columns.budgets.covering == -1).all()


@given(st.permutations(NAMES), st.integers(0, 5))
def test_nodes_may_be_deleted_in_any_order_and_added_again(order: list[str], count: int) -> None:
    first = snapshot(*(node(name) for name in NAMES), *(pod(name, on=name) for name in NAMES))
    columns, nodes = following(first), dict(first.nodes)
    for name in order[:count]:
        del nodes[name]
        now = Snapshot(dict(nodes))
        columns.follow(now)
        check(columns, now)
    columns.follow(first)
    check(columns, first)
    assert shown(columns) == shown(following(first))


def test_a_changed_pod_moves_to_its_new_position() -> None:
    on = node("n1")
    old, fellow = pod("a", on="n1", priority=1), pod("b", on="n1", priority=2)
    now = Snapshot({"n1": holding(on, structs.replace(old, priority=3), fellow)})
    columns = following(Snapshot({"n1": holding(on, old, fellow)}), now)
    check(columns, now)
    assert [each.name for each in columns.pods[0]] == ["a", "b"]


def test_pods_are_in_the_order_of_the_policy() -> None:
    oldest_first = replace(KUBE_SCHEDULER, victims=pod_order((POD_CRITERIA["earliest start"],)))
    on = node("n1")
    first, second, third = (pod(f"p{n}", priority=n, started=n) for n in range(3))
    columns = following(
        Snapshot({"n1": holding(on, second, third)}),
        Snapshot({"n1": holding(on, second, third, first)}),
        policy=oldest_first,
    )
    assert columns.pods[0] == (first, second, third)


def test_flags_mark_ready_terminating_and_preempted_pods() -> None:
    pods = [
        pod("p0", priority=3),
        pod("p1", priority=2, terminating=True),
        pod("p2", priority=1, assumed_victim=True),
        pod("p3", ready=True),
    ]
    columns = following(Snapshot({"n1": holding(node("n1"), *pods)}))
    assert columns.pod_block.used()[FLAGS, :, 0].tolist() == [
        0,
        TERMINATING | DEPARTING,
        DEPARTING,
        READY,
    ]


def test_guards_protect_pods_until_a_time() -> None:
    guard = min_runtime("young", lambda each: each.name != "any", 5 * SECOND)
    pods = [pod("any", priority=3), pod("young", priority=2, started=7), pod("waits", priority=1)]
    columns = following(
        Snapshot({"n1": holding(node("n1"), *pods)}),
        policy=replace(KUBE_SCHEDULER, victim_guards=(guard,)),
    )
    assert columns.policy.block.used()[PROTECTED_UNTIL, :, 0].tolist() == [
        UNPROTECTED,
        12 * SECOND,
        ALWAYS,
    ]


def test_marks_follow_their_pods() -> None:
    on, leaving, nominated = node("n1"), pod("a", terminating=True), pod("b", nominated_node="n1")
    columns = following(Snapshot({"n1": holding(on, leaving, nominated=[nominated])}))
    assert (list(columns.nominated.nodes), list(columns.departing)) == (["n1"], ["n1"])
    columns.follow(Snapshot({"n1": holding(on)}))
    assert (list(columns.nominated.nodes), list(columns.departing)) == ([], [])
    assumable = structs.replace(nominated, may_be_assumed=True)
    columns.follow(Snapshot({"n1": holding(on, nominated=[assumable])}))
    assert (list(columns.nominated.nodes), list(columns.departing)) == (["n1"], ["n1"])


HUGE = structs.replace(pod("huge"), requests=Resources(memory=2**70))
TWINS = (pod("a", uid="same"), pod("b", uid="same"))


@pytest.mark.parametrize(
    "state",
    [
        holding(node("n1"), HUGE),
        holding(
            node("n1"), structs.replace(HUGE, requests=Resources(milli_cpu=-1)), pod("b", cpu="1")
        ),
        holding(node("n1"), *TWINS),
        holding(node("n1"), unreadable=["lost"]),
        holding(structs.replace(node("n1"), allocatable=Resources(memory=2**63))),
        holding(structs.replace(node("n1"), allocatable=Resources(memory=-(2**52) - 1))),
    ],
    ids=[
        "huge request",
        "negative request",
        "shared UID",
        "unreadable pod",
        "huge node",
        "negative node",
    ],
)
def test_irregular_amounts_are_marked(state: NodeState) -> None:
    plain = holding(node("n1"), pod("c"))
    columns = following(Snapshot({"n1": plain}))
    assert list(columns.irregular) == []
    columns.follow(Snapshot({"n1": state}))
    assert list(columns.irregular) == ["n1"]
    columns.follow(Snapshot({"n1": structs.replace(state, nominated=(pod("d"),))}))
    assert list(columns.irregular) == ["n1"]
    columns.follow(Snapshot({"n1": plain}))
    assert list(columns.irregular) == []
    assert columns._unbounded == {}


@pytest.mark.parametrize("amount", [2**52 + 1, 2**63 - 1, -1, -(2**52)])
def test_what_a_node_has_is_regular_to_64_bits(amount: int) -> None:
    huge = structs.replace(node("n1"), allocatable=Resources(memory=amount))
    columns = following(Snapshot({"n1": holding(huge, pod("c", memory="1Gi"))}))
    assert list(columns.irregular) == []
    assert columns.nodes.allocatable[1, 0] == amount


def test_resources_that_pods_request_are_known_and_others_when_asked_about() -> None:
    first = snapshot(node("n1", others={GPU: "4"}), pod("a", on="n1"))
    columns = following(first)
    assert GPU not in columns.nodes.resources
    place = columns.ensure_resource(GPU)
    assert columns.ensure_resource(GPU) == place
    assert columns.nodes.allocatable[place, 0] == 4
    assert columns.pod_block.used()[FIRST_RESOURCE + place, :, 0].tolist() == [0]


def test_resources_that_were_asked_about_once_are_forgotten() -> None:
    now = snapshot(node("n1", others={GPU: "4"}), pod("a", on="n1", others={GPU: "3"}))
    columns = following(now)
    for count in range(1000):
        columns.follow(now)
        columns.ensure_resource(f"example.com/{count}")
        assert len(columns.nodes.resources) < 100
        assert columns.pod_block.block.shape[0] == FIRST_RESOURCE + len(columns.nodes.resources)
    columns.follow(Snapshot(now.nodes))
    assert shown(columns) == shown(following(now))
    place = columns.nodes.resources[GPU]
    assert columns.nodes.requested[place, 0] == 3


def test_resources_that_pods_requested_once_are_forgotten() -> None:
    columns = following()
    for count in range(1000):
        name = f"example.com/{count}"
        columns.follow(snapshot(node("n1"), pod(str(count), on="n1", others={name: "1"})))
        assert len(columns.nodes.resources) < 100
    assert columns.nodes.requested[columns.nodes.resources["example.com/999"], 0] == 1


def test_many_resources_are_kept_while_pods_request_them() -> None:
    others = {f"example.com/{count}": "1" for count in range(200)}
    now = snapshot(node("n1", others=others), pod("a", on="n1", others=others))
    columns = following(now, Snapshot(now.nodes), Snapshot(now.nodes))
    assert set(others) <= set(columns.nodes.resources)
    assert shown(columns) == shown(following(now))


def test_unique_labels_and_short_lived_nodes_leave_no_data() -> None:
    columns = following()
    for count in range(300):
        name = f"n-{count}"
        unique = pod(str(count), on=name, labels={"unique": name}, ports=[1000 + count])
        columns.follow(snapshot(node(name, labels={"host": name}), unique, budget(match={})))
        columns.nodes.labels("host")
    assert len(columns.classes) < 10
    assert columns.pod_block.block.shape[2] == following().pod_block.block.shape[2]
    assert len(columns.nodes.labels("host").values) < 100
    assert len(columns.traits.conflicting(lambda _: True)) < 10
