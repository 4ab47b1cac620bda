"""Criteria over the namespaces of victims: whose pods make room for whom."""

from __future__ import annotations

import pytest

from policies.kubernetes.snapshot import Snapshot
from policies.preemption.costs.catalog import cost_criteria, lost_work
from policies.preemption.policy import Policy, SchedulerRules
from policies.preemption.reference_engine import preempt
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import node, pod, snapshot

CRITERIA = cost_criteria(lost_work({}))


def full(**namespaces: str) -> Snapshot:
    """Return nodes by name that a pod of each of their namespaces fills."""
    objects = []
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
