"""Taints, labels and names are evaluated once for each distinct value."""

from __future__ import annotations

import pytest

from policies import SchedulerRules
from policies.kubernetes.releases import RELEASES, Release
from policies.kubernetes.selectors import (
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
    field_requirement,
    node_requirement,
)
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import node, pod, snapshot, toleration
from tests.properties.engines import assert_agreement

every_release = pytest.mark.parametrize("release", RELEASES.values(), ids=list(RELEASES))

NODES = snapshot(
    node("n1", labels={"zone": "a", "cores": "4"}),
    node("n2", labels={"zone": "b", "cores": "many"}),
    node("n3", labels={"zone": "", "cores": "-16"}),
    node("n4"),
)


@every_release
def test_every_node_may_have_a_taint_of_its_own(release: Release) -> None:
    rules = SchedulerRules(release)
    engine = VectorizedEngine(rules)
    for generation in range(3):
        nodes = [
            node(
                f"n{number}",
                taints=[f"own-{generation}=x{number}:NoSchedule"],
                unschedulable=number < 9,
            )
            for number in range(200)
        ]
        now = snapshot(node("bare"), node("soft", taints=["soft:PreferNoSchedule"]), *nodes)
        assert_agreement(pod(), now, rules, engine)
        assert_agreement(
            pod(tolerations=(toleration(f"own-{generation}", "", "x3"),)), now, rules, engine
        )
        assert_agreement(pod(tolerations=(toleration("", "Exists"),)), now, rules, engine)


@every_release
def test_the_first_untolerated_taint_is_reported(release: Release) -> None:
    rules = SchedulerRules(release)
    taints = ["soft:PreferNoSchedule", "gpu=yes:NoSchedule", "old:NoExecute"]
    now = snapshot(node("n1", taints=taints), node("n2", taints=taints[::-1]))
    for tolerations in ((), (toleration("gpu", "Exists"),), (toleration("old", "Exists"),)):
        assert_agreement(pod(tolerations=tolerations), now, rules)


@pytest.mark.parametrize(
    "requirement",
    [
        node_requirement("zone", "In", ["a", "unknown"]),
        node_requirement("zone", "In", ["a", "b"]),
        node_requirement("zone", "In", [""]),
        node_requirement("zone", "NotIn", ["a"]),
        node_requirement("zone", "Exists", []),
        node_requirement("zone", "DoesNotExist", []),
        node_requirement("cores", "Gt", ["3"]),
        node_requirement("cores", "Lt", ["3"]),
        node_requirement("never", "In", ["seen"]),
        node_requirement("never", "NotIn", ["seen"]),
        node_requirement("never", "DoesNotExist", []),
    ],
    ids=lambda each: f"{each.key} {each.operator} {','.join(each.values)}",
)
def test_labels_are_matched_as_by_the_reference_engine(requirement: Requirement) -> None:
    affinity = NodeSelector((NodeSelectorTerm(labels=(requirement,)),))
    engine, rules = VectorizedEngine(), SchedulerRules()
    for asking in (pod(node_affinity=affinity), pod(node_selector=(requirement,))):
        assert_agreement(asking, NODES, rules, engine)


@pytest.mark.parametrize(
    "terms",
    [
        (),
        (NodeSelectorTerm(),),
        (NodeSelectorTerm(fields=(field_requirement("metadata.name", "In", ["n2"]),)),),
        (NodeSelectorTerm(fields=(field_requirement("metadata.name", "NotIn", ["n2"]),)),),
        (NodeSelectorTerm(fields=(field_requirement("metadata.name", "NotIn", ["unknown"]),)),),
        (NodeSelectorTerm(fields=(field_requirement("other", "In", [""]),)),),
        (NodeSelectorTerm(fields=(field_requirement("other", "In", ["n2"]),)),),
        (NodeSelectorTerm(fields=(field_requirement("other", "NotIn", ["n2"]),)),),
        (
            NodeSelectorTerm(fields=(field_requirement("metadata.name", "In", ["n2"]),)),
            NodeSelectorTerm(labels=(node_requirement("zone", "In", ["a"]),)),
            NodeSelectorTerm(),
        ),
    ],
)
@every_release
def test_terms_are_matched_as_by_the_reference_engine(
    terms: tuple[NodeSelectorTerm, ...], release: Release
) -> None:
    rules = SchedulerRules(release)
    assert_agreement(pod(node_affinity=NodeSelector(terms)), NODES, rules)
