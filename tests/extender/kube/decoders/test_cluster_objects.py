"""Nodes, budgets, namespaces, priority classes and workloads: fields absent, null and set."""

from __future__ import annotations

from typing import Any

import pytest

from extender.kube.decoders.cluster_objects import (
    WORKLOAD_DECODERS,
    Namespace,
    PriorityClass,
    decode_budget,
    decode_namespace,
    decode_node,
    decode_priority_class,
)
from extender.kube.decoders.typed_decoder import ObjectError
from policies.kubernetes.default_selector import WORKLOAD_KINDS, PodSelectingObject
from policies.kubernetes.selectors import LabelSelector, Requirement, Taint
from policies.kubernetes.snapshot import DisruptionBudget, Node, Resources
from tests.builders import Document, budget, encoded, node, node_json, pdb_json

WEB = {"app": "web"}
APP_IS_WEB = Requirement("app", "In", ("web",))
HASH_EXISTS = Requirement("hash", "Exists")


def test_a_complete_node_is_decoded() -> None:
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
def test_a_node_of_nulls_has_no_capacity(document: Document) -> None:
    assert decode_node(encoded(document)) == Node("node-1")


@pytest.mark.parametrize(
    ("policy", "disabled"),
    [
        ({"disableResizePreemption": ["example.com/autoscaler"]}, True),
        ({"disableResizePreemption": []}, False),
        ({"disableResizePreemption": None}, False),
        (None, False),
    ],
)
def test_any_owner_may_disable_preemption_for_resizes(
    policy: Document | None, *, disabled: bool
) -> None:
    document = node_json() | {"spec": {"podPreemptionPolicy": policy}}
    assert decode_node(encoded(document)).resize_preemption_disabled is disabled


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
        ({"matchLabels": WEB}, LabelSelector((APP_IS_WEB,))),
        (
            {
                "matchLabels": WEB,
                "matchExpressions": [{"key": "tier", "operator": "Exists", "values": None}],
            },
            LabelSelector((APP_IS_WEB, Requirement("tier", "Exists"))),
        ),
    ],
)
def test_absent_and_empty_selectors_of_a_budget_are_distinguished(
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


def test_namespaces_are_decoded() -> None:
    labelled = {"metadata": {"name": "blue", "labels": {"team": "a"}}}
    assert decode_namespace(encoded(labelled)) == Namespace("blue", {"team": "a"})
    assert decode_namespace(b'{"metadata":{"name":"x","labels":null}}') == Namespace("x", {})


def test_priority_classes_are_decoded() -> None:
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


def decode_selecting(kind: str, spec: Any, **meta: str) -> PodSelectingObject:
    document = {"metadata": {"name": "web", **meta}, "spec": spec}
    return WORKLOAD_DECODERS[kind](encoded(document))


def test_every_workload_kind_has_a_decoder() -> None:
    assert set(WORKLOAD_DECODERS) == set(WORKLOAD_KINDS)


@pytest.mark.parametrize("kind", ["Service", "ReplicationController"])
@pytest.mark.parametrize(
    ("selector", "requirements"), [(None, None), ({}, ()), ({"app": "web"}, (APP_IS_WEB,))]
)
def test_some_kinds_select_by_a_map(
    kind: str, selector: Any, requirements: tuple[Requirement, ...] | None
) -> None:
    expected = None if requirements is None else LabelSelector(requirements)
    spec = {"selector": selector, "ports": [{"port": 80}], "replicas": 3}
    assert decode_selecting(kind, spec) == PodSelectingObject(kind, "default", "web", expected)


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
@pytest.mark.parametrize(
    ("selector", "requirements"),
    [
        (None, None),
        ({}, ()),
        (
            {
                "matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "hash", "operator": "Exists"}],
            },
            (APP_IS_WEB, HASH_EXISTS),
        ),
    ],
)
def test_other_kinds_select_by_a_selector(
    kind: str, selector: Any, requirements: tuple[Requirement, ...] | None
) -> None:
    expected = None if requirements is None else LabelSelector(requirements)
    found = decode_selecting(kind, {"selector": selector, "template": {}}, namespace="blue")
    assert found == PodSelectingObject(kind, "blue", "web", expected)


@pytest.mark.parametrize("kind", WORKLOAD_KINDS)
def test_a_workload_without_a_spec_selects_nothing(kind: str) -> None:
    assert decode_selecting(kind, None).selector is None


def test_an_invalid_selector_is_reported() -> None:
    with pytest.raises(ObjectError) as raised:
        decode_selecting(
            "ReplicaSet", {"selector": {"matchExpressions": [{"key": "a", "operator": "Gt"}]}}
        )
    assert str(raised.value) == (
        "ReplicaSet web: spec.selector: 'Gt' is not a valid label selector operator"
    )
