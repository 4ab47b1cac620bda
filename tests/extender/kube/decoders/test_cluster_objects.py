"""Nodes, budgets, namespaces and priority classes: absent, null and set."""

from __future__ import annotations

import pytest

from extender.kube.decoders.cluster_objects import (
    Namespace,
    PriorityClass,
    decode_budget,
    decode_namespace,
    decode_node,
    decode_priority_class,
)
from policies.kubernetes.selectors import LabelSelector, Requirement, Taint
from policies.kubernetes.snapshot import DisruptionBudget, Node, Resources
from tests.builders import Document, budget, encoded, node, node_json, pdb_json

WEB = {"app": "web"}


def test_a_node_is_read_with_what_it_can_give() -> None:
    document = node_json(
        "node-1",
        cpu="3920m",
        memory="16Gi",
        pods="60",
        others={"ephemeral-storage": "1Gi", "example.com/gpu": "2", "hugepages-2Mi": "0"},
        labels={"zone": "a"},
        taints=["gpu=yes:NoSchedule", "old:NoExecute"],
        unschedulable=True,
    )
    assert decode_node(encoded(document)) == Node(
        "node-1",
        labels={"zone": "a"},
        taints=(Taint("gpu", "yes", "NoSchedule"), Taint("old", "", "NoExecute")),
        unschedulable=True,
        allocatable=Resources(3920, 16 * 2**30, 2**30, {"example.com/gpu": 2}),
        allowed_pods=60,
    )


def test_the_builders_of_values_and_of_documents_agree() -> None:
    assert decode_node(encoded(node_json())) == node(storage="0")
    document = pdb_json(match=WEB, allowed=2, disrupted=["a"])
    assert decode_budget(encoded(document)) == budget(match=WEB, allowed=2, disrupted=["a"])


@pytest.mark.parametrize(
    "document",
    [
        {"metadata": {"name": "node-1"}},
        {"metadata": {"name": "node-1", "labels": None}, "spec": None, "status": None},
        {
            "metadata": {"name": "node-1"},
            "spec": {"taints": None, "unschedulable": None},
            "status": {"allocatable": None},
        },
    ],
)
def test_a_node_of_nulls_is_a_node_without_room(document: Document) -> None:
    assert decode_node(encoded(document)) == Node("node-1")


def test_a_taint_without_a_value_has_an_empty_one() -> None:
    taints = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "value": None}]
    document = {"metadata": {"name": "node-1"}, "spec": {"taints": taints}}
    assert decode_node(encoded(document)).taints == (
        Taint("a", "", "NoSchedule"),
        Taint("b", "", ""),
    )


@pytest.mark.parametrize(
    ("selector", "compiled"),
    [
        (None, None),
        ({}, LabelSelector()),
        ({"matchLabels": None, "matchExpressions": None}, LabelSelector()),
        ({"matchLabels": WEB}, LabelSelector((Requirement("app", "In", ("web",)),))),
        (
            {
                "matchLabels": WEB,
                "matchExpressions": [{"key": "tier", "operator": "Exists", "values": None}],
            },
            LabelSelector((Requirement("app", "In", ("web",)), Requirement("tier", "Exists"))),
        ),
    ],
)
def test_a_budgets_selector_tells_absent_from_empty(
    selector: Document | None, compiled: LabelSelector | None
) -> None:
    document = {"metadata": {"name": "web"}, "spec": {"selector": selector}}
    assert decode_budget(encoded(document)).selector == compiled


@pytest.mark.parametrize(
    "document",
    [
        {"metadata": {"name": "web"}},
        {"metadata": {"name": "web", "namespace": None}, "spec": None, "status": None},
        {
            "metadata": {"name": "web"},
            "status": {"disruptionsAllowed": None, "disruptedPods": None},
        },
    ],
)
def test_a_budget_without_a_status_allows_nothing(document: Document) -> None:
    assert decode_budget(encoded(document)) == DisruptionBudget("default", "web", None, 0)


def test_namespaces() -> None:
    labelled = {"metadata": {"name": "blue", "labels": {"team": "a"}}}
    assert decode_namespace(encoded(labelled)) == Namespace("blue", {"team": "a"})
    assert decode_namespace(b'{"metadata":{"name":"x","labels":null}}') == Namespace("x", {})


def test_priority_classes() -> None:
    high = {
        "metadata": {"name": "high"},
        "value": 1000,
        "globalDefault": True,
        "preemptionPolicy": "Never",
    }
    assert decode_priority_class(encoded(high)) == PriorityClass(
        "high", 1000, is_default=True, preempts=False
    )
    plain = {"metadata": {"name": "low"}, "globalDefault": None, "preemptionPolicy": None}
    assert decode_priority_class(encoded(plain)) == PriorityClass(
        "low", 0, is_default=False, preempts=True
    )
