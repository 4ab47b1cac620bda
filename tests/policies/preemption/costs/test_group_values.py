"""Criteria over the namespaces of victims: own and other ones, and those that use most quota."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from policies.kubernetes.policy_objects import PolicyObjects, ResourceQuota
from policies.kubernetes.snapshot import Node, Pod, Snapshot
from policies.preemption.costs.catalog import cost_criteria, lost_work
from policies.preemption.policy import Policy, SchedulerRules
from policies.preemption.reference_engine import preempt
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import node, pod, snapshot

CRITERIA = cost_criteria(lost_work({}))


def full(**namespaces: str) -> Snapshot:
    """Return nodes by name that a pod of each of their namespaces fills."""
    objects: list[Node | Pod] = []
    for name, listed in namespaces.items():
        of = listed.split()
        objects.append(node(name, cpu=str(len(of))))
        for n, each in enumerate(of):
            objects.append(pod(f"{name}-{n}", on=name, cpu="1", namespace=each))
    return snapshot(*objects)


def chosen(criterion: str, cluster: Snapshot, cpu: str = "2") -> str:
    """Return the node of both engines for a pod of the namespace "a"."""
    rules = SchedulerRules(policy=Policy("p", candidates=(CRITERIA[criterion],)))
    preemptor = pod("new", namespace="a", cpu=cpu, priority=9)
    decision = preempt(preemptor, cluster, rules)
    assert VectorizedEngine(rules).preempt(preemptor, cluster) == decision
    assert decision.chosen is not None
    return decision.chosen.node


@pytest.mark.parametrize(
    ("namespaces", "others", "same"),
    [
        ({"one": "a a", "two": "b b"}, "one", "two"),
        ({"one": "b b", "two": "a b"}, "two", "one"),
        ({"one": "a b", "two": "b c"}, "one", "two"),
        ({"one": "b c", "two": "c c"}, "one", "one"),
    ],
    ids=["own and others", "one other", "one own", "only others"],
)
def test_the_namespace_of_the_preemptor_counts(
    namespaces: dict[str, str], others: str, same: str
) -> None:
    cluster = full(**namespaces)
    assert chosen("fewest victims of other namespaces", cluster) == others
    assert chosen("fewest victims of the same namespace", cluster) == same


def quota(namespace: str, name: str = "quota", **hard: int) -> ResourceQuota:
    return ResourceQuota(namespace, name, hard)


@pytest.mark.parametrize(
    ("quotas", "node_name"),
    [
        ([], "one"),
        ([quota("b", cpu=10_000), quota("c", cpu=20_000)], "one"),
        ([quota("b", cpu=20_000), quota("c", cpu=10_000)], "two"),
        ([quota("b", cpu=3000), quota("c", cpu=3001)], "one"),
        ([quota("b", cpu=10_000), quota("c", cpu=20_000), quota("c", "gold", cpu=4000)], "two"),
        ([quota("b", cpu=10_000), quota("c", cpu=20_000, memory=1)], "one"),
        ([quota("c", memory=1)], "one"),
        ([quota("c", cpu=0)], "two"),
        ([quota("a", cpu=1)], "one"),
    ],
    ids=[
        "none",
        "one uses more",
        "the other uses more",
        "both alike",
        "the tightest quota counts",
        "what nobody requests",
        "only what nobody requests",
        "a limit of 0",
        "that of the preemptor",
    ],
)
def test_victims_are_of_the_namespace_that_uses_most_of_its_quotas(
    quotas: list[ResourceQuota], node_name: str
) -> None:
    """Two cores of pods of b are on the node "one", as many of c on "two"."""
    cluster = with_quotas(full(one="b b", two="c c"), quotas)
    assert chosen("highest quota usage", cluster) == node_name


def with_quotas(cluster: Snapshot, quotas: list[ResourceQuota]) -> Snapshot:
    by_namespace: dict[str, tuple[ResourceQuota, ...]] = {}
    for each in quotas:
        by_namespace[each.namespace] = (*by_namespace.get(each.namespace, ()), each)
    return replace(cluster, policy_objects=PolicyObjects(by_namespace))


@pytest.mark.parametrize(
    ("left", "node_name"),
    [
        (("one", "two", "three", "four"), "three"),
        (("two", "four"), "two"),
        (("one", "four"), "one"),
        (("four",), "four"),
    ],
)
def test_a_candidate_counts_by_the_victim_whose_namespace_uses_least(
    left: tuple[str, ...], node_name: str
) -> None:
    """With all nodes, b uses 800 of 1000 and c 500, as in the example of the module."""
    nodes = {"one": "b c", "two": 9 * "c ", "three": 7 * "b ", "four": "d d"}
    cluster = full(**{name: nodes[name] for name in left})
    quotas = [quota("b", cpu=10_000), quota("c", cpu=20_000)]
    assert chosen("highest quota usage", with_quotas(cluster, quotas)) == node_name


def test_pods_that_depart_use_no_quota() -> None:
    cluster = full(one="b b", two="c c")
    [third] = full(three="b b").nodes.values()
    leaving = tuple(structs.replace(each, terminating=True, priority=99) for each in third.pods)
    cluster = replace(
        cluster, nodes={**cluster.nodes, "three": structs.replace(third, pods=leaving)}
    )
    quotas = [quota("b", cpu=10_000), quota("c", cpu=9000)]
    assert chosen("highest quota usage", with_quotas(cluster, quotas)) == "two"
